//! Models of which there are several samples: what one of some comes to.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{ScoredMethod, ScoredModel, ScoredTask};
use crate::metrics::bootstrap::{clustered_interval, interval};
use crate::metrics::category::Category;
use crate::metrics::samples::pass_at;
use crate::submission::GOLD;
use crate::task::{MethodId, RepositoryName, TaskId, Track};

/// Numbers of drawn samples that are shown, besides all of them.
const DRAWN: [usize; 8] = [1, 2, 3, 5, 10, 20, 50, 100];

/// A model of which there are several samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SampledModel {
    /// The model.
    pub model: String,
    /// Its samples, as run and the name under which the run scores them.
    pub samples: Vec<(String, String)>,
    /// Each sample alone, in the same order and over the same tasks as the figures below.
    pub each: BTreeMap<Track, Vec<OneSample>>,
    /// Figures of each track, over the tasks that all samples were scored on; one for each number of drawn samples.
    pub tracks: BTreeMap<Track, Vec<PassAt>>,
}

/// What a sample comes to alone.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OneSample {
    /// Its run.
    pub run_id: String,
    /// The name under which the run scores it.
    pub model: String,
    /// Tasks of which it was judged.
    pub tasks: usize,
    /// Share of these tasks that it resolves, percent. If every sample was judged everywhere, the mean over samples is
    /// `pass_percent` for `k` of 1.
    pub resolved_percent: Option<f64>,
    /// Its Success% over the tasks that all samples were scored on. Methods that could not be judged do not count.
    pub success_percent: Option<f64>,
}

/// What one of so many samples comes to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PassAt {
    /// The number of drawn samples.
    pub k: usize,
    /// Tasks with at least so many judged samples.
    pub tasks: usize,
    /// Mean over tasks of the estimated probability that one of `k` samples resolves the task: every target method is a Success.
    /// Percent.
    pub pass_percent: Option<f64>,
    /// Its 95 % interval, by resampling tasks.
    pub interval: Option<[f64; 2]>,
    /// Its 95 % interval, by resampling repositories and their tasks; `None` for one repository.
    pub interval_repositories: Option<[f64; 2]>,
    /// The same of single methods: mean over tasks of the mean over methods. For `k` of 1 this is the mean `success_percent` of
    /// the samples. Percent.
    pub method_pass_percent: Option<f64>,
}

/// Each task's repository and share of methods, percent.
pub(super) type Rates<'a> = BTreeMap<&'a TaskId, (&'a RepositoryName, f64)>;

/// Says of models of one name in several runs that they are samples of that model.
pub fn take_as_samples(models: &mut [ScoredModel]) {
    let mut runs: BTreeMap<String, usize> = BTreeMap::new();
    for model in models.iter().filter(|model| model.model != GOLD) {
        *runs.entry(model.sample_of.as_ref().unwrap_or(&model.model).clone()).or_default() += 1;
    }
    for model in models.iter_mut().filter(|model| model.sample_of.is_none()) {
        if runs.get(&model.model).is_some_and(|runs| *runs > 1) {
            model.sample_of = Some(model.model.clone());
        }
    }
}

/// Returns the tasks that all samples were scored on, each with its results in the order of the samples.
pub(super) fn shared<'a>(samples: &[&'a ScoredModel]) -> BTreeMap<&'a TaskId, Vec<&'a ScoredTask>> {
    let mut tasks: BTreeMap<&TaskId, Vec<&ScoredTask>> = BTreeMap::new();
    for scored in samples.iter().flat_map(|sample| &sample.tasks) {
        tasks.entry(&scored.task.id).or_default().push(scored);
    }
    // A task of which the runs had different versions is not the same task.
    tasks.retain(|_, scored| {
        scored.len() == samples.len() && scored.iter().all(|one| one.task.test_methods == scored[0].task.test_methods)
    });
    tasks
}

/// Returns the mean over each shared task's methods of the share of samples that `is` holds for. Samples in which a method
/// could not be judged are left out, and so are methods that do not count.
pub(super) fn rates<'a>(
    samples: &[&'a ScoredModel],
    track: Track,
    is: &dyn Fn(&ScoredMethod) -> bool,
    counts: &dyn Fn(&TaskId, &MethodId) -> bool,
) -> Rates<'a> {
    let rate = |scored: &[&ScoredTask]| {
        let methods = (0..scored[0].methods.len()).filter_map(|index| {
            let judged = scored.iter().filter_map(|one| one.methods.get(index));
            let judged = judged.filter(|method| method.verdict.paper_verdict.is_some());
            let judged = judged.filter(|method| counts(&scored[0].task.id, &method.method));
            mean(&judged.map(|method| if is(method) { 100.0 } else { 0.0 }).collect::<Vec<_>>())
        });
        mean(&methods.collect::<Vec<_>>())
    };
    let tasks = shared(samples).into_iter().filter(|(_, scored)| scored[0].task.track == track);
    tasks.filter_map(|(id, scored)| Some((id, (&scored[0].task.repository, rate(&scored)?)))).collect()
}

/// Returns the models of which there are several samples. Runs of models of one name are samples if `of_runs` says so.
pub(super) fn sampled(models: &[ScoredModel], of_runs: bool) -> Vec<SampledModel> {
    let mut groups: BTreeMap<(Option<&str>, &str), Vec<&ScoredModel>> = BTreeMap::new();
    for model in models.iter().filter(|model| model.model != GOLD) {
        let (run, name) = match &model.sample_of {
            Some(name) => ((!of_runs).then_some(model.run_id.as_str()), name.as_str()),
            None if of_runs => (None, model.model.as_str()),
            None => continue,
        };
        groups.entry((run, name)).or_default().push(model);
    }
    groups.retain(|_, samples| samples.len() > 1);
    groups.into_iter().map(|((_, name), samples)| of_model(name, &samples)).collect()
}

fn of_model(name: &str, samples: &[&ScoredModel]) -> SampledModel {
    let tasks = shared(samples);
    let tracks: BTreeSet<Track> = tasks.values().map(|scored| scored[0].task.track).collect();
    let drawn: BTreeSet<usize> = DRAWN.into_iter().filter(|k| *k < samples.len()).chain([samples.len()]).collect();
    let of_track = |track: Track| {
        let tasks: Vec<Counts> =
            tasks.values().filter(|scored| scored[0].task.track == track).map(|scored| Counts::of(scored)).collect();
        (track, drawn.iter().map(|k| pass_of(*k, &tasks)).collect())
    };
    let each_of = |track: Track| (track, samples.iter().enumerate().map(|one| alone(one, track, &tasks)).collect());
    SampledModel {
        model: name.to_owned(),
        samples: samples.iter().map(|sample| (sample.run_id.clone(), sample.model.clone())).collect(),
        each: tracks.iter().copied().map(each_of).collect(),
        tracks: tracks.into_iter().map(of_track).collect(),
    }
}

/// Returns the figures of a single sample, given its place among the model's samples.
fn alone(
    (place, sample): (usize, &&ScoredModel),
    track: Track,
    tasks: &BTreeMap<&TaskId, Vec<&ScoredTask>>,
) -> OneSample {
    let own = tasks.values().filter(|scored| scored[0].task.track == track).map(|scored| Counts::of(&[scored[place]]));
    let own: Vec<Counts> = own.collect();
    let PassAt { tasks, pass_percent, method_pass_percent, .. } = pass_of(1, &own);
    OneSample {
        run_id: sample.run_id.clone(),
        model: sample.model.clone(),
        tasks,
        resolved_percent: pass_percent,
        success_percent: method_pass_percent,
    }
}

/// How many samples of a task were judged, and how many of these succeeded.
struct Counts {
    repository: RepositoryName,
    /// Of the whole task.
    task: (usize, usize),
    /// Of each target method.
    methods: Vec<(usize, usize)>,
}

impl Counts {
    fn of(samples: &[&ScoredTask]) -> Self {
        let verdicts = |scored: &ScoredTask| -> Vec<Option<bool>> {
            let paper = scored.methods.iter().map(|method| method.verdict.paper_verdict);
            paper.map(|verdict| verdict.map(|category| category == Category::Success)).collect()
        };
        let verdicts: Vec<Vec<Option<bool>>> = samples.iter().map(|scored| verdicts(scored)).collect();
        let count = |successes: &dyn Fn(usize) -> Option<bool>| {
            let judged: Vec<bool> = (0..samples.len()).filter_map(successes).collect();
            (judged.len(), judged.iter().filter(|success| **success).count())
        };
        let number = samples[0].methods.len();
        Self {
            repository: samples[0].task.repository.clone(),
            task: count(&|sample| samples[sample].is_resolved()),
            methods: (0..number).map(|index| count(&|sample| verdicts[sample].get(index).copied().flatten())).collect(),
        }
    }
}

fn pass_of(k: usize, tasks: &[Counts]) -> PassAt {
    let percent = |(samples, successes): (usize, usize)| pass_at(k, samples, successes).map(|share| 100.0 * share);
    let mut by_repository: BTreeMap<&RepositoryName, Vec<f64>> = BTreeMap::new();
    let mut values = Vec::new();
    for task in tasks {
        if let Some(value) = percent(task.task) {
            values.push(value);
            by_repository.entry(&task.repository).or_default().push(value);
        }
    }
    let of_methods = tasks.iter().filter_map(|task| {
        let values: Vec<f64> = task.methods.iter().filter_map(|method| percent(*method)).collect();
        mean(&values)
    });
    PassAt {
        k,
        tasks: values.len(),
        pass_percent: mean(&values),
        interval: interval(&values),
        interval_repositories: clustered_interval(by_repository.values().map(Vec::as_slice)),
        method_pass_percent: mean(&of_methods.collect::<Vec<_>>()),
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{ExecReason, InfraReason, Outcome};
    use crate::report::score::figures;
    use crate::report::score::tests::fixture::{Fixture, Ran};

    const NAMES: [&str; 3] = ["m (sample 1)", "m (sample 2)", "m (sample 3)"];

    fn rounded(pass: &PassAt) -> (usize, usize, Option<f64>, Option<f64>) {
        let percent = |value: Option<f64>| value.map(|value| (value * 10.0).round() / 10.0);
        (pass.k, pass.tasks, percent(pass.pass_percent), percent(pass.method_pass_percent))
    }

    /// Of t1 one sample of three resolves the task, and one more has one of its two methods; of t2 there is nothing; of t3 one
    /// sample could not be judged, one resolves it, one is missing.
    #[test]
    fn what_one_of_some_samples_comes_to_is_computed_by_hand() {
        let update = |id: &'static str, repository: &'static str, methods: &'static [&'static str]| {
            (id, repository, Track::TestUpdate, "2024-01-01", methods)
        };
        let tasks =
            [update("t1", "a/one", &["T#a", "T#b"]), update("t2", "a/one", &["T#a"]), update("t3", "b/two", &["T#a"])];
        let mut run = Fixture::new(&NAMES, &tasks);
        run.inputs.samples = NAMES.map(|name| (name.to_owned(), "m".to_owned())).into();
        let came_to = |new: &'static [Outcome]| Ran { new, old: &[], covered: None, killed: None };
        let (pass, fail) = (came_to(&[Outcome::Pass; 2]), came_to(&[Outcome::ExecFail(ExecReason::Assertion); 2]));
        let unjudged = came_to(&[Outcome::InfraFail(InfraReason::Engine); 2]);
        for (name, task, methods) in [
            (NAMES[0], "t1", &[pass, pass][..]),
            (NAMES[1], "t1", &[pass, fail]),
            (NAMES[0], "t3", &[unjudged]),
            (NAMES[1], "t3", &[pass]),
        ] {
            run.hands_in(name, task, None);
            run.runs(name, task, methods);
        }
        let models = run.read(true);
        let report = figures(&models);
        assert_eq!(report.comparisons, []);
        let [sampled] = &report.samples[..] else { panic!("{:?}", report.samples) };
        assert_eq!((sampled.model.as_str(), sampled.samples.len(), sampled.tracks.len()), ("m", 3, 1));
        let passes = &sampled.tracks[&Track::TestUpdate];
        assert_eq!(
            passes.iter().map(rounded).collect::<Vec<_>>(),
            [
                // (1/3 + 0 + 1/2) / 3; of methods (1/2 + 0 + 1/2) / 3.
                (1, 3, Some(27.8), Some(33.3)),
                // (2/3 + 0 + 1) / 3; of methods ((1 + 2/3) / 2 + 0 + 1) / 3.
                (2, 3, Some(55.6), Some(61.1)),
                // Of t3 there are two judged samples only.
                (3, 2, Some(50.0), Some(50.0)),
            ]
        );
        let each = sampled.each[&Track::TestUpdate].iter();
        let tenth = |value: Option<f64>| value.map(|value| (value * 10.0).round() / 10.0);
        let each = each.map(|one| (one.tasks, tenth(one.resolved_percent), tenth(one.success_percent)));
        assert_eq!(
            each.collect::<Vec<_>>(),
            [
                // t1 is resolved and t2 is not; t3 could not be judged.
                (2, Some(50.0), Some(50.0)),
                // Of t1 one of two methods succeeds, and t3 is resolved.
                (3, Some(33.3), Some(50.0)),
                (3, Some(0.0), Some(0.0)),
            ]
        );
        let (samples, all): (Vec<&ScoredModel>, _) = (models.iter().collect(), |_: &TaskId, _: &MethodId| true);
        let succeeds = |method: &ScoredMethod| method.verdict.paper_verdict == Some(Category::Success);
        let rates = rates(&samples, Track::TestUpdate, &succeeds, &all);
        let values: Vec<Option<f64>> = rates.values().map(|(_, rate)| tenth(Some(*rate))).collect();
        assert_eq!(values, [Some(50.0), Some(0.0), Some(50.0)], "the values of which `k` of 1 has the mean");
        assert!(passes[0].interval.is_some() && passes[0].interval_repositories.is_some());
        assert!(passes[2].interval_repositories.is_none(), "all of one repository");
    }

    #[test]
    fn runs_of_one_name_are_samples_over_the_tasks_of_all() {
        let update = |id| (id, "a/one", Track::TestUpdate, "2024-01-01", &["T#a"][..]);
        let run = |name, tasks: &[&'static str], passes: &[&str]| {
            let mut run = Fixture::new(&[name], &tasks.iter().copied().map(update).collect::<Vec<_>>());
            for task in passes {
                run.hands_in(name, task, None);
                let ran = Ran { new: &[Outcome::Pass; 2], old: &[], covered: None, killed: None };
                run.runs(name, task, &[ran]);
            }
            run.read(true)
        };
        let models =
            [run("m", &["t1", "t2"], &["t1"]), run("m", &["t1"], &[]), run("other", &["t1"], &["t1"])].concat();
        assert_eq!(figures(&models).samples, []);
        let [sampled] = &sampled(&models, true)[..] else { panic!() };
        let passes = &sampled.tracks[&Track::TestUpdate];
        assert_eq!(
            passes.iter().map(rounded).collect::<Vec<_>>(),
            [(1, 1, Some(50.0), Some(50.0)), (2, 1, Some(100.0), Some(100.0)),]
        );
    }

    #[test]
    fn samples_of_one_model_are_not_compared() {
        let update = |id| (id, "a/one", Track::TestUpdate, "2024-01-01", &["T#a"][..]);
        let run = |name| Fixture::new(&[name], &[update("t1"), update("t2")]).read(true);
        let of = |models: &[ScoredModel]| models.iter().map(|model| model.sample_of.clone()).collect::<Vec<_>>();
        let mut models = [run("m"), run("m"), run("other")].concat();
        assert_eq!((of(&models), figures(&models).comparisons.len()), (vec![None; 3], 2));
        take_as_samples(&mut models);
        assert_eq!(of(&models), [Some("m".to_owned()), Some("m".to_owned()), None]);
        assert_eq!(figures(&models).comparisons.len(), 1);
        let mut gold = [run(GOLD), run(GOLD)].concat();
        take_as_samples(&mut gold);
        assert!(of(&gold).iter().all(Option::is_none));
    }
}
