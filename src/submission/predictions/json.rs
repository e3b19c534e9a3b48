//! Reads JSON lines, lists and dictionaries of predictions.
//!
//! Elements of a list are read one by one, so that errors can name each element's own line.

use std::path::Path;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::{Collector, Place, Prediction, PredictionsError, field};
use crate::submission::Content;

/// The known fields of one prediction. Others are ignored.
#[derive(Deserialize)]
struct Raw {
    instance_id: Option<String>,
    task_id: Option<String>,
    model_name_or_path: Option<String>,
    model_patch: Option<String>,
    model_file: Option<String>,
    cost_usd: Option<f64>,
    tokens: Option<u64>,
}

/// Checks that an object names its task. Its other fields are skipped, because they may contain anything.
#[derive(Deserialize)]
struct Named {
    #[serde(default, deserialize_with = "there")]
    instance_id: bool,
    #[serde(default, deserialize_with = "there")]
    task_id: bool,
}

fn there<'de, D: serde::Deserializer<'de>>(value: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(value).map(|IgnoredAny| true)
}

/// Reads all predictions of a file.
pub(super) fn read(path: &Path, bytes: &[u8], collector: &mut Collector<'_>) -> Result<(), PredictionsError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut cursor = Cursor { path, bytes, offset: 0, line: 1, counted: 0 };
    match cursor.peek() {
        None => Ok(()),
        Some(b'[') => list(&mut cursor, collector),
        Some(b'{') if is_lines(&cursor) => lines(&mut cursor, collector),
        Some(b'{') => dictionary(&mut cursor, collector),
        Some(_) => Err(cursor.malformed("it is neither an object nor a list of objects")),
    }
}

/// Tells whether the file has an object on each line: the first line is a complete object and names its task.
fn is_lines(cursor: &Cursor<'_>) -> bool {
    let rest = &cursor.bytes[cursor.offset..];
    let first = rest.split(|byte| *byte == b'\n').next().unwrap_or(rest);
    match serde_json::from_slice::<Named>(first) {
        Ok(named) => {
            let alone = rest[first.len()..].iter().all(u8::is_ascii_whitespace);
            named.instance_id || named.task_id || !alone
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
            let raw: Raw = serde_json::from_slice(line).map_err(|error| in_line(&place, &error))?;
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
        let raw: Raw = cursor.value()?;
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

fn add(raw: Raw, key: Option<String>, place: Place, collector: &mut Collector<'_>) -> Result<(), PredictionsError> {
    let own = raw.instance_id.or(raw.task_id);
    let id = match (key, own) {
        (Some(key), Some(own)) if key != own => {
            return Err(field(
                &place,
                "instance_id",
                format!("is not the key that it stands under, `{}`", super::shown(&key)),
            ));
        }
        (Some(id), _) | (None, Some(id)) => id,
        (None, None) => return Err(field(&place, "instance_id", "is missing".to_owned())),
    };
    if raw.cost_usd.is_some_and(|cost| !cost.is_finite() || cost < 0.0) {
        return Err(field(&place, "cost_usd", "is no amount".to_owned()));
    }
    let content = match (raw.model_patch, raw.model_file) {
        (Some(_), Some(_)) => return Err(field(&place, "model_file", "stands beside `model_patch`".to_owned())),
        (Some(patch), None) => Content::of(patch.into_bytes(), Content::Patch),
        (None, Some(file)) => Content::of(file.into_bytes(), Content::File),
        (None, None) => Content::Nothing,
    };
    let prediction = Prediction { content, cost_usd: raw.cost_usd, tokens: raw.tokens, place };
    collector.add(&id, raw.model_name_or_path.as_deref(), prediction)
}

fn in_line(place: &Place, error: &serde_json::Error) -> PredictionsError {
    // The parser got only one line, so of its position only the column is meaningful.
    let reason = error.to_string();
    let reason = reason.rsplit_once(" at line ").map_or(reason.as_str(), |(reason, _)| reason);
    let reason = format!("{reason}, column {}", error.column());
    PredictionsError::Malformed { place: place.clone(), reason: super::shown(&reason) }
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
        let place = self.place();
        let mut values = serde_json::Deserializer::from_slice(&self.bytes[self.offset..]).into_iter::<T>();
        let value = match values.next() {
            Some(Ok(value)) => value,
            Some(Err(error)) => {
                // The parser counts lines from the value's first line.
                let line = place.line.unwrap_or(1) + (error.line() as u64).saturating_sub(1);
                return Err(in_line(&Place { line: Some(line), ..place }, &error));
            }
            None => return Err(self.malformed("it ends too early")),
        };
        self.offset += values.byte_offset();
        Ok(value)
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
