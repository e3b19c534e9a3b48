//! Adds instructions that do nothing at the beginning of a method's code, and adjusts all positions in the code.

use std::collections::HashMap;

use super::super::{ClassFileError, Constant, Reader};
use super::{length16, length32, put_attribute};

/// The most bytes of code that a method can have.
const MOST_CODE: usize = 65_535;
/// The instruction that does nothing.
const NOP: u8 = 0;

/// Code attributes that contain positions, by the indexes of their names. Several constants may have the same text; in a hostile
/// class all may have it.
pub(super) struct KnownAttributes {
    known: HashMap<u16, Known>,
}

#[derive(Clone, Copy)]
enum Known {
    Lines,
    Variables,
    Frames,
}

impl KnownAttributes {
    pub(super) fn of(constants: &[Constant<'_>]) -> Self {
        let kind = |constant: &Constant<'_>| match constant {
            Constant::Text(b"LineNumberTable") => Some(Known::Lines),
            Constant::Text(b"LocalVariableTable" | b"LocalVariableTypeTable") => Some(Known::Variables),
            Constant::Text(b"StackMapTable") => Some(Known::Frames),
            _ => None,
        };
        let known =
            constants.iter().enumerate().filter_map(|(index, one)| Some((u16::try_from(index).ok()?, kind(one)?)));
        Self { known: known.collect() }
    }

    fn kind(&self, name: u16) -> Option<Known> {
        self.known.get(&name).copied()
    }
}

/// Returns code with `by` bytes of instructions that do nothing before it. `by` must be a multiple of four, because
/// switches are aligned. `None` if the code becomes too long, or has an attribute that may contain positions in an
/// unknown form.
pub(super) fn padded(code: &[u8], known: &KnownAttributes, by: u16) -> Result<Option<Vec<u8>>, ClassFileError> {
    let mut reader = Reader(code);
    let mut out = reader.take(4)?.to_vec();
    let length = reader.u32()? as usize;
    let instructions = reader.take(length)?;
    if length + usize::from(by) > MOST_CODE {
        return Ok(None);
    }
    out.extend(length32(length + usize::from(by))?);
    out.resize(out.len() + usize::from(by), NOP);
    out.extend(instructions);
    let handlers = reader.u16()?;
    out.extend(handlers.to_be_bytes());
    for _ in 0..handlers {
        for _ in ["start", "end", "handler"] {
            out.extend(moved(reader.u16()?, by)?);
        }
        out.extend(reader.take(2)?);
    }
    let attributes = reader.u16()?;
    out.extend(attributes.to_be_bytes());
    for _ in 0..attributes {
        let (name, content) = reader.attribute()?;
        let content = match known.kind(name) {
            Some(Known::Lines) => lines(content, by)?,
            Some(Known::Variables) => variables(content, by)?,
            Some(Known::Frames) => frames(content, by)?,
            None => return Ok(None),
        };
        put_attribute(&mut out, name, &content)?;
    }
    Ok(Some(out))
}

fn moved(place: u16, by: u16) -> Result<[u8; 2], ClassFileError> {
    place.checked_add(by).map(u16::to_be_bytes).ok_or(ClassFileError("a place lies beyond its code"))
}

/// A position at the beginning stays there, so that the first line includes the added instructions.
fn moved_unless_first(place: u16, by: u16) -> Result<[u8; 2], ClassFileError> {
    moved(place, if place == 0 { 0 } else { by })
}

fn lines(mut table: Reader<'_>, by: u16) -> Result<Vec<u8>, ClassFileError> {
    let count = table.u16()?;
    let mut out = count.to_be_bytes().to_vec();
    for _ in 0..count {
        out.extend(moved_unless_first(table.u16()?, by)?);
        out.extend(table.take(2)?);
    }
    Ok(out)
}

fn variables(mut table: Reader<'_>, by: u16) -> Result<Vec<u8>, ClassFileError> {
    let count = table.u16()?;
    let mut out = count.to_be_bytes().to_vec();
    for _ in 0..count {
        let (start, length) = (table.u16()?, table.u16()?);
        out.extend(moved_unless_first(start, by)?);
        // A parameter's range begins at the start and keeps its end.
        out.extend(moved(length, if start == 0 { by } else { 0 })?);
        out.extend(table.take(6)?);
    }
    Ok(out)
}

/// Stack maps: the first frame's distance is from the beginning, each other one's from the previous frame.
fn frames(mut table: Reader<'_>, by: u16) -> Result<Vec<u8>, ClassFileError> {
    let count = table.u16()?;
    let mut out = count.to_be_bytes().to_vec();
    for number in 0..count {
        let by_here = if number == 0 { by } else { 0 };
        let kind = table.u8()?;
        match kind {
            // The same locals and an empty stack. The kind is the distance.
            0..=63 => match u16::from(kind) + by_here {
                short @ 0..=63 => out.push(short as u8),
                long => {
                    out.push(251);
                    out.extend(long.to_be_bytes());
                }
            },
            // The same locals and one stack entry.
            64..=127 => {
                match u16::from(kind - 64) + by_here {
                    short @ 0..=63 => out.push(short as u8 + 64),
                    long => {
                        out.push(247);
                        out.extend(long.to_be_bytes());
                    }
                }
                types(&mut table, 1, by, &mut out)?;
            }
            247..=255 => {
                out.push(kind);
                out.extend(moved(table.u16()?, by_here)?);
                match kind {
                    247 => types(&mut table, 1, by, &mut out)?,
                    252..=254 => types(&mut table, u16::from(kind - 251), by, &mut out)?,
                    255 => {
                        for _ in ["locals", "stack"] {
                            let number = table.u16()?;
                            out.extend(length16(usize::from(number))?);
                            types(&mut table, number, by, &mut out)?;
                        }
                    }
                    _ => {}
                }
            }
            _ => return Err(ClassFileError("a stack map is of no known kind")),
        }
    }
    Ok(out)
}

fn types(table: &mut Reader<'_>, number: u16, by: u16, out: &mut Vec<u8>) -> Result<(), ClassFileError> {
    for _ in 0..number {
        let kind = table.u8()?;
        out.push(kind);
        match kind {
            0..=6 => {}
            7 => out.extend(table.take(2)?),
            // An uninitialized object of an instruction `new`, at the position of that instruction.
            8 => out.extend(moved(table.u16()?, by)?),
            _ => return Err(ClassFileError("a type of a stack map is of no known kind")),
        }
    }
    Ok(())
}
