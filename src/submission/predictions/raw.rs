//! Reads the values of predictions from JSON: one object, the value of a dictionary, or the keys of an object alone.
//!
//! Further keys are named and their values are skipped. Errors of values name the key.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::keys::{KNOWN, Keys};

/// One prediction. Further keys are passed over.
#[derive(Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Raw {
    /// The task's id.
    pub(super) instance_id: Option<String>,
    /// The task's id, where there is no `instance_id`.
    pub(super) task_id: Option<String>,
    /// The model that made it; `unnamed` without one.
    pub(super) model_name_or_path: Option<String>,
    // The outer `None` is a missing key, the inner one a `null`.
    /// A diff against the starting tree; `null` for nothing.
    pub(super) model_patch: Option<Option<String>>,
    /// The test file's whole text; `null` for nothing.
    pub(super) model_file: Option<Option<String>>,
    /// What it cost to make, in US dollars.
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub(super) cost_usd: Option<f64>,
    /// Tokens used for it.
    pub(super) tokens: Option<u64>,
    /// Names of keys that are not known.
    #[cfg_attr(test, schemars(skip))]
    pub(super) keys: Keys,
}

impl Raw {
    /// Tells whether the object has a key, or another one of the same meaning.
    pub(super) fn has(&self, known: &str) -> bool {
        match known {
            "instance_id" | "task_id" => self.instance_id.is_some() || self.task_id.is_some(),
            "model_name_or_path" => self.model_name_or_path.is_some(),
            "model_patch" | "model_file" => self.model_patch.is_some() || self.model_file.is_some(),
            "cost_usd" => self.cost_usd.is_some(),
            "tokens" => self.tokens.is_some(),
            _ => false,
        }
    }
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
            match known {
                Some(key @ "instance_id") => raw.instance_id = map.next_value_seed(Text(key))?,
                Some(key @ "task_id") => raw.task_id = map.next_value_seed(Text(key))?,
                Some(key @ "model_name_or_path") => raw.model_name_or_path = map.next_value_seed(Text(key))?,
                Some(key @ "model_patch") => raw.model_patch = Some(map.next_value_seed(Text(key))?),
                Some(key @ "model_file") => raw.model_file = Some(map.next_value_seed(Text(key))?),
                Some(key @ "cost_usd") => raw.cost_usd = map.next_value_seed(Amount(key))?,
                Some(key @ "tokens") => raw.tokens = map.next_value_seed(Count(key))?,
                _ => {
                    raw.keys.add(&key);
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

/// The text under a key, or `null`.
struct Text(&'static str);

impl<'de> DeserializeSeed<'de> for Text {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<String>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for Text {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a text or null for `{}`", self.0)
    }

    fn visit_unit<E: Error>(self) -> Result<Option<String>, E> {
        Ok(None)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Option<String>, E> {
        Ok(Some(text.to_owned()))
    }
}

/// The number under a key, or `null`.
struct Amount(&'static str);

impl<'de> DeserializeSeed<'de> for Amount {
    type Value = Option<f64>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<f64>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for Amount {
    type Value = Option<f64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a number or null for `{}`", self.0)
    }

    fn visit_unit<E: Error>(self) -> Result<Option<f64>, E> {
        Ok(None)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Option<f64>, E> {
        Ok(Some(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Option<f64>, E> {
        Ok(Some(number as f64))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Option<f64>, E> {
        Ok(Some(number as f64))
    }
}

/// The whole number under a key, or `null`.
struct Count(&'static str);

impl<'de> DeserializeSeed<'de> for Count {
    type Value = Option<u64>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<u64>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for Count {
    type Value = Option<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from 0 to {}, or null, for `{}`", u64::MAX, self.0)
    }

    fn visit_unit<E: Error>(self) -> Result<Option<u64>, E> {
        Ok(None)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Option<u64>, E> {
        Ok(Some(number))
    }
}

/// A value of a dictionary: an object, the text of a diff, or `null`.
pub(super) enum Value {
    Object(Raw),
    Text(String),
    Nothing,
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with `model_patch`, the text of a diff, or null")
            }

            fn visit_unit<E: Error>(self) -> Result<Value, E> {
                Ok(Value::Nothing)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
                Ok(Value::Text(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Value, A::Error> {
                Fields.visit_map(map).map(Value::Object)
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// The names of an object's keys alone. Its values are skipped, because they may contain anything.
#[derive(Default)]
pub(super) struct Named {
    pub(super) keys: Keys,
    /// Whether the object names its task.
    pub(super) task: bool,
    /// Whether it has a submission.
    pub(super) content: bool,
    /// Whether it has any known key.
    pub(super) known: bool,
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
                    found.known |= KNOWN.contains(&key.as_str());
                    match key.as_str() {
                        "instance_id" | "task_id" => found.task = true,
                        other => {
                            found.content |= matches!(other, "model_patch" | "model_file");
                            found.keys.add(other);
                        }
                    }
                }
                Ok(found)
            }
        }
        deserializer.deserialize_map(Names)
    }
}
