//! Adds instructions that do nothing between those of a method's code, and adjusts all places in it.

use std::collections::HashMap;

use super::super::{ClassFileError, Constant, Reader};
use super::instructions::Spread;
use super::{length16, length32, put_attribute};

/// JVMs never compile a method with more bytes of code, which would make it many times slower (HotSpot's `HugeMethodLimit`).
const MOST_COMPILED: usize = 8_000;

/// Code attributes that contain places, by the indexes of their names. Several constants may have the same text; in a hostile
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

/// Returns code with instructions that do nothing: `first` of them at its beginning, and before each other instruction as many as
/// `next` says. Code that would become too long has those at its beginning alone. `None` where these are too many as well, and for
/// code with an attribute that may contain places in an unknown form.
///
/// # Errors
/// [`ClassFileError`] for what is no code.
pub(super) fn padded(
    code: &[u8],
    known: &KnownAttributes,
    first: usize,
    mut next: impl FnMut() -> usize,
) -> Result<Option<Vec<u8>>, ClassFileError> {
    let mut reader = Reader(code);
    let head = reader.take(4)?;
    let length = reader.u32()? as usize;
    let (instructions, rest) = (reader.take(length)?, reader.0);
    let mut at_beginning = Some(first);
    let everywhere = Spread::of(instructions, || at_beginning.take().unwrap_or_else(&mut next))?;
    let is_fast = |spread: &Spread| spread.bytes.len() <= MOST_COMPILED || length > MOST_COMPILED;
    let mut at_beginning = Some(first);
    let spread = match everywhere.filter(is_fast) {
        Some(spread) => spread,
        None => match Spread::of(instructions, || at_beginning.take().unwrap_or_default())?.filter(is_fast) {
            Some(spread) => spread,
            None => return Ok(None),
        },
    };
    let mut out = head.to_vec();
    out.extend(length32(spread.bytes.len())?);
    out.extend(&spread.bytes);
    Ok(tables(Reader(rest), known, &spread, &mut out)?.then_some(out))
}

/// Appends what follows the instructions. Returns whether every attribute is a known one.
fn tables(
    mut reader: Reader<'_>,
    known: &KnownAttributes,
    spread: &Spread,
    out: &mut Vec<u8>,
) -> Result<bool, ClassFileError> {
    let handlers = reader.u16()?;
    out.extend(handlers.to_be_bytes());
    for _ in 0..handlers {
        for _ in ["start", "end", "handler"] {
            out.extend(spread.place(usize::from(reader.u16()?))?.to_be_bytes());
        }
        out.extend(reader.take(2)?);
    }
    let attributes = reader.u16()?;
    out.extend(attributes.to_be_bytes());
    for _ in 0..attributes {
        let (name, content) = reader.attribute()?;
        let content = match known.kind(name) {
            Some(Known::Lines) => lines(content, spread)?,
            Some(Known::Variables) => variables(content, spread)?,
            Some(Known::Frames) => frames(content, spread)?,
            None => return Ok(false),
        };
        put_attribute(out, name, &content)?;
    }
    Ok(true)
}

/// A place at the beginning stays there, so that the first line includes the added instructions.
fn moved_unless_first(place: u16, spread: &Spread) -> Result<u16, ClassFileError> {
    if place == 0 { Ok(0) } else { spread.place(usize::from(place)) }
}

fn lines(mut table: Reader<'_>, spread: &Spread) -> Result<Vec<u8>, ClassFileError> {
    let count = table.u16()?;
    let mut out = count.to_be_bytes().to_vec();
    for _ in 0..count {
        out.extend(moved_unless_first(table.u16()?, spread)?.to_be_bytes());
        out.extend(table.take(2)?);
    }
    Ok(out)
}

fn variables(mut table: Reader<'_>, spread: &Spread) -> Result<Vec<u8>, ClassFileError> {
    let count = table.u16()?;
    let mut out = count.to_be_bytes().to_vec();
    for _ in 0..count {
        let (start, length) = (table.u16()?, table.u16()?);
        let begin = moved_unless_first(start, spread)?;
        let end = spread.place(usize::from(start) + usize::from(length))?;
        out.extend(begin.to_be_bytes());
        out.extend((end - begin).to_be_bytes());
        out.extend(table.take(6)?);
    }
    Ok(out)
}

/// Stack maps: the first frame's distance is from the beginning, each other one's from the instruction after the previous frame.
fn frames(mut table: Reader<'_>, spread: &Spread) -> Result<Vec<u8>, ClassFileError> {
    let count = table.u16()?;
    let mut out = count.to_be_bytes().to_vec();
    // The least places that the next frame can have, in the old code and the new one.
    let mut least = (0_usize, 0_u16);
    let mut distance = |old: u16| {
        let place = least.0 + usize::from(old);
        let new = spread.place(place)?;
        let distance = new.checked_sub(least.1).ok_or(ClassFileError("frames are in no order"))?;
        least = (place + 1, new.saturating_add(1));
        Ok::<_, ClassFileError>(distance)
    };
    for _ in 0..count {
        let kind = table.u8()?;
        match kind {
            // The same locals and an empty stack. The kind is the distance.
            0..=63 => match distance(u16::from(kind))? {
                short @ 0..=63 => out.push(short as u8),
                long => {
                    out.push(251);
                    out.extend(long.to_be_bytes());
                }
            },
            // The same locals and one stack entry.
            64..=127 => {
                match distance(u16::from(kind - 64))? {
                    short @ 0..=63 => out.push(short as u8 + 64),
                    long => {
                        out.push(247);
                        out.extend(long.to_be_bytes());
                    }
                }
                types(&mut table, 1, spread, &mut out)?;
            }
            247..=255 => {
                out.push(kind);
                out.extend(distance(table.u16()?)?.to_be_bytes());
                match kind {
                    247 => types(&mut table, 1, spread, &mut out)?,
                    252..=254 => types(&mut table, u16::from(kind - 251), spread, &mut out)?,
                    255 => {
                        for _ in ["locals", "stack"] {
                            let number = table.u16()?;
                            out.extend(length16(usize::from(number))?);
                            types(&mut table, number, spread, &mut out)?;
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

fn types(table: &mut Reader<'_>, number: u16, spread: &Spread, out: &mut Vec<u8>) -> Result<(), ClassFileError> {
    for _ in 0..number {
        let kind = table.u8()?;
        out.push(kind);
        match kind {
            0..=6 => {}
            7 => out.extend(table.take(2)?),
            // An uninitialized object of an instruction `new`, at the place of that instruction.
            8 => out.extend(spread.place(usize::from(table.u16()?))?.to_be_bytes()),
            _ => return Err(ClassFileError("a type of a stack map is of no known kind")),
        }
    }
    Ok(())
}
