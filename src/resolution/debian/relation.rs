//! Relations between packages: `a (>= 1) | b, c:any`.

use std::cmp::Ordering;

use debversion::Version;

/// A comparison with a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `<<`
    Earlier,
    /// `<=`
    EarlierOrEqual,
    /// `=`
    Equal,
    /// `>=`
    LaterOrEqual,
    /// `>>`
    Later,
}

/// One package that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    /// Its name, without an architecture.
    pub name: String,
    /// What its version must be.
    pub constraint: Option<(Comparison, Version)>,
}

/// A text that is no relation.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no relation between packages")]
pub struct InvalidRelation(String);

impl Relation {
    /// Returns whether `version` is one that is asked for.
    pub fn accepts(&self, version: &Version) -> bool {
        let Some((comparison, wanted)) = &self.constraint else { return true };
        let order = version.cmp(wanted);
        match comparison {
            Comparison::Earlier => order == Ordering::Less,
            Comparison::EarlierOrEqual => order != Ordering::Greater,
            Comparison::Equal => order == Ordering::Equal,
            Comparison::LaterOrEqual => order != Ordering::Less,
            Comparison::Later => order == Ordering::Greater,
        }
    }
}

impl std::fmt::Display for Relation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)?;
        let Some((comparison, version)) = &self.constraint else { return Ok(()) };
        let sign = match comparison {
            Comparison::Earlier => "<<",
            Comparison::EarlierOrEqual => "<=",
            Comparison::Equal => "=",
            Comparison::LaterOrEqual => ">=",
            Comparison::Later => ">>",
        };
        write!(f, " ({sign} {version})")
    }
}

/// Reads a field such as `Depends`: all groups must hold, of each group one relation.
///
/// # Errors
/// [`InvalidRelation`].
pub fn parse_relations(text: &str) -> Result<Vec<Vec<Relation>>, InvalidRelation> {
    let groups = text.split(',').map(str::trim).filter(|group| !group.is_empty());
    groups.map(|group| group.split('|').map(parse_relation).collect()).collect()
}

/// Reads one relation. Qualifiers such as `:any` are left out: there is one architecture here.
fn parse_relation(text: &str) -> Result<Relation, InvalidRelation> {
    let invalid = || InvalidRelation(super::printable(text));
    let text = text.trim();
    let (name, rest) = text.split_at(text.find([' ', '(', '\n']).unwrap_or(text.len()));
    let name = name.split_once(':').map_or(name, |(name, _)| name);
    if !super::is_package_name(name) {
        return Err(invalid());
    }
    let rest = rest.trim();
    if rest.is_empty() {
        return Ok(Relation { name: name.to_owned(), constraint: None });
    }
    let inner = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).ok_or_else(invalid)?.trim();
    let (sign, version) = inner.split_at(inner.find(|c| !"<=>".contains(c)).unwrap_or(inner.len()));
    let comparison = match sign {
        "<<" => Comparison::Earlier,
        "<=" => Comparison::EarlierOrEqual,
        "=" => Comparison::Equal,
        ">=" => Comparison::LaterOrEqual,
        ">>" => Comparison::Later,
        _ => return Err(invalid()),
    };
    let version = version.trim().parse().map_err(|_| invalid())?;
    Ok(Relation { name: name.to_owned(), constraint: Some((comparison, version)) })
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
            assert_eq!(groups[0][0].accepts(&version.parse().unwrap()), expected, "{relation} {version}");
        }
        for bad in ["A", "a (> 1)", "a (>= )", "a (>= 1", "a [amd64]", "../x", "a b"] {
            assert!(parse_relations(bad).is_err(), "{bad}");
        }
    }
}
