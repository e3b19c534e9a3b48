//! Extracts the target test file's new bytes from a submission and the starting tree. Source: protocol §3.
//!
//! Only the target file counts. All other files of a patch are dropped and listed. A hunk applies exactly at its stated
//! lines or not at all. Only line ends are adapted, if a whole patch has the other kind.

use serde::{Deserialize, Serialize};

use super::fence::{Form, Wrapping, is_diff, wrapping};
use super::patch::{self, Change, FilePatch, Hunk, HunkLine, LineKind, Origin, PatchError};
use super::{Content, MOST_FILE_BYTES};
use crate::outcome::HarnessReason;
use crate::task::RepositoryPath;

/// The longest displayed path of a submission, in characters.
const MOST_SHOWN: usize = 300;
/// The most dropped files in the list. A list of this length may be incomplete.
const MOST_DROPPED: usize = 1000;

/// The starting tree, as the extraction reads it.
pub struct StartingTree<'a> {
    /// The target file's path.
    pub target: &'a RepositoryPath,
    /// Its bytes; `None` if the starting tree has no such file.
    pub start: Option<&'a [u8]>,
    /// Returns the content of another file of the tree, for patches that rename or copy it to the target's path. Never
    /// called for the target itself.
    pub other: &'a dyn Fn(&[u8]) -> Option<Vec<u8>>,
}

/// The result of an extraction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extraction {
    /// The target file's new bytes, or why there are none.
    pub content: Result<Vec<u8>, HarnessFault>,
    /// The submission's other changed files.
    pub dropped: Vec<Dropped>,
    /// Whether the patch has other line ends than the file, and was adapted to the file's.
    pub line_ends_adapted: bool,
}

/// Why a submission can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HarnessFault {
    /// The reason, for records.
    pub reason: HarnessReason,
    /// A sentence for people.
    pub detail: String,
}

/// A changed file of a submission that does not count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Dropped {
    /// Its path, shortened and without control characters.
    pub path: String,
    /// Whether the patch's `diff --git` line names another file than its `---` and `+++` lines.
    pub lying_header: bool,
}

fn fault(reason: HarnessReason, detail: impl Into<String>) -> HarnessFault {
    HarnessFault { reason, detail: detail.into() }
}

/// Returns the target file's new bytes.
///
/// [`Content::Gold`] can't be extracted, because its bytes are the new revision's own.
pub fn extract(content: &Content, tree: &StartingTree<'_>) -> Extraction {
    let mut extraction =
        Extraction { content: Err(fault(HarnessReason::Empty, "")), dropped: Vec::new(), line_ends_adapted: false };
    let made = match content {
        Content::Gold => Err(fault(HarnessReason::Empty, "the developers' test is no submission")),
        Content::Nothing => Err(fault(HarnessReason::Empty, "there is no prediction")),
        Content::TooLarge { bytes, .. } => Err(fault(HarnessReason::Size, format!("the submission has {bytes} bytes"))),
        Content::File(bytes) => match no_file(bytes) {
            Some(detail) => Err(fault(HarnessReason::MalformedPatch, detail)),
            None => Ok(bytes.clone()),
        },
        Content::Patch(bytes) => from_patch(bytes, tree, &mut extraction),
    };
    extraction.content = made.and_then(|content| checked(content, tree.start));
    extraction
}

fn checked(content: Vec<u8>, start: Option<&[u8]>) -> Result<Vec<u8>, HarnessFault> {
    if content.len() > MOST_FILE_BYTES {
        return Err(fault(HarnessReason::Size, format!("the test file would have {} bytes", content.len())));
    }
    if content.trim_ascii().is_empty() {
        return Err(fault(HarnessReason::Empty, "nothing is left of the test file"));
    }
    if start == Some(content.as_slice()) {
        return Err(fault(HarnessReason::Empty, "the test file is the starting one"));
    }
    if content.contains(&0) {
        return Err(fault(HarnessReason::Encoding, "the test file has NUL bytes"));
    }
    // A file in another encoding is not refused, because the compiler knows its encoding.
    let start_is_text = start.is_none_or(|start| std::str::from_utf8(start).is_ok());
    if start_is_text && std::str::from_utf8(&content).is_err() {
        return Err(fault(HarnessReason::Encoding, "the test file is not UTF-8"));
    }
    Ok(content)
}

/// Returns a message for people: the reason for which a text is no patch. It begins with `markdown_fence` if the patch lies in
/// a Markdown fence, or between tags.
fn unreadable(bytes: &[u8], error: &PatchError) -> String {
    fenced(bytes, Form::Patch).unwrap_or_else(|| error.to_string())
}

/// Returns a message for people: the reason for which a text is no test file, whatever its task. It begins with
/// `markdown_fence` or `diff_as_file`.
fn no_file(bytes: &[u8]) -> Option<String> {
    let diff = || {
        "diff_as_file: the test file is a diff; hand it in as `model_patch`, or in a directory as `<task id>.patch`"
            .to_owned()
    };
    fenced(bytes, Form::File).or_else(|| is_diff(bytes).then(diff))
}

/// Returns a message about the Markdown fence or tags around a submission.
fn fenced(bytes: &[u8], form: Form) -> Option<String> {
    let (noun, held) = match form {
        Form::Patch => ("patch", "diff"),
        Form::File => ("test file", "Java type"),
    };
    let detail = match wrapping(bytes, form) {
        Wrapping::Bare => return None,
        Wrapping::One { tags: false, .. } => {
            format!("the {noun} lies in a Markdown fence, which `--strip-fences` removes")
        }
        Wrapping::One { tags: true, .. } => format!("the {noun} lies between tags, which `--strip-fences` removes"),
        Wrapping::Unclear { holding: 0, .. } => {
            format!(
                "no Markdown fence or pair of tags in the {noun} holds a {held}, so `--strip-fences` can't choose one"
            )
        }
        Wrapping::Unclear { number, holding } => format!(
            "{holding} of {number} Markdown fences or pairs of tags hold a {held}, so `--strip-fences` can't choose one"
        ),
        Wrapping::Open => format!("a Markdown fence begins in the {noun} and does not end"),
        Wrapping::TypeOutside => {
            format!("a {held} stands outside of the {noun}'s Markdown fences, so `--strip-fences` removes none")
        }
        Wrapping::Cut => format!(
            "a Markdown fence in the {noun} ends within a comment or text block, so `--strip-fences` can't choose one"
        ),
    };
    Some(format!("markdown_fence: {detail}"))
}

/// Returns the reason for which a submission is unreadable for every task; `None` if that depends on the task.
pub fn unreadable_anywhere(content: &Content) -> Option<String> {
    match content {
        Content::Patch(bytes) => patch::parse(bytes).err().map(|error| unreadable(bytes, &error)),
        Content::TooLarge { bytes, .. } => Some(format!("the submission has {bytes} bytes")),
        Content::File(bytes) => no_file(bytes),
        Content::Gold | Content::Nothing => None,
    }
}

fn from_patch(bytes: &[u8], tree: &StartingTree<'_>, extraction: &mut Extraction) -> Result<Vec<u8>, HarnessFault> {
    let files = patch::parse(bytes).map_err(|error| fault(HarnessReason::MalformedPatch, unreadable(bytes, &error)))?;
    let target = tree.target.as_str().as_bytes();
    let mut ours: Option<&FilePatch<'_>> = None;
    for file in &files {
        let made = file.new.as_deref() == Some(target);
        let taken = file.old.as_deref() == Some(target) && file.origin != Origin::Copied;
        if made || taken {
            if ours.is_some() {
                return Err(fault(HarnessReason::MalformedPatch, "the patch changes the target file twice"));
            }
            ours = Some(file);
        }
        if !made && extraction.dropped.len() < MOST_DROPPED {
            let name = file.name();
            let path = name.chars().take(MOST_SHOWN).map(crate::output::visible).collect();
            extraction.dropped.push(Dropped { path, lying_header: file.lying_header });
        }
    }
    extraction.dropped.sort();
    let Some(file) = ours else {
        return Err(fault(HarnessReason::Empty, "the patch does not touch the target file"));
    };
    if file.new.as_deref() != Some(target) {
        return Err(fault(HarnessReason::Empty, "the patch removes the target file"));
    }
    if let Some(mode) = file.mode.filter(|mode| !matches!(mode, 0o100_644 | 0o100_755)) {
        return Err(fault(
            HarnessReason::MalformedPatch,
            format!("the target would be no regular file: mode {mode:o}"),
        ));
    }
    let Change::Hunks(hunks) = &file.change else {
        return Err(fault(HarnessReason::MalformedPatch, "the target's change is binary"));
    };
    let wrong = |detail: String| fault(HarnessReason::WrongBase, detail);
    let base = match (&file.old, file.origin) {
        (None, _) => match tree.start {
            Some(_) => return Err(wrong("the patch makes a file that the starting tree has".to_owned())),
            None => Vec::new(),
        },
        (Some(_), Origin::Same) => match tree.start {
            Some(start) => start.to_vec(),
            None => return Err(wrong("the patch changes a file that the starting tree does not have".to_owned())),
        },
        (Some(_), Origin::Renamed | Origin::Copied) if tree.start.is_some() => {
            return Err(wrong("the patch moves a file to where the starting tree has one".to_owned()));
        }
        (Some(old), Origin::Renamed | Origin::Copied) => {
            // The tree for renames may contain the developers' own test, although the starting tree has no target file.
            match Some(old).filter(|old| old.as_slice() != target).and_then(|old| (tree.other)(old)) {
                Some(content) => content,
                None => return Err(wrong("the patch moves a file that the starting tree does not have".to_owned())),
            }
        }
    };
    match applied(&base, hunks, LineEnds::Own) {
        Ok(content) => Ok(content),
        Err(line) => match other_ends(&base, hunks).and_then(|ends| applied(&base, hunks, ends).ok()) {
            Some(content) => {
                extraction.line_ends_adapted = true;
                Ok(content)
            }
            None => Err(wrong(format!("line {line} of the starting file is not what the patch expects there"))),
        },
    }
}

/// The line ends with which hunks are read.
#[derive(Clone, Copy)]
enum LineEnds {
    /// Their own.
    Own,
    /// Line feeds in place of Windows line ends.
    Unix,
    /// Windows line ends in place of line feeds.
    Windows,
}

impl LineEnds {
    /// Returns a line as its text and its end.
    fn of<'a>(self, line: &HunkLine<'a>) -> [&'a [u8]; 2] {
        match self {
            _ if !line.ended => [line.text, b""],
            Self::Own => [line.text, b"\n"],
            Self::Unix => [line.text.strip_suffix(b"\r").unwrap_or(line.text), b"\n"],
            Self::Windows => [line.text, b"\r\n"],
        }
    }
}

/// Returns the file after applying the hunks exactly at their lines, or the first line that does not fit.
fn applied(base: &[u8], hunks: &[Hunk<'_>], ends: LineEnds) -> Result<Vec<u8>, usize> {
    let lines: Vec<&[u8]> = base.split_inclusive(|byte| *byte == b'\n').collect();
    let mut content = Vec::with_capacity(base.len());
    let mut at = 0;
    for hunk in hunks {
        let start = if hunk.old_lines > 0 { hunk.old_start - 1 } else { hunk.old_start };
        // The parser guarantees that hunks do not go backwards.
        content.extend(lines.get(at..start).ok_or(lines.len() + 1)?.iter().copied().flatten());
        at = start;
        for line in hunk.lines() {
            let [text, end] = ends.of(&line);
            if line.kind != LineKind::Added {
                if lines.get(at).and_then(|found| found.strip_prefix(text)) != Some(end) {
                    return Err(at + 1);
                }
                at += 1;
            }
            if line.kind != LineKind::Removed {
                // Only the last line of a file may lack its line end.
                if content.last().is_some_and(|byte| *byte != b'\n') {
                    return Err(at);
                }
                content.extend_from_slice(text);
                content.extend_from_slice(end);
            }
        }
    }
    let rest = &lines[at..];
    if !rest.is_empty() && content.last().is_some_and(|byte| *byte != b'\n') {
        return Err(at + 1);
    }
    content.extend(rest.iter().copied().flatten());
    Ok(content)
}

/// Returns the file's kind of line ends, if the file has only one kind and the hunks have only the other.
fn other_ends(base: &[u8], hunks: &[Hunk<'_>]) -> Option<LineEnds> {
    let windows = |line: &[u8]| line.ends_with(b"\r\n");
    let mut lines = base.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    let mut changes = hunks.iter().flat_map(Hunk::lines).filter(|line| line.ended).map(|line| line.text);
    if lines.clone().all(windows) && !changes.clone().any(|text| text.ends_with(b"\r")) {
        Some(LineEnds::Windows)
    } else if !lines.any(windows) && changes.all(|text| text.ends_with(b"\r")) {
        Some(LineEnds::Unix)
    } else {
        None
    }
}

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;
