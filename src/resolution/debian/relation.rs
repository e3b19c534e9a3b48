//! Relations between packages, `a (>= 1) | b, c:any`, as in fields of binary packages.

pub use debian_control::lossy::Relation;
use debversion::Version;

/// The text is not a relation.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no relation between packages")]
pub struct InvalidRelation(String);

/// Returns whether the relation accepts `version`.
pub fn accepts(relation: &Relation, version: &Version) -> bool {
    relation.satisfied_by(|_: &str| Some(version.clone()))
}

/// Parses a field such as `Depends`. One relation of each group must hold.
///
/// # Errors
/// [`InvalidRelation`].
pub fn parse_relations(text: &str) -> Result<Vec<Vec<Relation>>, InvalidRelation> {
    let groups = text.split(',').map(str::trim).filter(|group| !group.is_empty());
    groups.map(|group| group.split('|').map(parse_relation).collect()).collect()
}

/// Parses one relation. Drops qualifiers such as `:any`, because images have only one architecture.
fn parse_relation(text: &str) -> Result<Relation, InvalidRelation> {
    let relation: Option<Relation> = text.trim().parse().ok();
    // Only source packages restrict relations to architectures and build profiles.
    let is_binary = |found: &Relation| found.architectures.is_none() && found.profiles.is_empty();
    let relation = relation.filter(|found| super::is_package_name(&found.name) && is_binary(found));
    let relation = relation.ok_or_else(|| InvalidRelation(super::printable(text)))?;
    Ok(Relation { archqual: None, ..relation })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_are_read_and_compared() {
        let groups = parse_relations("libc6 (>= 2.34), python3:any | perl,\n a (= 1:2.0~rc1-3+b1), b (<<2)").unwrap();
        let shown: Vec<String> =
            groups.iter().map(|group| group.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ")).collect();
        assert_eq!(shown, ["libc6 (>= 2.34)", "python3 | perl", "a (= 1:2.0~rc1-3+b1)", "b (<< 2)"]);
        for (relation, version, expected) in [
            ("a (>= 2.38)", "2.41-12", true),
            ("a (>= 2.38)", "2.38~1", false),
            ("a (= 1)", "1-0", true),
            ("a (<< 1:0)", "99", true),
            ("a (>> 2.0)", "2.0+deb13u1", true),
            ("a (<= 2.0)", "2.0+deb13u1", false),
            ("a", "0", true),
        ] {
            let groups = parse_relations(relation).unwrap();
            assert_eq!(accepts(&groups[0][0], &version.parse().unwrap()), expected, "{relation} {version}");
        }
        for bad in
            ["A", "a (>> )", "a (>= 1", "a (>= 1 2)", "a (! 1)", "a [amd64]", "a <x>", "${a}", "../x", "a b", "a |"]
        {
            assert!(parse_relations(bad).is_err(), "{bad}");
        }
    }
}
