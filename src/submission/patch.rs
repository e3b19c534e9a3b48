//! Parses diffs strictly: unified diffs and git's own, as bytes. Nothing is applied here.
//!
//! Input at which `git apply` or `patch` would guess is an error: wrong counts, text between files, names that lead out
//! of the tree. As in git, text before the first file and after a mail's signature is skipped.
//!
//! Hunks borrow their lines from the text. So a patch's memory use depends on its numbers of files and hunks, which are
//! limited, and not on its lines.

use super::quoted::unquote;

mod header;

use header::{Header, Lines};

/// The most files that one patch may touch.
const MOST_FILES: usize = 10_000;
/// The most hunks of one patch.
const MOST_HUNKS: usize = 200_000;

/// Why a text is not a readable patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct PatchError {
    /// The line, counted from 1.
    pub line: usize,
    /// The error at this line.
    pub reason: PatchErrorReason,
}

/// The errors of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchErrorReason {
    /// The text contains no changes of a file.
    #[error("there is no diff in the text")]
    NoDiff,
    /// There is text between files or hunks.
    #[error("the line belongs to no hunk and is no header")]
    StrayLine,
    /// A hunk's header is not `@@ -a,b +c,d @@`.
    #[error("the hunk's header is not of the form `@@ -a,b +c,d @@`")]
    HunkHeader,
    /// The hunk has more or fewer lines than its header says.
    #[error("the hunk's lines are not as many as its header says")]
    HunkCounts,
    /// Hunks overlap or go backwards.
    #[error("the hunk lies before the end of the one before it")]
    HunkOrder,
    /// A file's names are malformed.
    #[error("the file's name can't be read")]
    Name,
    /// The headers name several files without a rename or copy.
    #[error("the headers name different files")]
    Names,
    /// A name leads out of the tree or into `.git`.
    #[error("the file's name leads out of the tree")]
    OutsideTree,
    /// A merge's diff.
    #[error("it is a combined diff")]
    Combined,
    /// A header that git does not write, or a repeated one.
    #[error("the header is not one that git writes there")]
    Header,
    /// The patch exceeds a limit.
    #[error("there are too many files or hunks")]
    TooMuch,
}

/// A patch's changes to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePatch<'a> {
    /// The file before; `None` if the patch creates it.
    pub old: Option<Vec<u8>>,
    /// The file afterwards; `None` if the patch removes it.
    pub new: Option<Vec<u8>>,
    /// How `old` became `new`.
    pub origin: Origin,
    /// The file's mode afterwards, octal as git writes it; `None` if the patch has none.
    pub mode: Option<u32>,
    /// Whether the names after `---` and `+++` differ from the ones after `diff --git`.
    pub lying_header: bool,
    /// The change of its content.
    pub change: Change<'a>,
}

/// How the file before became the file afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// They have one name.
    Same,
    /// It was renamed.
    Renamed,
    /// The file was copied, and the file before stays.
    Copied,
}

/// How a file's content changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// Changes by lines; empty if only names or modes change.
    Hunks(Vec<Hunk<'a>>),
    /// Changes in binary form, which are not parsed.
    Binary,
}

/// Consecutive changed and context lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hunk<'a> {
    /// The first line of the old file, counted from 1; if `old_lines` is 0, the line before.
    pub old_start: usize,
    /// The number of the old file's lines in the hunk.
    pub old_lines: usize,
    /// Its lines, unchanged. [`read_hunk`] has checked them.
    body: &'a [u8],
}

impl<'a> Hunk<'a> {
    /// Returns its lines in order.
    pub fn lines(&self) -> impl Iterator<Item = HunkLine<'a>> + Clone + use<'a> {
        let mut rest = self.body.split_inclusive(|byte| *byte == b'\n').peekable();
        std::iter::from_fn(move || {
            let (kind, text) = hunk_line(rest.next()?)?;
            Some(HunkLine { kind, text, ended: rest.next_if(|next| next.starts_with(b"\\")).is_none() })
        })
    }
}

/// A line of a hunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HunkLine<'a> {
    /// Whether the line stays, or is removed or added.
    pub kind: LineKind,
    /// The line's bytes without the line feed, but with a carriage return before it.
    pub text: &'a [u8],
    /// Whether a line feed ends it.
    pub ended: bool,
}

/// What a hunk does with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// It stays.
    Context,
    /// It goes.
    Removed,
    /// It comes.
    Added,
}

impl FilePatch<'_> {
    /// Returns the name for messages: of the file afterwards, else of the one before.
    pub fn name(&self) -> String {
        String::from_utf8_lossy(self.new.as_ref().or(self.old.as_ref()).map_or(&[][..], Vec::as_slice)).into_owned()
    }
}

/// Parses a patch. A blank text is a patch without files.
///
/// # Errors
/// [`PatchError`].
pub fn parse(text: &[u8]) -> Result<Vec<FilePatch<'_>>, PatchError> {
    let mut lines = Lines::new(text);
    if text.trim_ascii().is_empty() {
        return Ok(Vec::new());
    }
    lines.skip_to_file(true);
    let mut files = Vec::new();
    let mut hunks = 0;
    while let Some(header) = Header::read(&mut lines)? {
        if files.len() >= MOST_FILES {
            return Err(lines.error(PatchErrorReason::TooMuch));
        }
        let change = if header.binary {
            Change::Binary
        } else {
            let found = read_hunks(&mut lines, MOST_HUNKS - hunks)?;
            hunks += found.len();
            Change::Hunks(found)
        };
        files.push(header.into_file(change));
        lines.end_of_file()?;
    }
    if files.is_empty() { Err(PatchError { line: 1, reason: PatchErrorReason::NoDiff }) } else { Ok(files) }
}

/// Reads the hunks of a file, at most `most`.
fn read_hunks<'a>(lines: &mut Lines<'a>, most: usize) -> Result<Vec<Hunk<'a>>, PatchError> {
    let mut hunks: Vec<Hunk<'a>> = Vec::new();
    let mut least_start = 1;
    while let Some(line) = lines.peek().filter(|line| line.starts_with(b"@@")) {
        if line.starts_with(b"@@@") {
            return Err(lines.error(PatchErrorReason::Combined));
        }
        let range = hunk_header(line).ok_or_else(|| lines.error(PatchErrorReason::HunkHeader))?;
        // If no line is removed, the start is the line before the place.
        let first = if range.old_lines == 0 { range.old_start + 1 } else { range.old_start };
        if first < least_start {
            return Err(lines.error(PatchErrorReason::HunkOrder));
        }
        if hunks.len() >= most {
            return Err(lines.error(PatchErrorReason::TooMuch));
        }
        least_start = first + range.old_lines;
        lines.next();
        hunks.push(read_hunk(lines, &range)?);
    }
    Ok(hunks)
}

fn read_hunk<'a>(lines: &mut Lines<'a>, range: &HunkRange) -> Result<Hunk<'a>, PatchError> {
    let body = lines.rest();
    let (mut old, mut new) = (range.old_lines, range.new_lines);
    // A line without a line end must be the last of its side.
    let (mut old_ended, mut new_ended) = (false, false);
    let mut last = None;
    while let Some(line) = lines.peek_whole() {
        let counts = || lines.error(PatchErrorReason::HunkCounts);
        if line.starts_with(b"\\") {
            // It refers to the line before it, once.
            let kind = last.take().ok_or_else(counts)?;
            old_ended |= kind != LineKind::Added;
            new_ended |= kind != LineKind::Removed;
            lines.next();
            continue;
        }
        if old == 0 && new == 0 {
            break;
        }
        let (kind, _) = hunk_line(line).ok_or_else(counts)?;
        let (takes_old, takes_new) = (kind != LineKind::Added, kind != LineKind::Removed);
        if (takes_old && (old == 0 || old_ended)) || (takes_new && (new == 0 || new_ended)) {
            return Err(counts());
        }
        old -= usize::from(takes_old);
        new -= usize::from(takes_new);
        last = Some(kind);
        lines.next();
    }
    if old > 0 || new > 0 {
        return Err(lines.error(PatchErrorReason::HunkCounts));
    }
    let body = &body[..body.len() - lines.rest().len()];
    Ok(Hunk { old_start: range.old_start, old_lines: range.old_lines, body })
}

/// Returns the kind of a hunk's line, and its text without a line feed. The patch's own last line may have lost its
/// line end.
fn hunk_line(line: &[u8]) -> Option<(LineKind, &[u8])> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    match line.split_first() {
        Some((b' ', rest)) => Some((LineKind::Context, rest)),
        Some((b'-', rest)) => Some((LineKind::Removed, rest)),
        Some((b'+', rest)) => Some((LineKind::Added, rest)),
        // Mailers and editors remove the blank of an empty context line. Git accepts that too.
        None | Some((b'\r', [])) => Some((LineKind::Context, line)),
        Some(_) => None,
    }
}

struct HunkRange {
    old_start: usize,
    old_lines: usize,
    new_lines: usize,
}

fn hunk_header(line: &[u8]) -> Option<HunkRange> {
    let text = std::str::from_utf8(line.get(..line.len().min(80))?).ok().or_else(|| {
        // The function's name after the second `@@` may be cut within a character.
        let end = line.windows(3).skip(2).position(|window| window == b" @@")? + 5;
        std::str::from_utf8(&line[..end]).ok()
    })?;
    let ranges = text.strip_prefix("@@ -")?;
    let (ranges, rest) = ranges.split_once(" @@")?;
    if !rest.is_empty() && !rest.starts_with([' ', '\r']) {
        return None;
    }
    let (old, new) = ranges.split_once(" +")?;
    let ((old_start, old_lines), (new_start, new_lines)) = (range(old)?, range(new)?);
    let possible = |start: usize, lines: usize| start > 0 || lines == 0;
    (possible(old_start, old_lines) && possible(new_start, new_lines)).then_some(HunkRange {
        old_start,
        old_lines,
        new_lines,
    })
}

fn range(text: &str) -> Option<(usize, usize)> {
    let number = |text: &str| {
        let digits = !text.is_empty() && text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok()).flatten()
    };
    match text.split_once(',') {
        Some((start, lines)) => Some((number(start)?, number(lines)?)),
        None => Some((number(text)?, 1)),
    }
}

#[cfg(test)]
mod tests;
