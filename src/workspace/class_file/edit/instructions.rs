//! Writes the instructions of a method's code at other places: with instructions that do nothing between them, and with others in
//! place of some. Source: Java Virtual Machine Specification, chapter 6.

use std::collections::BTreeSet;

use super::super::{ClassFileError, Reader, TRUNCATED};

/// The most bytes of code that a method can have.
const MOST_CODE: usize = 65_535;
/// The instruction that does nothing.
const NOP: u8 = 0;
/// Where no instruction begins.
const NOWHERE: u16 = u16::MAX;

/// Loads a constant whose index has one byte, and two.
pub(super) const LDC: u8 = 0x12;
pub(super) const LDC_W: u8 = 0x13;
pub(super) const IINC: u8 = 0x84;
const RET: u8 = 0xa9;
const TABLESWITCH: u8 = 0xaa;
const LOOKUPSWITCH: u8 = 0xab;
const WIDE: u8 = 0xc4;
/// The instruction that creates an object without calling its constructor.
pub(super) const NEW: u8 = 0xbb;

/// An instruction, and where it begins.
pub(super) struct Instruction<'a> {
    place: usize,
    bytes: &'a [u8],
    /// The opcode behind it, if there is one.
    pub(super) next: Option<u8>,
}

/// Code at other places.
pub(super) struct Spread {
    /// The instructions.
    pub(super) bytes: Vec<u8>,
    /// By place in the old code, the place in the new one; the last is the end.
    places: Vec<u16>,
    /// Old places of instructions `new` that others stand for.
    no_objects: BTreeSet<usize>,
}

impl Spread {
    /// Writes code anew, with as many instructions that do nothing before each one as `before` says, which is asked only where the
    /// one before goes on to it. `other` returns the bytes that stand in place of an instruction: at least one byte and no jump.
    /// `None` if the code becomes too long for itself or for one of its jumps.
    ///
    /// # Errors
    /// [`ClassFileError`] for what is no code, and those of `other`.
    pub(super) fn of(
        code: &[u8],
        mut before: impl FnMut() -> usize,
        other: impl FnMut(&Instruction<'_>) -> Result<Option<Vec<u8>>, ClassFileError>,
    ) -> Result<Option<Self>, ClassFileError> {
        let instructions = decoded(code)?;
        let others = instructions.iter().map(other).collect::<Result<Vec<_>, _>>()?;
        let mut places = vec![NOWHERE; code.len() + 1];
        let (mut place, mut goes_on) = (0, true);
        for (one, other) in instructions.iter().zip(&others) {
            place += if goes_on { before() } else { 0 };
            let Some(new) = u16::try_from(place).ok().filter(|new| *new != NOWHERE) else { return Ok(None) };
            places[one.place] = new;
            place += other.as_ref().map_or_else(|| one.length_at(place), Vec::len);
            goes_on = one.goes_on();
        }
        let Some(end) = u16::try_from(place).ok().filter(|_| place < MOST_CODE) else { return Ok(None) };
        places[code.len()] = end;
        let changed = instructions.iter().zip(&others).filter(|(one, other)| one.opcode() == NEW && other.is_some());
        let no_objects = changed.map(|(one, _)| one.place).collect();
        let mut spread = Self { bytes: Vec::with_capacity(place), places, no_objects };
        for (one, other) in instructions.iter().zip(&others) {
            let new = usize::from(spread.place(one.place)?);
            spread.bytes.resize(new, NOP);
            match other {
                Some(bytes) => spread.bytes.extend(bytes),
                None if !one.write(&mut spread)? => return Ok(None),
                None => {}
            }
        }
        Ok(Some(spread))
    }

    /// Returns the new position of the instruction that began at `old`, or of the code's end.
    pub(super) fn place(&self, old: usize) -> Result<u16, ClassFileError> {
        let new = self.places.get(old).copied().filter(|new| *new != NOWHERE);
        new.ok_or(ClassFileError("a place is no instruction"))
    }

    /// Tells whether the instruction `new` that began at a place creates no object any more, but leaves null.
    pub(super) fn is_null(&self, old: usize) -> bool {
        self.no_objects.contains(&old)
    }

    /// Returns the distance of a jump from an instruction.
    fn distance(&self, from: usize, old: i32) -> Result<i32, ClassFileError> {
        let target = i32::try_from(from).ok().and_then(|from| from.checked_add(old));
        let target = target.and_then(|target| usize::try_from(target).ok());
        let target = self.place(target.ok_or(ClassFileError("a jump leaves its code"))?)?;
        Ok(i32::from(target) - i32::from(self.place(from)?))
    }
}

impl Instruction<'_> {
    pub(super) fn opcode(&self) -> u8 {
        self.bytes[0]
    }

    /// Returns the instruction's bytes after its opcode.
    pub(super) fn operands(&self) -> &[u8] {
        &self.bytes[1..]
    }

    /// Returns the constant that its first two operands name; 0, which is no constant, if it has fewer.
    pub(super) fn constant(&self) -> u16 {
        match self.bytes {
            [_, high, low, ..] => u16::from_be_bytes([*high, *low]),
            _ => 0,
        }
    }

    /// Returns its length at another place: switches are aligned.
    fn length_at(&self, place: usize) -> usize {
        match self.opcode() {
            TABLESWITCH | LOOKUPSWITCH => self.bytes.len() - gap(self.place) + gap(place),
            _ => self.bytes.len(),
        }
    }

    /// Tells whether the instruction behind it may come next without a jump.
    fn goes_on(&self) -> bool {
        match self.opcode() {
            // goto, jsr, ret, switches, returns; athrow, goto_w, jsr_w
            0xa7..=0xb1 | 0xbf | 0xc8 | 0xc9 => false,
            WIDE => self.bytes[1] != RET,
            _ => true,
        }
    }

    /// Appends it with the distances of its jumps. Returns whether they fit.
    fn write(&self, spread: &mut Spread) -> Result<bool, ClassFileError> {
        let mut reader = Reader(&self.bytes[1..]);
        let mut bytes = vec![self.opcode()];
        match self.opcode() {
            // if…, goto, jsr, ifnull, ifnonnull
            0x99..=0xa8 | 0xc6 | 0xc7 => {
                let distance = spread.distance(self.place, i32::from(reader.u16()?.cast_signed()))?;
                let Ok(distance) = i16::try_from(distance) else { return Ok(false) };
                bytes.extend(distance.to_be_bytes());
            }
            // goto_w, jsr_w
            0xc8 | 0xc9 => {
                bytes.extend(spread.distance(self.place, reader.u32()?.cast_signed())?.to_be_bytes());
            }
            opcode @ (TABLESWITCH | LOOKUPSWITCH) => {
                reader.skip(gap(self.place))?;
                bytes.resize(1 + gap(spread.bytes.len()), 0);
                bytes.extend(spread.distance(self.place, reader.u32()?.cast_signed())?.to_be_bytes());
                // The lowest and the highest key, or the number of keys.
                bytes.extend(reader.take(if opcode == TABLESWITCH { 8 } else { 4 })?);
                while !reader.0.is_empty() {
                    if opcode == LOOKUPSWITCH {
                        bytes.extend(reader.take(4)?);
                    }
                    bytes.extend(spread.distance(self.place, reader.u32()?.cast_signed())?.to_be_bytes());
                }
            }
            _ => bytes.extend(reader.0),
        }
        spread.bytes.extend(bytes);
        Ok(true)
    }
}

/// Returns the indexes of constants that instructions of one kind name.
///
/// # Errors
/// [`ClassFileError`] for what is no code.
pub(super) fn constants_of(code: &[u8], opcode: u8) -> Result<BTreeSet<u16>, ClassFileError> {
    let instructions = decoded(code)?;
    Ok(instructions.iter().filter(|one| one.opcode() == opcode).map(Instruction::constant).collect())
}

/// Returns code whose instructions name other constants.
///
/// # Errors
/// [`ClassFileError`] for what is no code, and for an instruction that has no room for every index.
pub(super) fn with_constants(code: &[u8], other: impl Fn(u16) -> u16) -> Result<Vec<u8>, ClassFileError> {
    let mut out = Vec::with_capacity(code.len());
    for one in decoded(code)? {
        match one.opcode() {
            LDC => return Err(ClassFileError("an instruction has no room for an index")),
            // ldc_w, ldc2_w, fields, methods, new, anewarray, checkcast, instanceof, multianewarray
            LDC_W | 0x14 | 0xb2..=NEW | 0xbd | 0xc0 | 0xc1 | 0xc5 => {
                out.push(one.opcode());
                out.extend(other(one.constant()).to_be_bytes());
                out.extend(&one.bytes[3..]);
            }
            _ => out.extend(one.bytes),
        }
    }
    Ok(out)
}

/// Returns the number of bytes between a switch's opcode at a place and what follows.
fn gap(place: usize) -> usize {
    3 - place % 4
}

fn decoded(code: &[u8]) -> Result<Vec<Instruction<'_>>, ClassFileError> {
    let (mut instructions, mut rest) = (Vec::new(), Reader(code));
    while !rest.0.is_empty() {
        let place = code.len() - rest.0.len();
        let bytes = rest.take(length(rest.0, place)?)?;
        instructions.push(Instruction { place, bytes, next: rest.0.first().copied() });
    }
    Ok(instructions)
}

/// Returns the length of the first instruction.
fn length(code: &[u8], place: usize) -> Result<usize, ClassFileError> {
    let mut reader = Reader(code);
    Ok(match reader.u8()? {
        // bipush, ldc, loads and stores with an index, ret, newarray
        0x10 | 0x12 | 0x15..=0x19 | 0x36..=0x3a | RET | 0xbc => 2,
        // sipush, ldc_w, ldc2_w, iinc, jumps, fields, methods, new, anewarray, checkcast, instanceof
        0x11 | 0x13 | 0x14 | IINC | 0x99..=0xa8 | 0xb2..=0xb8 | 0xbb | 0xbd | 0xc0 | 0xc1 | 0xc6 | 0xc7 => 3,
        // multianewarray
        0xc5 => 4,
        // invokeinterface, invokedynamic, goto_w, jsr_w
        0xb9 | 0xba | 0xc8 | 0xc9 => 5,
        WIDE => match reader.u8()? {
            IINC => 6,
            _ => 4,
        },
        TABLESWITCH => {
            reader.skip(gap(place) + 4)?;
            let (low, high) = (reader.u32()?.cast_signed(), reader.u32()?.cast_signed());
            let keys = i64::from(high) - i64::from(low) + 1;
            13 + gap(place) + 4 * usize::try_from(keys).map_err(|_| TRUNCATED)?
        }
        LOOKUPSWITCH => {
            reader.skip(gap(place) + 4)?;
            9 + gap(place) + 8 * usize::try_from(reader.u32()?).map_err(|_| TRUNCATED)?
        }
        0..=0xc9 => 1,
        _ => return Err(ClassFileError("an instruction is of no known kind")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(code: &[u8], gaps: &[usize]) -> Option<Vec<u8>> {
        let mut gaps = gaps.iter().copied();
        Spread::of(code, || gaps.next().unwrap_or_default(), |_| Ok(None)).unwrap().map(|spread| spread.bytes)
    }

    #[test]
    fn jumps_lead_to_the_same_instructions() {
        // 0 iload_0, 1 ifeq 8, 4 iinc, 7 nop, 8 goto 0, 11 goto_w 4: nothing is put behind what never goes on.
        let code = [0x1a, 0x99, 0, 7, 0x84, 0, 1, 0, 0xa7, 0xff, 0xf8, 0xc8, 0xff, 0xff, 0xff, 0xf9];
        let expected =
            [&[0, 0x1a, 0, 0, 0x99, 0, 9, 0x84, 0, 1, 0, 0, 0][..], &[0xa7, 0xff, 0xf4, 0xc8, 0xff, 0xff, 0xff, 0xf7]];
        assert_eq!(spread(&code, &[1, 2, 0, 1, 1]).unwrap(), expected.concat());
        assert_eq!(spread(&code, &[]).unwrap(), code);
    }

    #[test]
    fn switches_are_aligned_and_lead_to_the_same_instructions() {
        // 0 iload_0, 1 tableswitch of the keys 5 and 6, 24 iload_0, 25 lookupswitch of one key, 44 return
        let mut code = vec![0x1a, TABLESWITCH, 0, 0];
        for number in [23, 5, 6, 43, 23] {
            code.extend(i32::to_be_bytes(number));
        }
        code.extend([0x1a, LOOKUPSWITCH, 0, 0]);
        for number in [19, 1, 9, -25] {
            code.extend(i32::to_be_bytes(number));
        }
        code.push(0xb1);
        assert_eq!(spread(&code, &[]).unwrap(), code);
        let mut expected = vec![0, 0x1a, 0, TABLESWITCH];
        for number in [21, 5, 6, 41, 21] {
            expected.extend(i32::to_be_bytes(number));
        }
        expected.extend([0x1a, 0, LOOKUPSWITCH, 0]);
        for number in [18, 1, 9, -25] {
            expected.extend(i32::to_be_bytes(number));
        }
        expected.push(0xb1);
        assert_eq!(spread(&code, &[1, 1, 1]).unwrap(), expected);
    }

    #[test]
    fn other_instructions_stand_at_the_places_of_the_old_ones() {
        // 0 iconst_1, 1 ifeq 0, 4 new, 7 return
        let code = [0x04, 0x99, 0xff, 0xff, NEW, 0, 1, 0xb1];
        let other = |one: &Instruction<'_>| {
            Ok(match one.opcode() {
                0x04 => Some(vec![0x10, 1]),
                NEW => Some(vec![0x01]),
                _ => None,
            })
        };
        let spread = Spread::of(&code, || 1, other).unwrap().unwrap();
        assert_eq!(spread.bytes, [0, 0x10, 1, 0, 0x99, 0xff, 0xfd, 0, 0x01, 0, 0xb1]);
        assert_eq!(spread.place(4).unwrap(), 8);
        assert!(spread.is_null(4) && !spread.is_null(0));
    }

    #[test]
    fn what_becomes_too_long_or_is_no_code_is_told() {
        let far = [&[0x1a, 0x99, 0x7f, 0xfe][..], &[0; 32_763], &[0xb1]].concat();
        assert!(spread(&far, &[1]).is_some(), "what lies before a jump does not lengthen it");
        assert!(spread(&far, &[0, 0, 3]).is_none());
        assert!(spread(&[0; 65_534], &[1]).is_none());
        for code in [&[0xca][..], &[0x10], &[0x99, 0, 9, 0xb1], &[0xaa, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0]] {
            assert!(Spread::of(code, || 0, |_| Ok(None)).is_err(), "{code:?}");
        }
    }
}
