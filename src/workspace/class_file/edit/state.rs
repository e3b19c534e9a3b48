//! Cuts everything out of a method's code but what it writes down: fields of its own classes, counters, latches and properties. The
//! rest of the code can't reach the code under test, nor an assertion.
//!
//! A call is cut unless it is one of the JDK's [`FLAGS`] with parameters of primitive types and strings, because any other object may
//! be one of the code under test. Lambdas are cut as well.

use std::collections::BTreeSet;

use super::super::{ClassFileError, Constant};
use super::instructions::{Instruction, NEW};
use super::padding::{self, KnownAttributes};

const NOP: u8 = 0x00;
const ACONST_NULL: u8 = 0x01;
const POP: u8 = 0x57;
const POP2: u8 = 0x58;
const RETURN: u8 = 0xb1;

/// Classes of the JDK that keep a number, a bit or a text, and call nothing.
const FLAGS: [&str; 17] = [
    "java/lang/Boolean",
    "java/lang/Byte",
    "java/lang/Character",
    "java/lang/Double",
    "java/lang/Float",
    "java/lang/Integer",
    "java/lang/Long",
    "java/lang/Math",
    "java/lang/Short",
    "java/lang/String",
    "java/lang/System",
    "java/util/BitSet",
    "java/util/concurrent/CountDownLatch",
    "java/util/concurrent/atomic/AtomicBoolean",
    "java/util/concurrent/atomic/AtomicInteger",
    "java/util/concurrent/atomic/AtomicLong",
    ATOMIC_REFERENCE,
];

/// It also takes objects, and calls none of them.
const ATOMIC_REFERENCE: &str = "java/util/concurrent/atomic/AtomicReference";

/// Methods of the classes above that end the JVM, load code, or wait.
const NEVER: [&str; 8] = ["await", "exit", "gc", "load", "loadLibrary", "runFinalization", "mapLibraryName", "wait"];

/// The constants of a class, as far as calls and fields are named by them.
pub(super) struct Stateful<'a> {
    constants: Vec<Constant<'a>>,
    /// The constant of the class's own name.
    this: u16,
    known: KnownAttributes,
}

/// A field or method: its class, name and descriptor.
struct Member<'a> {
    class: &'a str,
    name: &'a str,
    descriptor: &'a str,
}

impl<'a> Stateful<'a> {
    pub(super) fn of(constants: &[Constant<'a>], this: u16) -> Self {
        Self { constants: constants.to_vec(), this, known: KnownAttributes::of(constants) }
    }

    /// Returns a method's code with nothing but what it writes down. `end` stands in place of each return of nothing.
    ///
    /// # Errors
    /// [`ClassFileError`], also for code that writes nothing down.
    pub(super) fn code(
        &self,
        code: &[u8],
        own: &BTreeSet<String>,
        end: Option<&[u8]>,
    ) -> Result<Vec<u8>, ClassFileError> {
        let mut writes = false;
        let other = |one: &Instruction<'_>| {
            let cut = self.cut(one, own)?;
            // putstatic, putfield, and calls
            writes |= cut.is_none() && matches!(one.opcode(), 0xb3 | 0xb5..=0xb9);
            Ok(cut.or_else(|| end.filter(|_| one.opcode() == RETURN).map(<[u8]>::to_vec)))
        };
        let written = padding::with_others(code, &self.known, other)?;
        match written.filter(|_| writes) {
            Some(written) => Ok(written),
            None => Err(ClassFileError("the method writes nothing down")),
        }
    }

    /// Returns the replacement of an instruction that reaches other code; `None` for any other instruction.
    fn cut(&self, one: &Instruction<'_>, own: &BTreeSet<String>) -> Result<Option<Vec<u8>>, ClassFileError> {
        let is_own = |class: &str| own.contains(class);
        Ok(match one.opcode() {
            // getstatic, putstatic: they may initialise a class
            opcode @ 0xb2..=0xb3 => {
                let member = self.member(one.constant())?;
                // Another class of the file may not be initialised yet, and its initialiser may call anything.
                let is_this = self.class(self.this).is_ok_and(|this| this == member.class);
                let is_kept = (is_own(member.class) && is_this) || FLAGS.contains(&member.class);
                (!is_kept).then(|| without(opcode == 0xb3, false, &member))
            }
            // getfield, putfield
            opcode @ 0xb4..=0xb5 => {
                let member = self.member(one.constant())?;
                (!is_own(member.class)).then(|| without(opcode == 0xb5, true, &member))
            }
            // invokevirtual, invokespecial, invokestatic, invokeinterface
            opcode @ 0xb6..=0xb9 => {
                let member = self.member(one.constant())?;
                (!is_flag(&member)).then(|| without_call(member.descriptor, opcode != 0xb8)).transpose()?
            }
            // invokedynamic
            0xba => match self.constants.get(usize::from(one.constant())) {
                Some(Constant::Dynamic(_, member)) => Some(without_call(self.name_and_descriptor(*member)?.1, false)?),
                _ => return Err(ClassFileError("a call names no method")),
            },
            NEW => (!FLAGS.contains(&self.class(one.constant())?)).then(|| vec![ACONST_NULL, NOP, NOP]),
            _ => None,
        })
    }

    fn member(&self, index: u16) -> Result<Member<'a>, ClassFileError> {
        match self.constants.get(usize::from(index)) {
            Some(Constant::Member(class, member)) => {
                let (name, descriptor) = self.name_and_descriptor(*member)?;
                Ok(Member { class: self.class(*class)?, name, descriptor })
            }
            _ => Err(ClassFileError("a call names no method")),
        }
    }

    fn name_and_descriptor(&self, index: u16) -> Result<(&'a str, &'a str), ClassFileError> {
        match self.constants.get(usize::from(index)) {
            Some(Constant::NameAndType(name, descriptor)) => Ok((self.text(*name)?, self.text(*descriptor)?)),
            _ => Err(ClassFileError("a member has no name")),
        }
    }

    fn class(&self, index: u16) -> Result<&'a str, ClassFileError> {
        match self.constants.get(usize::from(index)) {
            Some(Constant::Class(name)) => self.text(*name),
            _ => Err(ClassFileError("a class is none")),
        }
    }

    fn text(&self, index: u16) -> Result<&'a str, ClassFileError> {
        match self.constants.get(usize::from(index)) {
            // A name beyond what Rust's strings can hold is none of the JDK's.
            Some(Constant::Text(text)) => Ok(std::str::from_utf8(text).unwrap_or("?")),
            _ => Err(ClassFileError("a name is no text")),
        }
    }
}

/// Tells whether a call only reads or sets a flag.
fn is_flag(member: &Member<'_>) -> bool {
    let is_plain = |one: &str| !one.starts_with(['L', '[']) || one == "Ljava/lang/String;";
    let takes = |types: Vec<&str>| {
        types.iter().all(|one| is_plain(one) || (member.class == ATOMIC_REFERENCE && *one == "Ljava/lang/Object;"))
    };
    // An object that `new` made needs its constructor.
    let is_called =
        member.name == "<init>" || (!NEVER.contains(&member.name) && parameters(member.descriptor).is_ok_and(takes));
    FLAGS.contains(&member.class) && is_called
}

/// Returns the replacement of an access to a field.
fn without(is_put: bool, has_object: bool, member: &Member<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if is_put {
        bytes.push(pop(member.descriptor));
    }
    if has_object {
        bytes.push(POP);
    }
    if !is_put {
        bytes.extend(zero(member.descriptor));
    }
    bytes
}

/// Returns the replacement of a call: it removes the arguments and leaves zero or null.
fn without_call(descriptor: &str, has_object: bool) -> Result<Vec<u8>, ClassFileError> {
    let mut bytes: Vec<u8> = parameters(descriptor)?.into_iter().rev().map(pop).collect();
    if has_object {
        bytes.push(POP);
    }
    bytes.extend(zero(descriptor.rsplit_once(')').map_or("V", |(_, returned)| returned)));
    // Handlers and lines need a place that stays.
    if bytes.is_empty() {
        bytes.push(NOP);
    }
    Ok(bytes)
}

fn pop(descriptor: &str) -> u8 {
    if matches!(descriptor, "J" | "D") { POP2 } else { POP }
}

/// Returns the types of a method's parameters.
fn parameters(descriptor: &str) -> Result<Vec<&str>, ClassFileError> {
    const WRONG: ClassFileError = ClassFileError("a method's descriptor is none");
    let mut rest = descriptor.strip_prefix('(').and_then(|rest| rest.split_once(')')).ok_or(WRONG)?.0;
    let mut types = Vec::new();
    while !rest.is_empty() {
        let element = rest.trim_start_matches('[');
        let length = rest.len() - element.len()
            + match element.as_bytes().first() {
                Some(b'L') => element.find(';').ok_or(WRONG)? + 1,
                Some(b'B' | b'C' | b'D' | b'F' | b'I' | b'J' | b'S' | b'Z') => 1,
                _ => return Err(WRONG),
            };
        let (one, left) = rest.split_at(length);
        types.push(one);
        rest = left;
    }
    Ok(types)
}

/// Returns the instruction for zero or null of a type; `None` for nothing.
pub(super) fn zero(descriptor: &str) -> Option<u8> {
    match descriptor {
        "V" => None,
        "Z" | "B" | "C" | "S" | "I" => Some(0x03),
        "J" => Some(0x09),
        "F" => Some(0x0b),
        "D" => Some(0x0e),
        _ => Some(0x01),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calls_arguments_are_taken_away_and_its_result_is_none() {
        for (descriptor, has_object, expected) in [
            ("()V", false, &[NOP][..]),
            ("()V", true, &[POP]),
            ("(IJ[DLp/A;[[Lp/B;D)Z", false, &[POP2, POP, POP, POP, POP2, POP, 0x03]),
            ("(F)J", true, &[POP, POP, 0x09]),
            ("()Lp/A;", true, &[POP, ACONST_NULL]),
        ] {
            assert_eq!(without_call(descriptor, has_object).unwrap(), expected, "{descriptor}");
        }
        for wrong in ["", "V", "(Lp/A)V", "([)V", "(Q)V", "(I"] {
            assert!(without_call(wrong, false).is_err(), "{wrong}");
        }
    }

    #[test]
    fn flags_are_what_calls_no_code() {
        let is_kept = |class, name, descriptor| is_flag(&Member { class, name, descriptor });
        for (class, name, descriptor, kept) in [
            ("java/util/concurrent/atomic/AtomicBoolean", "set", "(Z)V", true),
            ("java/util/concurrent/atomic/AtomicReference", "set", "(Ljava/lang/Object;)V", true),
            (
                "java/util/concurrent/atomic/AtomicReference",
                "updateAndGet",
                "(Ljava/util/function/UnaryOperator;)Ljava/lang/Object;",
                false,
            ),
            ("java/lang/System", "setProperty", "(Ljava/lang/String;Ljava/lang/String;)Ljava/lang/String;", true),
            ("java/lang/System", "exit", "(I)V", false),
            ("java/lang/String", "valueOf", "(Ljava/lang/Object;)Ljava/lang/String;", false),
            ("java/lang/String", "<init>", "([C)V", true),
            ("java/util/List", "add", "(Ljava/lang/Object;)Z", false),
            ("java/util/concurrent/CountDownLatch", "countDown", "()V", true),
            ("java/util/concurrent/CountDownLatch", "await", "()V", false),
            ("shop/Price", "cents", "()J", false),
        ] {
            assert_eq!(is_kept(class, name, descriptor), kept, "{class}.{name}{descriptor}");
        }
    }
}
