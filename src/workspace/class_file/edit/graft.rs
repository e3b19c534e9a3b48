//! Puts another revision's code of methods into a class. All constants of the other class are added behind the class's own, so that each
//! index in that code grows by the same number.
//!
//! Each lambda of that code is a method. It is added to the class under a free name, unless the class has a replaced method of the same name
//! and descriptor. What else the compiler made for that code, in this class or in classes of their own, stays that of the present revision.
//! Where it differs, the code fails to link or does something else. The control *old bodies* (`execution::control::classes`) calls this.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{ClassFileError, Constant, Reader};
use super::bodies::{Bodies, Code};
use super::instructions::{Instruction, LDC, LDC_W, constants_of, with_constants};
use super::padding::{KnownAttributes, Renumbered, with_others_renumbered};
use super::{Added, Class, Method, MethodFacts, length16, put_attribute};

const STATIC: u16 = 0x0008;
/// Access flags of a method that is private and made by the compiler.
const PRIVATE_SYNTHETIC: u16 = 0x1002;
const INVOKE_DYNAMIC: u8 = 0xba;
const BOOTSTRAP_METHODS: &[u8] = b"BootstrapMethods";

/// A class with another revision's code of methods.
pub struct Grafted {
    /// The class file.
    pub class: Vec<u8>,
    /// Whether the other revision has code for one of the methods. If not, all of them throw.
    pub has_code: bool,
}

/// Replaces the code of chosen methods by that of the methods of the same name and descriptor in another revision of the class. All of
/// a method's code lies at its first line. A method that the other revision lacks throws an error with this message. `None` if none
/// was chosen.
///
/// # Errors
/// [`ClassFileError`] of either class, also where the class has no room for both revisions' constants.
pub fn with_code_of(
    bytes: &[u8],
    other: &[u8],
    message: &str,
    is_chosen: impl Fn(&MethodFacts<'_>) -> bool,
) -> Result<Option<Grafted>, ClassFileError> {
    let (class, other) = (Class::read(bytes)?, Class::read(other)?);
    let mut replaced = BTreeSet::new();
    for method in &class.methods {
        if let Some((_, content)) = class.code(method)?
            && is_chosen(&class.facts(method, content)?)
        {
            replaced.insert(name_of(&class, method)?);
        }
    }
    if replaced.is_empty() {
        return Ok(None);
    }
    let mut added = Added::after(&class);
    let bootstraps = Bootstraps::of(&class)?;
    let graft = Graft::of((&class, &other), &replaced, (added.next - 1, bootstraps.count))?;
    graft.add_constants(&mut added)?;
    let (mut bodies, mut given) = (Bodies::of(&class), BTreeSet::new());
    let codes = class.codes(|method, content| {
        let facts = class.facts(method, content)?;
        if !is_chosen(&facts) {
            return Ok(None);
        }
        let name = name_of(&class, method)?;
        // No compiler writes two methods of one name and descriptor. Only the first may grow.
        match graft.methods.get(&name).filter(|_| given.insert(name)) {
            Some(old) => {
                let line = facts.lines.iter().min().and_then(|line| u16::try_from(*line).ok());
                graft.moved(old.code, line).map(Some)
            }
            None => bodies.other_code(content, Code::Throws(message), &facts.descriptor, &mut added).map(Some),
        }
    })?;
    let has_code = replaced.iter().any(|name| graft.methods.contains_key(name));
    let lambdas = graft.lambdas.values().map(|lambda| graft.lambda(lambda)).collect::<Result<Vec<_>, _>>()?;
    let attributes = bootstraps.with(class.attributes, &graft)?;
    let class = Class { attributes: &attributes, ..class };
    let class = class.write_with(class.pool, &added, &codes, &lambdas)?;
    Ok(Some(Grafted { class, has_code }))
}

/// A method's name and descriptor, and whether it is static: a call of the one kind is none of the other.
type Name<'a> = (&'a [u8], &'a [u8], bool);

fn name_of<'a>(class: &Class<'a>, method: &Method<'a>) -> Result<Name<'a>, ClassFileError> {
    Ok((class.text(method.name)?, class.text(method.descriptor)?, method.flags() & STATIC != 0))
}

/// A method of the other revision that has code.
#[derive(Clone, Copy)]
struct OldMethod<'a, 'c> {
    method: &'c Method<'a>,
    /// The index of the name of its code's attribute.
    code_name: u16,
    code: &'a [u8],
}

/// The other revision of a class, and what of it comes along.
struct Graft<'a, 'c> {
    other: &'c Class<'a>,
    known: KnownAttributes,
    renumbered: Renumbered,
    /// The bootstrap methods, and how many of the class stand before them.
    bootstraps: Bootstraps<'a>,
    before: u16,
    methods: BTreeMap<Name<'a>, OldMethod<'a, 'c>>,
    /// Lambdas' methods that come along.
    lambdas: BTreeMap<Name<'a>, OldMethod<'a, 'c>>,
    /// The names that they get, by the index of the old one.
    names: BTreeMap<u16, Vec<u8>>,
}

impl<'a, 'c> Graft<'a, 'c> {
    /// Finds what comes along for the methods that are replaced. `shift` and `before` are the numbers of the class's constants and bootstrap
    /// methods.
    fn of(
        (class, other): (&Class<'_>, &'c Class<'a>),
        replaced: &BTreeSet<Name<'_>>,
        (shift, before): (u16, u16),
    ) -> Result<Self, ClassFileError> {
        let mut methods = BTreeMap::new();
        for method in &other.methods {
            if let Some((code_name, code)) = other.code(method)? {
                methods.entry(name_of(other, method)?).or_insert(OldMethod { method, code_name, code });
            }
        }
        let (known, renumbered) = (KnownAttributes::of(&other.constants), Renumbered { shift, line: None });
        let (lambdas, names) = (BTreeMap::new(), BTreeMap::new());
        let bootstraps = Bootstraps::of(other)?;
        let mut graft = Self { other, known, renumbered, bootstraps, before, methods, lambdas, names };
        let mut left: Vec<&[u8]> =
            replaced.iter().filter_map(|name| graft.methods.get(name)).map(|old| old.code).collect();
        let mut seen = (BTreeSet::new(), BTreeSet::new());
        while let Some(code) = left.pop() {
            for (name, lambda) in graft.lambdas_of(code, &mut seen)? {
                if !replaced.contains(&name) && graft.lambdas.insert(name, lambda).is_none() {
                    left.push(lambda.code);
                }
            }
        }
        let mut taken = BTreeSet::new();
        for method in &class.methods {
            taken.insert(class.text(method.name)?.to_vec());
        }
        // A compiler numbers all lambdas of a class.
        let mut number = 0_u32;
        for (name, OldMethod { method, .. }) in &graft.lambdas {
            // Methods that share a name's text get one other text.
            if graft.names.contains_key(&method.name) {
                continue;
            }
            let stem = name.0.iter().rposition(|byte| *byte == b'$').map_or(name.0, |at| &name.0[..=at]);
            let mut free = name.0.to_vec();
            while !taken.insert(free.clone()) {
                free = [stem, number.to_string().as_bytes()].concat();
                number += 1;
            }
            graft.names.insert(method.name, free);
        }
        Ok(graft)
    }

    /// Returns the lambdas' methods that code makes objects of, by bootstrap methods and handles that were not seen yet.
    fn lambdas_of(
        &self,
        code: &[u8],
        (bootstraps, handles): &mut (BTreeSet<u16>, BTreeSet<u16>),
    ) -> Result<Vec<(Name<'a>, OldMethod<'a, 'c>)>, ClassFileError> {
        let constant = |index: u16| self.other.constants.get(usize::from(index)).copied();
        let indexes = constants_of(instructions_of(code)?, INVOKE_DYNAMIC)?;
        let mut found = Vec::new();
        for index in indexes {
            let Some(Constant::Dynamic(bootstrap, _)) = constant(index) else { continue };
            if !bootstraps.insert(bootstrap) {
                continue;
            }
            for argument in self.bootstraps.arguments.get(usize::from(bootstrap)).into_iter().flatten() {
                if !handles.insert(*argument) {
                    continue;
                }
                let Some(Constant::Handle(member)) = constant(*argument) else { continue };
                let Some(Constant::Member(_, member)) = constant(member) else { continue };
                let Some(Constant::NameAndType(name, descriptor)) = constant(member) else { continue };
                let (name, descriptor) = (self.other.text(name)?, self.other.text(descriptor)?);
                for called in [true, false].map(|is_static| (name, descriptor, is_static)) {
                    let lambda = self.methods.get(&called).filter(|old| is_lambda(old.method, name));
                    found.extend(lambda.map(|lambda| (called, *lambda)));
                }
            }
        }
        Ok(found)
    }

    /// Adds all constants of the other revision.
    fn add_constants(&self, added: &mut Added) -> Result<(), ClassFileError> {
        let mut reader = Reader(self.other.pool);
        let mut index = 1_u16;
        while !reader.0.is_empty() {
            let tag = reader.u8()?;
            added.bytes.push(tag);
            // How many bytes, and then how many indexes of constants.
            let (bytes, constants) = match tag {
                1 => {
                    let length = usize::from(reader.u16()?);
                    let text = reader.take(length)?;
                    let text = self.names.get(&index).map_or(text, Vec::as_slice);
                    added.bytes.extend(length16(text.len())?);
                    added.bytes.extend(text);
                    (0, 0)
                }
                3 | 4 => (4, 0),
                5 | 6 => (8, 0),
                7 | 8 | 16 | 19 | 20 => (0, 1),
                9..=12 => (0, 2),
                15 => (1, 1),
                17 | 18 => {
                    added.bytes.extend(reader.u16()?.saturating_add(self.before).to_be_bytes());
                    (0, 1)
                }
                _ => return Err(ClassFileError("a constant is of no known kind")),
            };
            added.bytes.extend(reader.take(bytes)?);
            for _ in 0..constants {
                added.bytes.extend(self.renumbered.constant(reader.u16()?).to_be_bytes());
            }
            index = index.saturating_add(if matches!(tag, 5 | 6) { 2 } else { 1 });
        }
        let next = added.next.checked_add(index - 1);
        added.next = next.ok_or(ClassFileError("it has no room for further constants"))?;
        Ok(())
    }

    /// Returns code for its place in the class. `line` is the line of all of it.
    fn moved(&self, code: &[u8], line: Option<u16>) -> Result<Vec<u8>, ClassFileError> {
        let renumbered = Renumbered { line, ..self.renumbered };
        // An index of one byte has no room for what is added to it.
        let widened = |one: &Instruction<'_>| {
            Ok(match (one.opcode(), one.operands()) {
                (LDC, [index]) => Some(vec![LDC_W, 0, *index]),
                _ => None,
            })
        };
        let written = with_others_renumbered(code, &self.known, widened, renumbered)?;
        let written = written.ok_or(ClassFileError("a method of the other revision becomes too long"))?;
        let mut reader = Reader(&written);
        let mut out = reader.take(4)?.to_vec();
        let length = reader.u32()?;
        let instructions = reader.take(length as usize)?;
        out.extend(length.to_be_bytes());
        out.extend(with_constants(instructions, |index| self.renumbered.constant(index))?);
        out.extend(reader.0);
        Ok(out)
    }

    /// Returns a lambda's method.
    fn lambda(&self, OldMethod { method, code_name, code }: &OldMethod<'a, 'c>) -> Result<Vec<u8>, ClassFileError> {
        let mut out = method.flags().to_be_bytes().to_vec();
        for index in [method.name, method.descriptor] {
            out.extend(self.renumbered.constant(index).to_be_bytes());
        }
        out.extend(1_u16.to_be_bytes());
        put_attribute(&mut out, self.renumbered.constant(*code_name), &self.moved(code, None)?)?;
        Ok(out)
    }
}

/// The methods that make a class's lambdas and joined strings.
struct Bootstraps<'a> {
    count: u16,
    /// The attribute's name and content without the count; `None` if the class has none.
    attribute: Option<(u16, &'a [u8])>,
    /// The indexes of each one's own constants.
    arguments: Vec<Vec<u16>>,
}

impl<'a> Bootstraps<'a> {
    fn of(class: &Class<'a>) -> Result<Self, ClassFileError> {
        let mut reader = Reader(class.attributes);
        for _ in 0..reader.u16()? {
            let (name, mut content) = reader.attribute()?;
            if class.text(name)? != BOOTSTRAP_METHODS {
                continue;
            }
            let (count, attribute, mut arguments) = (content.u16()?, Some((name, content.0)), Vec::new());
            for _ in 0..count {
                content.skip(2)?;
                let number = content.u16()?;
                arguments.push((0..number).map(|_| content.u16()).collect::<Result<_, _>>()?);
            }
            return Ok(Self { count, attribute, arguments });
        }
        Ok(Self { count: 0, attribute: None, arguments: Vec::new() })
    }

    /// Returns a class's attributes with the other revision's methods behind these.
    fn with(&self, attributes: &[u8], graft: &Graft<'_, '_>) -> Result<Vec<u8>, ClassFileError> {
        let other = &graft.bootstraps;
        let Some((other_name, content)) = other.attribute else { return Ok(attributes.to_vec()) };
        let mut added = Vec::new();
        let mut reader = Reader(content);
        for arguments in &other.arguments {
            added.extend(graft.renumbered.constant(reader.u16()?).to_be_bytes());
            added.extend(reader.take(2)?);
            reader.skip(2 * arguments.len())?;
            added.extend(arguments.iter().flat_map(|index| graft.renumbered.constant(*index).to_be_bytes()));
        }
        let count = self.count.checked_add(other.count).ok_or(ClassFileError("it has too many lambdas"))?;
        let (name, own) = self.attribute.unwrap_or((graft.renumbered.constant(other_name), &[]));
        let content = [&count.to_be_bytes()[..], own, &added].concat();
        let mut reader = Reader(attributes);
        let mut kept = Vec::new();
        for _ in 0..reader.u16()? {
            let (known, content) = reader.attribute()?;
            if self.attribute.is_none_or(|(name, _)| name != known) {
                kept.push((known, content.0));
            }
        }
        kept.push((name, &content));
        let mut out = length16(kept.len())?.to_vec();
        for (name, content) in kept {
            put_attribute(&mut out, name, content)?;
        }
        Ok(out)
    }
}

/// Returns the instructions of code.
fn instructions_of(code: &[u8]) -> Result<&[u8], ClassFileError> {
    let mut reader = Reader(code);
    reader.skip(4)?;
    let length = reader.u32()?;
    reader.take(length as usize)
}

/// Tells whether a method is a lambda's.
fn is_lambda(method: &Method<'_>, name: &[u8]) -> bool {
    name.starts_with(b"lambda$") && method.flags() & PRIVATE_SYNTHETIC == PRIVATE_SYNTHETIC
}
