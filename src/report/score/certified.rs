//! Figures over the tasks whose published labels hold, beside those over all tasks.
//!
//! A validation tells which labels hold, and which of the developers' methods pass on old code as well: no submission of
//! such a method can be told from one that tests nothing of the change.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{ScoredModel, ScoredTask};
use crate::digest::Digest;
use crate::metrics::aggregate::{TaskScore, TrackFigures, track_figures};
use crate::outcome::label::TaskClass;
use crate::report::validation::{ClassedTask, ValidationSummary};
use crate::task::{MethodId, RepositoryName, Task, TaskId, Track};

/// What a validation says of tasks.
#[derive(Clone, Debug)]
pub struct Certification {
    validation: String,
    validated: BTreeMap<TaskId, Validated>,
    not_discriminating: BTreeSet<(TaskId, MethodId)>,
}

/// A task as it was validated.
#[derive(Clone, Debug)]
struct Validated {
    class: TaskClass,
    task: Task,
    image: Option<Digest>,
}

/// A report over certified tasks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Certified {
    /// The validation's run.
    pub validation: String,
    /// Number of tasks of all scoring runs.
    pub tasks: usize,
    /// Number of those with a certified method.
    pub certified: usize,
    /// What is left out, sorted.
    pub excluded: Vec<Excluded>,
    /// Figures of each model of a run over what is left.
    pub runs: Vec<CertifiedRun>,
}

/// A task, or one of its methods, that is not certified.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Excluded {
    /// The task.
    pub task: TaskId,
    /// The method; `None` for all of the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<MethodId>,
    /// The class of the task in the validation, `not_validated`, `other_data` or `other_image` for a validation of another
    /// version of the task or with another image, or `not_discriminating`.
    pub reason: &'static str,
}

/// One model in one run, over certified tasks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CertifiedRun {
    /// The run.
    pub run_id: String,
    /// The model.
    pub model: String,
    /// Figures of the run's tracks.
    pub tracks: BTreeMap<Track, TrackFigures>,
}

impl Certified {
    /// Returns the reason against each task and method that is not certified. An entry without a method is for its whole task.
    pub fn reasons(&self) -> BTreeMap<(&TaskId, Option<&MethodId>), &'static str> {
        self.excluded.iter().map(|one| ((&one.task, one.method.as_ref()), one.reason)).collect()
    }
}

impl Certification {
    /// Returns the certification that follows from a validation. `images` has the config digest of each repository's image.
    pub fn of(
        summary: &ValidationSummary,
        classed: &[ClassedTask<'_>],
        images: &BTreeMap<RepositoryName, Digest>,
    ) -> Self {
        let methods = summary.not_discriminating.iter();
        let validated = classed.iter().map(|&ClassedTask { task, class }| {
            let image = images.get(&task.repository).copied();
            (task.id.clone(), Validated { class, task: task.clone(), image })
        });
        Self {
            validation: summary.run_id.clone(),
            validated: validated.collect(),
            not_discriminating: methods.map(|one| (one.task_id.clone(), one.method.clone())).collect(),
        }
    }

    /// Returns the reason against certifying a task; `None` if the task is certified.
    fn reason(&self, scored: &ScoredTask) -> Option<&'static str> {
        match self.validated.get(&scored.task.id) {
            None => Some("not_validated"),
            Some(validated) if validated.task != *scored.task => Some("other_data"),
            Some(validated) if validated.image != scored.image => Some("other_image"),
            Some(Validated { class: TaskClass::Reproduced, .. }) => None,
            Some(validated) => Some(validated.class.name()),
        }
    }

    /// Adds scored models up over certified tasks.
    pub fn figures(&self, models: &[ScoredModel]) -> Certified {
        let mut tasks: BTreeMap<&TaskId, (&[MethodId], Option<&'static str>)> = BTreeMap::new();
        for scored in models.iter().flat_map(|model| &model.tasks) {
            let entry = tasks.entry(&scored.task.id).or_insert((&scored.task.test_methods, None));
            // Of runs that differ, one is enough to name the task.
            entry.1 = entry.1.or_else(|| self.reason(scored));
        }
        let mut excluded = Vec::new();
        let mut certified = 0;
        for (&task, &(methods, reason)) in &tasks {
            if let Some(reason) = reason {
                excluded.push(Excluded { task: task.clone(), method: None, reason });
                continue;
            }
            let left = methods.iter().filter(|method| self.tells_apart(task, method)).count();
            certified += usize::from(left > 0);
            let others = methods.iter().filter(|method| !self.tells_apart(task, method));
            excluded.extend(others.map(|method| Excluded {
                task: task.clone(),
                method: Some(method.clone()),
                reason: "not_discriminating",
            }));
        }
        let runs = models.iter().map(|model| self.run(model)).collect();
        Certified { validation: self.validation.clone(), tasks: tasks.len(), certified, excluded, runs }
    }

    fn tells_apart(&self, task: &TaskId, method: &MethodId) -> bool {
        !self.not_discriminating.contains(&(task.clone(), method.clone()))
    }

    fn run(&self, model: &ScoredModel) -> CertifiedRun {
        let mut scores = Vec::new();
        for (scored, mut score) in model.tasks.iter().zip(model.task_scores()) {
            let task = &scored.task.id;
            let methods = scored.methods.iter().zip(&score.methods);
            let left = methods.filter(|(method, _)| self.tells_apart(task, &method.method)).map(|(_, score)| *score);
            score.methods = left.collect();
            if self.reason(scored).is_none() && !score.methods.is_empty() {
                scores.push(score);
            }
        }
        let mut tracks: BTreeMap<Track, Vec<&TaskScore>> = BTreeMap::new();
        for score in &scores {
            tracks.entry(score.track).or_default().push(score);
        }
        CertifiedRun {
            run_id: model.run_id.clone(),
            model: model.model.clone(),
            tracks: tracks.into_iter().map(|(track, tasks)| (track, track_figures(&tasks))).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::score::tests::fixture;

    #[test]
    fn figures_are_over_what_holds_and_tells_apart() {
        let models = fixture().read(true);
        let id = |name: &str| -> TaskId { name.parse().unwrap() };
        let second =
            models[0].tasks.iter().find(|scored| scored.task.id == id("t4")).unwrap().methods[1].method.clone();
        let of = |name: &str| models[0].tasks.iter().find(|scored| scored.task.id == id(name)).unwrap();
        let class = |name: &str, class: TaskClass| {
            let scored = of(name);
            (id(name), Validated { class, task: (*scored.task).clone(), image: scored.image })
        };
        let mut certification = Certification {
            validation: "v".to_owned(),
            validated: BTreeMap::from([
                class("t1", TaskClass::Differing),
                class("t2", TaskClass::Reproduced),
                class("t3", TaskClass::Reproduced),
                class("t4", TaskClass::Reproduced),
            ]),
            not_discriminating: BTreeSet::from([(id("t4"), second.clone())]),
        };
        let certified = certification.figures(&models);
        assert_eq!((certified.tasks, certified.certified), (5, 3));
        let excluded = |task: &str, method: Option<&MethodId>, reason| Excluded {
            task: id(task),
            method: method.cloned(),
            reason,
        };
        let expected = [
            excluded("t1", None, "differing"),
            excluded("t4", Some(&second), "not_discriminating"),
            excluded("t5", None, "not_validated"),
        ];
        assert_eq!(certified.excluded, expected);
        let of = |track: Track| &certified.runs[0].tracks[&track].all;
        // t3 alone: its one method succeeds.
        assert_eq!((of(Track::TestUpdate).tasks, of(Track::TestUpdate).success_percent), (1, Some(100.0)));
        // t2, and of t4 the first method, which succeeds; the second is redundant and left out.
        let generation = of(Track::TestGeneration);
        assert_eq!((generation.tasks, generation.methods, generation.success_percent), (2, 2, Some(100.0)));

        // A validation of another image, or of other data, says nothing of a task.
        certification.validated.get_mut(&id("t2")).unwrap().image = Some(Digest::of(b"another"));
        certification.validated.get_mut(&id("t3")).unwrap().task.rev2_date = "2000-01-01".to_owned();
        let excluded = certification.figures(&models).excluded;
        let reasons: Vec<_> = excluded.iter().map(|one| (one.task.as_str(), one.reason)).collect();
        assert_eq!(reasons[1..3], [("t2", "other_image"), ("t3", "other_data")]);
    }
}
