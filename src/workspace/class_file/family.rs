//! Finds the concrete subclasses in which a test method of an abstract class or an interface runs.
//!
//! `execution::launch` asks for them. A subclass counts only if it runs the abstract class's own method: a subclass that
//! overrides the method runs another one. A subclass also has to be one that a launcher can start by itself: at the top
//! level, a static member class, or one that Jupiter nests. Whether it is a test is for the launcher to find out.
//!
//! A submission decides how many classes there are, and every launch asks anew. So the time of an answer grows with the
//! number of classes, parents and methods, and with no product of these. Each text of a class file is in memory once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::{ClassFileError, Constant, MAGIC, Reader, constants};

/// The most subclasses that one method runs in. Every one costs a container for each launch of the method.
pub const MOST_SUBCLASSES: usize = 8;

/// The most overloads of a method that count, those with the first parameters in order: a bit of a number for each.
const MOST_OVERLOADS: usize = u64::BITS as usize;

/// The longest binary name of a class, in bytes. Longer names belong to no subclass or parent.
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
    name: Arc<str>,
    superclass: Option<Arc<str>>,
    interfaces: Vec<Arc<str>>,
    access: u16,
    source_file: Option<Arc<str>>,
    /// Whether a launcher can start it by itself, if it is concrete.
    startable: bool,
    /// Name and parameters of the methods that it declares.
    methods: BTreeSet<(Arc<str>, Arc<str>)>,
}

/// The classes that are related to a test file's class by inheritance, as far as they are test classes of its module.
#[derive(Clone, Debug, Default)]
pub struct Family {
    /// Sorted by name, each name once.
    classes: Vec<ClassShape>,
    /// The indexes of the classes whose superclass each class is.
    extended: Vec<Vec<usize>>,
    /// The indexes of the classes whose superclass or interface each class is.
    inherited: Vec<Vec<usize>>,
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
        let mut texts = Texts::of(constants(&mut reader)?);
        let access = reader.u16()?;
        let name = texts.class(reader.u16()?)?;
        let superclass = match reader.u16()? {
            0 => None,
            index => Some(texts.class(index)?),
        };
        let mut interfaces = BTreeSet::new();
        for _ in 0..reader.u16()? {
            interfaces.insert(texts.name_of_class(reader.u16()?)?);
        }
        let interfaces = interfaces.into_iter().map(|name| texts.text(name)).collect::<Result<_, _>>()?;
        let mut methods = BTreeSet::new();
        for is_method in [false, true] {
            for _ in 0..reader.u16()? {
                reader.skip(2)?;
                let (name, descriptor) = (reader.u16()?, reader.u16()?);
                if is_method {
                    let parameters = texts.parameters(descriptor)?;
                    methods.insert((texts.text(name)?, parameters));
                }
                for _ in 0..reader.u16()? {
                    reader.attribute()?;
                }
            }
        }
        let is_nested = |constant: &Constant<'_>| matches!(constant, Constant::Text(text) if *text == NESTED);
        let is_nested = texts.constants.iter().any(is_nested);
        let (mut source_file, mut startable) = (None, true);
        for _ in 0..reader.u16()? {
            let (attribute, mut content) = reader.attribute()?;
            match &*texts.text(attribute)? {
                "SourceFile" => source_file = Some(texts.text(content.u16()?)?),
                "InnerClasses" => {
                    for _ in 0..content.u16()? {
                        let (inner, outer) = (content.u16()?, content.u16()?);
                        let (simple_name, flags) = (content.u16()?, content.u16()?);
                        if texts.class(inner)? == name {
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
        self.source_file == other.source_file && package(&self.name) == package(&other.name)
    }

    fn parents(&self) -> impl Iterator<Item = &Arc<str>> {
        self.superclass.iter().chain(&self.interfaces)
    }

    /// Returns the parameters of each method of a name that the class declares, sorted.
    fn overloads<'a>(&'a self, method: &'a str) -> impl Iterator<Item = &'a str> {
        let of_that_name = self.methods.iter().filter(move |(name, _)| &**name == method);
        of_that_name.map(|(_, parameters)| &**parameters)
    }
}

fn package(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(package, _)| package)
}

/// The texts of a class file, each in memory once: a small class file can name a long one 65,535 times.
struct Texts<'a> {
    constants: Vec<Constant<'a>>,
    /// Texts that were read before, by index.
    known: HashMap<u16, Arc<str>>,
    /// Parameters of descriptors, by the descriptor's index.
    parameters: HashMap<u16, Arc<str>>,
}

impl<'a> Texts<'a> {
    fn of(constants: Vec<Constant<'a>>) -> Self {
        Self { constants, known: HashMap::new(), parameters: HashMap::new() }
    }

    fn text(&mut self, index: u16) -> Result<Arc<str>, ClassFileError> {
        match self.constants.get(usize::from(index)) {
            Some(Constant::Text(text)) => {
                Ok(Arc::clone(self.known.entry(index).or_insert_with(|| String::from_utf8_lossy(text).into())))
            }
            _ => Err(ClassFileError("a name is no text")),
        }
    }

    fn class(&mut self, index: u16) -> Result<Arc<str>, ClassFileError> {
        let name = self.name_of_class(index)?;
        self.text(name)
    }

    /// Returns the index of a class's name.
    fn name_of_class(&self, index: u16) -> Result<u16, ClassFileError> {
        match self.constants.get(usize::from(index)) {
            Some(Constant::Class(name)) => Ok(*name),
            _ => Err(ClassFileError("a class is none")),
        }
    }

    /// Returns a method's parameters, with the parenthesis before them.
    fn parameters(&mut self, descriptor: u16) -> Result<Arc<str>, ClassFileError> {
        let text = self.text(descriptor)?;
        let parameters = || text.rsplit_once(')').map_or("", |(parameters, _)| parameters).into();
        Ok(Arc::clone(self.parameters.entry(descriptor).or_insert_with(parameters)))
    }
}

impl Family {
    /// Returns the family of these classes.
    pub fn of(classes: impl IntoIterator<Item = ClassShape>) -> Self {
        let classes = classes.into_iter().map(|class| (Arc::clone(&class.name), class));
        let classes: BTreeMap<Arc<str>, ClassShape> = classes.collect();
        let classes: Vec<ClassShape> = classes.into_values().collect();
        let mut family =
            Self { extended: vec![Vec::new(); classes.len()], inherited: vec![Vec::new(); classes.len()], classes };
        let names = family.classes.iter().map(|class| &*class.name).zip(0..);
        let indexes: HashMap<&str, usize> = names.filter(|(name, _)| name.len() <= MOST_NAME_BYTES).collect();
        for (at, class) in family.classes.iter().enumerate() {
            let index = |name: &Arc<str>| indexes.get(&**name).filter(|_| name.len() <= MOST_NAME_BYTES).copied();
            if let Some(superclass) = class.superclass.as_ref().and_then(index) {
                family.extended[superclass].push(at);
            }
            for parent in class.parents().filter_map(index) {
                family.inherited[parent].push(at);
            }
        }
        family
    }

    /// Returns the subclasses that run the method of a class, given its binary name. `None` for a class that is
    /// concrete or unknown, which runs its methods itself.
    pub fn subclasses(&self, class: &str, method: &str) -> Option<Subclasses> {
        let at = self.index(&class.replace('.', "/"))?;
        let target = Some(&self.classes[at]).filter(|class| class.is_abstract())?;
        let running = self.classes.iter().zip(self.runs(at, method));
        let found = running.filter(|(one, runs)| *runs && one.is_startable()).map(|(one, _)| one);
        // The file's own subclasses come last, so that a file can't push those of other files out.
        let (own, mut found): (Vec<&ClassShape>, Vec<&ClassShape>) =
            found.partition(|one| one.is_of_the_same_file(target));
        found.extend(own);
        let left_out = found.len().saturating_sub(MOST_SUBCLASSES);
        let classes = found.into_iter().take(MOST_SUBCLASSES).map(ClassShape::binary_name).collect();
        Some(Subclasses { classes, left_out })
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.classes.binary_search_by(|class| (*class.name).cmp(name)).ok()
    }

    /// Tells for each class whether it inherits from the target, and a call of the target's method on an object of that
    /// class reaches the target's own declaration. Of several overloads, one is enough. Classes that are no test
    /// classes are unknown and count as not declaring the method.
    fn runs(&self, target: usize, method: &str) -> Vec<bool> {
        let declared: Vec<&str> = self.classes[target].overloads(method).take(MOST_OVERLOADS).collect();
        let bit = |overload: usize| 1_u64 << overload;
        let all = (0..declared.len()).fold(0, |bits, overload| bits | bit(overload));
        let own = |class: &ClassShape| {
            let same = class.overloads(method).filter_map(|parameters| declared.binary_search(&parameters).ok());
            same.fold(0, |bits, overload| bits | bit(overload))
        };
        let own: Vec<u64> = self.classes.iter().map(own).collect();
        // If the target is a superclass, the classes between the two may override the method.
        let mut between = own.clone();
        between[target] = 0;
        pass_down(&mut between, &self.extended, target);
        // Otherwise an interface declares what runs, unless a superclass does. Any interface that declares the method
        // may be the one, except those that the target inherits from.
        let mut elsewhere = own;
        for at in self.above(target).into_iter().chain([target]) {
            elsewhere[at] = 0;
        }
        pass_down(&mut elsewhere, &self.inherited, target);
        let mut extending = vec![0; self.classes.len()];
        extending[target] = 1;
        let mut inheriting = extending.clone();
        pass_down(&mut extending, &self.extended, target);
        pass_down(&mut inheriting, &self.inherited, target);
        let overridden = |at: usize| match extending[at] {
            0 => between[at] | elsewhere[at],
            _ => between[at],
        };
        (0..self.classes.len()).map(|at| inheriting[at] != 0 && overridden(at) != all).collect()
    }

    /// Returns the indexes of the classes that a class inherits from.
    fn above(&self, class: usize) -> BTreeSet<usize> {
        let (mut above, mut left) = (BTreeSet::new(), vec![class]);
        while let Some(at) = left.pop() {
            for parent in self.classes[at].parents().filter_map(|name| self.index(name)) {
                if above.insert(parent) {
                    left.push(parent);
                }
            }
        }
        above
    }
}

/// Adds the bits of each class to all classes below it, except that none pass through the target. Each class passes on
/// each bit once, so this takes at most 64 steps for a pair of parent and child.
fn pass_down(bits: &mut [u64], children: &[Vec<usize>], target: usize) {
    let mut left: Vec<usize> = (0..bits.len()).filter(|at| bits[*at] != 0).collect();
    while let Some(at) = left.pop() {
        for child in children[at].iter().copied().filter(|child| *child != target) {
            let passed = bits[child] | bits[at];
            if passed != bits[child] {
                bits[child] = passed;
                left.push(child);
            }
        }
    }
}

#[cfg(test)]
mod tests;
