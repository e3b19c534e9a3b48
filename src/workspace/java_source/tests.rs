use super::*;

#[test]
fn declared_types_and_mentions_are_found() {
    let source = br#"package p; // class Comment
            class A<T> { interface B {} enum C { X } String s = "class Text"; char c = '"'; }
            @interface D {} record E(int x) {} cl\u0061ss F { int clazz = A.class.hashCode(); }"#;
    let types: Vec<String> = declared_types(source).into_iter().collect();
    assert_eq!(types, ["A", "B", "C", "D", "E", "F"]);
    let words = BTreeSet::from(["A".to_owned()]);
    for (source, expected) in [
        ("new A().x()", true),
        ("import static p.A.*;", true),
        ("class AB extends BA {}", false),
        ("\\u0041 a;", true),
        ("\\uuu0041 a;", true),
        ("\\u", false),
        ("\\u00", false),
    ] {
        assert_eq!(mentions(source.as_bytes(), &words), expected, "{source}");
    }
}

#[test]
fn literals_hide_no_declarations() {
    for source in [
        "String s = \"\"\"\n one \" quote\n\"\"\"; class A {}",
        "String s = \"\"\"\n {\"a\": \"it's\"}\"\"\"; class A {}",
        "String s = \"\"\"\n \\\"\"\" class B \\\\\"\"\"; class A {}",
        "String s = \"\"; class A {}",
        "char c = '\\''; class A {}",
        "it's broken\nclass A {}",
        "\"broken \\\nclass A {}",
    ] {
        let types: Vec<String> = declared_types(source.as_bytes()).into_iter().collect();
        assert_eq!(types, ["A"], "{source}");
    }
    assert!(declared_types("\"\"\"\n class A \\".as_bytes()).is_empty());
    assert!(declared_types("\"\"\"\n class A \"\"".as_bytes()).is_empty());
}

#[test]
fn the_declared_package_is_found() {
    for (source, package) in [
        ("package a.b;\nclass C {}", "a.b"),
        ("\u{feff}/* package x; */ // package y;\r\npackage a . b /* z */ ;", "a.b"),
        ("@Ann(\"package q;\") package a;", "a"),
        ("@Ann(value = {1}, name = ')' ) package a;", "a"),
        ("import x.package_; class C {}", ""),
        ("class C { String package1; }", ""),
        ("", ""),
        ("/* never ends", ""),
    ] {
        assert_eq!(package_of(source.as_bytes()), package, "{source}");
    }
}
