//! Parses JSON objects without repeated keys, because readers differ on these: some take the first value, some the
//! last.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::Problem;
use crate::task::InvalidText;

/// Reads an object.
///
/// # Errors
/// [`Problem::NoJson`]; [`Problem::Contradiction`] for a repeated key at any depth.
pub(super) fn object(text: &str) -> Result<Map<String, Value>, Problem> {
    let Read { value, twice } = serde_json::from_str(text).map_err(Problem::NoJson)?;
    if let Some(key) = twice {
        let key = InvalidText::new("", &key).text;
        return Err(Problem::Contradiction(format!("the field `{key}` stands twice in one object")));
    }
    serde_json::from_value(value).map_err(Problem::NoJson)
}

/// A value, and a key that occurs twice in one of its objects.
struct Read {
    value: Value,
    twice: Option<String>,
}

impl From<Value> for Read {
    fn from(value: Value) -> Self {
        Self { value, twice: None }
    }
}

impl<'de> Deserialize<'de> for Read {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Values)
    }
}

struct Values;

impl<'de> Visitor<'de> for Values {
    type Value = Read;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Read, E> {
        Ok(Value::from(value).into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Read, E> {
        Ok(Value::from(value).into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Read, E> {
        Ok(Value::from(value).into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Read, E> {
        Ok(Value::from(value).into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Read, E> {
        Ok(Value::from(value).into())
    }

    fn visit_unit<E>(self) -> Result<Read, E> {
        Ok(Value::Null.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Read, A::Error> {
        let (mut values, mut twice) = (Vec::new(), None);
        while let Some(element) = list.next_element::<Read>()? {
            values.push(element.value);
            twice = twice.or(element.twice);
        }
        Ok(Read { value: Value::Array(values), twice })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Read, A::Error> {
        let (mut fields, mut twice) = (Map::new(), None);
        while let Some((key, field)) = object.next_entry::<String, Read>()? {
            twice = twice.or(field.twice);
            if fields.insert(key.clone(), field.value).is_some() {
                twice = twice.or(Some(key));
            }
        }
        Ok(Read { value: Value::Object(fields), twice })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_stand_and_keys_once() {
        let text = r#"{"a": [1, -2, 1.5, true, null, "x\u0041"], "b": {"a": {}, "c": []}}"#;
        assert_eq!(Value::Object(object(text).unwrap()), serde_json::from_str::<Value>(text).unwrap());
        for text in [r#"{"a": 1, "a": 1}"#, r#"{"b": [{"a": 1, "a": 2}]}"#, r#"{"b": {"x": 0, "a": 1, "\u0061": 2}}"#] {
            assert!(matches!(object(text), Err(Problem::Contradiction(what)) if what.contains("`a`")), "{text}");
        }
        for text in ["[]", "1", "{", "{\"a\" 1}", "{} {}"] {
            assert!(matches!(object(text), Err(Problem::NoJson(_))), "{text}");
        }
    }
}
