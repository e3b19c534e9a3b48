use super::*;

const SOURCE: &str = "\
package p;
@Deprecated
class A extends B {
  A(int x) { new Runnable() { public void run() {} }; }
  @Test
  @Deprecated public
  void m(java.util.List<String> a, int[] b, final String... c) {
    class L { void l() {} }
  }
  void m() {}
  static class N { void n() { new N() { void o() {} }; } interface I { default void d() {} } }
  enum E { X { void e() {} }, Y; E() {} }
  record R(int a) { R { } }
}
interface J extends K { }
";

#[test]
fn types_and_methods_are_found_with_their_lines() {
    let unit = Unit::parse(SOURCE.as_bytes());
    assert!(!unit.has_errors);
    let names: Vec<&str> = unit.types.iter().map(|declared| declared.name.as_str()).collect();
    assert_eq!(names, ["A", "A$1", "A$1L", "A$N", "A$N$1", "A$N$I", "A$E", "A$E$1", "A$R", "J"]);
    assert!(unit.types[0].inherits && unit.types[9].inherits && !unit.types[3].inherits);
    let overloads: Vec<_> = unit.methods("A", "m").collect();
    assert_eq!(overloads.len(), 2);
    assert_eq!(
        (overloads[0].lines, &overloads[0].parameters[..]),
        ((5, 9), &["List", "int[]", "String[]"].map(str::to_owned)[..])
    );
    for (class, method) in [
        ("A$1", "run"),
        ("A$N", "n"),
        ("A$N$1", "o"),
        ("A$N$I", "d"),
        ("A$E$1", "e"),
        ("A$1L", "l"),
        ("A", "<init>"),
        ("A", "A"),
        ("A$R", "<init>"),
    ] {
        assert_eq!(unit.methods(class, method).count(), 1, "{class}#{method}");
    }
    assert_eq!(unit.methods("A", "n").count(), 0);
}

#[test]
fn declarations_are_what_other_sources_see() {
    let of = |source: &str| declarations(source.as_bytes());
    let own = of("class A { static final String S = \"x y\"; int m(int a) { return a; } A() { } static { m(1); } }");
    assert!(own.is_some());
    let alike = "class A { // noted\n static final String S = \"x y\"; int m(int a) { return -a; }\n\
            /* more */ A() { this(1); } static { } }";
    assert_eq!(of(alike), own);
    for other in [
        "class A { static final String S = \"x  y\"; int m(int a) { return a; } A() { } static { m(1); } }",
        "class A { static final String S = \"x y\"; long m(int a) { return a; } A() { } static { m(1); } }",
        "class A { static final String S = \"x y\"; A() { } static { m(1); } }",
        "class A { static final String S = \"x y\"; int m(int a); A() { } static { m(1); } }",
    ] {
        assert_ne!(of(other), own, "{other}");
    }
    assert_eq!(of("class A { int m( }"), None);
}

#[test]
fn hostile_nesting_is_no_trouble() {
    let deep = format!("class A {{ int x = {}1{}; void m() {{}} }}", "(".repeat(50_000), ")".repeat(50_000));
    let _ = Unit::parse(deep.as_bytes());
    let classes = "class A {".repeat(20_000);
    assert!(Unit::parse(classes.as_bytes()).has_errors);
    assert!(Unit::parse(b"\xff\xfe class \0").has_errors);
}

proptest::proptest! {
    #[test]
    fn no_source_makes_it_panic(text in "(class |[A-C]|\\{|\\}|\\(|\\)|;|new |void |enum |@|<|>|\n| ){0,60}") {
        let _ = Unit::parse(text.as_bytes());
    }
}

#[test]
fn types_in_each_other_take_no_more_than_their_text() {
    let nested =
        |open: &str, close: &str, times: usize| Unit::parse((open.repeat(times) + &close.repeat(times)).as_bytes());
    for (open, close) in [("class A{", "}"), ("class A{Object o=new Object(){", "};}")] {
        let few = nested(open, close, 100);
        let names: Vec<&str> = few.types.iter().map(|declared| declared.name.as_str()).collect();
        assert!(names[..100].iter().all(|name| name.starts_with('A') && name.len() <= 255), "{names:?}");
        let unit = nested(open, close, 20_000);
        assert!(unit.has_errors && unit.types.len() >= 20_000);
        // No file has such a name, so no class has it.
        assert!(unit.types[200..].iter().all(|declared| declared.name.is_empty()));
    }
}
