//! The third view of a verdict: whether controls and checks on the host confirm a test's own result. Source: protocol
//! §3; docs/security.md has the reasons and the remaining attacks.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Whether a test is what it seems to be, as far as checks can tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Integrity {
    #[default]
    /// Controls were not launched, and no other check found anything.
    NotEvaluated,
    /// No check found anything.
    Clean,
    /// A check found signs of a test that does not test.
    Suspect,
    /// A check proves that the submission tampers with its scoring.
    Tampered,
}

impl Integrity {
    /// Returns the name used in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotEvaluated => "not_evaluated",
            Self::Clean => "clean",
            Self::Suspect => "suspect",
            Self::Tampered => "tampered",
        }
    }
}

/// Why a test is not clean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The test file declares a type of the project again, and tests meet it instead.
    Shadows,
    /// Code other than the runner wrote events.
    ForgedEvents,
    /// Its file makes a class of the same name as one of the project, which tests meet instead.
    Replaces,
    /// It passes where every focal method throws an error.
    SurvivesCanary,
    /// It passes on new code, but not on the same code in other bytes.
    LooksAtBytes,
    /// It fails on old code, and passes where focal methods have old code's bodies.
    SurvivesOldBodies,
    /// With an empty body it passes, covers as much, and kills every mutant that it kills with its own body.
    BodyTestsNothing,
    /// It passes and covers no line of its focal methods, or fails under the coverage agent.
    NoFocalCoverage,
    /// It mentions the scorer's means of measurement.
    Mentions,
    /// Members of its file can turn a failure into a pass.
    Swallows,
    /// It passes but left no report.
    NoReport,
}

impl Reason {
    /// All of them, gravest first.
    pub const ALL: [Self; 11] = [
        Self::Shadows,
        Self::ForgedEvents,
        Self::Replaces,
        Self::SurvivesCanary,
        Self::LooksAtBytes,
        Self::SurvivesOldBodies,
        Self::BodyTestsNothing,
        Self::NoFocalCoverage,
        Self::Mentions,
        Self::Swallows,
        Self::NoReport,
    ];

    /// Returns the name in records and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shadows => "shadows",
            Self::ForgedEvents => "forged_events",
            Self::Replaces => "replaces",
            Self::SurvivesCanary => "survives_canary",
            Self::LooksAtBytes => "looks_at_bytes",
            Self::SurvivesOldBodies => "survives_old_bodies",
            Self::BodyTestsNothing => "body_tests_nothing",
            Self::NoFocalCoverage => "no_focal_coverage",
            Self::Mentions => "mentions",
            Self::Swallows => "swallows",
            Self::NoReport => "no_report",
        }
    }

    /// Returns a sentence for people.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Shadows => "the test file declares a type of the project again",
            Self::ForgedEvents => "somebody but the runner wrote events",
            Self::Replaces => "its file makes a class that the project has as well",
            Self::SurvivesCanary => "it passes where every focal method throws an error",
            Self::LooksAtBytes => "it does not pass on the same code in other bytes",
            Self::SurvivesOldBodies => "it fails on old code, and passes where focal methods have old code's bodies",
            Self::BodyTestsNothing => "with an empty body it passes, covers and kills as much",
            Self::NoFocalCoverage => "it covers no line of its focal methods, or does not pass under JaCoCo",
            Self::Mentions => "it mentions what the scorer measures with",
            Self::Swallows => "its file has members that can turn a failure into a pass",
            Self::NoReport => "it passes and left no report",
        }
    }

    /// Tells whether it proves tampering. A finding that may have an honest cause only makes a test suspect.
    pub fn is_proof(self) -> bool {
        matches!(self, Self::Shadows | Self::ForgedEvents)
    }
}

/// The findings about a test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Findings that count.
    pub reasons: BTreeSet<Reason>,
    /// Findings that do not count, because the developers' test of that method has them as well.
    pub off: BTreeSet<Reason>,
}

impl Found {
    /// Sorts findings. `gold` are the findings about the developers' test; if they are unknown, only proof counts.
    pub fn of(found: BTreeSet<Reason>, gold: Option<&BTreeSet<Reason>>) -> Self {
        let counts = |reason: &Reason| reason.is_proof() || gold.is_some_and(|gold| !gold.contains(reason));
        let (reasons, off) = found.into_iter().partition(counts);
        Self { reasons, off }
    }

    /// Returns the verdict. `evaluated` tells whether controls were launched and the developers' test is known.
    pub fn integrity(&self, evaluated: bool) -> Integrity {
        match self.reasons.iter().any(|reason| reason.is_proof()) {
            true => Integrity::Tampered,
            false if !self.reasons.is_empty() => Integrity::Suspect,
            false if evaluated => Integrity::Clean,
            false => Integrity::NotEvaluated,
        }
    }

    /// Tells whether the findings put the coverage in doubt.
    pub fn spoils_coverage(&self) -> bool {
        self.reasons
            .iter()
            .any(|reason| reason.is_proof() || matches!(reason, Reason::Replaces | Reason::SurvivesCanary))
    }

    /// Tells whether the findings put the kills in doubt.
    pub fn spoils_kills(&self) -> bool {
        self.spoils_coverage() || self.reasons.contains(&Reason::LooksAtBytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_developers_test_trips_does_not_count() {
        let found = BTreeSet::from([Reason::SurvivesCanary, Reason::Shadows, Reason::Mentions]);
        let gold = BTreeSet::from([Reason::SurvivesCanary, Reason::Shadows]);
        let of = |gold| Found::of(found.clone(), gold);
        assert_eq!(of(Some(&gold)).reasons, BTreeSet::from([Reason::Shadows, Reason::Mentions]));
        assert_eq!(of(Some(&gold)).off, BTreeSet::from([Reason::SurvivesCanary]));
        assert_eq!(of(None).reasons, BTreeSet::from([Reason::Shadows]), "without gold only proof counts");
    }

    #[test]
    fn the_gravest_reason_decides() {
        let none = BTreeSet::new();
        for (found, evaluated, integrity) in [
            (&[][..], false, Integrity::NotEvaluated),
            (&[], true, Integrity::Clean),
            (&[Reason::NoFocalCoverage], true, Integrity::Suspect),
            (&[Reason::Mentions, Reason::ForgedEvents], false, Integrity::Tampered),
        ] {
            let found = Found::of(found.iter().copied().collect(), Some(&none));
            assert_eq!(found.integrity(evaluated), integrity);
        }
    }

    #[test]
    fn names_are_those_of_records() {
        for reason in Reason::ALL {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.name());
        }
        assert!(Reason::ALL.is_sorted());
    }
}
