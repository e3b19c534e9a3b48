//! Rewrites a class: with other code in some methods, or with the same behaviour in other bytes.
//!
//! Nothing of the class is executed. Unchanged parts are copied byte for byte. Source: Java Virtual Machine
//! Specification, chapter 4.

mod bodies;
mod graft;
mod instructions;
mod numbers;
mod padding;
mod state;

use std::borrow::Cow;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng as _};

use self::bodies::Bodies;
pub use self::bodies::Code;
pub use self::graft::with_code_of;
use self::numbers::Numbers;

use super::{ClassFileError, Constant, MAGIC, Reader, constants};

/// The most constants that a class can have.
const MOST_CONSTANTS: usize = 65_535;

/// The facts of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodFacts<'a> {
    /// Its name; `<init>` for a constructor.
    pub name: Cow<'a, str>,
    /// Its descriptor.
    pub descriptor: Cow<'a, str>,
    /// The lines of its code, in no order; empty if the compiler omitted them.
    pub lines: Vec<usize>,
}

/// Replaces the code of methods by what `choose` returns for them. Methods without code are skipped. `None` if none was chosen.
///
/// # Errors
/// [`ClassFileError`], also for a method whose code can't be of the chosen kind.
pub fn with_code<'c>(
    bytes: &[u8],
    mut choose: impl FnMut(&MethodFacts<'_>) -> Option<Code<'c>>,
) -> Result<Option<Vec<u8>>, ClassFileError> {
    let class = Class::read(bytes)?;
    let (mut added, mut bodies, mut chosen) = (Added::after(&class), Bodies::of(&class), false);
    let codes = class.codes(|method, content| {
        let facts = class.facts(method, content)?;
        let Some(code) = choose(&facts) else { return Ok(None) };
        chosen = true;
        bodies.other_code(content, code, &facts.descriptor, &mut added).map(Some)
    })?;
    let written = class.write(class.pool, &added, &codes)?;
    Ok(chosen.then_some(written))
}

/// Returns a class with the same behaviour in other bytes, which the random numbers decide. Instructions that do nothing stand at
/// the beginning of methods and before every second of the others, numbers are computed from other numbers, and there are further
/// constants.
///
/// # Errors
/// [`ClassFileError`].
pub fn rebuilt(bytes: &[u8], random: &mut ChaCha8Rng) -> Result<Vec<u8>, ClassFileError> {
    let class = Class::read(bytes)?;
    let mut added = Added::after(&class);
    for _ in 0..random.next_u32() % 6 + 3 {
        added.text(&format!("{:016x}", random.next_u64()))?;
    }
    let known = padding::KnownAttributes::of(&class.constants);
    let mut numbers = Numbers::of(&class, random)?;
    let codes = class.codes(|_, content| {
        let first = numbers.random().next_u32() as usize % 13 + 4;
        let mut bits = ChaCha8Rng::seed_from_u64(numbers.random().next_u64());
        numbers.begin();
        let next = || (bits.next_u32() & 1) as usize;
        let padded = padding::padded(content, &known, first, next, |one| numbers.other(one, &mut added));
        // What another compiler or tool has written so that nobody here can read it keeps its bytes.
        let padded = padded.ok().flatten();
        match &padded {
            Some(padded) if padded.has_others => numbers.written(),
            _ => numbers.unwritten(content),
        }
        Ok(padded.map(|padded| padded.content))
    })?;
    let pool = numbers.pool(class.pool);
    class.write(&pool, &added, &codes)
}

/// The needed parts of a class file.
struct Class<'a> {
    constants: Vec<Constant<'a>>,
    /// Versions, without the magic number.
    versions: &'a [u8],
    /// The constants, without their count.
    pool: &'a [u8],
    /// From the access flags to the last field.
    head: &'a [u8],
    methods: Vec<Method<'a>>,
    /// The class's attributes, with their count.
    attributes: &'a [u8],
}

struct Method<'a> {
    /// Access flags, name and descriptor.
    head: &'a [u8],
    name: u16,
    descriptor: u16,
    attributes: Vec<(u16, &'a [u8])>,
}

impl Method<'_> {
    /// Returns its access flags.
    fn flags(&self) -> u16 {
        self.head.first_chunk().map_or(0, |flags| u16::from_be_bytes(*flags))
    }
}

impl<'a> Class<'a> {
    /// Returns the constant of its own name.
    fn this(&self) -> u16 {
        match self.head {
            [_, _, high, low, ..] => u16::from_be_bytes([*high, *low]),
            _ => 0,
        }
    }

    fn read(bytes: &'a [u8]) -> Result<Self, ClassFileError> {
        let mut reader = Reader(bytes);
        if reader.u32()? != MAGIC {
            return Err(ClassFileError("it does not begin as one"));
        }
        let versions = reader.take(4)?;
        let pool = reader.0;
        let constants = constants(&mut reader)?;
        let pool = &pool[2..pool.len() - reader.0.len()];
        let head = reader.0;
        reader.skip(6)?;
        let interfaces = reader.u16()?;
        reader.skip(2 * usize::from(interfaces))?;
        for _ in 0..reader.u16()? {
            reader.skip(6)?;
            for _ in 0..reader.u16()? {
                reader.attribute()?;
            }
        }
        let head = &head[..head.len() - reader.0.len()];
        let mut methods = Vec::new();
        for _ in 0..reader.u16()? {
            let head = reader.take(6)?;
            let mut parts = Reader(head);
            parts.skip(2)?;
            let (name, descriptor) = (parts.u16()?, parts.u16()?);
            let mut attributes = Vec::new();
            for _ in 0..reader.u16()? {
                let (name, content) = reader.attribute()?;
                attributes.push((name, content.0));
            }
            methods.push(Method { head, name, descriptor, attributes });
        }
        Ok(Self { constants, versions, pool, head, methods, attributes: reader.0 })
    }

    fn text(&self, index: u16) -> Result<&'a [u8], ClassFileError> {
        match self.constants.get(usize::from(index)) {
            Some(Constant::Text(text)) => Ok(text),
            _ => Err(ClassFileError("a name is no text")),
        }
    }

    /// Returns a method's code, with the index of its attribute's name; `None` if it has none.
    fn code(&self, method: &Method<'a>) -> Result<Option<(u16, &'a [u8])>, ClassFileError> {
        for (name, content) in &method.attributes {
            if self.text(*name)? == b"Code" {
                return Ok(Some((*name, content)));
            }
        }
        Ok(None)
    }

    fn facts(&self, method: &Method<'a>, code: &'a [u8]) -> Result<MethodFacts<'a>, ClassFileError> {
        Ok(MethodFacts {
            name: String::from_utf8_lossy(self.text(method.name)?),
            descriptor: String::from_utf8_lossy(self.text(method.descriptor)?),
            lines: self.lines(code)?,
        })
    }

    /// Returns the lines of code.
    fn lines(&self, code: &'a [u8]) -> Result<Vec<usize>, ClassFileError> {
        let mut lines = Vec::new();
        for (name, content) in attributes_of_code(code)? {
            if self.text(name)? != b"LineNumberTable" {
                continue;
            }
            let mut table = Reader(content);
            for _ in 0..table.u16()? {
                table.skip(2)?;
                lines.push(usize::from(table.u16()?));
            }
        }
        Ok(lines)
    }

    /// Returns each method's new code, by its attributes in order; `None` for what stays.
    fn codes(
        &self,
        mut code: impl FnMut(&Method<'a>, &'a [u8]) -> Result<Option<Vec<u8>>, ClassFileError>,
    ) -> Result<Codes, ClassFileError> {
        let mut codes = Vec::new();
        for method in &self.methods {
            for (name, content) in &method.attributes {
                codes.push(if self.text(*name)? == b"Code" { code(method, content)? } else { None });
            }
        }
        Ok(codes)
    }

    /// Writes the class with these constants, added ones behind them, and its methods' new code.
    fn write(&self, pool: &[u8], added: &Added, codes: &Codes) -> Result<Vec<u8>, ClassFileError> {
        self.write_with(pool, added, codes, &[])
    }

    /// Returns the bytes of the class file as [`Self::write`] does, with further methods.
    fn write_with(
        &self,
        pool: &[u8],
        added: &Added,
        codes: &Codes,
        further: &[Vec<u8>],
    ) -> Result<Vec<u8>, ClassFileError> {
        let mut out = MAGIC.to_be_bytes().to_vec();
        out.extend(self.versions);
        out.extend(added.next.to_be_bytes());
        out.extend(pool);
        out.extend(&added.bytes);
        out.extend(self.head);
        out.extend(length16(self.methods.len() + further.len())?);
        let mut codes = codes.iter();
        for method in &self.methods {
            out.extend(method.head);
            out.extend(length16(method.attributes.len())?);
            for ((name, content), code) in method.attributes.iter().zip(codes.by_ref()) {
                put_attribute(&mut out, *name, code.as_deref().unwrap_or(content))?;
            }
        }
        further.iter().for_each(|method| out.extend(method));
        out.extend(self.attributes);
        Ok(out)
    }
}

/// New code for the attributes of methods, in order.
type Codes = Vec<Option<Vec<u8>>>;

/// Constants that are added after those of a class.
struct Added {
    bytes: Vec<u8>,
    /// The next constant's index; in the end, the count of all.
    next: u16,
}

impl Added {
    fn after(class: &Class<'_>) -> Self {
        // There are at most 65,535, because the count has 16 bits.
        Self { bytes: Vec::new(), next: u16::try_from(class.constants.len()).unwrap_or(u16::MAX) }
    }

    fn push(&mut self, tag: u8, content: &[u8]) -> Result<u16, ClassFileError> {
        let index = self.next;
        if usize::from(index) >= MOST_CONSTANTS {
            return Err(ClassFileError("it has no room for further constants"));
        }
        self.next += 1;
        self.bytes.push(tag);
        self.bytes.extend(content);
        Ok(index)
    }

    fn text(&mut self, text: &str) -> Result<u16, ClassFileError> {
        let mut content = length16(text.len())?.to_vec();
        content.extend(text.as_bytes());
        self.push(1, &content)
    }

    fn pair(&mut self, tag: u8, one: u16, other: u16) -> Result<u16, ClassFileError> {
        self.push(tag, &[one.to_be_bytes(), other.to_be_bytes()].concat())
    }

    fn class(&mut self, name: &str) -> Result<u16, ClassFileError> {
        let name = self.text(name)?;
        self.push(7, &name.to_be_bytes())
    }

    fn string(&mut self, text: &str) -> Result<u16, ClassFileError> {
        let text = self.text(text)?;
        self.push(8, &text.to_be_bytes())
    }

    fn method(&mut self, class: &str, name: &str, descriptor: &str) -> Result<u16, ClassFileError> {
        let class = self.class(class)?;
        self.member(10, class, name, descriptor)
    }

    /// Adds a method of a class that is there; `tag` tells methods of interfaces apart.
    fn member(&mut self, tag: u8, class: u16, name: &str, descriptor: &str) -> Result<u16, ClassFileError> {
        let (name, descriptor) = (self.text(name)?, self.text(descriptor)?);
        let member = self.pair(12, name, descriptor)?;
        self.pair(tag, class, member)
    }
}

/// Returns the attributes of code, with their names as indexes.
fn attributes_of_code(code: &[u8]) -> Result<Vec<(u16, &[u8])>, ClassFileError> {
    let mut reader = Reader(code);
    reader.skip(4)?;
    let length = usize::try_from(reader.u32()?).map_err(|_| super::TRUNCATED)?;
    reader.skip(length)?;
    let handlers = reader.u16()?;
    reader.skip(8 * usize::from(handlers))?;
    let mut attributes = Vec::new();
    for _ in 0..reader.u16()? {
        let (name, content) = reader.attribute()?;
        attributes.push((name, content.0));
    }
    Ok(attributes)
}

fn put_attribute(out: &mut Vec<u8>, name: u16, content: &[u8]) -> Result<(), ClassFileError> {
    out.extend(name.to_be_bytes());
    out.extend(length32(content.len())?);
    out.extend(content);
    Ok(())
}

fn length16(length: usize) -> Result<[u8; 2], ClassFileError> {
    u16::try_from(length).map(u16::to_be_bytes).map_err(|_| ClassFileError("a part of it is too long"))
}

fn length32(length: usize) -> Result<[u8; 4], ClassFileError> {
    u32::try_from(length).map(u32::to_be_bytes).map_err(|_| ClassFileError("a part of it is too long"))
}

#[cfg(test)]
mod tests;
