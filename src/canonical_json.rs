//! Canonical JSON: equal values have equal bytes, whose digest is an identity.
//!
//! Keys are sorted by bytes, there is no white space, and integers are written as by `serde_json`. Fractions have no
//! canonical form here and must not occur in hashed values.

use serde::Serialize;
use serde_json::Value;

/// Returns the canonical bytes of `value`.
///
/// # Errors
/// The value can't be written as JSON, for instance a map with keys that are not text.
pub fn canonical_json(value: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    // Through `Value` first: the derived order of a struct's fields must not matter.
    let mut value = serde_json::to_value(value)?;
    sort(&mut value);
    serde_json::to_vec(&value)
}

/// Sorts explicitly: whether `serde_json` keeps maps sorted depends on a feature that any dependency may switch on.
fn sort(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(sort),
        Value::Object(map) => {
            let mut entries: Vec<(String, Value)> = std::mem::take(map).into_iter().collect();
            entries.sort_by(|left, right| left.0.cmp(&right.0));
            for (key, mut value) in entries {
                sort(&mut value);
                map.insert(key, value);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_at_every_depth() {
        let value: Value = serde_json::from_str(r#"{"b":[{"z":1,"a":"é"}],"a":{"d":null,"c":true}}"#).unwrap();
        let bytes = canonical_json(&value).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), r#"{"a":{"c":true,"d":null},"b":[{"a":"é","z":1}]}"#);
    }
}
