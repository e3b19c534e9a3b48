//! Keys: digests under which results are kept.

use serde::Serialize;

use crate::canonical_json::canonical_json;
use crate::digest::Digest;

/// Returns a key: equal keys mean equal kind, schema and inputs. `inputs` must contain everything that decides the
/// result.
pub fn key(kind: &str, schema: u32, inputs: &(impl Serialize + ?Sized)) -> Digest {
    match canonical_json(&(kind, schema, inputs)) {
        Ok(bytes) => Digest::of(&bytes),
        Err(error) => unreachable!("inputs are plain data: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_schema_and_inputs_make_the_key() {
        let keys = [key("a", 1, "x"), key("b", 1, "x"), key("a", 2, "x"), key("a", 1, "y"), key("a", 1, &("x", "y"))];
        for (index, one) in keys.iter().enumerate() {
            assert!(!keys[index + 1..].contains(one));
        }
        assert_eq!(keys[0], Digest::of(br#"["a",1,"x"]"#));
    }
}
