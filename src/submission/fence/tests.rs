use super::*;

const DIFF: &str = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n";
const CLASS: &str = "class A {}\n";

fn check(form: Form, texts: &[(String, Option<&str>)]) {
    for (text, expected) in texts {
        let found = unwrapped(text.as_bytes(), form).map(|found| String::from_utf8(found).unwrap());
        assert_eq!(found.as_deref(), *expected, "{text}");
    }
}

#[test]
fn a_patch_is_taken_out_of_its_fence() {
    let shifted = DIFF.lines().map(|line| format!("   {line}\n")).collect::<String>();
    check(
        Form::Patch,
        &[
            (format!("```diff\n{DIFF}```\n"), Some(DIFF)),
            (format!("Here it is:\n\n```\n{DIFF}```"), Some(DIFF)),
            (format!("~~~\n{DIFF}~~~~\n"), Some(DIFF)),
            (format!("````diff\n{DIFF}````\n"), Some(DIFF)),
            // Indented, as in a list.
            (format!("  ```diff\n{DIFF}  ```\n"), Some(DIFF)),
            (format!("1. Here:\n   ```diff\n{shifted}   ```\n"), Some(DIFF)),
            (format!("<patch>\n{DIFF}</patch>\n"), Some(DIFF)),
            (format!("Sure.\n <patch>\n```diff\n{DIFF}```\n</patch>\n"), Some(DIFF)),
            (format!("<answer>\n```diff\n{DIFF}```\n"), Some(DIFF)),
            // Of several fences one holds a diff.
            (format!("```bash\nmvn test\n```\n\n```diff\n{DIFF}```\n"), Some(DIFF)),
            (format!("```diff\n{DIFF}```\nNote: use `x`\n```\nend\n```\n"), Some(DIFF)),
            (format!("```diff\n{DIFF}```\n```diff\n{DIFF}```\n"), None),
            // The patch is bare, however the text around it looks.
            (DIFF.to_owned(), None),
            (format!("```bash\nmvn test\n```\n{DIFF}"), None),
            (format!("```bash\nmvn test\n```\n{DIFF}that is all\n"), None),
            (format!("```diff\n{DIFF}"), None),
            ("--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n ```\n-a\n+b\n ```\n".to_owned(), None),
            ("```\nx\n```\n".to_owned(), None),
            ("Run ```mvn test``` first.\n".to_owned(), None),
            ("x\n".to_owned(), None),
            (String::new(), None),
        ],
    );
    let two = format!("```bash\nx\n```\n{}", format!("```diff\n{DIFF}```\n").repeat(2));
    assert_eq!(wrapping(two.as_bytes(), Form::Patch), Wrapping::Unclear { number: 3, holding: 2 });
}

#[test]
fn a_fence_ends_where_it_began() {
    let text = "```diff\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n ```\n-a\n+b\n```\n";
    let expected = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n ```\n-a\n+b\n";
    check(Form::Patch, &[(text.to_owned(), Some(expected))]);
}

#[test]
fn a_test_file_is_taken_out_of_its_fence() {
    check(
        Form::File,
        &[
            (format!("```java\n{CLASS}```"), Some(CLASS)),
            (format!("Here's the file, see https://example.org/*:\n```java\n{CLASS}```\n"), Some(CLASS)),
            (format!("~~~java\r\n{CLASS}~~~\r\n"), Some(CLASS)),
            (format!("<code>\n{CLASS}</code>\n"), Some(CLASS)),
            (format!("```bash\nmvn test\n```\n```java\n{CLASS}```\n"), Some(CLASS)),
            (format!("```java\n{CLASS}```\n```java\n{CLASS}```\n"), None),
            // A fence in a comment or text block is part of the file.
            (format!("/*\n```\nclass B {{}}\n```\n*/\n{CLASS}"), None),
            ("class A { String s = \"\"\"\n```\nclass B {}\n```\n\"\"\"; }\n".to_owned(), None),
            ("class A { char c = '\"'; String s = \"/*\"; }\n".to_owned(), None),
            (CLASS.to_owned(), None),
        ],
    );
    for (text, expected) in [
        ("class A { char c = '\"'; }\n// \"\"\"\n```\nx\n```\n", Wrapping::TypeOutside),
        ("```\nx\n```\n", Wrapping::Unclear { number: 1, holding: 0 }),
        ("```java\nclass A { /* \n```\n", Wrapping::Unclear { number: 1, holding: 0 }),
        ("```java\nclass A {}\n", Wrapping::Open),
        ("class A {}\n```\n", Wrapping::Open),
        ("class A { /* ``` */ }\n", Wrapping::Bare),
        ("class A {}\n<T>\n", Wrapping::Bare),
    ] {
        assert_eq!(wrapping(text.as_bytes(), Form::File), expected, "{text}");
    }
}

#[test]
fn a_type_outside_of_fences_keeps_all_of_them() {
    for text in [
        "package a;\nclass ATest {}\n```\nrun the tests of this class\n```",
        "package a;\nclass ATest extends B<C> {}\n```java\nclass Helper {}\n```\n",
        "```java\nclass Helper {}\n```\n@interface A {}\n",
    ] {
        assert_eq!(wrapping(text.as_bytes(), Form::File), Wrapping::TypeOutside, "{text}");
    }
    // Prose declares no type.
    let text = format!("The class ATest extends BaseTest, as before. The class B\n```java\n{CLASS}```\n{{}}\n");
    check(Form::File, &[(text, Some(CLASS))]);
}

#[test]
fn a_fence_does_not_end_in_a_comment_or_text_block() {
    let comment = "/**\n```\nexample\n```\n*/\nclass A {}\n";
    let block = "class A { String s = \"\"\"\n```\nx\n```\n\"\"\"; }\n";
    check(
        Form::File,
        &[
            (format!("```java\n{comment}```"), Some(comment)),
            (format!("```java\n{block}```\n"), Some(block)),
            // Where no language is named, the comment may be prose as well.
            (format!("```\n{comment}```"), None),
            (format!("```\nmvn test src/*\n```\n```java\n{CLASS}```\n"), Some(CLASS)),
            (format!("```xml\n<include>**/*.java</include>\n```\n```\n{CLASS}```\n"), Some(CLASS)),
        ],
    );
    assert_eq!(wrapping(format!("```\n{comment}```").as_bytes(), Form::File), Wrapping::Cut);
}

#[test]
fn the_fence_of_the_language_is_preferred() {
    let java = format!("```Java title=\"ATest.java\"\n{CLASS}```\n");
    for other in ["```bash\nmvn test  # runs this class\n```\n", "```xml\n<a class=\"x\"/>\n```\n"] {
        check(Form::File, &[(format!("{java}{other}"), Some(CLASS)), (format!("{other}```\n{CLASS}```"), Some(CLASS))]);
    }
    check(Form::File, &[(format!("```\nclass B {{}}\n```\n{java}"), Some(CLASS))]);
    for (text, expected) in [
        ("class A{}", true),
        ("record A(@Name(\"x\") int a) {}", true),
        ("interface A<T extends B & C<?>> extends D<T[]> // {\n {}", true),
        ("sealed class A permits B, c.D {}", true),
        ("@interface \u{e4} {}", true),
        ("this class", false),
        ("a class of tests { }", false),
        ("class = {}", false),
        ("// class A {}", false),
        ("\"class A {}\"", false),
        ("A.class { class 7 {", false),
    ] {
        assert_eq!(declares_type(&java_code(text.as_bytes()).0), expected, "{text}");
    }
}

#[test]
fn a_diff_is_no_test_file() {
    for diff in [DIFF, "--- a/x\n+++ b/x\n", "Index: x\n", "\n diff --git a/x b/x\n", "@@ -1 +1 @@\n"] {
        assert!(is_diff(diff.as_bytes()), "{diff}");
    }
    for text in [CLASS, "--- a\n", "From the start\n", "", "// diff --git a/x b/x\nclass A {}\n"] {
        assert!(!is_diff(text.as_bytes()), "{text}");
    }
}

#[test]
fn quotes_take_no_time() {
    let line = "\"\\".repeat(1 << 20);
    assert_eq!(Java::Code.after(line.as_bytes()), Java::Code);
    assert_eq!(Java::Code.after("'\\".repeat(1 << 20).as_bytes()), Java::Code);
}
