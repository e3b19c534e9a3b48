//! Converts scored runs to the published leaderboard's shape.

use std::collections::BTreeMap;

use serde_json::json;

use super::{Entry, Leaderboard, Row};
use crate::metrics::aggregate::{Measure, TaskScore, mean, on_pass_of};
use crate::metrics::category::Category;
use crate::report::score::{ScoredMethod, ScoredModel, ScoredTask};
use crate::task::Track;

/// Returns scored models as a leaderboard with its time of creation (RFC 3339). Models of one name in several runs get
/// an entry each, named with the run, and with a number if two runs of one id have them. So no two entries have one name.
pub fn leaderboard(models: &[ScoredModel], generated_at: Option<String>) -> Leaderboard {
    let mut tracks: BTreeMap<Track, Vec<Entry>> = BTreeMap::new();
    let runs_of = |name: &str| models.iter().filter(|model| model.model == name).count();
    for model in models {
        let mut rows: BTreeMap<Track, Vec<Row>> = BTreeMap::new();
        for (scored, score) in model.tasks.iter().zip(&model.task_scores()) {
            rows.entry(scored.task.track).or_default().push(row(scored, score));
        }
        for (track, tasks) in rows {
            let entries = tracks.entry(track).or_default();
            let name = match runs_of(&model.model) {
                1 => model.model.clone(),
                _ => format!("{} ({})", model.model, model.run_id),
            };
            let numbered = (2..).map(|number| format!("{name} #{number}"));
            let mut names = std::iter::once(name.clone()).chain(numbered);
            let is_free = |name: &String| entries.iter().all(|known| known.agent != *name);
            let agent = names.find(is_free).unwrap_or_default();
            entries.push(Entry { agent, tasks, ..Entry::default() });
        }
    }
    let metric_definitions = json!({
        "d": "date of the new revision",
        "pass": "share of target methods that pass on new code",
        "exec": "share that fails on new code",
        "cmpl": "share that does not compile on new code",
        "hrns": "share without a test, or of an edit that can't be applied",
        "cov": "mean line coverage of own focal methods, over methods that pass on new code and have a value",
        "mut": "mean mutation score in own focal methods, over methods that pass on new code and have a value",
        "disc": "share that passes on new code, and fails or does not compile on old code",
    });
    Leaderboard { generated_at, metric_definitions, tracks }
}

fn row(scored: &ScoredTask, score: &TaskScore) -> Row {
    let methods = || scored.methods.iter().filter(|method| method.verdict.paper_verdict.is_some());
    let share = |fits: &dyn Fn(Category) -> bool| {
        let fits = |method: &ScoredMethod| method.verdict.paper_verdict.is_some_and(fits);
        rounded(mean(methods().map(|method| Some(if fits(method) { 1.0 } else { 0.0 }))))
    };
    let disc = share(&|category| category == Category::Success);
    Row {
        d: scored.task.rev2_date.clone(),
        pass: share(&Category::passed_on_new),
        exec: share(&|category| category == Category::ExecFail),
        cmpl: share(&|category| category == Category::CmplFail),
        hrns: share(&|category| category == Category::HrnsFail),
        cov: rounded(on_pass_of(score, Measure::Coverage).map(|percent| percent / 100.0)),
        mutation: rounded(on_pass_of(score, Measure::Mutation)),
        disc: disc.filter(|_| scored.task.track == Track::TestGeneration),
    }
}

/// Published values have four digits.
fn rounded(value: Option<f64>) -> Option<f64> {
    value.map(|value| (value * 10_000.0).round() / 10_000.0)
}
