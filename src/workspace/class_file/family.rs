//! Finds the concrete subclasses in which a test method of an abstract class or an interface runs.
//!
//! `execution::launch` asks for them. A subclass counts only if it runs the abstract class's own method: a subclass that
//! overrides the method runs another one. A subclass also has to be one that a launcher can start by itself: at the top
//! level, a static member class, or one that Jupiter nests. Whether it is a test is for the launcher to find out.

use std::collections::{BTreeMap, BTreeSet};

use super::{ClassFileError, Constant, MAGIC, Reader, constants};

/// The most subclasses that one method runs in. Every one costs a container for each launch of the method.
pub const MOST_SUBCLASSES: usize = 8;

/// The longest binary name of a subclass, in bytes.
const MOST_NAME_BYTES: usize = 512;

const PRIVATE: u16 = 0x0002;
const STATIC: u16 = 0x0008;
const INTERFACE: u16 = 0x0200;
const ABSTRACT: u16 = 0x0400;
const SYNTHETIC: u16 = 0x1000;

/// Jupiter's annotation of a test class that is not static.
const NESTED: &[u8] = b"Lorg/junit/jupiter/api/Nested;";

/// What a class file says of its class's place among other classes. Names have slashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassShape {
    name: String,
    superclass: Option<String>,
    interfaces: Vec<String>,
    access: u16,
    source_file: Option<String>,
    /// Whether a launcher can start it by itself, if it is concrete.
    startable: bool,
    /// Name and parameters of the methods that it declares.
    methods: BTreeSet<(String, String)>,
}

/// The classes that are related to a test file's class by inheritance, as far as they are test classes of its module.
#[derive(Clone, Debug, Default)]
pub struct Family {
    classes: BTreeMap<String, ClassShape>,
}

/// The concrete subclasses that a method runs in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subclasses {
    /// Their binary names: those of other files first, then those of the class's own file, each sorted.
    pub classes: Vec<String>,
    /// How many more there are: see [`MOST_SUBCLASSES`].
    pub left_out: usize,
}

impl ClassShape {
    /// Reads a class file.
    ///
    /// # Errors
    /// [`ClassFileError`].
    pub fn read(bytes: &[u8]) -> Result<Self, ClassFileError> {
        let mut reader = Reader(bytes);
        if reader.u32()? != MAGIC {
            return Err(ClassFileError("it does not begin as one"));
        }
        reader.skip(4)?;
        let constants = constants(&mut reader)?;
        let text = |index: u16| match constants.get(usize::from(index)) {
            Some(Constant::Text(text)) => Ok(String::from_utf8_lossy(text).into_owned()),
            _ => Err(ClassFileError("a name is no text")),
        };
        let class = |index: u16| match constants.get(usize::from(index)) {
            Some(Constant::Class(name)) => text(*name),
            _ => Err(ClassFileError("a class is none")),
        };
        let access = reader.u16()?;
        let name = class(reader.u16()?)?;
        let superclass = match reader.u16()? {
            0 => None,
            index => Some(class(index)?),
        };
        let mut interfaces = Vec::new();
        for _ in 0..reader.u16()? {
            interfaces.push(class(reader.u16()?)?);
        }
        let mut methods = BTreeSet::new();
        for is_method in [false, true] {
            for _ in 0..reader.u16()? {
                reader.skip(2)?;
                let (name, descriptor) = (reader.u16()?, reader.u16()?);
                if is_method {
                    let descriptor = text(descriptor)?;
                    let parameters = descriptor.rsplit_once(')').map_or("", |(parameters, _)| parameters);
                    methods.insert((text(name)?, parameters.to_owned()));
                }
                for _ in 0..reader.u16()? {
                    reader.attribute()?;
                }
            }
        }
        let is_nested = constants.iter().any(|constant| matches!(constant, Constant::Text(text) if *text == NESTED));
        let (mut source_file, mut startable) = (None, true);
        for _ in 0..reader.u16()? {
            let (attribute, mut content) = reader.attribute()?;
            match text(attribute)?.as_str() {
                "SourceFile" => source_file = Some(text(content.u16()?)?),
                "InnerClasses" => {
                    for _ in 0..content.u16()? {
                        let (inner, outer) = (content.u16()?, content.u16()?);
                        let (simple_name, flags) = (content.u16()?, content.u16()?);
                        if class(inner)? == name {
                            let is_member = outer != 0 && simple_name != 0;
                            startable = is_member && flags & PRIVATE == 0 && (flags & STATIC != 0 || is_nested);
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(Self { name, superclass, interfaces, access, source_file, startable, methods })
    }

    /// Returns the class's binary name with dots.
    fn binary_name(&self) -> String {
        self.name.replace('/', ".")
    }

    /// Tells whether the class is abstract or an interface.
    pub fn is_abstract(&self) -> bool {
        self.access & (ABSTRACT | INTERFACE) != 0
    }

    fn is_startable(&self) -> bool {
        // The name becomes an argument and part of events; a build's class files may name anything.
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '_' | '$');
        !self.is_abstract()
            && self.access & SYNTHETIC == 0
            && self.startable
            && self.name.len() <= MOST_NAME_BYTES
            && self.name.chars().all(is_plain)
    }

    fn is_of_the_same_file(&self, other: &Self) -> bool {
        let package = |name: &str| name.rsplit_once('/').map_or(String::new(), |(package, _)| package.to_owned());
        self.source_file == other.source_file && package(&self.name) == package(&other.name)
    }

    fn parents(&self) -> impl Iterator<Item = &String> {
        self.superclass.iter().chain(&self.interfaces)
    }
}

impl Family {
    /// Returns the family of these classes.
    pub fn of(classes: impl IntoIterator<Item = ClassShape>) -> Self {
        Self { classes: classes.into_iter().map(|class| (class.name.clone(), class)).collect() }
    }

    /// Returns the subclasses that run the method of a class, given its binary name. `None` for a class that is
    /// concrete or unknown, which runs its methods itself.
    pub fn subclasses(&self, class: &str, method: &str) -> Option<Subclasses> {
        let target = self.classes.get(&class.replace('.', "/")).filter(|class| class.is_abstract())?;
        let of_that_name = target.methods.iter().filter(|(name, _)| name == method);
        let declared: Vec<&(String, String)> = of_that_name.collect();
        let runs_it = |one: &&ClassShape| {
            one.is_startable()
                && self.ancestors(one).contains(target.name.as_str())
                && declared.iter().any(|method| self.runs(one, target, method))
        };
        let mut found: Vec<&ClassShape> = self.classes.values().filter(runs_it).collect();
        // The file's own subclasses come last, so that a file can't push those of other files out.
        found.sort_by_key(|one| (one.is_of_the_same_file(target), &one.name));
        let left_out = found.len().saturating_sub(MOST_SUBCLASSES);
        let classes = found.into_iter().take(MOST_SUBCLASSES).map(ClassShape::binary_name).collect();
        Some(Subclasses { classes, left_out })
    }

    /// Returns the names of all classes that a class inherits from, without itself.
    fn ancestors<'a>(&'a self, class: &'a ClassShape) -> BTreeSet<&'a str> {
        let (mut found, mut left) = (BTreeSet::new(), vec![class]);
        while let Some(class) = left.pop() {
            for parent in class.parents() {
                if found.insert(parent.as_str()) {
                    left.extend(self.classes.get(parent));
                }
            }
        }
        found
    }

    /// Tells whether a call of the method on an object of `class` reaches the target's own declaration. Classes that
    /// are no test classes are unknown and count as not declaring the method.
    fn runs(&self, class: &ClassShape, target: &ClassShape, method: &(String, String)) -> bool {
        let mut seen = BTreeSet::new();
        let mut next = Some(class);
        while let Some(one) = next.filter(|one| seen.insert(&one.name)) {
            if one.methods.contains(method) {
                return one.name == target.name;
            }
            next = one.superclass.as_ref().and_then(|superclass| self.classes.get(superclass));
        }
        // No class declares it, so an interface does. Any other interface with that method may be the one that runs.
        let above = self.ancestors(target);
        let others = self.ancestors(class).into_iter().filter(|name| *name != target.name && !above.contains(name));
        !others.filter_map(|name| self.classes.get(name)).any(|one| one.methods.contains(method))
    }
}

#[cfg(test)]
mod tests;
