use proptest::prelude::*;
use rand_chacha::rand_core::SeedableRng;

use super::*;
use crate::workspace::class_file::ClassFacts;

mod jvm;

const LINES: u16 = 6;
const FRAMES: u16 = 7;
const VARIABLES: u16 = 8;
const UNKNOWN: u16 = 9;

fn attribute(name: u16, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_attribute(&mut out, name, content).unwrap();
    out
}

/// Returns the content of a code attribute.
fn code(instructions: &[u8], handlers: &[u8], attributes: &[Vec<u8>]) -> Vec<u8> {
    let mut out = vec![0, 2, 0, 5];
    out.extend(length32(instructions.len()).unwrap());
    out.extend(instructions);
    out.extend(length16(handlers.len() / 8).unwrap());
    out.extend(handlers);
    out.extend(length16(attributes.len()).unwrap());
    out.extend(attributes.concat());
    out
}

/// Returns a class `p/A` with a method `m(I)J` of this code and an abstract method of the same name.
fn class(code: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_be_bytes().to_vec();
    bytes.extend([0, 0, 0, 52, 0, 10]);
    let texts = ["p/A", "m", "(I)J", "Code", "LineNumberTable", "StackMapTable", "LocalVariableTable", "Other"];
    for (index, text) in texts.iter().enumerate() {
        if index == 1 {
            bytes.extend([7, 0, 1]);
        }
        bytes.extend([1, 0, text.len() as u8]);
        bytes.extend(text.as_bytes());
    }
    // Access, class, superclass; no interfaces; a field without attributes.
    bytes.extend([0, 1, 0, 2, 0, 2, 0, 0, 0, 1, 0, 2, 0, 3, 0, 3, 0, 0]);
    bytes.extend([0, 2, 0, 1, 0, 3, 0, 4, 0, 1]);
    bytes.extend(attribute(5, code));
    bytes.extend([4, 1, 0, 3, 0, 4, 0, 0]);
    bytes.extend([0, 0]);
    bytes
}

/// Returns the code of a class's only method with code.
fn code_of(bytes: &[u8]) -> Vec<u8> {
    let class = Class::read(bytes).unwrap();
    class.methods[0].attributes[0].1.to_owned()
}

fn lines(entries: &[(u16, u16)]) -> Vec<u8> {
    let entries = entries.iter().flat_map(|(place, line)| [place.to_be_bytes(), line.to_be_bytes()].concat());
    attribute(LINES, &[length16(entries.clone().count() / 4).unwrap().to_vec(), entries.collect()].concat())
}

#[test]
fn a_method_that_is_chosen_gets_other_code() {
    let code = code(&[0x09, 0xad], &[], &[lines(&[(0, 12), (1, 9)])]);
    let original = class(&code);
    let mut seen = Vec::new();
    let all = |facts: &MethodFacts<'_>| {
        seen.push(facts.lines.clone());
        Some(Code::Throws("x1"))
    };
    let thrown = with_code(&original, all).unwrap().unwrap();
    assert_eq!(seen, [vec![12, 9]], "the method without code is not asked about");
    // new #11, dup, ldc_w #13, invokespecial #17, athrow; the places of parameters are kept, nothing else is.
    let expected =
        [&[0, 4, 0, 5, 0, 0, 0, 11][..], &[0xbb, 0, 11, 0x59, 0x13, 0, 13, 0xb7, 0, 17, 0xbf], &[0, 0, 0, 0]];
    assert_eq!(code_of(&thrown), expected.concat());
    let read = Class::read(&thrown).unwrap();
    assert_eq!(read.constants.len(), 18);
    assert!(matches!(read.constants[11], Constant::Class(10)) && read.text(10).unwrap() == b"java/lang/AssertionError");
    assert_eq!(read.text(12).unwrap(), b"x1");
    assert_eq!(ClassFacts::read(&thrown).unwrap(), ClassFacts::read(&original).unwrap());

    let is_m = |facts: &MethodFacts<'_>| facts.name == "m" && facts.descriptor == "(I)J";
    let returned = with_code(&original, |facts| is_m(facts).then_some(Code::Returns));
    assert_eq!(code_of(&returned.unwrap().unwrap())[4..], [0, 0, 0, 2, 0x09, 0xad, 0, 0, 0, 0]);
    assert_eq!(with_code(&original, |_| None).unwrap(), None);
}

#[test]
fn what_is_returned_fits_the_descriptor() {
    for (returned, instructions) in [
        ("V", &[0xb1][..]),
        ("Z", &[0x03, 0xac]),
        ("I", &[0x03, 0xac]),
        ("J", &[0x09, 0xad]),
        ("F", &[0x0b, 0xae]),
        ("D", &[0x0e, 0xaf]),
        ("Ljava/lang/Object;", &[0x01, 0xb0]),
        ("[I", &[0x01, 0xb0]),
    ] {
        let bytes = class(&code(&[0xb1], &[], &[]));
        let class = Class::read(&bytes).unwrap();
        let (mut added, descriptor) = (Added::after(&class), format!("(Lp/A;)){returned}"));
        let code = Bodies::of(&class).other_code(&[0, 1, 0, 3, 0, 0, 0, 0], Code::Returns, &descriptor, &mut added);
        let code = code.unwrap();
        assert_eq!(&code[8..code.len() - 4], instructions, "{returned}");
    }
}

#[test]
fn what_names_places_moves_with_the_code() {
    // A hundred instructions of a byte each; the frames are at 60, 68, 72, 82, 84, 87, 91 and 96.
    let of = |instructions: usize, places: [u8; 5], frames: [&[u8]; 8]| {
        let frames = attribute(FRAMES, &[&[0, 8][..], &frames.concat()].concat());
        let [one, first, from, till, handler] = places;
        let variables =
            attribute(VARIABLES, &[0, 2, 0, 0, 0, first, 0, 3, 0, 3, 0, 0, 0, from, 0, till, 0, 3, 0, 3, 0, 1]);
        let handlers = [0, one, 0, from, 0, handler, 0, 2];
        code(&vec![0; instructions], &handlers, &[lines(&[(0, 7), (u16::from(one), 8)]), frames, variables])
    };
    let frames = |short: &'static [u8], distances: [u8; 7], new: [u8; 3]| {
        let [a, b, c, d, e, f, g] = distances;
        [
            short.to_vec(),
            vec![a],
            // One on the stack: what the instruction at 5 made.
            vec![64 + b, 8, 0, new[0]],
            vec![247, 0, c, 7, 0, 2],
            vec![250, 0, d],
            vec![251, 0, e],
            vec![253, 0, f, 1, 8, 0, new[1]],
            vec![255, 0, g, 0, 2, 1, 4, 0, 1, 8, 0, new[2]],
        ]
    };
    let made =
        |instructions, places, frames: [Vec<u8>; 8]| of(instructions, places, frames.each_ref().map(Vec::as_slice));
    let original = made(100, [2, 9, 4, 2, 6], frames(&[60], [7, 3, 9, 1, 2, 3, 4], [5, 6, 7]));
    let bytes = class(&original);
    let class = Class::read(&bytes).unwrap();
    let known = padding::KnownAttributes::of(&class.constants);
    let moved =
        |first, next| padding::padded(&original, &known, first, || next, |_| Ok(None)).unwrap().unwrap().content;
    // With four more there is no short form of 60.
    let expected = made(104, [6, 13, 8, 2, 10], frames(&[251, 0, 64], [7, 3, 9, 1, 2, 3, 4], [9, 10, 11]));
    assert_eq!(moved(4, 0), expected);
    // One before each but the first: every place is twice what it was.
    let expected = made(199, [4, 18, 8, 4, 12], frames(&[251, 0, 120], [15, 7, 19, 3, 5, 7, 9], [10, 12, 14]));
    assert_eq!(moved(0, 1), expected);
}

/// A JVM compiles no method that is too long, so code that would become so has fewer instructions that do nothing.
#[test]
fn what_is_compiled_stays_so() {
    let known = padding::KnownAttributes::of(&[]);
    for (length, expected) in [(3_997, 7 + 2 * 3_997 - 1), (3_998, 7 + 3_998), (8_001, 7 + 2 * 8_001 - 1)] {
        let code = code(&vec![0; length], &[], &[]);
        let padded = padding::padded(&code, &known, 7, || 1, |_| Ok(None)).unwrap().unwrap();
        // Eight bytes before the instructions, four behind them.
        assert_eq!(padded.content.len() - 12, expected, "{length}");
    }
    assert!(padding::padded(&code(&[0; 7_994], &[], &[]), &known, 7, || 1, |_| Ok(None)).unwrap().is_none());
}

#[test]
fn code_that_nobody_can_move_stays() {
    for (content, what) in [
        (code(&[1], &[], &[attribute(UNKNOWN, &[])]), "an unknown attribute"),
        (code(&vec![0; 65_535], &[], &[]), "the longest code"),
    ] {
        let original = class(&content);
        let other = rebuilt(&original, &mut ChaCha8Rng::seed_from_u64(1)).unwrap();
        assert_eq!(code_of(&other), content, "{what}");
        assert_ne!(other, original, "there are further constants");
    }
}

#[test]
fn random_numbers_decide_the_bytes() {
    let original = class(&code(&[0x09, 0xad], &[], &[lines(&[(0, 12)])]));
    let of = |seed| rebuilt(&original, &mut ChaCha8Rng::seed_from_u64(seed)).unwrap();
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
    let read = of(3);
    let read = Class::read(&read).unwrap();
    let content = read.methods[0].attributes[0].1;
    assert_eq!(read.facts(&read.methods[0], content).unwrap().lines, [12]);
    assert!(content[8..].starts_with(&[0, 0, 0, 0]) && code_of(&of(3)).len() > 20);
}

/// Returns a class with this code, whose constants 10 and 11 are 70,000 and 100.0.
fn with_numbers(code: &[u8]) -> Vec<u8> {
    let bytes = class(code);
    let class = Class::read(&bytes).unwrap();
    let mut added = Added::after(&class);
    assert_eq!(added.push(3, &70_000_i32.to_be_bytes()).unwrap(), 10);
    assert_eq!(added.push(6, &100_f64.to_be_bytes()).unwrap(), 11);
    added.next += 1;
    class.write(class.pool, &added, &class.codes(|_, _| Ok(None)).unwrap()).unwrap()
}

#[test]
fn numbers_are_computed_from_others() {
    let has = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).any(|found| found == part);
    let numbers: [&[u8]; 2] = [&70_000_i32.to_be_bytes(), &100_f64.to_be_bytes()];
    // bipush 100, ldc 10, iadd, pop, ldc2_w 11, dreturn
    let instructions = [0x10, 100, 0x12, 10, 0x60, 0x57, 0x14, 0, 11, 0xaf];
    for seed in 0..20 {
        let original = with_numbers(&code(&instructions, &[], &[]));
        let other = rebuilt(&original, &mut ChaCha8Rng::seed_from_u64(seed)).unwrap();
        let code = code_of(&other);
        assert!(numbers.iter().all(|number| has(&original, number) && !has(&other, number)), "{seed}");
        // Two bytes with the difference 100, an addition as a subtraction, and a number from its bits.
        let is_byte = |part: &[u8]| (part[0], part[2], part[1] ^ part[3], part[4]) == (0x10, 0x10, 100, 0x82);
        assert!(code[8..].windows(5).any(is_byte) && !has(&code[8..], &[0x10, 100]), "{code:?}");
        assert!(has(&code, &[0x74, 0x64]) && !has(&code[8..], &[0x60, 0x57]), "{code:?}");
        assert!(has(&code, &[0x83, 0xb8]) && has(&other, b"longBitsToDouble"), "{code:?}");
        assert_eq!(code[..2], [0, 5], "the stack is three places deeper");
    }
    // A number that code still names stays.
    let unknown = with_numbers(&code(&instructions, &[], &[attribute(UNKNOWN, &[])]));
    let other = rebuilt(&unknown, &mut ChaCha8Rng::seed_from_u64(1)).unwrap();
    assert!(numbers.iter().all(|number| has(&other, number)));
}

#[test]
fn another_revisions_code_names_its_own_constants() {
    // ldc 10, pop, ldc2_w 11, dreturn; a handler of any class and one of p/A; a frame with p/A on the stack
    let instructions = [0x12, 10, 0x57, 0x14, 0, 11, 0xaf];
    let handlers = [0, 0, 0, 2, 0, 6, 0, 0, 0, 0, 0, 2, 0, 6, 0, 2];
    let frames = attribute(FRAMES, &[0, 1, 64 + 6, 7, 0, 2]);
    let other = with_numbers(&code(&instructions, &handlers, &[lines(&[(0, 70), (3, 71)]), frames]));
    let original = class(&code(&[0x09, 0xad], &[], &[lines(&[(0, 12), (1, 9)])]));
    let grafted = with_code_of(&original, &other, "x", |facts| facts.name == "m").unwrap().unwrap();
    assert!(grafted.has_code);
    // The class has ten constants, so each index is nine more. The instruction of two bytes has become one of three.
    let expected = [
        &[0, 5, 0, 5, 0, 0, 0, 8, 0x13, 0, 19, 0x57, 0x14, 0, 20, 0xaf][..],
        &[0, 2, 0, 0, 0, 3, 0, 7, 0, 0, 0, 0, 0, 3, 0, 7, 0, 11],
        &[0, 2, 0, 15, 0, 0, 0, 10, 0, 2, 0, 0, 0, 9, 0, 4, 0, 9],
        &[0, 16, 0, 0, 0, 6, 0, 1, 64 + 7, 7, 0, 11],
    ];
    assert_eq!(code_of(&grafted.class), expected.concat());
    let read = Class::read(&grafted.class).unwrap();
    assert_eq!(
        (read.constants.len(), read.text(10).unwrap(), read.text(15).unwrap()),
        (22, &b"p/A"[..], &b"LineNumberTable"[..])
    );

    // What the other revision lacks throws.
    let renamed: Vec<u8> = {
        let at = other.windows(4).position(|part| part == [1, 0, 1, b'm']).unwrap();
        [&other[..at + 3], b"n", &other[at + 4..]].concat()
    };
    let grafted = with_code_of(&original, &renamed, "x", |_| true).unwrap().unwrap();
    assert!(!grafted.has_code && code_of(&grafted.class).ends_with(&[0xbf, 0, 0, 0, 0]));
    assert!(with_code_of(&original, &other, "x", |_| false).unwrap().is_none());
}

#[test]
fn the_constant_index_of_an_array_read_stays() {
    // aconst_null, iconst_3, iaload, pop, return; then without the read
    for (instructions, stays) in [([0x01, 0x06, 0x2e, 0x57, 0xb1], true), ([0x01, 0x06, 0x57, 0x57, 0xb1], false)] {
        for seed in 0..20 {
            let other = rebuilt(&class(&code(&instructions, &[], &[])), &mut ChaCha8Rng::seed_from_u64(seed)).unwrap();
            assert_eq!(code_of(&other)[8..].contains(&0x82), !stays, "{seed}");
        }
    }
}

#[test]
fn a_class_without_room_for_constants_is_refused() {
    let mut bytes = MAGIC.to_be_bytes().to_vec();
    bytes.extend([0, 0, 0, 52]);
    bytes.extend(u16::MAX.to_be_bytes());
    bytes.extend([1, 0, 0].repeat(65_532));
    bytes.extend([7, 0, 1, 1, 0, 0]);
    bytes.extend([0, 1, 255, 253, 255, 253, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(Class::read(&bytes).unwrap().constants.len(), 65_535);
    let error = rebuilt(&bytes, &mut ChaCha8Rng::seed_from_u64(1)).unwrap_err();
    assert_eq!(error.to_string(), "not a class file: it has no room for further constants");
}

proptest! {
    #[test]
    fn no_bytes_are_followed_beyond_their_end(
        at in 0_usize..300, byte in any::<u8>(), cut in 0_usize..300, seed in any::<u64>(),
    ) {
        let frames = attribute(FRAMES, &[0, 2, 60, 255, 0, 4, 0, 2, 1, 4, 0, 1, 8, 0, 7]);
        let mut bytes = class(&code(&[1, 2, 3, 4], &[0, 1, 0, 4, 0, 6, 0, 2], &[lines(&[(0, 7), (2, 8)]), frames]));
        let at = at % bytes.len();
        bytes[at] = byte;
        bytes.truncate(bytes.len().max(cut) - cut.min(bytes.len()) / 8);
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        if let Ok(other) = rebuilt(&bytes, &mut random) {
            prop_assert!(Class::read(&other).is_ok());
        }
        let whole = class(&code(&[1, 2, 3, 4], &[], &[]));
        for (one, other) in [(&bytes, &whole), (&whole, &bytes), (&bytes, &bytes)] {
            if let Ok(Some(grafted)) = with_code_of(one, other, "x", |_| true) {
                prop_assert!(Class::read(&grafted.class).is_ok());
            }
        }
        let own = std::collections::BTreeSet::from(["p/A".to_owned()]);
        for code in [
            Code::Throws("x"),
            Code::OneTest,
            Code::KeepsState { own: &own, throws: None },
            Code::KeepsState { own: &own, throws: Some("p/E") },
        ] {
            if let Ok(Some(other)) = with_code(&bytes, |_| Some(code)) {
                prop_assert!(Class::read(&other).is_ok());
            }
        }
    }
}
