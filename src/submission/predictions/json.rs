//! Reads JSON lines, lists and dictionaries of predictions.
//!
//! Elements of a list are read one by one, so that errors can name each element's own line.

use std::path::Path;

use serde::de::{DeserializeOwned, IgnoredAny};

use super::collector::{Collector, Contentless, field};
use super::keys::KNOWN;
use super::raw::{Named, Raw, Value};
use super::{Foreign, Place, Prediction, PredictionsError, shown};
use crate::submission::Content;

/// The reason for a text that ends within a value.
const TRUNCATED: &str = "it is truncated: it ends within a value";
/// The reason for a prediction on several lines.
const SEVERAL_LINES: &str = "it is one prediction on several lines: write it on one line, or into a list";

/// Reads all predictions of a file.
pub(super) fn read(path: &Path, bytes: &[u8], collector: &mut Collector<'_>) -> Result<(), PredictionsError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut cursor = Cursor { path, bytes, offset: 0, line: 1, counted: 0 };
    match cursor.peek() {
        None => Ok(()),
        Some(b'[') => list(&mut cursor, collector),
        Some(b'{') => objects(&mut cursor, collector),
        Some(_) => Err(cursor.malformed("it is neither an object nor a list of objects")),
    }
}

/// Reads lines, or a dictionary. The keys of the first object tell which.
fn objects(cursor: &mut Cursor<'_>, collector: &mut Collector<'_>) -> Result<(), PredictionsError> {
    let first = first_object(cursor);
    if let Some(format) = first.as_ref().and_then(foreign) {
        return Err(PredictionsError::Foreign { path: cursor.path.to_owned(), format });
    }
    if is_lines(cursor) {
        return lines(cursor, collector);
    }
    match first {
        Some(Named { task: true, .. }) => Err(cursor.malformed(SEVERAL_LINES)),
        Some(Named { known: true, keys, .. }) => {
            Err(PredictionsError::NoTask { place: cursor.place(), unknown: keys.task().map(shown) })
        }
        Some(_) | None => dictionary(cursor, collector),
    }
}

/// Returns the keys of the file's first object; `None` if it is damaged.
fn first_object(cursor: &Cursor<'_>) -> Option<Named> {
    serde_json::Deserializer::from_slice(&cursor.bytes[cursor.offset..]).into_iter::<Named>().next()?.ok()
}

/// Returns the known format that an object's keys tell.
fn foreign(object: &Named) -> Option<Foreign> {
    // A prediction may have any further keys.
    if object.task && object.content { None } else { Foreign::of(&object.keys) }
}

/// Tells whether the file has an object on each line: the first line is a complete object and names its task.
fn is_lines(cursor: &Cursor<'_>) -> bool {
    let rest = &cursor.bytes[cursor.offset..];
    let first = rest.split(|byte| *byte == b'\n').next().unwrap_or(rest);
    match serde_json::from_slice::<Named>(first) {
        Ok(named) => {
            let alone = rest[first.len()..].iter().all(u8::is_ascii_whitespace);
            named.task || !alone
        }
        // A first line that ends too early is the beginning of a longer value. Any other error belongs to this line.
        Err(error) => !error.is_eof() || rest[first.len()..].trim_ascii().starts_with(b"{"),
    }
}

fn lines(cursor: &mut Cursor<'_>, collector: &mut Collector<'_>) -> Result<(), PredictionsError> {
    let bytes = cursor.bytes;
    for line in bytes[cursor.offset..].split(|byte| *byte == b'\n') {
        let place = cursor.place();
        if !line.trim_ascii().is_empty() {
            let raw: Raw = serde_json::from_slice(line).map_err(|error| cursor.failed(cursor.offset, &error))?;
            add(raw, None, place, collector)?;
        }
        cursor.offset += line.len() + 1;
    }
    Ok(())
}

fn list(cursor: &mut Cursor<'_>, collector: &mut Collector<'_>) -> Result<(), PredictionsError> {
    cursor.take(b'[')?;
    if cursor.peek() == Some(b']') {
        cursor.offset += 1;
        return cursor.end();
    }
    loop {
        cursor.peek();
        let place = cursor.place();
        let raw: Raw = cursor.value()?;
        add(raw, None, place, collector)?;
        match cursor.peek() {
            Some(b',') => cursor.offset += 1,
            _ => {
                cursor.take(b']')?;
                return cursor.end();
            }
        }
    }
}

fn dictionary(cursor: &mut Cursor<'_>, collector: &mut Collector<'_>) -> Result<(), PredictionsError> {
    let start = cursor.offset;
    cursor.take(b'{')?;
    if cursor.peek() == Some(b'}') {
        cursor.offset += 1;
        return cursor.end();
    }
    loop {
        cursor.peek();
        let place = cursor.place();
        let id: String = cursor.value()?;
        cursor.take(b':')?;
        let raw = match cursor.value().map_err(|error| under(&id, error))? {
            Value::Object(raw) => raw,
            Value::Nothing => Raw { model_patch: Some(None), ..Raw::default() },
            Value::Text(text) if begins_as_diff(&text) => Raw { model_patch: Some(Some(text)), ..Raw::default() },
            // The object is damaged, or its keys would have been read.
            Value::Text(_) if KNOWN.contains(&id.as_str()) => {
                return Err(match serde_json::from_slice::<IgnoredAny>(&cursor.bytes[start..]) {
                    Ok(_) => cursor.malformed(SEVERAL_LINES),
                    Err(error) => cursor.failed(start, &error),
                });
            }
            Value::Text(_) => {
                let reason = format!("is a text that does not begin as a diff, under the key `{}`", shown(&id));
                return Err(field(&place, "model_patch", reason));
            }
        };
        if let Some(task) = raw.keys.iter().find(|key| collector.task(key).is_some() && !raw.has("model_patch")) {
            return Err(PredictionsError::Nested { place, key: shown(&id), task: task.to_owned() });
        }
        add(raw, Some(id), place, collector)?;
        match cursor.peek() {
            Some(b',') => cursor.offset += 1,
            _ => {
                cursor.take(b'}')?;
                return cursor.end();
            }
        }
    }
}

/// Returns the error of a dictionary's value with its key.
fn under(id: &str, error: PredictionsError) -> PredictionsError {
    match error {
        PredictionsError::Malformed { place, reason } => {
            PredictionsError::Malformed { place, reason: format!("{reason}, under the key `{}`", shown(id)) }
        }
        error => error,
    }
}

/// How the text of a diff begins, also in a Markdown fence.
pub(super) const BEGINNINGS: [&str; 5] = ["diff ", "--- ", "Index: ", "```", "~~~"];

fn begins_as_diff(text: &str) -> bool {
    let text = text.trim_start();
    BEGINNINGS.iter().any(|beginning| text.starts_with(beginning))
}

fn add(raw: Raw, key: Option<String>, place: Place, collector: &mut Collector<'_>) -> Result<(), PredictionsError> {
    let names_task = |known: &str| key.is_some() && matches!(known, "instance_id" | "task_id");
    for unknown in raw.keys.iter() {
        collector.unknown_key(unknown, &place, |known| !raw.has(known) && !names_task(known));
    }
    let own = raw.instance_id.or(raw.task_id);
    let id = match (key, own) {
        (Some(key), Some(own)) if key != own => {
            return Err(field(
                &place,
                "instance_id",
                format!("is not the key that it stands under, `{}`", shown(&key)),
            ));
        }
        (Some(id), _) | (None, Some(id)) => id,
        (None, None) => {
            return Err(match Foreign::of(&raw.keys) {
                Some(format) => PredictionsError::Foreign { path: place.path, format },
                None => PredictionsError::NoTask { unknown: raw.keys.task().map(shown), place },
            });
        }
    };
    if raw.cost_usd.is_some_and(|cost| !cost.is_finite() || cost < 0.0) {
        return Err(field(&place, "cost_usd", "is no amount".to_owned()));
    }
    if raw.model_patch.is_none() && raw.model_file.is_none() {
        if let Some(format) = Foreign::of(&raw.keys) {
            return Err(PredictionsError::Foreign { path: place.path, format });
        }
        // An error that makes the file unreadable matters more, so reading goes on.
        match &mut collector.contentless {
            Some(known) => known.others += 1,
            none => {
                let unknown = raw.keys.meant().map(|(key, known)| (shown(key), known));
                *none = Some(Contentless { place: place.clone(), unknown, others: 0 });
            }
        }
    }
    let content = match (raw.model_patch.flatten(), raw.model_file.flatten()) {
        (Some(_), Some(_)) => return Err(field(&place, "model_file", "stands beside `model_patch`".to_owned())),
        (Some(patch), None) => Content::of(patch.into_bytes(), Content::Patch),
        (None, Some(file)) => Content::of(file.into_bytes(), Content::File),
        (None, None) => Content::Nothing,
    };
    let prediction = Prediction { content, cost_usd: raw.cost_usd, tokens: raw.tokens, place, fence_removed: false };
    collector.add(&id, raw.model_name_or_path.as_deref(), prediction)
}

/// Returns a parser's message in words of JSON, without a position.
fn worded(error: &serde_json::Error) -> String {
    const KINDS: [(&str, &str); 6] = [
        ("sequence", "a list"),
        ("map", "an object"),
        ("string ", "the text "),
        ("integer ", "the number "),
        ("floating point ", "the number "),
        ("boolean ", ""),
    ];
    let message = error.to_string();
    let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
    let found = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
    let Some((found, expected)) = found.and_then(|found| found.rsplit_once(", expected ")) else {
        return message.to_owned();
    };
    let kind = KINDS.iter().find_map(|(kind, word)| Some((*word, found.strip_prefix(kind)?)));
    let (word, found) = kind.unwrap_or(("", found));
    let shown: String = found.chars().take(60).collect();
    let more = if shown.len() < found.len() { "\u{2026}" } else { "" };
    format!("there is {word}{shown}{more}, expected {expected}")
}

struct Cursor<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    offset: usize,
    /// Line of the byte at `counted`.
    line: u64,
    counted: usize,
}

impl Cursor<'_> {
    /// Skips blanks and returns the next byte.
    fn peek(&mut self) -> Option<u8> {
        while self.bytes.get(self.offset).is_some_and(u8::is_ascii_whitespace) {
            self.offset += 1;
        }
        self.bytes.get(self.offset).copied()
    }

    fn place(&mut self) -> Place {
        let until = self.offset.min(self.bytes.len());
        self.line += self.bytes[self.counted..until].iter().filter(|byte| **byte == b'\n').count() as u64;
        self.counted = until;
        Place { path: self.path.to_owned(), line: Some(self.line) }
    }

    fn take(&mut self, expected: u8) -> Result<(), PredictionsError> {
        match self.peek() {
            Some(found) if found == expected => {
                self.offset += 1;
                Ok(())
            }
            Some(_) => Err(self.malformed(&format!("there should be `{}`", char::from(expected)))),
            None => Err(self.malformed(&format!("it ends where `{}` should be", char::from(expected)))),
        }
    }

    /// Reads and skips one value of a type.
    fn value<T: DeserializeOwned>(&mut self) -> Result<T, PredictionsError> {
        let mut values = serde_json::Deserializer::from_slice(&self.bytes[self.offset..]).into_iter::<T>();
        let value = match values.next() {
            Some(Ok(value)) => value,
            Some(Err(error)) => return Err(self.failed(self.offset, &error)),
            None => return Err(self.malformed(TRUNCATED)),
        };
        self.offset += values.byte_offset();
        Ok(value)
    }

    /// Returns the error of a parser that began at this offset. It counts lines, and the first line's columns, from there.
    fn failed(&self, start: usize, error: &serde_json::Error) -> PredictionsError {
        let before = &self.bytes[..start];
        let of_line = before.iter().rev().take_while(|byte| **byte != b'\n').count();
        let lines = before.iter().filter(|byte| **byte == b'\n').count() + error.line().max(1);
        let column = error.column() + if error.line() <= 1 { of_line } else { 0 };
        let reason = match error.is_eof() {
            true => TRUNCATED.to_owned(),
            false => shown(&format!("{}, column {column}", worded(error))),
        };
        PredictionsError::Malformed { place: Place { path: self.path.to_owned(), line: Some(lines as u64) }, reason }
    }

    fn end(&mut self) -> Result<(), PredictionsError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.malformed("something follows after its end")),
        }
    }

    fn malformed(&mut self, reason: &str) -> PredictionsError {
        PredictionsError::Malformed { place: self.place(), reason: reason.to_owned() }
    }
}
