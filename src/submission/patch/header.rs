//! Parses the headers of a file in a patch.

use super::{Change, FilePatch, Origin, PatchError, PatchErrorReason, unquote};

/// The lines of a patch, with their numbers.
pub(super) struct Lines<'a> {
    rest: &'a [u8],
    number: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { rest: text, number: 1 }
    }

    /// Returns the next line with its break.
    pub(super) fn peek_whole(&self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let end = self.rest.iter().position(|byte| *byte == b'\n').map_or(self.rest.len(), |at| at + 1);
        Some(&self.rest[..end])
    }

    /// Returns the next line without its Unix or Windows line end.
    pub(super) fn peek(&self) -> Option<&'a [u8]> {
        let line = self.peek_whole()?;
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }

    /// Returns the unread text.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn next(&mut self) {
        if let Some(line) = self.peek_whole() {
            self.rest = &self.rest[line.len()..];
            self.number += 1;
        }
    }

    pub(super) fn error(&self, reason: PatchErrorReason) -> PatchError {
        PatchError { line: self.number, reason }
    }

    /// Tells whether a file's headers begin here.
    fn is_file(&self) -> bool {
        let Some(line) = self.peek() else { return false };
        if line.starts_with(b"diff --") {
            return true;
        }
        let Some(whole) = self.peek_whole() else { return false };
        let after = Self { rest: &self.rest[whole.len()..], number: 0 };
        line.starts_with(b"--- ") && after.peek().is_some_and(|next| next.starts_with(b"+++ "))
    }

    /// Skips lines up to the next file's headers. In a preamble, a hunk is never skipped, because it means that headers
    /// are missing.
    pub(super) fn skip_to_file(&mut self, preamble: bool) {
        while let Some(line) = self.peek() {
            if self.is_file() || (preamble && line.starts_with(b"@@ -")) {
                return;
            }
            self.next();
        }
    }

    /// Skips what may follow a file's changes: blank lines, and a mail's signature with everything up to the next file.
    pub(super) fn end_of_file(&mut self) -> Result<(), PatchError> {
        while let Some(line) = self.peek() {
            if self.is_file() {
                return Ok(());
            }
            if line == b"-- " || line == b"--" {
                self.skip_to_file(false);
                return Ok(());
            }
            // Headers of other programs. They add nothing to the names below.
            let foreign = [&b"diff -"[..], b"Index: ", b"====="].iter().any(|start| line.starts_with(start));
            if !foreign && !line.trim_ascii().is_empty() {
                return Err(self.error(PatchErrorReason::StrayLine));
            }
            self.next();
        }
        Ok(())
    }
}

/// The headers before a file's hunks.
pub(super) struct Header {
    old: Option<Vec<u8>>,
    new: Option<Vec<u8>>,
    origin: Origin,
    mode: Option<u32>,
    lying: bool,
    pub(super) binary: bool,
}

/// Git's extended headers, each at most once.
#[derive(Default)]
struct Extended {
    made: bool,
    removed: bool,
    old_mode: bool,
    mode: Option<u32>,
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
    copied: bool,
}

impl Header {
    pub(super) fn read(lines: &mut Lines<'_>) -> Result<Option<Self>, PatchError> {
        let Some(line) = lines.peek() else { return Ok(None) };
        if line.starts_with(b"diff --cc ") || line.starts_with(b"diff --combined ") {
            return Err(lines.error(PatchErrorReason::Combined));
        }
        if let Some(names) = line.strip_prefix(b"diff --git ") {
            return Self::git(names, lines).map(Some);
        }
        if line.starts_with(b"--- ") {
            let (old, new) = Self::names(lines)?;
            let (old, new) = match stripped(old, new) {
                // Without git's headers both names belong to one file. The old one may have a suffix such as `.orig`.
                (Some(_), Some(new)) => (Some(new.clone()), Some(new)),
                one => one,
            };
            let header = Self { old, new, origin: Origin::Same, mode: None, lying: false, binary: false };
            return header.checked(lines).map(Some);
        }
        Err(lines.error(PatchErrorReason::StrayLine))
    }

    fn git(names: &[u8], lines: &mut Lines<'_>) -> Result<Self, PatchError> {
        let both = git_names(names);
        lines.next();
        let extended = Extended::read(lines)?;
        let mut binary = false;
        let mut told = None;
        if lines.peek().is_some_and(|line| line.starts_with(b"--- ")) {
            told = Some(Self::names(lines)?);
        } else if lines.peek().is_some_and(|line| line.starts_with(b"Binary files ") && line.ends_with(b" differ")) {
            binary = true;
            lines.next();
        } else if lines.peek().is_some_and(|line| line == b"GIT binary patch") {
            binary = true;
            // Its lines are base 85, which has no blank, so none of them looks like the next header.
            while lines.peek().is_some_and(|line| !line.starts_with(b"diff --")) {
                lines.next();
            }
        }
        let origin = match (extended.from.is_some(), extended.copied) {
            (false, _) => Origin::Same,
            (true, false) => Origin::Renamed,
            (true, true) => Origin::Copied,
        };
        let header = both.map(|(old, new)| stripped(Some(old), Some(new)));
        let (old, new) = match (origin != Origin::Same, told) {
            (true, told) => {
                let told = told.map(|(old, new)| stripped(old, new));
                let names = (extended.from.clone(), extended.to.clone());
                if told.is_some_and(|told| told != names) {
                    return Err(lines.error(PatchErrorReason::Names));
                }
                names
            }
            (false, Some((old, new))) => {
                let (old, new) = stripped(old, new);
                if let (Some(old), Some(new)) = (&old, &new)
                    && old != new
                {
                    return Err(lines.error(PatchErrorReason::Names));
                }
                if (old.is_none() && !extended.made) || (new.is_none() && !extended.removed) {
                    return Err(lines.error(PatchErrorReason::Header));
                }
                (old, new)
            }
            (false, None) => {
                let (old, new) = header.clone().ok_or_else(|| lines.error(PatchErrorReason::Name))?;
                if old != new {
                    return Err(lines.error(PatchErrorReason::Names));
                }
                (old, new)
            }
        };
        let first = |name: &(Option<Vec<u8>>, Option<Vec<u8>>)| name.1.clone().or(name.0.clone());
        let named = first(&(old.clone(), new.clone()));
        let lying = header.as_ref().is_some_and(|header| first(header) != named);
        let (old, new) = (old.filter(|_| !extended.made), new.filter(|_| !extended.removed));
        let header = Self { old, new, origin, mode: extended.mode, lying, binary };
        header.checked(lines)
    }

    /// Reads the lines `---` and `+++`. `/dev/null` stands for no file.
    #[expect(clippy::type_complexity, reason = "the two names of a file")]
    fn names(lines: &mut Lines<'_>) -> Result<(Option<Vec<u8>>, Option<Vec<u8>>), PatchError> {
        let mut names = [None, None];
        for (name, prefix) in names.iter_mut().zip([&b"--- "[..], b"+++ "]) {
            let line = lines.peek().and_then(|line| line.strip_prefix(prefix));
            let line = line.ok_or_else(|| lines.error(PatchErrorReason::Header))?;
            let found = if line.starts_with(b"\"") {
                let (found, rest) = unquote(line).ok_or_else(|| lines.error(PatchErrorReason::Name))?;
                if !rest.is_empty() && !rest.starts_with(b"\t") {
                    return Err(lines.error(PatchErrorReason::Name));
                }
                found
            } else {
                // A tab ends the name. After it comes a time, or nothing if the name contains blanks.
                line.split(|byte| *byte == b'\t').next().unwrap_or_default().to_vec()
            };
            if found.is_empty() {
                return Err(lines.error(PatchErrorReason::Name));
            }
            *name = Some(found).filter(|found| found != b"/dev/null");
            lines.next();
        }
        let [old, new] = names;
        Ok((old, new))
    }

    fn checked(self, lines: &Lines<'_>) -> Result<Self, PatchError> {
        let names = [&self.old, &self.new];
        if names.iter().all(|name| name.is_none()) {
            return Err(lines.error(PatchErrorReason::Name));
        }
        for name in names.into_iter().flatten() {
            let outside = |part: &[u8]| matches!(part, b"" | b"." | b"..") || part.eq_ignore_ascii_case(b".git");
            if name.split(|byte| *byte == b'/').any(outside) || name.contains(&0) {
                return Err(lines.error(PatchErrorReason::OutsideTree));
            }
        }
        Ok(self)
    }

    pub(super) fn into_file(self, change: Change<'_>) -> FilePatch<'_> {
        let Self { old, new, origin, mode, lying, .. } = self;
        FilePatch { old, new, origin, mode, lying_header: lying, change }
    }
}

impl Extended {
    fn read(lines: &mut Lines<'_>) -> Result<Self, PatchError> {
        let mut found = Self::default();
        let mut seen = std::collections::BTreeSet::new();
        while let Some(line) = lines.peek() {
            const KEYS: [&str; 11] = [
                "old mode ",
                "new mode ",
                "deleted file mode ",
                "new file mode ",
                "copy from ",
                "copy to ",
                "rename from ",
                "rename to ",
                "similarity index ",
                "dissimilarity index ",
                "index ",
            ];
            let Some(key) = KEYS.into_iter().find(|key| line.starts_with(key.as_bytes())) else { break };
            if !seen.insert(key) {
                return Err(lines.error(PatchErrorReason::Header));
            }
            let value = &line[key.len()..];
            let mode = || octal(value).ok_or_else(|| lines.error(PatchErrorReason::Header));
            match key {
                "old mode " => {
                    mode()?;
                    found.old_mode = true;
                }
                "deleted file mode " => {
                    mode()?;
                    found.removed = true;
                }
                "new mode " => found.mode = Some(mode()?),
                "new file mode " => {
                    found.mode = Some(mode()?);
                    found.made = true;
                }
                "copy from " | "rename from " => found.from = Some(plain_name(value, lines)?),
                "copy to " | "rename to " => {
                    found.to = Some(plain_name(value, lines)?);
                    found.copied = key == "copy to ";
                }
                "index " => {
                    if let Some(mode) =
                        value.rsplit(|byte| *byte == b' ').next().filter(|mode| mode.len() < value.len())
                    {
                        found.mode = Some(octal(mode).ok_or_else(|| lines.error(PatchErrorReason::Header))?);
                    }
                }
                _ => {}
            }
            lines.next();
        }
        let contradictory = (found.made && found.removed)
            || found.from.is_some() != found.to.is_some()
            || (found.from.is_some() && (found.made || found.removed));
        if contradictory { Err(lines.error(PatchErrorReason::Header)) } else { Ok(found) }
    }
}

fn octal(text: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(text).ok()?;
    (text.len() == 6 && text.bytes().all(|byte| (b'0'..=b'7').contains(&byte)))
        .then(|| u32::from_str_radix(text, 8).ok())
        .flatten()
}

fn plain_name(text: &[u8], lines: &Lines<'_>) -> Result<Vec<u8>, PatchError> {
    if !text.starts_with(b"\"") {
        return Ok(text.to_vec());
    }
    match unquote(text) {
        Some((name, [])) => Ok(name),
        _ => Err(lines.error(PatchErrorReason::Name)),
    }
}

/// Returns the two names of a line `diff --git`; `None` if blanks make them ambiguous.
fn git_names(text: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    if text.starts_with(b"\"") {
        let (old, rest) = unquote(text)?;
        let rest = rest.strip_prefix(b" ")?;
        let new =
            if rest.starts_with(b"\"") { unquote(rest).filter(|(_, rest)| rest.is_empty())?.0 } else { rest.to_vec() };
        return Some((old, new));
    }
    if let Some(at) = text.windows(2).position(|window| window == b" \"") {
        let (new, rest) = unquote(&text[at + 1..])?;
        return rest.is_empty().then(|| (text[..at].to_vec(), new));
    }
    // Names that differ only in git's prefixes have equal lengths, so the blank between them is in the middle.
    let middle = text.len() / 2;
    if text.len() % 2 == 1 && text[middle] == b' ' {
        let (old, new) = (text[..middle].to_vec(), text[middle + 1..].to_vec());
        let (old_name, new_name) = stripped(Some(old.clone()), Some(new.clone()));
        if old_name == new_name {
            return Some((old, new));
        }
    }
    // Different names also have headers of their own. A single blank is unambiguous too.
    let mut parts = text.split(|byte| *byte == b' ');
    let (old, new) = (parts.next()?, parts.next()?);
    parts.next().is_none().then(|| (old.to_vec(), new.to_vec()))
}

/// Removes git's prefixes from a pair of names: `a/` and `b/`, or one of its mnemonic pairs. Names without them stay
/// unchanged.
fn stripped(old: Option<Vec<u8>>, new: Option<Vec<u8>>) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    let prefix = |name: &Option<Vec<u8>>| match name {
        Some(name) if name.get(1) == Some(&b'/') => Some(name[0]),
        Some(_) => Some(0),
        None => None,
    };
    const PAIRS: [(u8, u8); 9] = [
        (b'a', b'b'),
        (b'i', b'w'),
        (b'c', b'i'),
        (b'c', b'w'),
        (b'o', b'w'),
        (b'w', b'i'),
        (b'w', b'c'),
        (b'i', b'c'),
        (b'1', b'2'),
    ];
    let fits = match (prefix(&old), prefix(&new)) {
        (Some(old), Some(new)) => PAIRS.contains(&(old, new)),
        (Some(old), None) => PAIRS.iter().any(|pair| pair.0 == old),
        (None, Some(new)) => PAIRS.iter().any(|pair| pair.1 == new),
        (None, None) => false,
    };
    let strip = |name: Option<Vec<u8>>| if fits { name.map(|name| name[2..].to_vec()) } else { name };
    (strip(old), strip(new))
}
