//! Code that stands in place of a method's own: it throws, returns at once, or keeps nothing but what the method writes down.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{ClassFileError, Reader};
use super::state::{Stateful, zero};
use super::{Added, Class, length32};

/// What failed assertions are. A test that swallows it tests nothing. Its only public constructor with a message alone takes any object.
const ASSERTION_ERROR: &str = "java/lang/AssertionError";

/// Other code for a method.
#[derive(Clone, Copy, Debug)]
pub enum Code<'c> {
    /// Throws a [`java.lang.AssertionError`](https://docs.oracle.com/javase/8/docs/api/java/lang/AssertionError.html) with this message, in
    /// ASCII.
    Throws(&'c str),
    /// Returns at once: nothing, zero or null.
    Returns,
    /// Throws a new object of a class, named with slashes, by its constructor without parameters or by the one of a message.
    ThrowsNew {
        /// The class.
        class: &'c str,
        /// Whether the constructor takes a message.
        with_message: bool,
    },
    /// Returns one dynamic test of Jupiter that does nothing, as the method's descriptor asks for it.
    OneTest,
    /// Keeps the method's own code, and in it only what sets fields and flags: all other calls are gone, and zero or null stands in
    /// place of their results.
    KeepsState {
        /// Classes whose fields are kept, with slashes.
        own: &'c BTreeSet<String>,
        /// The class whose object is thrown at the end, by its constructor without parameters.
        throws: Option<&'c str>,
    },
}

/// The constants that bodies of a class share, so that many methods do not exhaust the class's room for constants.
pub(super) struct Bodies<'a> {
    stateful: Stateful<'a>,
    /// By class, and by message if there is one: the class, the message and the constructor.
    throws: BTreeMap<(String, Option<String>), [u16; 3]>,
    one_test: Option<OneTest>,
}

/// Indexes of what makes a dynamic test.
#[derive(Clone, Copy)]
struct OneTest {
    name: u16,
    executable: u16,
    object: u16,
    constant: u16,
    proxy: u16,
    dynamic_test: u16,
}

impl<'a> Bodies<'a> {
    pub(super) fn of(class: &Class<'a>) -> Self {
        Self { stateful: Stateful::of(&class.constants, class.this()), throws: BTreeMap::new(), one_test: None }
    }

    /// Returns a method's new code. Except for [`Code::KeepsState`] it has no branches, so it needs no stack maps. It keeps the
    /// parameters' slots.
    pub(super) fn other_code(
        &mut self,
        code: &[u8],
        other: Code<'_>,
        descriptor: &str,
        added: &mut Added,
    ) -> Result<Vec<u8>, ClassFileError> {
        let instructions = match other {
            Code::Throws(message) => self.throwing(ASSERTION_ERROR, Some(message), added)?,
            Code::Returns => returning(descriptor),
            Code::ThrowsNew { class, with_message } => self.throwing(class, with_message.then_some(""), added)?,
            Code::OneTest => self.one_test(descriptor, added)?,
            Code::KeepsState { own, throws } => {
                let end = throws.map(|class| self.throwing(class, None, added)).transpose()?;
                return self.stateful.code(code, own, end.as_deref());
            }
        };
        let mut reader = Reader(code);
        reader.skip(2)?;
        let locals = reader.u16()?;
        let mut other = MOST_STACK.to_be_bytes().to_vec();
        other.extend(locals.to_be_bytes());
        other.extend(length32(instructions.len())?);
        other.extend(instructions);
        // No exception handlers and no attributes.
        other.extend([0, 0, 0, 0]);
        Ok(other)
    }

    /// Returns instructions that throw a new object of a class.
    fn throwing(&mut self, class: &str, message: Option<&str>, added: &mut Added) -> Result<Vec<u8>, ClassFileError> {
        let key = (class.to_owned(), message.map(str::to_owned));
        let [class, text, constructor] = match self.throws.get(&key) {
            Some(known) => *known,
            None => {
                let class = added.class(class)?;
                let text = message.map(|message| added.string(message)).transpose()?.unwrap_or_default();
                let descriptor = match message {
                    None => "()V",
                    Some(_) if key.0 == ASSERTION_ERROR => "(Ljava/lang/Object;)V",
                    Some(_) => "(Ljava/lang/String;)V",
                };
                let made = [class, text, added.member(10, class, "<init>", descriptor)?];
                self.throws.insert(key, made);
                made
            }
        };
        let mut instructions = Vec::new();
        // new, dup
        with_index(&mut instructions, 0xbb, class);
        instructions.push(0x59);
        if message.is_some() {
            // ldc_w
            with_index(&mut instructions, 0x13, text);
        }
        // invokespecial, athrow
        with_index(&mut instructions, 0xb7, constructor);
        instructions.push(0xbf);
        Ok(instructions)
    }

    /// Returns instructions that return one dynamic test.
    fn one_test(&mut self, descriptor: &str, added: &mut Added) -> Result<Vec<u8>, ClassFileError> {
        let wrapped = wrapped(descriptor, added)?;
        let one = match self.one_test {
            Some(one) => one,
            None => *self.one_test.insert(OneTest {
                name: added.string("empty")?,
                executable: added.class("org/junit/jupiter/api/function/Executable")?,
                object: added.class("java/lang/Object")?,
                constant: added.method(
                    "java/lang/invoke/MethodHandles",
                    "constant",
                    "(Ljava/lang/Class;Ljava/lang/Object;)Ljava/lang/invoke/MethodHandle;",
                )?,
                proxy: added.method(
                    "java/lang/invoke/MethodHandleProxies",
                    "asInterfaceInstance",
                    "(Ljava/lang/Class;Ljava/lang/invoke/MethodHandle;)Ljava/lang/Object;",
                )?,
                dynamic_test: added.method(
                    "org/junit/jupiter/api/DynamicTest",
                    "dynamicTest",
                    "(Ljava/lang/String;Lorg/junit/jupiter/api/function/Executable;)Lorg/junit/jupiter/api/DynamicTest;",
                )?,
            }),
        };
        let mut instructions = Vec::new();
        // ldc_w: the test's name, the interface of its body, and what the body would return if it could
        with_index(&mut instructions, 0x13, one.name);
        with_index(&mut instructions, 0x13, one.executable);
        with_index(&mut instructions, 0x13, one.object);
        // aconst_null, invokestatic, invokestatic, checkcast, invokestatic
        instructions.push(0x01);
        with_index(&mut instructions, 0xb8, one.constant);
        with_index(&mut instructions, 0xb8, one.proxy);
        with_index(&mut instructions, 0xc0, one.executable);
        with_index(&mut instructions, 0xb8, one.dynamic_test);
        instructions.extend(wrapped);
        // areturn
        instructions.push(0xb0);
        Ok(instructions)
    }
}

/// The most places on the stack that the bodies here take.
const MOST_STACK: u16 = 4;

/// Returns instructions that turn a dynamic test into what a factory returns.
fn wrapped(descriptor: &str, added: &mut Added) -> Result<Vec<u8>, ClassFileError> {
    const NODES: [&str; 2] = ["org/junit/jupiter/api/DynamicTest", "org/junit/jupiter/api/DynamicNode"];
    let returned = descriptor.rsplit_once(')').map_or("", |(_, returned)| returned);
    let (is_array, class) = match returned.strip_prefix('[') {
        Some(element) => (true, element),
        None => (false, returned),
    };
    let class = class.strip_prefix('L').and_then(|class| class.strip_suffix(';')).unwrap_or_default();
    let mut instructions = Vec::new();
    match class {
        "java/lang/Object" if !is_array => {}
        _ if NODES.contains(&class) && !is_array => {}
        _ if NODES.contains(&class) => {
            // iconst_1, anewarray, dup_x1, swap, iconst_0, swap, aastore
            instructions.push(0x04);
            with_index(&mut instructions, 0xbd, added.class(class)?);
            instructions.extend([0x5a, 0x5f, 0x03, 0x5f, 0x53]);
        }
        "java/util/Collection" | "java/util/List" | "java/lang/Iterable" | "java/util/Iterator" if !is_array => {
            let list = "(Ljava/lang/Object;)Ljava/util/List;";
            with_index(&mut instructions, 0xb8, added.method("java/util/Collections", "singletonList", list)?);
            if class == "java/util/Iterator" {
                let list = added.class("java/util/List")?;
                let iterator = added.member(11, list, "iterator", "()Ljava/util/Iterator;")?;
                // invokeinterface with one argument
                with_index(&mut instructions, 0xb9, iterator);
                instructions.extend([1, 0]);
            }
        }
        "java/util/Set" if !is_array => {
            let set = "(Ljava/lang/Object;)Ljava/util/Set;";
            with_index(&mut instructions, 0xb8, added.method("java/util/Collections", "singleton", set)?);
        }
        "java/util/stream/Stream" if !is_array => {
            let stream = added.class("java/util/stream/Stream")?;
            let of = added.member(11, stream, "of", "(Ljava/lang/Object;)Ljava/util/stream/Stream;")?;
            with_index(&mut instructions, 0xb8, of);
        }
        _ => return Err(ClassFileError("its factory returns what no dynamic test fits into")),
    }
    Ok(instructions)
}

fn with_index(instructions: &mut Vec<u8>, opcode: u8, index: u16) {
    instructions.push(opcode);
    instructions.extend(index.to_be_bytes());
}

/// Returns instructions that return at once.
fn returning(descriptor: &str) -> Vec<u8> {
    let returned = descriptor.rsplit_once(')').map_or("", |(_, returned)| returned);
    let returns = match returned {
        "V" => 0xb1,
        "Z" | "B" | "C" | "S" | "I" => 0xac,
        "J" => 0xad,
        "F" => 0xae,
        "D" => 0xaf,
        _ => 0xb0,
    };
    zero(returned).into_iter().chain([returns]).collect()
}
