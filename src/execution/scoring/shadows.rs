//! Finds types of the project that a test file declares again. Test classes precede the project's own classes on the
//! class path, so such a type runs in place of the type under test.

use std::collections::BTreeSet;

use crate::java::Unit;
use crate::workspace::java_source::{package_of, unescaped};

/// Endings of source files in JVM languages.
const SUFFIXES: [&str; 4] = [".java", ".kt", ".groovy", ".scala"];

/// Returns names of types, sorted: `file` declares the type at its top level, `start` does not, and a source of that
/// type and package is among `paths`, outside of the tests. `test_file` is the file's path, `package_at` returns the
/// package of a source. Sources are known only by their names, so a second type in a source is not found, nor one that a build
/// generates: the class files of a launch show those (`FindingKind::Replaces`).
pub(super) fn shadows<'a>(
    test_file: &str,
    file: &[u8],
    start: Option<&[u8]>,
    paths: impl Iterator<Item = &'a str>,
    package_at: impl Fn(&str) -> Option<String>,
) -> Vec<String> {
    let started = start.map(top_level).unwrap_or_default();
    let declared: BTreeSet<String> = top_level(file).difference(&started).cloned().collect();
    if declared.is_empty() {
        return Vec::new();
    }
    // A type with a dollar sign in its name can hide a nested type of the project.
    let names: BTreeSet<&str> = declared.iter().map(|name| outermost(name)).collect();
    let package = package_of(file);
    let directory = if package.is_empty() { String::new() } else { package.replace('.', "/") + "/" };
    let own_root = root_and_name(test_file, &directory).map(|(root, _)| root);
    let mut there = BTreeSet::new();
    for path in paths.filter(|path| *path != test_file) {
        if let Some((root, name)) = root_and_name(path, &directory)
            && Some(root) != own_root
            && !is_beside_production(root)
            && names.contains(name)
            // The text that looks like the package's directory may be part of the source root.
            && package_at(path).is_some_and(|found| found == package)
        {
            there.insert(name);
        }
    }
    let hides = |name: &&String| there.contains(outermost(name));
    let qualified = |name: &String| if package.is_empty() { name.clone() } else { format!("{package}.{name}") };
    declared.iter().filter(hides).map(qualified).collect()
}

/// Returns the names of the types that a source declares at its top level. Resolves Unicode escapes, which the parser
/// does not.
fn top_level(source: &[u8]) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(source);
    // A set, because a hostile file declares hundreds of thousands. A type without a name is nested, too deep for one.
    let types = Unit::parse(unescaped(&text).as_bytes()).types.into_iter();
    let names: BTreeSet<String> = types.map(|declared| declared.name).filter(|name| !name.is_empty()).collect();
    let nested = |name: &str| name.rsplit_once('$').is_some_and(|(outer, _)| names.contains(outer));
    names.iter().filter(|name| !nested(name)).cloned().collect()
}

/// Returns the binary name of the outermost class.
fn outermost(name: &str) -> &str {
    name.split('$').next().unwrap_or(name)
}

/// Splits the path of a source in a package's directory into its source root and the name of its type.
fn root_and_name<'a>(path: &'a str, directory: &str) -> Option<(&'a str, &'a str)> {
    let (parent, file) = path.rsplit_once('/').map_or(("", path), |(parent, _)| path.split_at(parent.len() + 1));
    let name = SUFFIXES.iter().find_map(|suffix| file.strip_suffix(suffix))?;
    let root = parent.strip_suffix(directory)?;
    (root.is_empty() || root.ends_with('/')).then_some((root, name))
}

/// Tells whether a source root is one of tests, benchmarks or examples: in Maven's layout `src/test/java`, `src/integration-test/java`,
/// `src/jmh/java`, else `test`. A module's name says nothing: `test-utils/src/main/java` is production code. A project among
/// resources is data of a test.
fn is_beside_production(root: &str) -> bool {
    if root.contains("src/test/resources/") || root.contains("src/main/resources/") {
        return true;
    }
    let below = root.rsplit_once("src/").filter(|(before, _)| before.is_empty() || before.ends_with('/'));
    let part = below.map_or(root, |(_, below)| below.split('/').next().unwrap_or(below));
    let is_test = |word: &str| {
        let begins = ["test", "bench", "jmh", "example", "sample", "demo"].iter().any(|start| word.starts_with(start));
        begins || word.ends_with("test") || word.ends_with("tests") || word == "it"
    };
    part.split('/').any(|part| part.to_lowercase().split(['-', '_']).any(is_test))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: &str = "core/src/test/java/a/b/FocalTest.java";

    fn found(file: &str, start: Option<&str>) -> Vec<String> {
        let paths = [
            "core/src/main/java/a/b/Focal.java",
            "core/src/main/java/a/b/Other.kt",
            "core/src/main/java/a/b/c/Deeper.java",
            "core/src/main/java/a/Shallow.java",
            "core/src/test/java/a/b/Helper.java",
            "attestation/src/main/java/a/b/Latest.java",
            "it/src/integration-test/java/a/b/Far.java",
            "core/src/jmh/java/a/b/Fast.java",
            "core/src/test/resources/other/src/main/java/a/b/Given.java",
            "examples/src/main/java/a/b/Shown.java",
            "core/src/main/resources/a/b/Text.txt",
            TEST,
        ];
        shadows(TEST, file.as_bytes(), start.map(str::as_bytes), paths.into_iter(), package_at)
    }

    /// The package of a source below a root that is named for its language.
    fn package_at(path: &str) -> Option<String> {
        let package = path.rsplit_once('/')?.0.split_once("/java").map_or("", |(_, package)| package);
        Some(package.trim_start_matches('/').replace('/', "."))
    }

    #[test]
    fn a_type_of_the_project_that_is_declared_again_is_named() {
        for (file, expected) in [
            ("package a.b; class FocalTest {} class Focal { static int f() { return 1; } }", &["a.b.Focal"][..]),
            ("package a.b; class FocalTest {} class F\\u006fcal {}", &["a.b.Focal"]),
            ("package a.b; class FocalTest {} interface Other {} enum Focal {}", &["a.b.Focal", "a.b.Other"]),
            ("package a.b; class FocalTest {} class Focal$Inner {}", &["a.b.Focal$Inner"]),
            ("package a.b; class FocalTest {} class Latest {}", &["a.b.Latest"]),
            ("package a.b; class FocalTest { class Focal {} class Focal2 { class Focal {} } }", &[]),
            ("package a.b; class FocalTest { void m() { class Focal {} new Object() {}; } }", &[]),
            ("package a.b; class FocalTest {} class Deeper {} class Shallow {} class Text {}", &[]),
            ("package a.b; class FocalTest {} class Helper {} class Far {} class Fast {} class Given {}", &[]),
            ("package a.b; class FocalTest {} class Shown {}", &["a.b.Shown"]),
            ("package a; class FocalTest {} class Shallow {}", &["a.Shallow"]),
            ("package b; class FocalTest {} class Focal {}", &[]),
            ("class FocalTest {} class Focal {}", &[]),
            ("package a.b; class FocalTest {} class Focal { broken( }", &["a.b.Focal"]),
        ] {
            assert_eq!(found(file, None), expected, "{file}");
        }
    }

    #[test]
    fn what_the_starting_file_has_is_the_projects_own_doing() {
        let file = "package a.b; class FocalTest {} class Focal {} class Other {}";
        assert_eq!(found(file, Some("package a.b; class FocalTest {} class Focal {}")), ["a.b.Other"]);
        assert_eq!(found(file, Some(file)), Vec::<String>::new());
    }

    #[test]
    fn many_types_and_many_sources_are_no_product() {
        const MANY: usize = 20_000;
        let paths: Vec<String> = (0..MANY).map(|number| format!("src/main/java/a/A{number}.java")).collect();
        let types: String = (0..MANY).map(|number| format!("class B{number} {{}}\n")).collect();
        let file = format!("package a; class A7$Inner {{}}\n{types}");
        let paths = paths.iter().map(String::as_str);
        let found = shadows("src/test/java/a/FocalTest.java", file.as_bytes(), None, paths, package_at);
        assert_eq!(found, ["a.A7$Inner"]);
    }

    #[test]
    fn sources_of_no_package_lie_in_their_root() {
        let paths = ["src/main/java/Focal.java", "src/main/java/a/Focal.java"];
        let of =
            |file: &str| shadows("src/test/java/FocalTest.java", file.as_bytes(), None, paths.into_iter(), package_at);
        assert_eq!(of("class FocalTest {} class Focal {}"), ["Focal"]);
        assert_eq!(of("class FocalTest {} class Other {}"), Vec::<String>::new());
    }
}
