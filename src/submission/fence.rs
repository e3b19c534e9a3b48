//! Finds the Markdown fence that models put around what they hand in.
//!
//! A fence is never removed unless a user asks for it: what is scored is what was handed in.

/// The first bytes of lines that open and close a fence.
const FENCES: [&[u8]; 2] = [b"```", b"~~~"];

/// Returns the text inside of the only fence, with the line end of its last line; `None` unless there is exactly one.
/// Text around the fence is left out.
pub(super) fn fenced(text: &[u8]) -> Option<&[u8]> {
    let mut open: Option<(&[u8], usize)> = None;
    let mut found = None;
    let mut offset = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let start = offset;
        offset += line.len();
        let Some(fence) = FENCES.into_iter().find(|fence| line.starts_with(fence)) else { continue };
        let bare = line.trim_ascii_end().iter().all(|byte| *byte == fence[0]);
        match open {
            None if found.is_some() => return None,
            None => open = Some((fence, offset)),
            Some((opening, inside)) if opening == fence && bare => {
                found = Some(&text[inside..start]);
                open = None;
            }
            // Another kind of fence inside of the first one is text.
            Some((opening, _)) if opening != fence => {}
            Some(_) => return None,
        }
    }
    found.filter(|_| open.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_fence_is_found_and_two_are_not() {
        for (text, expected) in [
            ("```diff\n--- a\n+++ b\n```\n", Some("--- a\n+++ b\n")),
            ("Here it is:\n\n```\nx\n```", Some("x\n")),
            ("~~~java\nclass A {}\r\n~~~~\r\n", Some("class A {}\r\n")),
            ("--- a\n+++ b\n@@ -1 +1 @@\n-```\n+```x\n", None),
            ("```\na\n```\n```\nb\n```\n", None),
            ("```diff\nx\n", None),
            ("x\n", None),
            ("", None),
        ] {
            assert_eq!(fenced(text.as_bytes()), expected.map(str::as_bytes), "{text}");
        }
    }
}
