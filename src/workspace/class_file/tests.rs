use super::*;

/// Returns a class file with a long constant, a field and the attribute.
fn class_file(source_file: bool) -> Vec<u8> {
    let mut bytes = vec![0xCA, 0xFE, 0xBA, 0xBE, 0, 0, 0, 52];
    bytes.extend([0, 9]);
    bytes.extend([5, 0, 0, 0, 0, 0, 0, 0, 1]);
    for text in ["p/A$B", "SourceFile", "A.java"] {
        bytes.extend([1, 0, text.len() as u8]);
        bytes.extend(text.as_bytes());
    }
    bytes.extend([7, 0, 3]);
    bytes.extend([1, 0, 1, b'f']);
    bytes.extend([1, 0, 1, b'I']);
    // Access, class, superclass, no interface, one field without attributes, no method.
    bytes.extend([0, 1, 0, 6, 0, 6, 0, 0, 0, 1, 0, 0, 0, 7, 0, 8, 0, 0, 0, 0]);
    if source_file {
        bytes.extend([0, 1, 0, 4, 0, 0, 0, 2, 0, 5]);
    } else {
        bytes.extend([0, 0]);
    }
    bytes
}

#[test]
fn the_facts_are_read() {
    let facts = ClassFacts::read(&class_file(true)).unwrap();
    assert_eq!(facts, ClassFacts { name: "p/A$B".into(), source_file: Some("A.java".into()) });
    assert_eq!(facts.package(), "p");
    assert_eq!(ClassFacts::read(&class_file(false)).unwrap().source_file, None);
}

#[test]
fn samples_are_class_files() {
    let facts = ClassFacts::read(&sample("p/A", Some("A.java"))).unwrap();
    assert_eq!(facts, ClassFacts { name: "p/A".into(), source_file: Some("A.java".into()) });
    assert_eq!(ClassFacts::read(&sample("A", None)).unwrap().source_file, None);
}

#[test]
fn no_part_of_a_class_file_is_one() {
    let whole = class_file(true);
    for length in 0..whole.len() {
        assert!(ClassFacts::read(&whole[..length]).is_err(), "{length} bytes");
    }
    for at in 0..whole.len() {
        // Whatever a byte becomes, an answer comes.
        for value in [0, 1, 7, 0x7f, 0xff] {
            let mut changed = whole.clone();
            changed[at] = value;
            let _ = ClassFacts::read(&changed);
        }
    }
}
