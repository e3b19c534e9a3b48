//! Recognises the keys of other programs' files, to say what a file is and what to do with it.
//!
//! Nothing of other formats is converted here, because their ids of tasks are others.

use std::fmt;

/// Known formats that are no predictions for this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// Predictions of Multi-SWE-bench: `org`, `repo`, `number`, `fix_patch`.
    MultiSweBench,
    /// The output of OpenHands: the patch stands in `test_result.git_patch`.
    OpenHands,
    /// Predictions of SWE-bench Pro: `patch` and `prefix`.
    SweBenchPro,
    /// The tasks of SWE-bench themselves, with `problem_statement`.
    SweBenchTasks,
    /// The published tasks of TestEvo-Bench.
    Published,
}

/// The formats, each with the keys that tell it.
const FOREIGN: [(Foreign, &[&str]); 5] = [
    (Foreign::MultiSweBench, &["org", "repo", "number"]),
    (Foreign::OpenHands, &["instance_id", "test_result"]),
    (Foreign::SweBenchTasks, &["problem_statement", "base_commit"]),
    (Foreign::SweBenchPro, &["patch", "prefix"]),
    (Foreign::Published, &["project_name", "tracks"]),
];

/// The known keys of a prediction.
pub(super) const KNOWN: [&str; 7] =
    ["instance_id", "task_id", "model_name_or_path", "model_patch", "model_file", "cost_usd", "tokens"];

/// Keys under which submissions stand.
const CONTENT: [&str; 2] = ["model_patch", "model_file"];

/// Words in keys of whole files.
const FILE_WORDS: [&str; 6] = ["file", "code", "java", "source", "class", "content"];

/// The most unknown keys of an object that are kept.
const MOST_UNKNOWN: usize = 16;
/// The longest kept key, in bytes.
const LONGEST: usize = 200;
/// How alike the letters of two keys are that mean the same.
const ALIKE: f64 = 0.75;
/// Words in unknown keys, and the known keys that they mean.
const MEANT: [(&[&str], &str); 5] = [
    (&["patch", "diff", "predict", "answer", "completion", "response"], "model_patch"),
    (&["file", "code", "java", "source"], "model_file"),
    (&["cost", "usd", "price"], "cost_usd"),
    (&["token"], "tokens"),
    (&["model", "agent"], "model_name_or_path"),
];

impl Foreign {
    /// Returns the format whose keys are all among these.
    pub(super) fn of(keys: &Keys) -> Option<Self> {
        FOREIGN.iter().find(|(_, telling)| telling.iter().all(|key| keys.has(key))).map(|(format, _)| *format)
    }

    /// Returns the advice.
    pub(super) fn advice(self) -> &'static str {
        match self {
            Self::MultiSweBench => {
                "write `instance_id` with the task's id (`testevo-sandbox tasks list`) in place of `org`, `repo` and \
                 `number`, and `model_patch` in place of `fix_patch`"
            }
            Self::OpenHands => {
                "copy `test_result.git_patch` to `model_patch`: only `instance_id` and `model_patch` are needed"
            }
            Self::SweBenchPro => "rename `patch` to `model_patch` and `prefix` to `model_name_or_path`",
            Self::SweBenchTasks => "these are tasks and no predictions; name the file that an agent's harness wrote",
            Self::Published => {
                "these are tasks: `testevo-sandbox import` takes them; `--predictions gold` scores the developers' tests"
            }
        }
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MultiSweBench => "Multi-SWE-bench predictions",
            Self::OpenHands => "output of OpenHands",
            Self::SweBenchPro => "SWE-bench Pro predictions",
            Self::SweBenchTasks => "SWE-bench tasks",
            Self::Published => "published TestEvo-Bench tasks",
        })
    }
}

/// The keys of an object that tell something: its unknown ones, of which the first few are kept.
#[derive(Clone, Debug, Default)]
pub(super) struct Keys {
    unknown: Vec<String>,
    named: bool,
}

impl Keys {
    /// Adds `instance_id` or `task_id`.
    pub(super) fn named(&mut self) {
        self.named = true;
    }

    /// Adds an unknown key.
    pub(super) fn add(&mut self, key: &str) {
        if self.unknown.len() < MOST_UNKNOWN && key.len() <= LONGEST || self.tells(key) {
            self.unknown.push(key.to_owned());
        }
    }

    /// Tells whether the key tells a format and is not kept yet.
    fn tells(&self, key: &str) -> bool {
        FOREIGN.iter().any(|(_, keys)| keys.contains(&key)) && !self.unknown.iter().any(|known| known == key)
    }

    /// Returns the kept unknown keys in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.unknown.iter().map(String::as_str)
    }

    /// Returns the unknown key that most likely holds the task's id.
    pub(super) fn task(&self) -> Option<&str> {
        let by_word = || self.iter().find(|key| names_task(key));
        self.iter().find(|key| likeness(key, "instance_id").max(likeness(key, "task_id")) >= ALIKE).or_else(by_word)
    }

    fn has(&self, key: &str) -> bool {
        (self.named && key == "instance_id") || self.unknown.iter().any(|known| known == key)
    }

    /// Returns the unknown key that most likely holds the submission, and the key that it should be.
    pub(super) fn meant(&self) -> Option<(&str, &'static str)> {
        let likeness = |key: &str| {
            let key = key.to_lowercase();
            let by_letters = CONTENT.map(|known| strsim::normalized_damerau_levenshtein(&key, known));
            let [patch, file] = by_letters;
            let words = ["patch", "diff", "predict", "output", "answer", "completion", "response"];
            match (FILE_WORDS.iter().any(|word| key.contains(word)), words.iter().any(|word| key.contains(word))) {
                (true, _) => (1.0 + file, CONTENT[1]),
                (false, true) => (1.0 + patch, CONTENT[0]),
                (false, false) if file > patch => (file, CONTENT[1]),
                (false, false) => (patch, CONTENT[0]),
            }
        };
        let candidates = self.unknown.iter().map(|key| (key.as_str(), likeness(key)));
        let best = candidates.max_by(|(_, (one, _)), (_, (other, _))| one.total_cmp(other))?;
        Some((best.0, best.1.1))
    }
}

/// Returns the known key that an unknown one probably means, among those that its object lacks.
pub(super) fn nearest(key: &str, lacks: impl Fn(&str) -> bool) -> Option<&'static str> {
    let alike = KNOWN.into_iter().map(|known| (likeness(key, known), known)).filter(|(likeness, _)| *likeness >= ALIKE);
    let by_letters = alike.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, known)| known);
    let lower = key.to_lowercase();
    let by_word =
        || MEANT.iter().find(|(words, _)| words.iter().any(|word| lower.contains(word))).map(|(_, known)| *known);
    let by_task = || names_task(key).then_some(KNOWN[0]);
    by_letters.or_else(by_word).or_else(by_task).filter(|known| lacks(known))
}

/// Returns how alike two keys are, in [0, 1].
fn likeness(key: &str, known: &str) -> f64 {
    strsim::normalized_damerau_levenshtein(&key.to_lowercase(), known)
}

/// Tells whether a key names a task by its words.
fn names_task(key: &str) -> bool {
    let key = key.to_lowercase();
    key == "id" || key.ends_with("_id") || key.contains("task") || key.contains("instance")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_keys_are_told_with_the_nearest_known_one() {
        for (unknown, expected) in [
            (&["prediction"][..], ("prediction", "model_patch")),
            (&["seconds", "model_pach", "notes"], ("model_pach", "model_patch")),
            (&["id", "testFile"], ("testFile", "model_file")),
            (&["x"], ("x", "model_patch")),
        ] {
            let mut keys = Keys::default();
            unknown.iter().for_each(|key| keys.add(key));
            assert_eq!(keys.meant(), Some(expected));
        }
        assert_eq!(Keys::default().meant(), None);
    }

    #[test]
    fn a_known_key_is_meant_only_where_it_is_missing() {
        for (key, expected) in [
            ("model", Some("model_name_or_path")),
            ("Agent", Some("model_name_or_path")),
            ("cost", Some("cost_usd")),
            ("cost_used", Some("cost_usd")),
            ("total_tokens", Some("tokens")),
            ("model_ptch", Some("model_patch")),
            ("testFile", Some("model_file")),
            ("instanceId", Some("instance_id")),
            ("id", Some("instance_id")),
            ("more", None),
            ("exit_status", None),
        ] {
            assert_eq!(nearest(key, |_| true), expected, "{key}");
            assert_eq!(nearest(key, |_| false), None, "{key}");
        }
        for (keys, expected) in [
            (&["model_patch", "id"][..], Some("id")),
            (&["video", "instanceid"], Some("instanceid")),
            (&["video", "name"], None),
        ] {
            let mut all = Keys::default();
            keys.iter().for_each(|key| all.add(key));
            assert_eq!(all.task(), expected);
        }
    }

    #[test]
    fn formats_are_told_after_any_number_of_other_keys() {
        let mut keys = Keys::default();
        (0..1000).for_each(|number| keys.add(&format!("k{number}")));
        assert_eq!(Foreign::of(&keys), None);
        ["number", "repo", "org", "org"].into_iter().for_each(|key| keys.add(key));
        assert_eq!(Foreign::of(&keys), Some(Foreign::MultiSweBench));
        assert_eq!(keys.unknown.len(), MOST_UNKNOWN + 3);
    }
}
