//! Focal methods and added lines of small repositories, beside what git itself says.

use std::path::Path;
use std::process::Command;

use git2::build::TreeUpdateBuilder;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

use super::*;
use crate::task::{Revision, Track};

const SOURCE: &str =
    "class A {\n  @Deprecated\n  void m() {\n  }\n\n  void m(int x) {\n  }\n  static class B {\n    B() {}\n  }\n}\n";

#[test]
fn an_anchor_is_one_overload() {
    let unit = Unit::parse(SOURCE.as_bytes());
    for (class, method, line, expected) in [
        ("A", "m", 2, Ok((Rule::Extent, (2, 4)))),
        ("A", "m", 7, Ok((Rule::Extent, (6, 7)))),
        ("A", "m", 5, Ok((Rule::Nearest, (2, 4)))),
        ("A", "m", 9, Ok((Rule::Nearest, (6, 7)))),
        ("A", "m", 18, Err(Unresolved::FarAway)),
        ("A$B", "<init>", 9, Ok((Rule::Extent, (9, 9)))),
        ("A$B", "B", 9, Ok((Rule::Extent, (9, 9)))),
        ("A", "n", 2, Err(Unresolved::NoMethod)),
        ("C", "m", 2, Err(Unresolved::NoClass)),
    ] {
        assert_eq!(by_anchor(&unit, class, method, line, true), expected, "{class}#{method} {line}");
    }
    assert_eq!(by_anchor(&unit, "A", "m", 5, false), Err(Unresolved::FarAway));
}

type Files<'a> = [(&'a str, &'a str)];

/// A repository of two revisions.
struct Pair {
    directory: tempfile::TempDir,
    revisions: [Revision; 2],
}

impl Pair {
    fn new(old: &Files<'_>, new: &Files<'_>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let git = git2::Repository::init_bare(directory.path()).unwrap();
        let empty = git.find_tree(git.treebuilder(None).unwrap().write().unwrap()).unwrap();
        let who = git2::Signature::new("a", "a@example.org", &git2::Time::new(0, 0)).unwrap();
        let revisions = [old, new].map(|files| {
            let mut tree = TreeUpdateBuilder::new();
            for (path, text) in files {
                tree.upsert(path, git.blob(text.as_bytes()).unwrap(), git2::FileMode::Blob);
            }
            let tree = git.find_tree(tree.create_updated(&git, &empty).unwrap()).unwrap();
            git.commit(None, &who, &who, "x", &tree, &[]).unwrap().to_string().parse().unwrap()
        });
        Self { directory, revisions }
    }

    fn opened(&self) -> Repository {
        Repository::open("o/n".parse().unwrap(), self.directory.path()).unwrap()
    }

    fn changes(&self) -> Changes {
        let repository = self.opened();
        let [old, new] = self.revisions.each_ref().map(|revision| repository.tree(revision).unwrap());
        changes(&old, &new, &|path| path.ends_with(".java")).unwrap()
    }

    /// Returns the same in the words of the protocol, by git itself.
    fn changes_of_git(&self) -> Changes {
        let [old, new] = &self.revisions;
        let output = Command::new("git")
            .args(["diff", "-U0", "--find-renames=50%", "--diff-algorithm=myers", "--no-color"])
            .args([old.as_str(), new.as_str()])
            .current_dir(self.directory.path())
            .env("GIT_DIR", self.directory.path())
            .env("GIT_CONFIG_GLOBAL", Path::new("/dev/null"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        read_diff(&String::from_utf8_lossy(&output.stdout))
    }

    fn task(&self, focal: Vec<FocalMethod>) -> Task {
        let [rev1, rev2] = self.revisions.clone();
        Task {
            id: "t".parse().unwrap(),
            repository: "o/n".parse().unwrap(),
            track: Track::TestUpdate,
            rev1,
            rev2,
            rev1_date: "2020-01-01".to_owned(),
            rev2_date: "2020-01-01".to_owned(),
            test_file: "ATest.java".parse().unwrap(),
            test_methods: Vec::new(),
            focal_methods: focal,
        }
    }
}

/// Reads a diff without context whose paths need no quotes.
fn read_diff(diff: &str) -> Changes {
    let mut changes = Changes::default();
    let (mut renamed, mut path) = (None, String::new());
    for line in diff.lines() {
        if let Some(from) = line.strip_prefix("rename from ") {
            renamed = Some(from.to_owned());
        } else if let Some((to, from)) = line.strip_prefix("rename to ").zip(renamed.take()) {
            changes.renamed.insert(from, to.to_owned());
        } else if let Some(names) = line.strip_prefix("diff --git a/") {
            path = names.rsplit_once(" b/").unwrap().1.to_owned();
        } else if let Some(hunk) = line.strip_prefix("@@ -") {
            let new = hunk.split_once(" +").unwrap().1.split_once(" @@").unwrap().0;
            let (start, lines) = new.split_once(',').unwrap_or((new, "1"));
            let (start, lines): (usize, usize) = (start.parse().unwrap(), lines.parse().unwrap());
            changes.added.entry(path.clone()).or_default().extend(start..start + lines);
        }
    }
    changes
}

/// Leaves out files without added lines: whether they are named says nothing.
fn added(changes: &Changes) -> BTreeMap<&str, &[usize]> {
    let added = changes.added.iter().filter(|(_, lines)| !lines.is_empty());
    added.map(|(path, lines)| (path.as_str(), lines.as_slice())).collect()
}

/// Returns a class with methods, each of three lines and a blank one.
fn class(name: &str, methods: &[&str]) -> String {
    let methods: String =
        methods.iter().map(|method| format!("    void {method}() {{\n        {method}.call();\n    }}\n\n")).collect();
    format!("package p;\n\npublic class {name} {{\n{methods}}}\n")
}

#[test]
fn added_lines_are_those_that_git_says() {
    let base = class("A", &["a", "b", "c", "d"]);
    let windows = base.replace('\n', "\r\n");
    let (endless, bare) = (base.trim_end().to_owned(), base.replace("    }\n\n}", "    }\n}"));
    let spaced = base.replace("\n\n", "\n\n\n");
    let more = base.replace("        b.call();\n", "        b.call();\n        b.call();\n\n");
    let moved = class("A", &["c", "d", "a", "b"]);
    let doubled = class("A", &["a", "b", "b", "c", "d", "d"]);
    let renamed = class("B", &["a", "b", "c", "e"]);
    let other = class("Other", &["x", "y"]).replace("call", "answer");
    let a = "src/A.java";
    type Shape<'a> = (&'a str, Vec<(&'a str, &'a str)>, Vec<(&'a str, &'a str)>);
    let shapes: [Shape<'_>; 17] = [
        ("moved blocks", vec![(a, &base)], vec![(a, &moved)]),
        ("moved back", vec![(a, &moved)], vec![(a, &base)]),
        ("doubled blocks", vec![(a, &base)], vec![(a, &doubled)]),
        ("fewer blocks", vec![(a, &doubled)], vec![(a, &base)]),
        ("the last line loses its end", vec![(a, &base)], vec![(a, &endless)]),
        ("the last line gets an end", vec![(a, &endless)], vec![(a, &base)]),
        ("neither has an end", vec![(a, &endless)], vec![(a, doubled.trim_end())]),
        ("line ends become those of Windows", vec![(a, &base)], vec![(a, &windows)]),
        ("line ends of Windows stay", vec![(a, &windows)], vec![(a, &more)]),
        ("blank lines", vec![(a, &base)], vec![(a, &spaced)]),
        ("a blank line less", vec![(a, &base)], vec![(a, &bare)]),
        ("statements", vec![(a, &base)], vec![(a, &more)]),
        ("a new file beside one that stays", vec![(a, &base)], vec![(a, &base), ("src/B.java", &other)]),
        ("a file that goes", vec![(a, &base), ("src/B.java", &other)], vec![(a, &base)]),
        ("a file in another directory", vec![(a, &base)], vec![("main/p/A.java", &more)]),
        ("a file of another name", vec![(a, &base)], vec![("src/B.java", &renamed)]),
        ("a file that becomes another", vec![(a, &base)], vec![("src/B.java", &other)]),
    ];
    for (name, old, new) in shapes {
        let pair = Pair::new(&old, &new);
        let (ours, git) = (pair.changes(), pair.changes_of_git());
        assert_eq!((added(&ours), &ours.renamed), (added(&git), &git.renamed), "{name}");
        let goes = ["a file that goes", "a blank line less", "fewer blocks"].contains(&name);
        assert_eq!(added(&ours).is_empty(), goes, "{name}: {ours:?}");
        let is_renamed = ["a file in another directory", "a file of another name"].contains(&name);
        assert_eq!(!ours.renamed.is_empty(), is_renamed, "{name}: {ours:?}");
    }
}

#[test]
fn a_file_that_git_takes_for_binary_adds_no_lines() {
    let pair = Pair::new(&[("A.java", "class A {\n}\n")], &[("A.java", "class A {\n\0\n}\n"), ("B.java", "\0\n")]);
    assert_eq!(added(&pair.changes_of_git()), BTreeMap::new());
    assert_eq!(added(&pair.changes()), BTreeMap::new());
}

/// Many files, each edited by chance in lines that are often alike: where a block begins is for the algorithm to choose.
#[test]
fn added_lines_of_edits_by_chance_are_those_that_git_says() {
    const LINES: [&str; 9] =
        ["", "    }", "    {", "        x();", "        y();", "    // z", "\tx();", "}", "x();\r"];
    let mut random = ChaCha8Rng::seed_from_u64(22);
    let mut below = |number: usize| (random.next_u64() % number as u64) as usize;
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for number in 0..400 {
        let before: Vec<&str> = (0..below(40)).map(|_| LINES[below(LINES.len())]).collect();
        let mut after = before.clone();
        for _ in 0..=below(4) {
            let (from, to) = (below(after.len() + 1), below(after.len() + 1));
            match below(4) {
                0 => after.insert(from, LINES[below(LINES.len())]),
                1 => drop(after.drain(from.min(to)..from.max(to).min(from.min(to) + 5))),
                2 => {
                    let block: Vec<&str> = after[from.min(to)..from.max(to)].to_vec();
                    after.splice(to..to, block);
                }
                _ => after[from.min(to)..from.max(to)].rotate_left(from.abs_diff(to).min(1)),
            }
        }
        let path = format!("p{}/F{number}.java", number % 7);
        let end = |last: usize| if last == 0 { "" } else { "\n" };
        let [before, after] = [before.join("\n") + end(below(3)), after.join("\n") + end(below(3))];
        old.push((path.clone(), before));
        new.push((path, after));
    }
    let pair = Pair::new(&borrowed(&old), &borrowed(&new));
    let (ours, git) = (pair.changes(), pair.changes_of_git());
    let (ours, git) = (added(&ours), added(&git));
    assert!(git.len() > 300, "{}", git.len());
    for (path, lines) in &git {
        assert_eq!(ours.get(path), Some(lines), "{path}");
    }
    assert_eq!(ours.len(), git.len());
}

fn borrowed(files: &[(String, String)]) -> Vec<(&str, &str)> {
    files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect()
}

const OLD: &str = "package p.q;

public class A {
    void stays() {
        one();
    }

    void grows(int x) {
        one();
    }

    void overloaded(int x) {
    }

    void overloaded(String x) {
        one();
    }

    void changes(int x) {
    }

    static class In {
        In(int x) {
        }
    }
}
";

const NEW: &str = "package p.q;

public class A {
    int added;

    void stays() {
        one();
    }

    void grows(final int x) {
        one();
        two();
    }

    void overloaded(String x) {
        two();
    }

    void changes(long x) {
    }

    static class In {
        In(int x) {
            two();
        }
    }
}
";

/// Returns a focal method with the line of a file that it is anchored to.
fn focal(method: &str, anchor: Option<(&str, Side, u32)>) -> FocalMethod {
    let anchor = anchor.map(|(path, side, line)| Anchor { path_sha256: hex(&Sha256::digest(path)), side, line });
    FocalMethod { method: method.parse().unwrap(), anchor }
}

fn resolved(rule: Rule, path: &str, (first_line, last_line): (usize, usize), added: &[usize]) -> Found {
    let (path, package, added) = (path.to_owned(), "p/q".to_owned(), added.to_vec());
    Found::Resolved(FocalLines { rule, path, package, first_line, last_line, added })
}

#[test]
fn every_rule_finds_what_it_is_for() {
    use Side::{New, Old};
    let gone = Found::Gone { rule: Rule::OldExtent };
    let unresolved = |reason| Found::Unresolved { reason };
    let (a, removed) = ("src/A.java", "src/Removed.java");
    let pair = Pair::new(
        &[(a, OLD), (removed, "package p.q;\nclass Removed {\n    int of() {\n        return 0;\n    }\n}\n")],
        &[(a, NEW)],
    );
    let cases = [
        ("A#stays", Some((a, New, 7)), resolved(Rule::Extent, a, (6, 8), &[])),
        ("A#grows", Some((a, New, 12)), resolved(Rule::Extent, a, (10, 13), &[10, 12])),
        ("p.q.A#grows", Some((a, New, 9)), resolved(Rule::Nearest, a, (10, 13), &[10, 12])),
        ("A#stays", Some((a, New, 18)), resolved(Rule::Nearest, a, (6, 8), &[])),
        ("A#stays", Some((a, New, 19)), unresolved(Unresolved::FarAway)),
        // What stood in it on old code is found where it stands now.
        ("A#stays", Some((a, Old, 5)), resolved(Rule::OldExtent, a, (6, 8), &[])),
        ("A#grows", Some((a, Old, 8)), resolved(Rule::OldExtent, a, (10, 13), &[10, 12])),
        ("A#overloaded", Some((a, Old, 16)), resolved(Rule::OldExtent, a, (15, 17), &[16])),
        ("A$In#In", Some((a, Old, 23)), resolved(Rule::OldExtent, a, (23, 25), &[24])),
        // The same name with other parameters is another method.
        ("A#overloaded", Some((a, Old, 12)), gone.clone()),
        ("A#changes", Some((a, Old, 19)), gone.clone()),
        ("Removed#of", Some((removed, Old, 4)), gone.clone()),
        // On old code nothing beside a method counts for it.
        ("A#stays", Some((a, Old, 7)), unresolved(Unresolved::FarAway)),
        ("A#stays", None, unresolved(Unresolved::NoAnchor)),
        ("A#stays", Some(("src/B.java", New, 6)), unresolved(Unresolved::NoFile)),
        ("A#stays", Some(("src/B.java", Old, 6)), unresolved(Unresolved::NoFile)),
        ("Removed#of", Some((removed, New, 4)), unresolved(Unresolved::NoFile)),
        ("A#nothing", Some((a, Old, 5)), unresolved(Unresolved::NoMethod)),
        ("A#nothing", Some((a, New, 5)), unresolved(Unresolved::NoMethod)),
        ("B#stays", Some((a, Old, 5)), unresolved(Unresolved::NoClass)),
        ("B#stays", Some((a, New, 5)), unresolved(Unresolved::NoClass)),
    ];
    let methods = cases.iter().map(|(method, anchor, _)| focal(method, *anchor)).collect();
    let found = resolve(&pair.opened(), &pair.task(methods)).unwrap();
    assert_eq!(found.len(), cases.len());
    for ((method, anchor, expected), found) in cases.into_iter().zip(found) {
        assert_eq!((found.method.as_str(), &found.found), (method, &expected), "{anchor:?}");
    }
}

#[test]
fn renamed_files_are_followed() {
    let (old, new) = ("src/A.java", "src/B.java");
    let renamed = NEW.replace("class A", "class B");
    let aside = NEW.replace("class A", "class C");
    for (text, path, stays, nested) in [
        // The class has the file's new name, or its old one.
        (&renamed, new, Some(&[][..]), Some(&[24][..])),
        (&NEW.to_owned(), new, Some(&[][..]), Some(&[24][..])),
        // Neither.
        (&aside, new, None, None),
        // Only the directory is another one.
        (&NEW.to_owned(), "main/A.java", Some(&[][..]), Some(&[24][..])),
    ] {
        let pair = Pair::new(&[(old, OLD)], &[(path, text)]);
        let methods = vec![focal("A#stays", Some((old, Side::Old, 5))), focal("A$In#In", Some((old, Side::Old, 23)))];
        let found = resolve(&pair.opened(), &pair.task(methods)).unwrap();
        let expected = |lines, added: Option<&[usize]>| match added {
            Some(added) => resolved(Rule::OldExtent, path, lines, added),
            None => Found::Gone { rule: Rule::OldExtent },
        };
        let found: Vec<Found> = found.into_iter().map(|focal| focal.found).collect();
        assert_eq!(found, [expected((6, 8), stays), expected((23, 25), nested)], "{path} {text}");
    }
    // What is less than half alike was not renamed.
    let other = class("A", &["x", "y", "z"]).replace("call", "answer");
    let pair = Pair::new(&[(old, OLD)], &[(new, &other)]);
    let found = resolve(&pair.opened(), &pair.task(vec![focal("A#stays", Some((old, Side::Old, 5)))])).unwrap();
    assert_eq!(found[0].found, Found::Gone { rule: Rule::OldExtent });
}
