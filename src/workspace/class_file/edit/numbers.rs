//! Gives the numbers in code in another way: `7` as `a ^ b` of two random numbers, and an addition as the subtraction of the negated
//! number. Results are the same, bit for bit.
//!
//! A test that looks for a number in a class file finds it in no class that is written by these rules. Texts stay: a text that is
//! put together at run time costs time wherever it is used, and the one of a field with a constant value can't be changed.
//! Source: Java Virtual Machine Specification, §6.5.

use std::collections::{BTreeMap, BTreeSet};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng as _;

use super::super::{ClassFileError, Reader};
use super::instructions::{IINC, Instruction, LDC, LDC_W};
use super::{Added, Class, MOST_CONSTANTS};

const BIPUSH: u8 = 0x10;
const SIPUSH: u8 = 0x11;
const LDC2_W: u8 = 0x14;
/// The message of a `NullPointerException` names a constant index, as in `prices[3]`, so the number before these stays.
const ARRAY_LOADS: std::ops::RangeInclusive<u8> = 0x2e..=0x35;
const INVOKESTATIC: u8 = 0xb8;
const IXOR: u8 = 0x82;
const LXOR: u8 = 0x83;
const I2L: u8 = 0x85;

/// The most constants that one number takes: two numbers, and the method that turns bits into a number with its names.
const MOST_OF_ONE: usize = 10;

/// A number among a class's constants.
#[derive(Clone, Copy)]
struct Number {
    kind: Kind,
    /// Where its bytes begin, after the constants' count.
    place: usize,
    bits: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Int,
    Float,
    Long,
    Double,
}

impl Kind {
    fn length(self) -> usize {
        match self {
            Self::Int | Self::Float => 4,
            Self::Long | Self::Double => 8,
        }
    }
}

/// The numbers of a class, and which of its constants no code needs any more.
pub(super) struct Numbers<'r> {
    random: &'r mut ChaCha8Rng,
    constants: BTreeMap<u16, Number>,
    /// Constants that instructions had before and do not have now.
    replaced: BTreeSet<u16>,
    /// Constants that the method at hand has still, and those that it has no longer.
    of_method: [BTreeSet<u16>; 2],
    /// Constants that are needed.
    needed: BTreeSet<u16>,
    /// The methods that turn bits into numbers.
    float: Option<u16>,
    double: Option<u16>,
}

impl<'r> Numbers<'r> {
    /// Reads the numbers of a class.
    ///
    /// # Errors
    /// [`ClassFileError`].
    pub(super) fn of(class: &Class<'_>, random: &'r mut ChaCha8Rng) -> Result<Self, ClassFileError> {
        let mut numbers = Self {
            random,
            constants: numbers(class.pool)?,
            replaced: BTreeSet::new(),
            of_method: [BTreeSet::new(), BTreeSet::new()],
            needed: BTreeSet::new(),
            float: None,
            double: None,
        };
        numbers.keep_members(class)?;
        Ok(numbers)
    }

    /// Returns the random numbers.
    pub(super) fn random(&mut self) -> &mut ChaCha8Rng {
        self.random
    }

    /// Begins another method.
    pub(super) fn begin(&mut self) {
        self.of_method = [BTreeSet::new(), BTreeSet::new()];
    }

    /// Ends a method whose code is written by what [`Numbers::other`] returned.
    pub(super) fn written(&mut self) {
        let [has, had] = std::mem::take(&mut self.of_method);
        self.needed.extend(has);
        self.replaced.extend(had);
    }

    /// Ends a method whose instructions stay.
    pub(super) fn unwritten(&mut self, code: &[u8]) {
        self.keep_any(code);
        // An instruction may name a constant by one byte.
        self.needed.extend(code.iter().map(|byte| u16::from(*byte)));
    }

    /// Returns instructions with the same result by other numbers; `None` if an instruction has none.
    ///
    /// # Errors
    /// None where there is room for the constants, which it asks for first.
    pub(super) fn other(
        &mut self,
        one: &Instruction<'_>,
        added: &mut Added,
    ) -> Result<Option<Vec<u8>>, ClassFileError> {
        let operands = one.operands();
        if one.next.is_some_and(|next| ARRAY_LOADS.contains(&next)) {
            match (one.opcode(), operands) {
                (LDC, [index]) => _ = self.of_method[0].insert(u16::from(*index)),
                (LDC_W, _) => _ = self.of_method[0].insert(one.constant()),
                _ => {}
            }
            return Ok(None);
        }
        Ok(match (one.opcode(), operands) {
            // iconst_m1 to iconst_5
            (opcode @ 0x02..=0x08, _) => Some(self.byte(opcode.cast_signed() - 3)),
            // lconst_0, lconst_1
            (opcode @ 0x09..=0x0a, _) => {
                let mut bytes = self.byte(opcode.cast_signed() - 9);
                bytes.push(I2L);
                Some(bytes)
            }
            (BIPUSH, [value]) => Some(self.byte(value.cast_signed())),
            (SIPUSH, [high, low]) => Some(self.short([*high, *low])),
            (IINC, [variable, by]) => self.increment(*variable, by.cast_signed()),
            (LDC, [index]) => self.loaded(u16::from(*index), false, added)?,
            (LDC_W, _) => self.loaded(one.constant(), false, added)?,
            (LDC2_W, _) => self.loaded(one.constant(), true, added)?,
            // iadd, isub, ladd, lsub: behind ineg or lneg the other of both
            (0x60, _) => Some(vec![0x74, 0x64]),
            (0x64, _) => Some(vec![0x74, 0x60]),
            (0x61, _) => Some(vec![0x75, 0x65]),
            (0x65, _) => Some(vec![0x75, 0x61]),
            _ => None,
        })
    }

    fn byte(&mut self, value: i8) -> Vec<u8> {
        let mask = self.mask(u64::from(value.cast_unsigned()), 1) as u8;
        vec![BIPUSH, mask, BIPUSH, value.cast_unsigned() ^ mask, IXOR]
    }

    fn short(&mut self, value: [u8; 2]) -> Vec<u8> {
        let [mask_high, mask_low] = (self.mask(u64::from(u16::from_be_bytes(value)), 2) as u16).to_be_bytes();
        vec![SIPUSH, mask_high, mask_low, SIPUSH, value[0] ^ mask_high, value[1] ^ mask_low, IXOR]
    }

    /// Increments a variable in two steps.
    fn increment(&mut self, variable: u8, by: i8) -> Option<Vec<u8>> {
        for _ in 0..64 {
            let first = (self.random.next_u32() as u8).cast_signed();
            if let Some(second) = by.checked_sub(first)
                && first != 0
                && second != 0
            {
                return Some(vec![IINC, variable, first.cast_unsigned(), IINC, variable, second.cast_unsigned()]);
            }
        }
        None
    }

    /// Returns what loads a number of the constants.
    fn loaded(&mut self, index: u16, is_wide: bool, added: &mut Added) -> Result<Option<Vec<u8>>, ClassFileError> {
        let number = self.constants.get(&index).copied().filter(|number| (number.kind.length() == 8) == is_wide);
        // Bits of what is no number may change on the way.
        let number = number.filter(|number| !number.is_nan());
        let has_room = usize::from(added.next) + MOST_OF_ONE <= MOST_CONSTANTS;
        let Some(Number { kind, bits, .. }) = number.filter(|_| has_room) else {
            self.of_method[0].insert(index);
            return Ok(None);
        };
        self.of_method[1].insert(index);
        let mask = self.mask(bits, kind.length());
        let mut bytes = Vec::new();
        for half in [mask, bits ^ mask] {
            let half = half.to_be_bytes();
            let (opcode, constant) = match kind.length() {
                4 => (LDC_W, added.push(3, &half[4..])?),
                _ => {
                    let constant = added.push(5, &half)?;
                    // A long number takes two indexes.
                    added.next += 1;
                    (LDC2_W, constant)
                }
            };
            bytes.push(opcode);
            bytes.extend(constant.to_be_bytes());
        }
        bytes.push(if kind.length() == 4 { IXOR } else { LXOR });
        let from_bits = match kind {
            Kind::Int | Kind::Long => None,
            Kind::Float => Some(from_bits(&mut self.float, added, ["java/lang/Float", "intBitsToFloat", "(I)F"])?),
            Kind::Double => Some(from_bits(&mut self.double, added, ["java/lang/Double", "longBitsToDouble", "(J)D"])?),
        };
        if let Some(method) = from_bits {
            bytes.push(INVOKESTATIC);
            bytes.extend(method.to_be_bytes());
        }
        Ok(Some(bytes))
    }

    /// Returns a random number of so many bytes: neither it nor its difference is the value.
    fn mask(&mut self, value: u64, length: usize) -> u64 {
        let used = u64::MAX >> (64 - 8 * length);
        loop {
            let mask = self.random.next_u64() & used;
            if mask != 0 && mask != value {
                return mask;
            }
        }
    }

    /// Returns the class's constants with random numbers in place of those that nothing names any more.
    pub(super) fn pool(&mut self, pool: &[u8]) -> Vec<u8> {
        let mut pool = pool.to_vec();
        for index in self.replaced.difference(&self.needed) {
            let Some(number) = self.constants.get(index) else { continue };
            let random = self.random.next_u64().to_be_bytes();
            if let Some(bytes) = pool.get_mut(number.place..number.place + number.kind.length()) {
                bytes.copy_from_slice(&random[8 - number.kind.length()..]);
            }
        }
        pool
    }

    /// Keeps the constants that fields, annotations and other attributes name.
    fn keep_members(&mut self, class: &Class<'_>) -> Result<(), ClassFileError> {
        let mut reader = Reader(class.head);
        reader.skip(6)?;
        let interfaces = reader.u16()?;
        reader.skip(2 * usize::from(interfaces))?;
        for _ in 0..reader.u16()? {
            reader.skip(6)?;
            self.keep_attributes(class, &mut reader)?;
        }
        for method in &class.methods {
            for (name, content) in &method.attributes {
                if class.text(*name)? != b"Code" {
                    self.keep_attribute(class.text(*name)?, content);
                }
            }
        }
        self.keep_attributes(class, &mut Reader(class.attributes))
    }

    fn keep_attributes(&mut self, class: &Class<'_>, reader: &mut Reader<'_>) -> Result<(), ClassFileError> {
        for _ in 0..reader.u16()? {
            let (name, content) = reader.attribute()?;
            self.keep_attribute(class.text(name)?, content.0);
        }
        Ok(())
    }

    fn keep_attribute(&mut self, name: &[u8], content: &[u8]) {
        if name == b"BootstrapMethods" {
            match arguments(Reader(content)) {
                Ok(arguments) => self.needed.extend(arguments),
                Err(_) => self.keep_any(content),
            }
            return;
        }
        // These name no numbers. Of others, any two bytes may be a number's index.
        if !matches!(
            name,
            b"SourceFile"
                | b"Signature"
                | b"Exceptions"
                | b"InnerClasses"
                | b"EnclosingMethod"
                | b"NestHost"
                | b"NestMembers"
                | b"PermittedSubclasses"
                | b"MethodParameters"
                | b"Deprecated"
                | b"Synthetic"
        ) {
            self.keep_any(content);
        }
    }

    /// Keeps every constant whose index any two bytes may be.
    fn keep_any(&mut self, content: &[u8]) {
        self.needed.extend(content.windows(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])));
    }
}

/// Returns the constants that methods which make lambdas and the like take as arguments.
fn arguments(mut reader: Reader<'_>) -> Result<Vec<u16>, ClassFileError> {
    let mut arguments = Vec::new();
    for _ in 0..reader.u16()? {
        reader.skip(2)?;
        for _ in 0..reader.u16()? {
            arguments.push(reader.u16()?);
        }
    }
    Ok(arguments)
}

impl Number {
    fn is_nan(&self) -> bool {
        match self.kind {
            Kind::Int | Kind::Long => false,
            Kind::Float => f32::from_bits(self.bits as u32).is_nan(),
            Kind::Double => f64::from_bits(self.bits).is_nan(),
        }
    }
}

/// Returns the constant of a method that turns bits into a number.
fn from_bits(
    known: &mut Option<u16>,
    added: &mut Added,
    [class, name, descriptor]: [&str; 3],
) -> Result<u16, ClassFileError> {
    if let Some(known) = known {
        return Ok(*known);
    }
    let method = added.method(class, name, descriptor)?;
    *known = Some(method);
    Ok(method)
}

fn numbers(pool: &[u8]) -> Result<BTreeMap<u16, Number>, ClassFileError> {
    let (mut numbers, mut reader, mut index) = (BTreeMap::new(), Reader(pool), 1_u16);
    while !reader.0.is_empty() {
        let tag = reader.u8()?;
        let place = pool.len() - reader.0.len();
        let kind = match tag {
            3 => Some(Kind::Int),
            4 => Some(Kind::Float),
            5 => Some(Kind::Long),
            6 => Some(Kind::Double),
            _ => None,
        };
        match (kind, tag) {
            (Some(kind), _) => {
                let bits = reader.take(kind.length())?.iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
                numbers.insert(index, Number { kind, place, bits });
                index = index.saturating_add(u16::from(kind.length() == 8));
            }
            (None, 1) => {
                let length = reader.u16()?;
                reader.skip(usize::from(length))?;
            }
            (None, 7 | 8 | 16 | 19 | 20) => reader.skip(2)?,
            (None, 15) => reader.skip(3)?,
            (None, _) => reader.skip(4)?,
        }
        index = index.saturating_add(1);
    }
    Ok(numbers)
}
