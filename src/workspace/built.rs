//! Reports of tests that lie among the files of a tree: a repository may have committed what Maven wrote there.
//!
//! They are known by where they lie and what they are called; none is read.

/// Directories that Surefire and Failsafe write to, wherever a module is built.
const DIRECTORIES: [&str; 2] = ["surefire-reports", "failsafe-reports"];

/// Tells whether a file lies among reports.
pub fn is_report(path: &str) -> bool {
    path.rsplit('/').skip(1).any(|directory| DIRECTORIES.contains(&directory))
}

/// Tells whether a file is a report about a class, given its binary name, or about one nested in it: `TEST-<class>.xml`,
/// `<class>.txt`, `<class>-output.txt`.
pub fn is_report_of(path: &str, class: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let name = name.strip_prefix("TEST-").unwrap_or(name);
    // A suffix that a project gives its reports follows a hyphen.
    is_report(path) && name.strip_prefix(class).is_some_and(|rest| rest.starts_with(['.', '-', '$']))
}

#[cfg(test)]
mod tests {
    use super::*;

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
