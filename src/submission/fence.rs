//! Finds the Markdown fences and tags that models put around a patch or a test file.
//!
//! Only `--strip-fences` removes them. Without it a submission is scored as it is, and the reason of its failure names the
//! fence.

use std::borrow::Cow;

use super::patch;

/// The names of tags. A tag stands on a line of its own.
const TAGS: [&[u8]; 8] = [b"patch", b"model_patch", b"diff", b"answer", b"solution", b"code", b"java", b"file"];
/// The most fences or tags in each other that are removed.
const MOST_NESTED: usize = 4;

/// The form of a submission, which decides what a fence must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A diff.
    Patch,
    /// A Java file.
    File,
}

/// What stands around a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wrapping<'a> {
    /// Nothing that could be removed.
    Bare,
    /// Exactly one fence, or pair of tags, holds a submission.
    One {
        /// The text inside.
        inside: Cow<'a, [u8]>,
        /// Whether tags stand around it.
        tags: bool,
    },
    /// Several fences or pairs of tags hold a submission, or none does.
    Unclear {
        /// Number of fences and pairs of tags.
        number: usize,
        /// Number of those that hold a submission.
        holding: usize,
    },
    /// A fence begins in a Java file and does not end.
    Open,
    /// A Java type is declared outside of all fences and tags.
    TypeOutside,
    /// A fence without a language, or a pair of tags, ends in a Java comment or text block.
    Cut,
}

/// Returns what stands around a submission. A readable patch is bare.
///
/// A fence within a diff, a Java comment or a text block is part of the submission.
pub(super) fn wrapping(text: &[u8], form: Form) -> Wrapping<'_> {
    if form == Form::Patch && patch::parse(text).is_ok() {
        return Wrapping::Bare;
    }
    let mut found = Scan::of(text, form, true);
    if found.open_tag {
        // What follows a tag without its end may still have fences.
        found = Scan::of(text, form, false);
    }
    if form == Form::Patch && (found.diff_outside || found.open.is_some_and(holds_diff)) {
        return Wrapping::Bare;
    }
    if found.number > 0 && found.type_outside {
        return Wrapping::TypeOutside;
    }
    match (found.first, found.holding) {
        (Some((inside, tags)), _) if found.marked == 1 => Wrapping::One { inside, tags },
        (Some(_), _) if found.cut => Wrapping::Cut,
        (Some((inside, tags)), 1) => Wrapping::One { inside, tags },
        (Some(_), holding) => Wrapping::Unclear { number: found.number, holding },
        (None, _) if form == Form::File && found.number > 0 => Wrapping::Unclear { number: found.number, holding: 0 },
        (None, _) if form == Form::File && found.open.is_some() => Wrapping::Open,
        (None, _) => Wrapping::Bare,
    }
}

/// Returns the submission without the fences and tags around it; `None` if there are none, or if they are unclear.
pub(super) fn unwrapped(text: &[u8], form: Form) -> Option<Vec<u8>> {
    let mut found: Option<Vec<u8>> = None;
    for _ in 0..MOST_NESTED {
        let inside = match wrapping(found.as_deref().unwrap_or(text), form) {
            Wrapping::One { inside, .. } => inside.into_owned(),
            Wrapping::Bare | Wrapping::Unclear { .. } | Wrapping::Open | Wrapping::TypeOutside | Wrapping::Cut => break,
        };
        found = Some(inside);
    }
    found
}

/// The fences and tags of a text.
#[derive(Default)]
struct Scan<'a> {
    /// Number of fences and pairs of tags that have an end.
    number: usize,
    /// Number of those that hold a submission.
    holding: usize,
    /// Number of those that are marked as Java and hold a Java type.
    marked: usize,
    /// The first marked one, else the first that holds a submission: the text inside, and whether tags stand around it.
    first: Option<(Cow<'a, [u8]>, bool)>,
    /// Whether a fence without a language, or a pair of tags, ends in a Java comment or text block.
    cut: bool,
    /// Whether a Java type is declared outside of all fences and tags.
    type_outside: bool,
    /// Whether a diff begins outside of all fences and tags.
    diff_outside: bool,
    /// The text after a fence or tag that does not end.
    open: Option<&'a [u8]>,
    /// Whether `open` follows a tag.
    open_tag: bool,
}

impl<'a> Scan<'a> {
    fn of(text: &'a [u8], form: Form, with_tags: bool) -> Self {
        let mut scan = Self::default();
        let mut opening: Option<(Mark<'a>, usize)> = None;
        // Where the line begins, outside of fences and in a fence that is marked as Java.
        let (mut java, mut inner) = (Java::Code, Java::Code);
        let mut outside = Vec::new();
        let mut offset = 0;
        for line in lines(text) {
            let start = offset;
            offset += line.len();
            let mark = Mark::of(line).filter(|mark| with_tags || !mark.is_tag());
            match (&opening, mark) {
                (Some((open, inside)), Some(mark)) if inner == Java::Code && mark.ends(open) => {
                    scan.close(without_indent(&text[*inside..start], open.indent), open, form);
                    // A fence ends a type's header.
                    outside.push(b'`');
                    opening = None;
                }
                (Some((open, _)), _) => {
                    if form == Form::File && open.is_java() {
                        inner = inner.after(line);
                    }
                }
                (None, Some(mark)) if java == Java::Code && mark.opens() => opening = Some((mark, offset)),
                (None, _) => {
                    scan.diff_outside |= begins_diff(&text[start..]);
                    if form == Form::File {
                        java = java.pass(line, &mut outside);
                    }
                }
            }
        }
        scan.type_outside = declares_type(&outside);
        match opening {
            // Its end stands in a comment or text block that does not end.
            Some(_) if inner != Java::Code => scan.number += 1,
            Some((open, inside)) => (scan.open, scan.open_tag) = (Some(&text[inside..]), open.is_tag()),
            None => {}
        }
        scan
    }

    /// Counts a fence or pair of tags that has an end.
    fn close(&mut self, inside: Cow<'a, [u8]>, open: &Mark<'_>, form: Form) {
        self.number += 1;
        let diff = holds_diff(&inside);
        let mut java = false;
        if form == Form::File {
            let (code, end) = java_code(&inside);
            java = end == Java::Code && declares_type(&code);
            self.cut |= end != Java::Code && !diff && open.may_be_java();
        }
        if diff || java {
            self.holding += 1;
            let marked = java && open.is_java();
            self.marked += usize::from(marked);
            if self.first.is_none() || (marked && self.marked == 1) {
                self.first = Some((inside, open.is_tag()));
            }
        }
    }
}

/// A line that begins or ends a fence, or is a tag.
struct Mark<'a> {
    /// The blanks before it.
    indent: &'a [u8],
    kind: MarkKind<'a>,
}

enum MarkKind<'a> {
    Fence {
        sign: u8,
        /// How many signs stand there.
        run: usize,
        /// The text after them. It begins with the language.
        info: &'a [u8],
    },
    Tag {
        name: &'static [u8],
        ends: bool,
    },
}

impl<'a> Mark<'a> {
    fn of(line: &'a [u8]) -> Option<Self> {
        let text = line.trim_ascii();
        let kind = match text {
            [sign @ (b'`' | b'~'), ..] => {
                let run = text.iter().take_while(|byte| *byte == sign).count();
                let after = &text[run..];
                // Code within a line of Markdown is no fence.
                let fence = run >= 3 && !(*sign == b'`' && after.contains(&b'`'));
                fence.then_some(MarkKind::Fence { sign: *sign, run, info: after })
            }
            [b'<', tag @ .., b'>'] => {
                let (name, ends) = tag.strip_prefix(b"/").map_or((tag, false), |name| (name, true));
                TAGS.into_iter().find(|known| *known == name).map(|name| MarkKind::Tag { name, ends })
            }
            _ => None,
        };
        let indent = &line[..line.len() - line.trim_ascii_start().len()];
        kind.map(|kind| Self { indent, kind })
    }

    fn is_tag(&self) -> bool {
        matches!(self.kind, MarkKind::Tag { .. })
    }

    /// Tells whether it says that Java follows.
    fn is_java(&self) -> bool {
        let language = match &self.kind {
            MarkKind::Fence { info, .. } => {
                info.split(|byte| !byte.is_ascii_alphanumeric()).find(|word| !word.is_empty()).unwrap_or_default()
            }
            MarkKind::Tag { name, .. } => *name,
        };
        language.eq_ignore_ascii_case(b"java")
    }

    /// Tells whether it names no other language than Java.
    fn may_be_java(&self) -> bool {
        self.is_java() || self.is_tag() || matches!(self.kind, MarkKind::Fence { info: [], .. })
    }

    fn opens(&self) -> bool {
        !matches!(self.kind, MarkKind::Tag { ends: true, .. })
    }

    /// Tells whether it is the end of what another mark begins. A diff's context line has a blank more than the fence.
    fn ends(&self, open: &Self) -> bool {
        let fits = match (&open.kind, &self.kind) {
            (MarkKind::Fence { sign, run, .. }, MarkKind::Fence { sign: other, run: longer, info: [] }) => {
                sign == other && longer >= run
            }
            (MarkKind::Tag { name, .. }, MarkKind::Tag { name: other, ends: true }) => name == other,
            _ => false,
        };
        fits && (self.indent.is_empty() || self.indent == open.indent)
    }
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n')
}

/// Returns the text without the fence's own indentation, if all lines have it.
fn without_indent<'a>(inside: &'a [u8], indent: &[u8]) -> Cow<'a, [u8]> {
    let indented = |line: &[u8]| line.starts_with(indent) || line.trim_ascii().is_empty();
    if indent.is_empty() || !lines(inside).all(indented) {
        return Cow::Borrowed(inside);
    }
    Cow::Owned(lines(inside).flat_map(|line| line.strip_prefix(indent).unwrap_or(line)).copied().collect())
}

/// Tells whether a text begins as a diff: with a file's headers, or a hunk.
fn begins_diff(text: &[u8]) -> bool {
    let second = || lines(text).nth(1).is_some_and(|line| line.starts_with(b"+++ "));
    text.starts_with(b"diff --") || text.starts_with(b"@@ -") || (text.starts_with(b"--- ") && second())
}

/// Tells whether a diff begins somewhere in a text.
fn holds_diff(text: &[u8]) -> bool {
    let mut offset = 0;
    lines(text).any(|line| {
        let start = offset;
        offset += line.len();
        begins_diff(&text[start..])
    })
}

/// Returns a Java text's code without comments and literals, and where the text ends.
fn java_code(text: &[u8]) -> (Vec<u8>, Java) {
    let mut code = Vec::new();
    let end = lines(text).fold(Java::Code, |java, line| java.pass(line, &mut code));
    (code, end)
}

/// Tells whether code without comments and literals declares a Java type. Prose that has the word `class` does not.
fn declares_type(code: &[u8]) -> bool {
    const TYPES: [&[u8]; 4] = [b"class", b"interface", b"enum", b"record"];
    enum After {
        Other,
        Keyword,
        Name,
        /// Type parameters, a record's components, or supertypes.
        Header,
    }
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || !byte.is_ascii();
    let mut rest = code.trim_ascii_start();
    let mut state = After::Other;
    while !rest.is_empty() {
        let length = rest.iter().take_while(|byte| is_word(**byte)).count().max(1);
        let (token, after) = rest.split_at(length);
        rest = after.trim_ascii_start();
        state = match (state, token) {
            (After::Name | After::Header, [b'{']) => return true,
            (After::Name, [b'<' | b'(']) => After::Header,
            (After::Name, word) if [&b"extends"[..], b"implements", b"permits"].contains(&word) => After::Header,
            (After::Header, [byte, ..]) if is_word(*byte) || b".,<>&?@[]()=".contains(byte) => After::Header,
            (_, word) if TYPES.contains(&word) => After::Keyword,
            (After::Keyword, [byte, ..]) if is_word(*byte) && !byte.is_ascii_digit() => After::Name,
            _ => After::Other,
        };
    }
    false
}

/// Tells whether a text that should be a test file is a diff. No Java file begins as one.
pub(super) fn is_diff(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let is_mail = || text.starts_with(b"From ") && patch::parse(text).is_ok();
    begins_diff(text) || text.starts_with(b"Index: ") || is_mail()
}

/// Where in a Java file a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Java {
    Code,
    Comment,
    TextBlock,
}

impl Java {
    /// Returns where the file is after a line that begins here.
    fn after(self, line: &[u8]) -> Self {
        self.pass(line, &mut Vec::new())
    }

    /// Returns the same as [`Self::after`], and adds the line's code without comments and literals.
    fn pass(mut self, line: &[u8], code: &mut Vec<u8>) -> Self {
        let mut rest = line;
        while !rest.is_empty() {
            let length = match self {
                Self::Code if rest.starts_with(b"//") => {
                    code.push(b' ');
                    return self;
                }
                Self::Code if rest.starts_with(b"/*") => {
                    code.push(b' ');
                    self = Self::Comment;
                    2
                }
                Self::Code if rest.starts_with(b"\"\"\"") => {
                    self = Self::TextBlock;
                    3
                }
                Self::Code => {
                    let length = literal(rest);
                    if length == 1 {
                        code.push(rest[0]);
                    }
                    length
                }
                Self::Comment if rest.starts_with(b"*/") => {
                    self = Self::Code;
                    2
                }
                Self::TextBlock if rest.starts_with(b"\"\"\"") => {
                    self = Self::Code;
                    3
                }
                Self::TextBlock if rest.starts_with(b"\\") => 2,
                Self::Comment | Self::TextBlock => 1,
            };
            rest = &rest[length.min(rest.len())..];
        }
        self
    }
}

/// Returns the length of the literal that a line's code begins with; 1 for any other byte. Each byte is looked at a fixed
/// number of times.
fn literal(code: &[u8]) -> usize {
    // The longest character literal is an escape of several `u`s. A sentence has apostrophes.
    let (end, unended) = match code.first() {
        Some(b'"') => (code.len(), code.len()),
        Some(b'\'') => (code.len().min(16), 1),
        _ => return 1,
    };
    let mut at = 1;
    while at < end {
        match code[at] {
            b'\\' => at += 2,
            byte if byte == code[0] => return at + 1,
            _ => at += 1,
        }
    }
    unended
}

#[cfg(test)]
mod tests;
