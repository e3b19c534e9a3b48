//! Adds instructions that do nothing between those of a method's code, puts others in place of some, and adjusts all places in it.

use std::collections::HashMap;

use super::super::{ClassFileError, Constant, Reader};
use super::instructions::{Instruction, Spread};
use super::{length16, length32, put_attribute};

/// JVMs never compile a method with more bytes of code, which would make it many times slower (HotSpot's `HugeMethodLimit`).
const MOST_COMPILED: usize = 8_000;
/// By how much the stack may become deeper where instructions stand in place of others.
const MORE_STACK: u16 = 3;

/// The type of null in a stack map.
const NULL_TYPE: u8 = 5;

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

/// How code names constants and lines where it stands now.
#[derive(Clone, Copy)]
pub(super) struct Renumbered {
    /// What is added to each index of a constant.
    pub(super) shift: u16,
    /// The line of all instructions; `None` where each keeps its own.
    pub(super) line: Option<u16>,
}

impl Renumbered {
    /// As before.
    const SAME: Self = Self { shift: 0, line: None };

    /// Returns a constant's index now. The index 0 stands for no constant.
    pub(super) fn constant(self, index: u16) -> u16 {
        if index == 0 { 0 } else { index.saturating_add(self.shift) }
    }
}

/// Code with other instructions.
pub(super) struct Padded {
    /// The content of the code attribute.
    pub(super) content: Vec<u8>,
    /// Whether the instructions that stand in place of others are among it.
    pub(super) has_others: bool,
}

/// Returns code with instructions that do nothing: `first` of them at its beginning, and before each other instruction as many as
/// `next` says; `other` returns what stands in place of an instruction. Code that would become too long has those at its beginning
/// alone. `None` where these are too many as well, and for code with an attribute that may contain places in an unknown form.
///
/// # Errors
/// [`ClassFileError`] for what is no code, and those of `other`.
pub(super) fn padded(
    code: &[u8],
    known: &KnownAttributes,
    first: usize,
    mut next: impl FnMut() -> usize,
    mut other: impl FnMut(&Instruction<'_>) -> Result<Option<Vec<u8>>, ClassFileError>,
) -> Result<Option<Padded>, ClassFileError> {
    let mut reader = Reader(code);
    let (stack, locals) = (reader.u16()?, reader.take(2)?);
    let length = reader.u32()? as usize;
    let (instructions, rest) = (reader.take(length)?, reader.0);
    let (mut at_beginning, mut deeper) = (Some(first), 0);
    let other = |one: &Instruction<'_>| {
        let found = other(one)?;
        deeper = if found.is_some() { MORE_STACK } else { deeper };
        Ok(found)
    };
    let everywhere = Spread::of(instructions, || at_beginning.take().unwrap_or_else(&mut next), other)?;
    let is_fast = |spread: &Spread| spread.bytes.len() <= MOST_COMPILED || length > MOST_COMPILED;
    let mut at_beginning = Some(first);
    let (spread, stack, has_others) = match (everywhere.filter(is_fast), stack.checked_add(deeper)) {
        (Some(spread), Some(stack)) => (spread, stack, true),
        _ => {
            match Spread::of(instructions, || at_beginning.take().unwrap_or_default(), |_| Ok(None))?.filter(is_fast) {
                Some(spread) => (spread, stack, false),
                None => return Ok(None),
            }
        }
    };
    let mut content = stack.to_be_bytes().to_vec();
    content.extend(locals);
    content.extend(length32(spread.bytes.len())?);
    content.extend(&spread.bytes);
    let same = (&spread, Renumbered::SAME);
    Ok(tables(Reader(rest), known, same, &mut content)?.then_some(Padded { content, has_others }))
}

/// Returns code with other instructions in place of some, and without unknown attributes. `None` if it becomes too long.
///
/// # Errors
/// [`ClassFileError`] for what is no code, and those of `other`.
pub(super) fn with_others(
    code: &[u8],
    known: &KnownAttributes,
    other: impl FnMut(&Instruction<'_>) -> Result<Option<Vec<u8>>, ClassFileError>,
) -> Result<Option<Vec<u8>>, ClassFileError> {
    with_others_renumbered(code, known, other, Renumbered::SAME)
}

/// Returns the same as [`with_others`], for a class in which its constants have other indexes. The instructions keep the old ones.
///
/// # Errors
/// As [`with_others`].
pub(super) fn with_others_renumbered(
    code: &[u8],
    known: &KnownAttributes,
    other: impl FnMut(&Instruction<'_>) -> Result<Option<Vec<u8>>, ClassFileError>,
    renumbered: Renumbered,
) -> Result<Option<Vec<u8>>, ClassFileError> {
    let mut reader = Reader(code);
    let (stack, locals) = (reader.u16()?, reader.take(2)?);
    let length = reader.u32()? as usize;
    let (instructions, rest) = (reader.take(length)?, reader.0);
    let Some(stack) = stack.checked_add(MORE_STACK) else { return Ok(None) };
    let Some(spread) = Spread::of(instructions, || 0, other)? else { return Ok(None) };
    let mut content = stack.to_be_bytes().to_vec();
    content.extend(locals);
    content.extend(length32(spread.bytes.len())?);
    content.extend(&spread.bytes);
    tables(Reader(rest), known, (&spread, renumbered), &mut content)?;
    Ok(Some(content))
}

/// Appends what follows the instructions, without unknown attributes. Returns whether every attribute is a known one.
fn tables(
    mut reader: Reader<'_>,
    known: &KnownAttributes,
    (spread, renumbered): (&Spread, Renumbered),
    out: &mut Vec<u8>,
) -> Result<bool, ClassFileError> {
    let handlers = reader.u16()?;
    out.extend(handlers.to_be_bytes());
    for _ in 0..handlers {
        for _ in ["start", "end", "handler"] {
            out.extend(spread.place(usize::from(reader.u16()?))?.to_be_bytes());
        }
        out.extend(renumbered.constant(reader.u16()?).to_be_bytes());
    }
    let (mut written, mut all_known) = (Vec::new(), true);
    for _ in 0..reader.u16()? {
        let (name, content) = reader.attribute()?;
        let content = match known.kind(name) {
            Some(Known::Lines) => lines(content, spread, renumbered)?,
            Some(Known::Variables) => variables(content, spread, renumbered)?,
            Some(Known::Frames) => frames(content, (spread, renumbered))?,
            None => {
                all_known = false;
                continue;
            }
        };
        written.push((renumbered.constant(name), content));
    }
    out.extend(length16(written.len())?);
    for (name, content) in &written {
        put_attribute(out, *name, content)?;
    }
    Ok(all_known)
}

/// A place at the beginning stays there, so that the first line includes the added instructions.
fn moved_unless_first(place: u16, spread: &Spread) -> Result<u16, ClassFileError> {
    if place == 0 { Ok(0) } else { spread.place(usize::from(place)) }
}

fn lines(mut table: Reader<'_>, spread: &Spread, renumbered: Renumbered) -> Result<Vec<u8>, ClassFileError> {
    let count = table.u16()?;
    let mut out = count.to_be_bytes().to_vec();
    for _ in 0..count {
        out.extend(moved_unless_first(table.u16()?, spread)?.to_be_bytes());
        let line = table.u16()?;
        out.extend(renumbered.line.unwrap_or(line).to_be_bytes());
    }
    Ok(out)
}

fn variables(mut table: Reader<'_>, spread: &Spread, renumbered: Renumbered) -> Result<Vec<u8>, ClassFileError> {
    let count = table.u16()?;
    let mut out = count.to_be_bytes().to_vec();
    for _ in 0..count {
        let (start, length) = (table.u16()?, table.u16()?);
        let begin = moved_unless_first(start, spread)?;
        let end = spread.place(usize::from(start) + usize::from(length))?;
        out.extend(begin.to_be_bytes());
        out.extend((end - begin).to_be_bytes());
        for _ in ["name", "descriptor"] {
            out.extend(renumbered.constant(table.u16()?).to_be_bytes());
        }
        out.extend(table.take(2)?);
    }
    Ok(out)
}

/// Stack maps: the first frame's distance is from the beginning, each other one's from the instruction after the previous frame.
fn frames(mut table: Reader<'_>, (spread, renumbered): (&Spread, Renumbered)) -> Result<Vec<u8>, ClassFileError> {
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
                types(&mut table, 1, (spread, renumbered), &mut out)?;
            }
            247..=255 => {
                out.push(kind);
                out.extend(distance(table.u16()?)?.to_be_bytes());
                match kind {
                    247 => types(&mut table, 1, (spread, renumbered), &mut out)?,
                    252..=254 => types(&mut table, u16::from(kind - 251), (spread, renumbered), &mut out)?,
                    255 => {
                        for _ in ["locals", "stack"] {
                            let number = table.u16()?;
                            out.extend(length16(usize::from(number))?);
                            types(&mut table, number, (spread, renumbered), &mut out)?;
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

fn types(
    table: &mut Reader<'_>,
    number: u16,
    (spread, renumbered): (&Spread, Renumbered),
    out: &mut Vec<u8>,
) -> Result<(), ClassFileError> {
    for _ in 0..number {
        let kind = table.u8()?;
        out.push(kind);
        match kind {
            0..=6 => {}
            7 => out.extend(renumbered.constant(table.u16()?).to_be_bytes()),
            // An uninitialized object of an instruction `new`, at the place of that instruction.
            8 => {
                let place = usize::from(table.u16()?);
                let new = spread.place(place)?;
                match (spread.is_null(place), out.last_mut()) {
                    (true, Some(kind)) => *kind = NULL_TYPE,
                    _ => out.extend(new.to_be_bytes()),
                }
            }
            _ => return Err(ClassFileError("a type of a stack map is of no known kind")),
        }
    }
    Ok(())
}
