//! Submissions made by hand, each for the category that it is named with: five and more of each category, on both tracks.
//!
//! What is executed stands on one miniature of each track; what is not, on all of them.

use serde_json::json;
use testevo_sandbox::metrics::category::{Category, Integrity, judge};
use testevo_sandbox::outcome::Outcome;
use testevo_sandbox::sample::{Miniature, MiniatureMethod, SampleRepository};
use testevo_sandbox::task::{Cell, Side, Track};
use testevo_sandbox::workspace::java_source::package_of;

/// One submission for one miniature.
pub(super) struct Made {
    /// Stands for the model that handed it in.
    pub(super) name: &'static str,
    /// The prediction's field, and what it holds; nothing where nothing is handed in.
    pub(super) content: Option<(&'static str, String)>,
    expected: Expected,
}

enum Expected {
    /// The same for every method.
    All(Category),
    /// What the developers' own test comes to.
    Gold,
    /// What the test of the old revision comes to.
    Old,
}

impl Made {
    /// Returns the category that a method must come to.
    pub(super) fn expected(&self, miniature: &Miniature, method: &MiniatureMethod) -> Category {
        let of = |cell: Cell| *method.expected[&cell].first().unwrap();
        let judged = |new: Outcome, old: Outcome| {
            judge(miniature.track, &[new], &[old.into()], Integrity::NotEvaluated).paper_verdict.unwrap()
        };
        match self.expected {
            Expected::All(category) => category,
            Expected::Gold => judged(of(Cell::Nn), of(Cell::No)),
            Expected::Old => judged(of(Cell::On), of(Cell::Oo)),
        }
    }
}

/// The miniatures that every submission which is executed stands on.
const EXECUTED: [&str; 2] = ["rounding", "fixed-bug"];

/// Bodies of the target methods, in place of the developers'.
const BODIES: [(&str, &str, Category); 17] = [
    ("assertion", "throw new AssertionError(1);", Category::ExecFail),
    ("exception", "throw new IllegalStateException();", Category::ExecFail),
    ("exit", "System.exit(0);", Category::ExecFail),
    ("halt", "Runtime.getRuntime().halt(0);", Category::ExecFail),
    ("skips", "org.junit.jupiter.api.Assumptions.assumeTrue(false);", Category::ExecFail),
    ("overflow", "class Endless { int of(int n) { return of(n + 1) + 1; } } new Endless().of(0);", Category::ExecFail),
    ("type-error", "int x = \"\";", Category::CmplFail),
    ("no-java", "int = ;", Category::CmplFail),
    ("unknown-name", "Nowhere.call();", Category::CmplFail),
    ("no-import", "List<String> list = null;", Category::CmplFail),
    ("returns", "return 1;", Category::CmplFail),
    ("unreported", "Runnable run = () -> { throw new Exception(); };", Category::CmplFail),
    ("no-assertion", "", Category::Redundant),
    ("sure-assertion", "org.junit.jupiter.api.Assertions.assertTrue(true);", Category::Redundant),
    ("prints", "System.out.println(\"BUILD SUCCESS\");", Category::Redundant),
    ("swallows", "try { throw new AssertionError(); } catch (AssertionError expected) { }", Category::Redundant),
    ("constants", "org.junit.jupiter.api.Assertions.assertEquals(4, 2 + 2);", Category::Redundant),
];

/// Members beside the target methods that keep these from passing.
const MEMBERS: [(&str, &str); 2] = [
    ("before-each", "@org.junit.jupiter.api.BeforeEach void fails() { throw new IllegalStateException(); }"),
    ("initializer", "static final int NUMBER = Integer.parseInt(\"none\");"),
];

const POM: &str = "diff --git a/pom.xml b/pom.xml\n--- a/pom.xml\n+++ b/pom.xml\n@@ -1 +1 @@\n-x\n+y\n";

/// Returns all submissions as lines of predictions.
pub(super) fn lines(repository: &SampleRepository) -> String {
    let mut lines = String::new();
    for miniature in &repository.miniatures {
        for submission in all(miniature) {
            let task = format!("{}__{}", repository.name.file_stem(), miniature.name);
            let mut line = json!({ "instance_id": task, "model_name_or_path": submission.name });
            match &submission.content {
                Some((field, text)) => line[field] = json!(text),
                None => line["model_patch"] = json!(null),
            }
            lines.push_str(&format!("{line}\n"));
        }
    }
    lines
}

/// Returns the submissions for a miniature.
pub(super) fn all(miniature: &Miniature) -> Vec<Made> {
    let gold = text(miniature, Side::New).unwrap();
    let start = text(miniature, Side::Old);
    let patch = patch(miniature, start.as_deref().unwrap_or(""), &gold);
    let mut made = Vec::new();
    let mut add = |name, field, content: String, expected| {
        made.push(Made { name, content: Some((field, content)), expected });
    };
    // The developers' test in other clothes.
    add("whole-file", "model_file", gold.clone(), Expected::Gold);
    add("patch", "model_patch", patch.clone(), Expected::Gold);
    add("patch-with-more", "model_patch", format!("{patch}{POM}"), Expected::Gold);
    add(
        "patch-by-mail",
        "model_patch",
        format!("From 1 Mon\nSubject: tests\n---\n\n{patch}-- \n2.43.0\n"),
        Expected::Gold,
    );
    add("patch-of-windows", "model_patch", patch.replace('\n', "\r\n"), Expected::Gold);
    if EXECUTED.contains(&miniature.name.as_str()) {
        add("own-test", "model_file", own(miniature), Expected::All(Category::Success));
        for (name, body, category) in BODIES {
            // What does not fail on old code is no less of a success where the track asks for an update.
            let category = match (category, miniature.track) {
                (Category::Redundant, Track::TestUpdate) => Category::Success,
                (category, _) => category,
            };
            add(name, "model_file", test_file(miniature, &gold, body, ""), Expected::All(category));
        }
        for (name, member) in MEMBERS {
            add(name, "model_file", test_file(miniature, &gold, "", member), Expected::All(Category::ExecFail));
        }
        let cut = gold[..gold.rfind(';').unwrap()].to_owned();
        add("cut-off", "model_file", cut, Expected::All(Category::CmplFail));
    }
    // What can't be executed.
    let path = miniature.test_file.as_str();
    let mut fails = |name, field, content: String| add(name, field, content, Expected::All(Category::HrnsFail));
    fails("other-file", "model_patch", POM.to_owned());
    fails("words", "model_patch", "I could not do it.".to_owned());
    fails("blank", "model_patch", " \n".to_owned());
    fails("no-method", "model_file", "class Nothing {}".to_owned());
    fails("nul", "model_file", format!("{gold}\0"));
    fails("too-large", "model_file", format!("{gold}//{}", "x".repeat(4 << 20)));
    fails("twice", "model_patch", patch.repeat(2));
    fails("cut-patch", "model_patch", patch[..patch.rfind("@@").unwrap()].to_owned());
    fails("other-base", "model_patch", format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-nothing\n+something\n"));
    fails(
        "binary",
        "model_patch",
        format!("diff --git a/{path} b/{path}\nBinary files a/{path} and b/{path} differ\n"),
    );
    fails("leads-out", "model_patch", patch.replace(path, &format!("../{path}")));
    if let Some(start) = start {
        fails("unchanged", "model_file", start.clone());
        fails("removed", "model_patch", format!("diff --git a/{path} b/{path}\ndeleted file mode 100644\n"));
        if miniature.track == Track::TestUpdate {
            add("old-test", "model_file", format!("{start}// As it was.\n"), Expected::Old);
        }
    }
    made.push(Made { name: "nothing", content: None, expected: Expected::All(Category::HrnsFail) });
    made
}

/// Returns a patch that makes the developers' test with a comment behind it.
pub(super) fn commented(miniature: &Miniature, comment: &str) -> String {
    let (start, gold) = (text(miniature, Side::Old), text(miniature, Side::New).unwrap());
    patch(miniature, start.as_deref().unwrap_or(""), &format!("{gold}// {comment}\n"))
}

/// Returns a test that is nobody's but ours, and tells new code from old.
fn own(miniature: &Miniature) -> String {
    match miniature.name.as_str() {
        "rounding" => {
            "package shop;\n\nclass PriceTest {\n    @org.junit.jupiter.api.Test\n    void discount() {\n        \
             long cents = new Price(3).discounted(50).cents();\n        \
             if (cents != 2) throw new AssertionError(\"half of 3 is \" + cents);\n    }\n}\n"
        }
        "fixed-bug" => {
            "package shop;\n\nclass StockTest {\n    @org.junit.jupiter.api.Test\n    void takeTooMuch() {\n        \
             try {\n            new Stock(1).take(2);\n        } catch (IllegalArgumentException refused) {\n            \
             return;\n        }\n        throw new AssertionError();\n    }\n\n    @org.junit.jupiter.api.Test\n    \
             void takeAll() {\n        Stock stock = new Stock(2);\n        stock.take(2);\n        \
             try {\n            stock.take(1);\n        } catch (IllegalArgumentException refused) {\n        }\n        \
             if (stock.left() != 0) throw new AssertionError(stock.left());\n    }\n}\n"
        }
        name => panic!("there is no own test for {name}"),
    }
    .to_owned()
}

fn text(miniature: &Miniature, side: Side) -> Option<String> {
    let bytes = miniature.files(side).get(&miniature.test_file)?;
    Some(String::from_utf8(bytes.clone()).unwrap())
}

/// Returns a test file whose target methods all do the same.
fn test_file(miniature: &Miniature, gold: &str, body: &str, member: &str) -> String {
    let package = package_of(gold.as_bytes());
    let class = miniature.test_file.as_str().rsplit('/').next().unwrap().trim_end_matches(".java").to_owned();
    let methods: String = miniature
        .methods
        .iter()
        .map(|method| {
            format!(
                "    @org.junit.jupiter.api.Test\n    void {}() throws Exception {{ {body} }}\n",
                method.id.method()
            )
        })
        .collect();
    format!("package {package};\n\nclass {class} {{\n    {member}\n{methods}}}\n")
}

fn patch(miniature: &Miniature, start: &str, gold: &str) -> String {
    let path = miniature.test_file.as_str();
    let file = std::path::Path::new(path);
    let mut patch = git2::Patch::from_buffers(start.as_bytes(), Some(file), gold.as_bytes(), Some(file), None).unwrap();
    let text = String::from_utf8(patch.to_buf().unwrap().to_vec()).unwrap();
    if !start.is_empty() {
        return text;
    }
    let hunks = text.split_once("@@").unwrap().1;
    format!("diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@{hunks}")
}
