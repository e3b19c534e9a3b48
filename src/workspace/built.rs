//! Recognises test classes and reports among a tree's files: a repository may have committed Maven's output. A compiler
//! plugin may mistake such a class for the swapped file's.
//!
//! Files are recognised by directory and name; none is read.

/// Directories to which Surefire and Failsafe write, in every directory where a module is built.
const DIRECTORIES: [&str; 2] = ["surefire-reports", "failsafe-reports"];

/// Tells whether a file is a class file, or is in a report directory.
pub fn is_built(path: &str) -> bool {
    path.ends_with(".class") || is_report(path)
}

/// Tells whether a file is the class of this binary name, one nested in it, or a report about either.
pub fn is_built_of(path: &str, class: &str) -> bool {
    is_class_of(path, class) || is_report_of(path, class)
}

fn is_class_of(path: &str, class: &str) -> bool {
    let Some(path) = path.strip_suffix(".class") else { return false };
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let (package, simple) = class.rsplit_once('.').unwrap_or(("", class));
    let package = package.replace('.', "/");
    let is_nested = |rest: &str| rest.is_empty() || rest.starts_with('$');
    name.strip_prefix(simple).is_some_and(is_nested)
        && (package.is_empty()
            || directory.strip_suffix(&package).is_some_and(|rest| matches!(rest.chars().last(), None | Some('/'))))
}

fn is_report(path: &str) -> bool {
    path.rsplit('/').skip(1).any(|directory| DIRECTORIES.contains(&directory))
}

/// Tells whether a file is a report about a class, given its binary name, or about one nested in it: `TEST-<class>.xml`,
/// `<class>.txt`, `<class>-output.txt`.
fn is_report_of(path: &str, class: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let name = name.strip_prefix("TEST-").unwrap_or(name);
    // A project's own suffix for reports follows a hyphen.
    is_report(path) && name.strip_prefix(class).is_some_and(|rest| rest.starts_with(['.', '-', '$']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_told_by_package_and_name() {
        for (path, class, expected) in [
            ("target/test-classes/p/q/ATest.class", "p.q.ATest", true),
            ("target/test-classes/p/q/ATest$B.class", "p.q.ATest", true),
            ("p/q/ATest.class", "p.q.ATest", true),
            ("bin/ATest.class", "ATest", true),
            ("ATest.class", "ATest", true),
            ("target/test-classes/p/q/ATestOther.class", "p.q.ATest", false),
            ("target/test-classes/p/ATest.class", "p.q.ATest", false),
            ("target/xp/q/ATest.class", "p.q.ATest", false),
            ("target/test-classes/p/q/ATest.java", "p.q.ATest", false),
        ] {
            assert_eq!(is_class_of(path, class), expected, "{path}");
            assert_eq!(is_built_of(path, class), expected, "{path}");
        }
        assert!(is_built("a/B.class") && is_built("surefire-reports/x") && !is_built("a/B.java"));
    }

    #[test]
    fn reports_are_told_by_their_names() {
        let own = [
            "target/surefire-reports/TEST-p.ATest.xml",
            "target/surefire-reports/TEST-p.ATest-jdk8.xml",
            "target/surefire-reports/TEST-p.ATest$Nested.xml",
            "target/surefire-reports/p.ATest.txt",
            "target/surefire-reports/p.ATest-output.txt",
            "target/surefire-reports/junitreports/TEST-p.ATest.xml",
            "core/build/failsafe-reports/p.ATest.txt",
        ];
        let others = [
            "target/surefire-reports/TEST-p.ATestOther.xml",
            "target/surefire-reports/TEST-q.ATest.xml",
            "target/surefire-reports/TEST-ATest.xml",
            "target/surefire-reports/TEST-p.xml",
            "target/surefire-reports/p.ATest",
            "src/test/resources/TEST-p.ATest.xml",
            "surefire-reports",
            "p.ATest.txt",
        ];
        for (paths, expected) in [(&own[..], true), (&others[..], false)] {
            for path in paths {
                assert_eq!(is_report_of(path, "p.ATest"), expected, "{path}");
            }
        }
    }
}
