//! Maven's arguments in a tree, `.mvn/maven.config`. Before Maven 3.9 blanks separate them; from then on each line is one
//! argument. A file of the older form is written with one argument a line, which both read alike.
//! Source: Maven's release notes of 3.9.0.

use std::borrow::Cow;

/// The file, relative to the tree.
pub(super) const MAVEN_CONFIG: &[u8] = b".mvn/maven.config";

/// Names of Maven's options that stand for themselves or have their value in the next argument. Source: `mvn --help` of 3.9.
const OPTIONS: [&str; 35] = [
    "-B", "-C", "-D", "-N", "-P", "-T", "-U", "-V", "-X", "-am", "-amd", "-b", "-c", "-canf", "-color", "-cpu", "-e",
    "-emp", "-ep", "-f", "-fae", "-ff", "-fn", "-gs", "-gt", "-itr", "-llr", "-npr", "-npu", "-nsu", "-ntp", "-o",
    "-pl", "-q", "-s",
];

/// Returns the file's content with one argument a line.
pub(super) fn one_argument_a_line(content: &[u8]) -> Cow<'_, [u8]> {
    let Ok(text) = std::str::from_utf8(content) else { return Cow::Borrowed(content) };
    if !text.lines().any(has_several) {
        return Cow::Borrowed(content);
    }
    let mut written = String::with_capacity(text.len());
    for line in text.lines() {
        let line =
            if has_several(line) { line.split_whitespace().collect::<Vec<_>>().join("\n") } else { line.to_owned() };
        written.push_str(&line);
        written.push('\n');
    }
    Cow::Owned(written.into_bytes())
}

/// Returns whether a line has several arguments. A value may have blanks in it, and options of a JVM.
fn has_several(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let Some(first) = words.next().filter(|first| first.starts_with('-')) else { return false };
    let mut rest = words.peekable();
    if rest.peek().is_none() {
        return false;
    }
    match first.split_once('=') {
        None => true,
        Some((_, value)) => {
            !value.is_empty() && !value.starts_with(['-', '@', '$', '"', '\'']) && rest.all(is_argument)
        }
    }
}

fn is_argument(word: &str) -> bool {
    OPTIONS.contains(&word)
        || word.strip_prefix("--").is_some_and(|name| name.starts_with(|first: char| first.is_ascii_lowercase()))
        || ["-D", "-P", "-T"].iter().any(|option| word.starts_with(option))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        String::from_utf8(one_argument_a_line(text.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn arguments_that_blanks_separate_get_a_line_each() {
        assert_eq!(written("-T 1C  -B\n--settings .mvn/x.xml\n"), "-T\n1C\n-B\n--settings\n.mvn/x.xml\n");
        assert_eq!(written("-Da=1 -Pb,c --no-transfer-progress\r\n"), "-Da=1\n-Pb,c\n--no-transfer-progress\n");
    }

    #[test]
    fn a_line_of_one_argument_stays() {
        for text in [
            "-Daether.checksums.algorithms=SHA-512,MD5\n--no-transfer-progress",
            "-Dname=some words\n",
            "-DargLine=-Xmx1g -Duser.language=en",
            "-DargLine=@{argLine} -Dfile.encoding=UTF-8",
            "-Darguments= -DskipTests",
            "-Dboth=some -Xwords",
            "# -B -e",
            "",
        ] {
            assert_eq!(written(text), text);
        }
        assert_eq!(&*one_argument_a_line(b"-B \xff -e"), b"-B \xff -e");
    }
}
