//! Reads JSON lines, lists and dictionaries of predictions.
//!
//! Elements of a list are read one by one, so that errors can name each element's own line.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use serde::de::{DeserializeOwned, Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::collector::{Collector, Contentless, field};
use super::keys::{CONTENT, Keys};
use super::{Foreign, Place, Prediction, PredictionsError};
use crate::submission::Content;

/// The reason for a text that ends within a value.
const TRUNCATED: &str = "it is truncated: it ends within a value";

/// The known keys of a prediction.
const KNOWN: [&str; 7] =
    ["instance_id", "task_id", "model_name_or_path", "model_patch", "model_file", "cost_usd", "tokens"];

/// One prediction. Further keys are passed over.
#[derive(Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Raw {
    /// The task's id.
    instance_id: Option<String>,
    /// The task's id, where there is no `instance_id`.
    task_id: Option<String>,
    /// The model that made it; `unnamed` without one.
    model_name_or_path: Option<String>,
    // The outer `None` is a missing key, the inner one a `null`.
    /// A diff against the starting tree; `null` for nothing.
    model_patch: Option<Option<String>>,
    /// The test file's whole text; `null` for nothing.
    model_file: Option<Option<String>>,
    /// What it cost to make, in US dollars.
    #[cfg_attr(test, schemars(range(min = 0)))]
    cost_usd: Option<f64>,
    /// Tokens used for it.
    tokens: Option<u64>,
    /// Names of keys that are not known.
    #[cfg_attr(test, schemars(skip))]
    keys: Keys,
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields)
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `instance_id` and `model_patch`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        let mut raw = Raw::default();
        let mut seen = BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            let known = KNOWN.into_iter().find(|known| *known == key);
            if known.is_some_and(|known| !seen.insert(known)) {
                return Err(Error::custom(format_args!("the key `{key}` stands there twice")));
            }
            match key.as_str() {
                "instance_id" => raw.instance_id = map.next_value()?,
                "task_id" => raw.task_id = map.next_value()?,
                "model_name_or_path" => raw.model_name_or_path = map.next_value()?,
                "model_patch" => raw.model_patch = Some(map.next_value()?),
                "model_file" => raw.model_file = Some(map.next_value()?),
                "cost_usd" => raw.cost_usd = map.next_value()?,
                "tokens" => raw.tokens = map.next_value()?,
                unknown => {
                    raw.keys.add(unknown);
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        if raw.instance_id.is_some() || raw.task_id.is_some() {
            raw.keys.named();
        }
        Ok(raw)
    }
}

/// A value of a dictionary: an object, or the text of a diff alone.
enum Value {
    Object(Raw),
    Text(String),
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with `model_patch`, or the text of a diff")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
                Ok(Value::Text(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Value, A::Error> {
                Fields.visit_map(map).map(Value::Object)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// The names of an object's keys alone. Its values are skipped, because they may contain anything.
#[derive(Default)]
struct Named {
    keys: Keys,
    /// Whether the object names its task.
    task: bool,
    /// Whether it has a submission.
    content: bool,
}

impl<'de> Deserialize<'de> for Named {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = Named;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Named, A::Error> {
                let mut found = Named::default();
                while let Some((key, IgnoredAny)) = map.next_entry::<String, IgnoredAny>()? {
                    match key.as_str() {
                        "instance_id" | "task_id" => found.task = true,
                        known => {
                            found.content |= CONTENT.contains(&known);
                            found.keys.add(known);
                        }
                    }
                }
                Ok(found)
            }
        }
        deserializer.deserialize_map(Names)
    }
}

/// Reads all predictions of a file.
pub(super) fn read(path: &Path, bytes: &[u8], collector: &mut Collector<'_>) -> Result<(), PredictionsError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut cursor = Cursor { path, bytes, offset: 0, line: 1, counted: 0 };
    match cursor.peek() {
        None => Ok(()),
        Some(b'{') if let Some(format) = foreign(&cursor) => {
            Err(PredictionsError::Foreign { path: path.to_owned(), format })
        }
        Some(b'[') => list(&mut cursor, collector),
        Some(b'{') if is_lines(&cursor) => lines(&mut cursor, collector),
        Some(b'{') => dictionary(&mut cursor, collector),
        Some(_) => Err(cursor.malformed("it is neither an object nor a list of objects")),
    }
}

/// Returns the known format that the keys of the file's first object tell.
fn foreign(cursor: &Cursor<'_>) -> Option<Foreign> {
    let mut values = serde_json::Deserializer::from_slice(&cursor.bytes[cursor.offset..]).into_iter::<Named>();
    let found = values.next()?.ok()?;
    // A prediction may have any further keys.
    if found.task && found.content { None } else { Foreign::of(&found.keys) }
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
    let whole = &cursor.bytes[cursor.offset..];
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
        let raw = match cursor.value()? {
            Value::Object(raw) => raw,
            Value::Text(text) if begins_as_diff(&text) => Raw { model_patch: Some(Some(text)), ..Raw::default() },
            Value::Text(_) if KNOWN.contains(&id.as_str()) => {
                return Err(match serde_json::from_slice::<IgnoredAny>(whole) {
                    Ok(_) => {
                        cursor.malformed("it is one prediction on several lines: write it on one line, or into a list")
                    }
                    Err(error) => in_line(&place, &error),
                });
            }
            Value::Text(_) => {
                let reason = format!("is a text that does not begin as a diff, under the key `{}`", super::shown(&id));
                return Err(field(&place, "model_patch", reason));
            }
        };
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

/// How the text of a diff begins, also in a Markdown fence.
pub(super) const BEGINNINGS: [&str; 5] = ["diff ", "--- ", "Index: ", "```", "~~~"];

fn begins_as_diff(text: &str) -> bool {
    let text = text.trim_start();
    BEGINNINGS.iter().any(|beginning| text.starts_with(beginning))
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
        (None, None) => {
            return Err(match Foreign::of(&raw.keys) {
                Some(format) => PredictionsError::Foreign { path: place.path, format },
                None => field(&place, "instance_id", "is missing".to_owned()),
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
                let unknown = raw.keys.meant().map(|(key, known)| (super::shown(key), known));
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

fn in_line(place: &Place, error: &serde_json::Error) -> PredictionsError {
    if error.is_eof() {
        return PredictionsError::Malformed { place: place.clone(), reason: TRUNCATED.to_owned() };
    }
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
            None => return Err(self.malformed(TRUNCATED)),
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
