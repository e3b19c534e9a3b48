//! Rewrites a class: with other code in some methods, or with the same behaviour in other bytes.
//!
//! Nothing of the class is executed. Unchanged parts are copied byte for byte. Source: Java Virtual Machine
//! Specification, chapter 4.

mod instructions;
mod padding;

use std::borrow::Cow;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng as _};

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

/// Other code for a method.
#[derive(Clone, Copy, Debug)]
pub enum Code<'a> {
    /// Throws a [`java.lang.Error`](https://docs.oracle.com/javase/8/docs/api/java/lang/Error.html) with this message, in ASCII.
    Throws(&'a str),
    /// Returns at once: nothing, zero or null.
    Returns,
}

/// Replaces the code of chosen methods. Methods without code are skipped. `None` if none was chosen.
///
/// # Errors
/// [`ClassFileError`].
pub fn with_code(
    bytes: &[u8],
    mut choose: impl FnMut(&MethodFacts<'_>) -> bool,
    code: Code<'_>,
) -> Result<Option<Vec<u8>>, ClassFileError> {
    let class = Class::read(bytes)?;
    let mut added = Added::after(&class);
    let throws = match code {
        Code::Throws(message) => Some(added.error(message)?),
        Code::Returns => None,
    };
    let mut chosen = false;
    let written = class.write(&mut added, |method, content| {
        let facts = class.facts(method, content)?;
        if !choose(&facts) {
            return Ok(None);
        }
        chosen = true;
        Ok(Some(other_code(content, throws, &facts.descriptor)?))
    })?;
    Ok(chosen.then_some(written))
}

/// Returns a class with the same behaviour in other bytes, which the random numbers decide. Instructions that do nothing stand at
/// the beginning of methods and before every second of the others, and there are further constants.
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
    class.write(&mut added, |_, content| {
        let first = random.next_u32() as usize % 13 + 4;
        let mut bits = ChaCha8Rng::seed_from_u64(random.next_u64());
        let padded = padding::padded(content, &known, first, || (bits.next_u32() & 1) as usize);
        // What another compiler or tool has written so that nobody here can read it keeps its bytes.
        Ok(padded.ok().flatten())
    })
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

impl<'a> Class<'a> {
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

    /// Writes the class with the added constants. `code` returns a method's new code, or `None` to keep it.
    fn write(
        &self,
        added: &mut Added,
        mut code: impl FnMut(&Method<'a>, &'a [u8]) -> Result<Option<Vec<u8>>, ClassFileError>,
    ) -> Result<Vec<u8>, ClassFileError> {
        let mut out = MAGIC.to_be_bytes().to_vec();
        out.extend(self.versions);
        out.extend(added.next.to_be_bytes());
        out.extend(self.pool);
        out.extend(&added.bytes);
        out.extend(self.head);
        out.extend(length16(self.methods.len())?);
        for method in &self.methods {
            out.extend(method.head);
            out.extend(length16(method.attributes.len())?);
            for (name, content) in &method.attributes {
                let other = if self.text(*name)? == b"Code" { code(method, content)? } else { None };
                put_attribute(&mut out, *name, other.as_deref().unwrap_or(content))?;
            }
        }
        out.extend(self.attributes);
        Ok(out)
    }
}

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

    /// Adds the constants of an error with a message. Returns the indexes of its class, message and constructor.
    fn error(&mut self, message: &str) -> Result<[u16; 3], ClassFileError> {
        let name = self.text("java/lang/Error")?;
        let class = self.push(7, &name.to_be_bytes())?;
        let message = self.text(message)?;
        let message = self.push(8, &message.to_be_bytes())?;
        let (name, descriptor) = (self.text("<init>")?, self.text("(Ljava/lang/String;)V")?);
        let constructor = self.pair(12, name, descriptor)?;
        Ok([class, message, self.pair(10, class, constructor)?])
    }
}

/// Returns a method's new code. It has no branches, so it needs no stack maps. It keeps the parameters' slots.
fn other_code(code: &[u8], throws: Option<[u16; 3]>, descriptor: &str) -> Result<Vec<u8>, ClassFileError> {
    let mut reader = Reader(code);
    reader.skip(2)?;
    let locals = reader.u16()?;
    let instructions = match throws {
        Some([class, message, constructor]) => {
            let ([a, b], [c, d], [e, f]) = (class.to_be_bytes(), message.to_be_bytes(), constructor.to_be_bytes());
            // new, dup, ldc_w, invokespecial, athrow
            vec![0xbb, a, b, 0x59, 0x13, c, d, 0xb7, e, f, 0xbf]
        }
        None => match descriptor.rsplit_once(')').map_or("", |(_, returned)| returned) {
            "V" => vec![0xb1],
            "Z" | "B" | "C" | "S" | "I" => vec![0x03, 0xac],
            "J" => vec![0x09, 0xad],
            "F" => vec![0x0b, 0xae],
            "D" => vec![0x0e, 0xaf],
            _ => vec![0x01, 0xb0],
        },
    };
    let mut other = 3_u16.to_be_bytes().to_vec();
    other.extend(locals.to_be_bytes());
    other.extend(length32(instructions.len())?);
    other.extend(instructions);
    // No exception handlers and no attributes.
    other.extend([0, 0, 0, 0]);
    Ok(other)
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
