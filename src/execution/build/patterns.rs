//! Maven's patterns of files, such as `**/*Test.java`. Source: the documentation of Ant's directory-based tasks.

/// Tells whether a path (relative, separated by `/`) matches a pattern. `None` for a pattern in another form, such as
/// a regular expression.
pub(super) fn matches(pattern: &str, path: &str) -> Option<bool> {
    if pattern.starts_with("%regex[") || pattern.starts_with("%ant[") {
        return None;
    }
    let pattern = pattern.replace('\\', "/");
    // A directory stands for everything below it.
    let pattern = if pattern.ends_with('/') { format!("{pattern}**") } else { pattern };
    let (parts, names): (Vec<&str>, Vec<&str>) = (pattern.split('/').collect(), path.split('/').collect());
    Some(fits(&parts, &names, |part| *part == "**", |part, name| is_named(part, name)))
}

/// Tells whether a name matches a pattern with `*` and `?`.
fn is_named(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    fits(&pattern, &name, |one| *one == '*', |one, other| *one == '?' || one == other)
}

/// Tells whether items match a pattern, one for one. An item of the pattern that `is_any` matches any number of items.
fn fits<T>(pattern: &[T], items: &[T], is_any: impl Fn(&T) -> bool, is_one: impl Fn(&T, &T) -> bool) -> bool {
    let (mut at, mut item) = (0, 0);
    // The last item of the pattern that stands for any number, and where the rest of the pattern was tried last.
    let mut last: Option<(usize, usize)> = None;
    while item < items.len() {
        if at < pattern.len() && is_any(&pattern[at]) {
            last = Some((at, item));
            at += 1;
        } else if at < pattern.len() && is_one(&pattern[at], &items[item]) {
            (at, item) = (at + 1, item + 1);
        } else if let Some((any, tried)) = last {
            last = Some((any, tried + 1));
            (at, item) = (any + 1, tried + 1);
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(is_any)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_match_as_in_ant() {
        for (pattern, path, expected) in [
            ("**/*.java", "ATest.java", true),
            ("**/*.java", "p/q/ATest.java", true),
            ("**/*.java", "p/ATest.kt", false),
            ("*.java", "p/ATest.java", false),
            ("p/**", "p/q/ATest.java", true),
            ("p/", "p/q/ATest.java", true),
            ("p/**", "pq/ATest.java", false),
            ("**/q/**/A*Test.java", "p/q/r/s/AbTest.java", true),
            ("**/q/**/A*Test.java", "p/r/AbTest.java", false),
            ("**/?Test.java", "p/ATest.java", true),
            ("**/?Test.java", "p/AbTest.java", false),
            ("p\\*.java", "p/A.java", true),
            ("**/a/**/a/b.java", "a/c/a/a/b.java", true),
            ("/p/*.java", "p/A.java", false),
            ("p/A.java", "p/A.java", true),
        ] {
            assert_eq!(matches(pattern, path), Some(expected), "{pattern} {path}");
        }
        assert_eq!(matches("%regex[.*Test]", "ATest"), None);
    }
}
