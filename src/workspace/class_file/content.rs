//! Reads the parts of a class file that show what its source mentions: names, texts, references, annotations.
//!
//! `submission::mentions` uses it. Code is not read, because everything that code refers to is among the constants. A text that
//! is named many times is in memory once: a small class file can name a long text 65,535 times.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use super::{ClassFileError, Constant, Reader, constants};

/// The deepest nesting of annotations.
const MOST_DEPTH: usize = 32;

/// The content of a class file without its code. Names of classes have slashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassContent {
    /// Its binary name.
    pub name: Rc<str>,
    /// Its superclass; `None` for `java/lang/Object` itself and for a module.
    pub superclass: Option<Rc<str>>,
    /// The interfaces that it implements or extends.
    pub interfaces: Vec<Rc<str>>,
    /// Every text among its constants: string literals, names, descriptors, strings of annotations.
    pub texts: Vec<Rc<str>>,
    /// String literals, each once. Strings that javac joins are one; where a part is not constant, U+0001 stands for that part.
    pub strings: Vec<Rc<str>>,
    /// Fields and methods that it refers to, its own included: class and name.
    pub references: Vec<(Rc<str>, Rc<str>)>,
    /// Interfaces that its lambdas and method references implement.
    pub lambdas: Vec<Rc<str>>,
    /// Names of the methods that it declares.
    pub methods: Vec<Rc<str>>,
    /// Classes in annotations of the class and its methods.
    pub annotated: Vec<AnnotatedClass>,
    /// Annotations of its methods, but for those within others.
    pub marks: Vec<Mark>,
}

/// An annotation of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The method's name.
    pub method: Rc<str>,
    /// Its descriptor.
    pub descriptor: Rc<str>,
    /// The annotation's class.
    pub annotation: Rc<str>,
}

/// A class in an annotation: `@Test(expected = Error.class)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnotatedClass {
    /// The annotated method's name; `None` for an annotation of the class.
    pub method: Option<Rc<str>>,
    /// The annotation's class.
    pub annotation: Rc<str>,
    /// The element's name.
    pub element: Rc<str>,
    /// The class.
    pub class: Rc<str>,
}

impl ClassContent {
    /// Reads a class file.
    ///
    /// # Errors
    /// [`ClassFileError`].
    pub fn read(bytes: &[u8]) -> Result<Self, ClassFileError> {
        let mut reader = Reader(bytes);
        if reader.u32()? != 0xCAFE_BABE {
            return Err(ClassFileError("it does not begin as one"));
        }
        reader.skip(4)?;
        let constants = Constants::of(constants(&mut reader)?);
        reader.skip(2)?;
        let name = constants.class(reader.u16()?)?;
        let superclass = match reader.u16()? {
            0 => None,
            index => Some(constants.class(index)?),
        };
        let mut content = Self {
            name,
            superclass,
            interfaces: Vec::new(),
            texts: Vec::new(),
            strings: Vec::new(),
            references: Vec::new(),
            lambdas: Vec::new(),
            methods: Vec::new(),
            annotated: Vec::new(),
            marks: Vec::new(),
        };
        constants.collect(&mut content)?;
        for _ in 0..reader.u16()? {
            content.interfaces.push(constants.class(reader.u16()?)?);
        }
        for is_method in [false, true] {
            for _ in 0..reader.u16()? {
                reader.skip(2)?;
                let (name, descriptor) = (reader.u16()?, reader.u16()?);
                let before = content.annotated.len();
                let annotations = content.attributes(&mut reader, &constants, is_method)?;
                if is_method {
                    let (name, descriptor) = (constants.text(name)?, constants.text(descriptor)?);
                    content.marks.extend(annotations.into_iter().map(|annotation| {
                        let (method, descriptor) = (Rc::clone(&name), Rc::clone(&descriptor));
                        Mark { method, descriptor, annotation }
                    }));
                    for annotated in &mut content.annotated[before..] {
                        annotated.method = Some(Rc::clone(&name));
                    }
                    content.methods.push(name);
                }
            }
        }
        content.attributes(&mut reader, &constants, true)?;
        Ok(content)
    }

    /// Reads attributes, and returns the annotations among them.
    fn attributes(
        &mut self,
        reader: &mut Reader<'_>,
        constants: &Constants<'_>,
        are_read: bool,
    ) -> Result<Vec<Rc<str>>, ClassFileError> {
        let mut annotations = Vec::new();
        for _ in 0..reader.u16()? {
            let (name, mut attribute) = reader.attribute()?;
            if are_read && &*constants.text(name)? == "RuntimeVisibleAnnotations" {
                for _ in 0..attribute.u16()? {
                    annotations.push(self.annotation(&mut attribute, constants, 0)?);
                }
            }
        }
        Ok(annotations)
    }

    fn annotation(
        &mut self,
        reader: &mut Reader<'_>,
        constants: &Constants<'_>,
        depth: usize,
    ) -> Result<Rc<str>, ClassFileError> {
        let annotation = constants.described(reader.u16()?)?;
        for _ in 0..reader.u16()? {
            let element = constants.text(reader.u16()?)?;
            self.value(reader, constants, (&annotation, &element), depth)?;
        }
        Ok(annotation)
    }

    fn value(
        &mut self,
        reader: &mut Reader<'_>,
        constants: &Constants<'_>,
        (annotation, element): (&Rc<str>, &Rc<str>),
        depth: usize,
    ) -> Result<(), ClassFileError> {
        if depth > MOST_DEPTH {
            return Err(ClassFileError("its annotations lie too deep in each other"));
        }
        match reader.u8()? {
            b'B' | b'C' | b'D' | b'F' | b'I' | b'J' | b'S' | b'Z' | b's' => reader.skip(2),
            b'e' => reader.skip(4),
            b'c' => {
                let class = constants.described(reader.u16()?)?;
                let (annotation, element) = (Rc::clone(annotation), Rc::clone(element));
                self.annotated.push(AnnotatedClass { method: None, annotation, element, class });
                Ok(())
            }
            b'@' => self.annotation(reader, constants, depth + 1).map(drop),
            b'[' => {
                for _ in 0..reader.u16()? {
                    self.value(reader, constants, (annotation, element), depth + 1)?;
                }
                Ok(())
            }
            _ => Err(ClassFileError("an annotation's value is of no known kind")),
        }
    }
}

/// Returns the class of a descriptor, `Lp/A;`. Other descriptors are returned unchanged.
fn described(descriptor: &str) -> &str {
    let class = descriptor.strip_prefix('L').and_then(|rest| rest.strip_suffix(';'));
    class.unwrap_or(descriptor)
}

struct Constants<'a> {
    all: Vec<Constant<'a>>,
    /// Texts that were read before, by index.
    texts: RefCell<HashMap<u16, Rc<str>>>,
    /// Classes of descriptors, and of what descriptors of methods return, by the descriptor's index.
    described: RefCell<HashMap<(u16, bool), Rc<str>>>,
}

impl<'a> Constants<'a> {
    fn of(all: Vec<Constant<'a>>) -> Self {
        Self { all, texts: RefCell::default(), described: RefCell::default() }
    }

    fn text(&self, index: u16) -> Result<Rc<str>, ClassFileError> {
        match self.all.get(usize::from(index)) {
            Some(Constant::Text(text)) => {
                let mut texts = self.texts.borrow_mut();
                Ok(Rc::clone(texts.entry(index).or_insert_with(|| String::from_utf8_lossy(text).into())))
            }
            _ => Err(ClassFileError("a name is no text")),
        }
    }

    /// Returns the class of a descriptor.
    fn described(&self, index: u16) -> Result<Rc<str>, ClassFileError> {
        let text = self.text(index)?;
        Ok(Rc::clone(self.described.borrow_mut().entry((index, false)).or_insert_with(|| described(&text).into())))
    }

    /// Returns the class that a method's descriptor returns.
    fn returned(&self, index: u16) -> Result<Rc<str>, ClassFileError> {
        let text = self.text(index)?;
        let returned = || described(text.rsplit(')').next().unwrap_or_default()).into();
        Ok(Rc::clone(self.described.borrow_mut().entry((index, true)).or_insert_with(returned)))
    }

    fn class(&self, index: u16) -> Result<Rc<str>, ClassFileError> {
        match self.all.get(usize::from(index)) {
            Some(Constant::Class(name)) => self.text(*name),
            _ => Err(ClassFileError("a class is none")),
        }
    }

    /// Returns the indexes of a member's name and descriptor.
    fn name_and_type(&self, index: u16) -> Result<(u16, u16), ClassFileError> {
        match self.all.get(usize::from(index)) {
            Some(Constant::NameAndType(name, descriptor)) => Ok((*name, *descriptor)),
            _ => Err(ClassFileError("a member has no name")),
        }
    }

    fn collect(&self, content: &mut ClassContent) -> Result<(), ClassFileError> {
        let (mut strings, mut lambdas) = (BTreeSet::new(), BTreeSet::new());
        for (index, constant) in self.all.iter().enumerate() {
            match constant {
                Constant::Text(_) => {
                    // A class has at most 65,535 constants, so each index fits.
                    content.texts.extend(u16::try_from(index).ok().map(|index| self.text(index)).transpose()?);
                }
                Constant::String(text) => {
                    if strings.insert(*text) {
                        content.strings.push(self.text(*text)?);
                    }
                }
                Constant::Member(class, member) => {
                    let (name, descriptor) = self.name_and_type(*member)?;
                    self.text(descriptor)?;
                    content.references.push((self.class(*class)?, self.text(name)?));
                }
                Constant::Dynamic(_, member) => {
                    let (name, descriptor) = self.name_and_type(*member)?;
                    self.text(name)?;
                    if lambdas.insert(descriptor) {
                        content.lambdas.push(self.returned(descriptor)?);
                    }
                }
                Constant::Class(_) | Constant::NameAndType(..) | Constant::Handle(_) | Constant::Other => {}
            }
        }
        Ok(())
    }
}
