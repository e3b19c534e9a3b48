//! Java sources: of submissions and of repositories.

use std::collections::BTreeSet;

use testevo_sandbox::java::reach::{Place, TestSource};
use testevo_sandbox::java::{Unit, declarations};
use testevo_sandbox::workspace::java_source::{declared_types, mentions, package_of, unescaped};

use crate::Target;

const WORDS: &[&[u8]] = &[
    b"class A {",
    b"class ",
    b"interface I extends J {",
    b"enum E { X { int i; }, Y }",
    b"record R(int i) {",
    b"@interface N {",
    b"new Object() {",
    b"() -> {",
    b"@Test void m() {",
    b"import static p.A.*;",
    b"package p;",
    b"/*",
    b"*/",
    b"//",
    b"\"\"\"",
    b"\\u007b",
    b"\\uuu0041",
    b"<T extends List<? super T>>",
    b"int[]...",
    b"}",
    b")",
];

/// Types and methods by the parser, and what a test method reaches.
pub(super) const PARSED: Target =
    Target { name: "java", run: parsed, seeds, words: WORDS, runs: 500, most_bytes: 8 << 10, memory: 2000 };

/// Package, types and words by the scanner.
pub(super) const SCANNED: Target =
    Target { name: "java_scanner", run: scanned, seeds, words: WORDS, runs: 2000, most_bytes: 64 << 10, memory: 60 };

fn parsed(input: &[u8]) {
    let unit = Unit::parse(input);
    let lines = input.iter().filter(|byte| **byte == b'\n').count() + 1;
    for (first, last) in
        unit.types.iter().flat_map(|declared| declared.methods.iter().map(|one| one.lines).chain([declared.lines]))
    {
        assert!(1 <= first && first <= last && last <= lines, "{first} to {last} of {lines}");
    }
    // Every token and a blank.
    if let Some(declared) = declarations(input) {
        assert!(declared.len() <= 2 * input.len() + 1);
    }
    let Some(source) = TestSource::parse(input) else { return };
    let places: Vec<Place> = [0, 1, 2, 7, lines, lines + 1, usize::MAX]
        .into_iter()
        .flat_map(|line| [None, Some(0), Some(1), Some(9), Some(usize::MAX)].map(|column| Place { line, column }))
        .collect();
    let found = source.find(&places);
    assert!(found.len() <= places.len());
    let methods = unit.types.iter().flat_map(|declared| declared.methods.iter().map(|one| (&declared.name, &one.name)));
    for (class, method) in methods.take(4) {
        let reach = source.reach(class, method);
        for hides_uses in [false, true] {
            reach.has_any(&found, hides_uses);
        }
    }
    source.reach("ATest", "m");
}

fn scanned(input: &[u8]) {
    assert!(package_of(input).len() <= 3 * input.len());
    let types = declared_types(input);
    // Whatever it declares it mentions.
    for declared in types.iter().take(4) {
        assert!(mentions(input, &BTreeSet::from([declared.clone()])), "{declared}");
    }
    let text = String::from_utf8_lossy(input);
    assert!(unescaped(&text).len() <= text.len());
}

fn seeds() -> Vec<Vec<u8>> {
    let test = r#"package p.q;

import static org.junit.Assert.*;
import java.util.*;
import org.junit.*;

/** A test. */
public class ATest extends Base<String> implements I {
    private static final String TEXT = "a \u0041 \" b";
    @Rule public final Timeout rule = new Timeout(1) { @Override public String toString() { return "x"; } };
    enum Kind { ONE, TWO { int two() { return 2; } } }
    record Pair(int a, List<? extends Map<String, int[]>> b) { Pair { assert a > 0; } }
    @Before public void up() { helper(1); }
    @Test(expected = Error.class) public <T> void m() throws Exception {
        class Local { int f = new Price(3).total(); }
        Runnable run = () -> { helper(new Local().f); };
        switch (1) { case 1: break; default: run.run(); }
    }
    int helper(int... numbers) { return numbers.length /* none */; }
    ATest() { super("""
        text block
        """); }
}
"#;
    let nested = |open: &str, close: &str, times: usize| (open.repeat(times) + &close.repeat(times)).into_bytes();
    vec![
        test.into(),
        b"class ATest { void m() { } }".to_vec(),
        "\u{feff}// only\npackage p ;".into(),
        nested("class A{", "}", 400),
        nested("class A{Object o=new Object(){};", "}", 200),
        nested("class A{void m(){new Object(){", "};}}", 100),
        nested("class A { int i = ((", "", 100),
        b"class E { enum F { A, B { }, C } } ".repeat(300),
        b"import static a.B.*;\n".repeat(1000),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often each part of a file is repeated.
    const MANY: usize = 10_000;

    /// These inputs are no seeds, because changes of them would take most of the target's time.
    #[test]
    fn what_is_repeated_costs_no_product() {
        let class = "class ATest { ";
        let method = "; void m() { b(); } }";
        for (before, part, after) in [
            ("", "class A { }\n", ""),
            ("", "import a.B;\n", ""),
            ("enum E { A", ", A", " }"),
            ("class ATest<T", ", T", "> { void m() { } }"),
            ("@A({\"x\"", ", \"x\"", "}) class ATest { void m() { } }"),
            (class, "@A ", "void m() { } }"),
            (class, "void m() { }\n", "}"),
            ("class ATest { void m() { ", "m(); ", "} }"),
            ("class ATest { int i = 1", " + i", "; }"),
            ("class ATest { String s = \"", "x", "\"; }"),
        ] {
            check(&format!("{before}{}{after}", part.repeat(MANY)));
        }
        for (before, first, between, second, after) in [
            ("class ATest implements I", ", B", " { @Test void m() { } }\n", "class B { }\n", ""),
            (class, "@A ", "int a", ", b", method),
            (class, "static ", "int a", ", b", method),
            ("class ATest { @DataProvider({\"x\"", ", \"x\"", "}) int a", ", b", method),
            ("class ATest { void m() { ", "b(); ", "} ", "void b() { }\n", "}"),
            ("class ATest { void m() { ", "new B(); ", "} }\n", "class B { int i = 1; }\n", ""),
        ] {
            check(&format!("{before}{}{between}{}{after}", first.repeat(MANY), second.repeat(MANY)));
        }
    }

    fn check(input: &str) {
        PARSED.check(input.as_bytes());
        SCANNED.check(input.as_bytes());
    }
}
