//! What a JVM says of classes that are written anew: it verifies all of them, and they print what they printed before.
//!
//! `CLASSES=DIRECTORY cargo test --lib jvm -- --ignored` needs `javac` and `java`, of Java 8 or later. Every class file below the
//! directory is written anew as well, and a JVM that verified it before has to verify it again. Without `CLASSES`, only the
//! classes of this file are tried.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use fs_err as fs;
use rand_chacha::rand_core::SeedableRng as _;

use super::*;

const NUMBERS: &str = r#"
import java.util.*;
import java.util.function.*;

public class Sample {
    static final int INLINED = 123456;
    static final String TEXT = "only text";
    static final double[] TABLE = {0.1, 100.0, -0.0, Double.NaN, Double.MIN_VALUE, 1e300};
    final long wide = 1L << 40;

    @interface Mark { int value() default 424242; double other() default 2.5; }

    static String small(int i) {
        StringBuilder text = new StringBuilder();
        for (int at = -1; at < 6; at++) text.append(at).append(i + at).append(i - at).append(i * 100 % 7);
        for (long at = 0L; at < 3; at += 1) text.append(at + wideOf(i)).append(at - 70000000000L);
        return text.toString();
    }

    static long wideOf(int i) { return i > 5 ? Long.MIN_VALUE : i == 5 ? 1L : 0x123456789abcdefL; }

    static float half(int i) { return i / 2.5f + 0.1f - 3f; }

    static String chosen(String key) {
        switch (key) { case "a": return "1" + 40000; case "b": return "2" + 'x'; default: return new String(key.length() > 3 ? "long" : "short"); }
    }

    static int handled(int i) {
        int sum = 0;
        try {
            sum += 10 / i;
            sum -= 100000;
        } catch (ArithmeticException zero) {
            sum = Integer.MIN_VALUE - 1;
        } finally {
            sum -= -5;
        }
        return sum;
    }

    static boolean[] flags(boolean one) { return new boolean[] {one, !one, true, false}; }

    public static void main(String[] words) {
        IntSupplier lambda = () -> 77777 + INLINED;
        System.out.println(small(3) + small(-7) + wideOf(5) + wideOf(6) + half(9) + lambda.getAsInt());
        System.out.println(chosen("a") + chosen("b") + chosen("cccc") + chosen("") + TEXT + (TEXT == "only" + " text"));
        System.out.println(handled(0) + " " + handled(3) + Arrays.toString(TABLE) + Arrays.toString(flags(words.length == 0)));
        System.out.println(new Sample().wide + (char) ('a' + 1) + (byte) 200 + (short) 70000);
        byte narrow = 127; narrow++; narrow -= 1; narrow += 100;
        try {
            Object[][] rows = new Object[4][];
            rows[3][1].hashCode();
        } catch (NullPointerException thrown) {
            System.out.println(thrown.getMessage());
        }
        System.out.println(narrow + " " + Double.doubleToRawLongBits(TABLE[2]) + " " + Math.round(350 * (100 - 3) / 100.0));
    }
}
"#;

const BODIES: &str = r#"
import java.util.concurrent.atomic.*;

public class Test {
    static boolean reached;
    int count;
    long sum;
    boolean ran;
    String text;
    final AtomicInteger atomic = new AtomicInteger();
    final AtomicReference<Object> reference = new AtomicReference<>();

    static class Subject {
        static { reached = true; }
        static long total = 9;
        final int value;
        Subject(int value, String text) { this.value = value; reached = true; }
        double half(long of, int[] all) { reached = true; return of / 2.0; }
        static Subject make() { return new Subject(1, ""); }
    }

    void body() {
        Subject subject = new Subject(count > 0 ? 1 : 2, count < 5 ? "a" : String.valueOf(new Object()));
        double half = subject.half(7L, new int[] {1});
        if (half == 0.0) ran = true;
        for (int at = 0; at < 3; at++) { count += at; sum += 2L; atomic.incrementAndGet(); }
        Subject.total = 8;
        Runnable run = () -> { reached = true; };
        try {
            Subject.make().half(3, null);
            atomic.addAndGet(10);
        } finally {
            text = "end";
        }
        reference.set(text + half);
        if (count > 100) return;
        System.setProperty("test.ran", "yes");
    }

    void throwing() { body(); }

    Object factory() { reached = true; return Subject.make(); }

    java.util.stream.Stream<org.junit.jupiter.api.DynamicTest> stream() { return null; }
    java.util.Iterator<?> other() { return null; }
    java.util.Iterator<org.junit.jupiter.api.DynamicTest> iterator() { return null; }
    java.util.Set<org.junit.jupiter.api.DynamicTest> set() { return null; }
    Iterable<org.junit.jupiter.api.DynamicTest> iterable() { return null; }
    org.junit.jupiter.api.DynamicTest[] array() { return null; }
    org.junit.jupiter.api.DynamicTest one() { return null; }

    public static void main(String[] words) throws Throwable {
        Test test = new Test();
        test.body();
        System.out.println(test.ran + " " + test.count + " " + test.sum + " " + test.text + " " + test.atomic + " " + System.getProperty("test.ran"));
        try { test.throwing(); System.out.println("returned"); } catch (IllegalStateException thrown) { System.out.println("thrown " + thrown.getMessage()); }
        test.stream().forEach(Test::run);
        run(test.iterator().next());
        run(test.set().iterator().next());
        run(test.iterable().iterator().next());
        run(test.array()[0]);
        run(test.one());
        System.out.println("reached " + reached);
    }

    static void run(org.junit.jupiter.api.DynamicTest one) {
        try { one.body.execute(); System.out.println(one.name); } catch (Throwable thrown) { System.out.println(thrown); }
    }
}
"#;

const DYNAMIC_TEST: &str = "package org.junit.jupiter.api;
public class DynamicTest {
    public String name;
    public org.junit.jupiter.api.function.Executable body;
    public static DynamicTest dynamicTest(String name, org.junit.jupiter.api.function.Executable body) {
        DynamicTest one = new DynamicTest();
        one.name = name;
        one.body = body;
        return one;
    }
}
";

const EXECUTABLE: &str =
    "package org.junit.jupiter.api.function;\npublic interface Executable { void execute() throws Throwable; }\n";

/// Compiles sources, given by path, into a directory.
fn compiled(directory: &Path, sources: &[(&str, &str)]) {
    let mut javac = Command::new("javac");
    javac.args(["-g", "-d"]).arg(directory);
    for (path, text) in sources {
        let path = directory.join("sources").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        javac.arg(path);
    }
    let output = javac.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn class_files(below: &Path) -> Vec<PathBuf> {
    let (mut found, mut left) = (Vec::new(), vec![below.to_owned()]);
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => left.push(path),
                false if path.extension().is_some_and(|extension| extension == "class") => found.push(path),
                false => {}
            }
        }
    }
    found
}

/// Runs a class, with every class verified.
fn run(directory: &Path, class: &str) -> String {
    let output = Command::new("java").args(["-Xverify:all", "-cp"]).arg(directory).arg(class).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[ignore = "needs a JDK"]
fn numbers_are_computed_and_stay_the_same() {
    let before = tempfile::tempdir().unwrap();
    compiled(before.path(), &[("Sample.java", NUMBERS)]);
    let expected = run(before.path(), "Sample");
    for seed in 0..10 {
        let after = tempfile::tempdir().unwrap();
        for path in class_files(before.path()) {
            let bytes = fs::read(&path).unwrap();
            let other = rebuilt(&bytes, &mut ChaCha8Rng::seed_from_u64(seed)).unwrap();
            let has = |bytes: &[u8], number: &[u8]| bytes.windows(number.len()).any(|part| part == number);
            if path.ends_with("Sample.class") {
                // The compiler adds the two numbers of the lambda.
                let numbers: [&[u8]; 3] =
                    [&100.0_f64.to_be_bytes(), &70_000_000_000_i64.to_be_bytes(), &201_233_i32.to_be_bytes()];
                for number in numbers {
                    assert!(has(&bytes, number) && !has(&other, number), "{number:?}");
                }
                assert!(has(&other, &123_456_i32.to_be_bytes()), "the value of a constant field stays");
            }
            fs::write(after.path().join(path.file_name().unwrap()), other).unwrap();
        }
        assert_eq!(run(after.path(), "Sample"), expected, "{seed}");
    }
}

const REVISION: &str = r#"
import java.util.function.*;

public class Revision {
    static int calls = 5;
    final int own = 3;

    interface Shape { String name(); }
    enum Kind { ONE, TWO }

    static String old(int i, String key) {
        Supplier<String> text = () -> "OLD" + i + calls;
        Function<Integer, IntSupplier> nested = one -> () -> one + i;
        UnaryOperator<String> reference = String::trim;
        long wide = 123456789012L * i;
        double half = i / 2.5;
        switch (key) { case "a": wide++; break; case "b": wide--; break; default: half = 0.1; }
        try { wide += 10 / (i - 3); } catch (ArithmeticException zero) { wide = -1; } finally { calls++; }
        Class<?> self = Revision.class;
        Object[] all = {text.get(), nested.apply(4).getAsInt(), reference.apply(" OLD "), wide, half, self.getName()};
        return java.util.Arrays.toString(all) + " OLD";
    }

    String field() { Supplier<Integer> sum = () -> own + calls; return "OLD" + sum.get(); }
    String gone() { return "OLD"; }

    public static void main(String[] words) {
        System.out.println(old(3, "a") + old(4, "b") + old(5, "c") + new Revision().field());
    }
}
"#;

/// Methods of a later revision have the earlier one's code, with its lambdas. What it lacks throws.
#[test]
#[ignore = "needs a JDK"]
fn another_revisions_code_runs_in_a_class() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    compiled(old.path(), &[("Revision.java", REVISION)]);
    let later = REVISION
        .replace("OLD", "LATER")
        .replace("gone", "added")
        .replace("interface Shape", "static Supplier<String> first = () -> \"first\" + calls;\n    interface Shape");
    compiled(new.path(), &[("Revision.java", &later)]);
    let expected = run(old.path(), "Revision");
    assert!(expected.contains("OLD") && run(new.path(), "Revision") == expected.replace("OLD", "LATER"));
    let path = new.path().join("Revision.class");
    let (bytes, other) = (fs::read(&path).unwrap(), fs::read(old.path().join("Revision.class")).unwrap());
    let is_chosen = |facts: &MethodFacts<'_>| ["old", "field", "added"].contains(&facts.name.as_ref());
    let grafted = with_code_of(&bytes, &other, "x", is_chosen).unwrap().unwrap();
    fs::write(&path, grafted.class).unwrap();
    assert_eq!(run(new.path(), "Revision"), expected);
}

#[test]
#[ignore = "needs a JDK"]
fn bodies_keep_what_they_write_down_and_reach_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let own = BTreeSet::from(["Test".to_owned()]);
    compiled(
        directory.path(),
        &[("Test.java", BODIES), ("DynamicTest.java", DYNAMIC_TEST), ("Executable.java", EXECUTABLE)],
    );
    let path = directory.path().join("Test.class");
    let bytes = fs::read(&path).unwrap();
    let factories = ["stream", "iterator", "set", "iterable", "array", "one"];
    let expected = "true 3 6 end 13 yes\nthrown THROWN\nempty\nempty\nempty\nempty\nempty\nempty\nreached false\n";
    for (throwing, message) in [
        (Code::ThrowsNew { class: "java/lang/IllegalStateException", with_message: false }, "null"),
        (Code::ThrowsNew { class: "java/lang/IllegalStateException", with_message: true }, ""),
        (Code::KeepsState { own: &own, throws: Some("java/lang/IllegalStateException") }, "null"),
    ] {
        let code = |facts: &MethodFacts<'_>| match facts.name.as_ref() {
            "body" => Some(Code::KeepsState { own: &own, throws: None }),
            // The call of `body` is gone from it, and a body that writes nothing down is refused.
            "throwing" if !matches!(throwing, Code::KeepsState { .. }) => Some(throwing),
            name if factories.contains(&name) => Some(Code::OneTest),
            _ => None,
        };
        let other = with_code(&bytes, code).unwrap().unwrap();
        let only_throwing = |facts: &MethodFacts<'_>| (facts.name == "throwing").then_some(throwing);
        let refused = with_code(&other, only_throwing).is_err();
        assert_eq!(refused, matches!(throwing, Code::KeepsState { .. }));
        if refused {
            continue;
        }
        fs::write(&path, other).unwrap();
        assert_eq!(run(directory.path(), "Test"), expected.replace("THROWN", message));
    }
    let wrong = |facts: &MethodFacts<'_>| (facts.name == "main").then_some(Code::OneTest);
    assert!(with_code(&bytes, wrong).is_err(), "a method that returns nothing is no factory");
}

#[test]
#[ignore = "needs a JDK, and a directory of classes that CLASSES names"]
#[expect(clippy::print_stderr, reason = "a person has to know that nothing was tried")]
fn classes_of_others_are_verified_as_before() {
    let Some(classes) = std::env::var_os("CLASSES").map(PathBuf::from) else {
        eprintln!("nothing was tried: CLASSES names no directory of classes");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let loader = "import java.nio.file.*;
public class Load extends ClassLoader {
    public static void main(String[] roots) throws Exception {
        for (String name : Files.readAllLines(Paths.get(roots[1]))) {
            String result;
            try {
                Class.forName(name, false, new java.net.URLClassLoader(new java.net.URL[] {Paths.get(roots[0]).toUri().toURL()})).getDeclaredMethods();
                result = \"loaded\";
            } catch (Throwable thrown) { result = thrown.getClass().getName(); }
            System.out.println(name + \" \" + result);
        }
    }
}
";
    compiled(directory.path(), &[("Load.java", loader)]);
    let (mut names, mut refused, after) = (String::new(), 0, directory.path().join("after"));
    for (number, path) in class_files(&classes).into_iter().enumerate() {
        let bytes = fs::read(&path).unwrap();
        // A class is its own other revision: all its code runs under its own constants, added once more.
        let is_code = |facts: &MethodFacts<'_>| !facts.lines.is_empty() && facts.name != "<clinit>";
        let grafted = match with_code_of(&bytes, &bytes, "x", is_code) {
            Ok(grafted) => grafted.map_or(bytes, |one| one.class),
            Err(_) => {
                refused += 1;
                bytes
            }
        };
        let Ok(other) = rebuilt(&grafted, &mut ChaCha8Rng::seed_from_u64(number as u64)) else { continue };
        let relative = path.strip_prefix(&classes).unwrap();
        fs::create_dir_all(after.join(relative).parent().unwrap()).unwrap();
        fs::write(after.join(relative), other).unwrap();
        let name = relative.with_extension("");
        names.push_str(&format!("{}\n", name.to_str().unwrap().replace('/', ".")));
    }
    let list = directory.path().join("names");
    fs::write(&list, &names).unwrap();
    let of = |root: &Path| {
        let mut java = Command::new("java");
        java.args(["-Xverify:all", "-cp"]).arg(directory.path()).arg("Load").arg(root).arg(&list);
        String::from_utf8(java.output().unwrap().stdout).unwrap()
    };
    let (said, expected) = (of(&after), of(&classes));
    for (one, other) in said.lines().zip(expected.lines()) {
        assert_eq!(one, other);
    }
    assert!(names.lines().count() == said.lines().count() && said.contains(" loaded"), "{said}");
    assert!(refused * 100 <= names.lines().count(), "{refused} refused");
}
