//! Reads compiled classes: two facts, the name and the source file's name ([`ClassFacts`]), or everything that the
//! source mentions ([`ClassContent`]).
//!
//! Class files of an untrusted build are untrusted: every length is checked, and nothing is followed twice. Source:
//! Java Virtual Machine Specification, chapter 4.

mod content;
pub mod edit;
pub mod family;

pub use content::{AnnotatedClass, ClassContent};

/// The largest class file that is read, in bytes.
pub const MOST_CLASS_BYTES: u64 = 16 << 20;

/// The facts of a class file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassFacts {
    /// Its binary name with slashes, such as `p/A$B`.
    pub name: String,
    /// The source file, without a directory; `None` if the compiler omitted it.
    pub source_file: Option<String>,
}

/// Bytes that are not a class file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a class file: {0}")]
pub struct ClassFileError(&'static str);

/// The first four bytes of a class file.
const MAGIC: u32 = 0xCAFE_BABE;

const TRUNCATED: ClassFileError = ClassFileError("it ends early");

/// A constant. Only the needed kinds are distinguished.
#[derive(Clone, Copy)]
enum Constant<'a> {
    Text(&'a [u8]),
    Class(u16),
    /// A string literal: its text.
    String(u16),
    /// A field or method: its class, and its name and descriptor.
    Member(u16, u16),
    NameAndType(u16, u16),
    /// A lambda, method reference or joined string: the number of its bootstrap method, and name and descriptor of the method that makes it.
    Dynamic(u16, u16),
    /// A method handle: its field or method.
    Handle(u16),
    Other,
}

impl ClassFacts {
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
        reader.skip(2)?;
        let name = match constants.get(usize::from(reader.u16()?)) {
            Some(Constant::Class(name)) => text(*name)?,
            _ => return Err(ClassFileError("its class is none")),
        };
        reader.skip(2)?;
        let interfaces = reader.u16()?;
        reader.skip(2 * usize::from(interfaces))?;
        for _members in ["fields", "methods"] {
            for _ in 0..reader.u16()? {
                reader.skip(6)?;
                for _ in 0..reader.u16()? {
                    reader.attribute()?;
                }
            }
        }
        let mut source_file = None;
        for _ in 0..reader.u16()? {
            let (attribute, mut content) = reader.attribute()?;
            if text(attribute)? == "SourceFile" {
                source_file = Some(text(content.u16()?)?);
            }
        }
        Ok(Self { name, source_file })
    }

    /// Returns its package with slashes, empty for the unnamed one.
    pub fn package(&self) -> &str {
        self.name.rsplit_once('/').map_or("", |(package, _)| package)
    }
}

fn constants<'a>(reader: &mut Reader<'a>) -> Result<Vec<Constant<'a>>, ClassFileError> {
    let count = usize::from(reader.u16()?);
    // The first index is unused.
    let mut constants = vec![Constant::Other];
    while constants.len() < count {
        let constant = match reader.u8()? {
            1 => {
                let length = usize::from(reader.u16()?);
                Constant::Text(reader.take(length)?)
            }
            7 => Constant::Class(reader.u16()?),
            8 => Constant::String(reader.u16()?),
            9..=11 => Constant::Member(reader.u16()?, reader.u16()?),
            12 => Constant::NameAndType(reader.u16()?, reader.u16()?),
            18 => Constant::Dynamic(reader.u16()?, reader.u16()?),
            16 | 19 | 20 => reader.skip(2).map(|()| Constant::Other)?,
            15 => {
                reader.skip(1)?;
                Constant::Handle(reader.u16()?)
            }
            3 | 4 | 17 => reader.skip(4).map(|()| Constant::Other)?,
            5 | 6 => {
                // Long and double constants take two indexes.
                constants.push(Constant::Other);
                reader.skip(8).map(|()| Constant::Other)?
            }
            _ => return Err(ClassFileError("a constant is of no known kind")),
        };
        constants.push(constant);
    }
    Ok(constants)
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], ClassFileError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(TRUNCATED)?;
        self.0 = rest;
        Ok(taken)
    }

    fn skip(&mut self, length: usize) -> Result<(), ClassFileError> {
        self.take(length).map(drop)
    }

    fn u8(&mut self) -> Result<u8, ClassFileError> {
        Ok(self.take(1)?[0])
    }

    fn u16(&mut self) -> Result<u16, ClassFileError> {
        let bytes = self.take(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn u32(&mut self) -> Result<u32, ClassFileError> {
        let bytes = self.take(4)?;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn attribute(&mut self) -> Result<(u16, Reader<'a>), ClassFileError> {
        let name = self.u16()?;
        let length = usize::try_from(self.u32()?).map_err(|_| TRUNCATED)?;
        Ok((name, Reader(self.take(length)?)))
    }
}

/// Returns a small class file for tests.
#[cfg(test)]
pub(crate) fn sample(name: &str, source_file: Option<&str>) -> Vec<u8> {
    let mut bytes = vec![0xCA, 0xFE, 0xBA, 0xBE, 0, 0, 0, 52, 0, 5];
    for text in [name, "SourceFile", source_file.unwrap_or("")] {
        bytes.push(1);
        bytes.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
        bytes.extend(text.as_bytes());
    }
    bytes.extend([7, 0, 1]);
    // Access, class, superclass, then no interface, field or method.
    bytes.extend([0, 1, 0, 4, 0, 4, 0, 0, 0, 0, 0, 0]);
    match source_file {
        Some(_) => bytes.extend([0, 1, 0, 2, 0, 0, 0, 2, 0, 3]),
        None => bytes.extend([0, 0]),
    }
    bytes
}

#[cfg(test)]
mod tests;
