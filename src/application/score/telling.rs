//! Warnings about predictions, before anything is executed and in a dry run. Nothing is ignored silently.

use std::collections::BTreeMap;

use crate::application::Context;
use crate::output::counted;
use crate::submission::extraction::unreadable_anywhere;
use crate::submission::predictions::{Place, Predictions, UnknownKey};
use crate::task::TaskId;

/// The most warnings of a kind.
const MOST_TOLD: usize = 20;
/// The most unknown keys that are named.
const MOST_KEYS: usize = 10;

/// A submission that can't be read, whatever its task.
pub(super) struct Unreadable<'a> {
    model: &'a str,
    task: &'a TaskId,
    place: &'a Place,
    reason: String,
}

/// Reports predictions that would otherwise be ignored silently.
pub(super) fn tell(predictions: &Predictions, context: &Context) {
    warn_of_first(&predictions.unknown, "are counted in the report", context, |unknown| {
        format!("{}: there is no task `{}`", unknown.place, unknown.id)
    });
    if predictions.not_selected > 0 {
        let number = counted(predictions.not_selected, "prediction is", "predictions are");
        context.events.message(format!("{number} for tasks that were not selected"));
    }
    if predictions.repeated > 0 {
        let number = counted(predictions.repeated, "prediction stands", "predictions stand");
        context.events.message(format!("{number} there more than once with equal bytes, cost and tokens"));
    }
    if let Some(text) = of_keys(&predictions.unknown_keys) {
        // Harnesses add keys of their own. Only one that is like a known key may be a mistake.
        match predictions.unknown_keys.iter().any(|key| key.meant.is_some()) {
            true => context.events.warning(text),
            false => context.events.message(text),
        }
    }
    warn_of_first(&predictions.strays, "stand in the directory", context, ToString::to_string);
    let unreadable: Vec<Unreadable<'_>> = unreadable(predictions).collect();
    warn_of_first(&unreadable, "are counted in the report", context, |Unreadable { model, task, place, reason }| {
        format!("{place}: the submission of {model} for {task} can't be read and counts as HrnsFail: {reason}")
    });
    if unreadable.len() > 1 {
        context.events.warning(of_reasons(unreadable.iter().map(|one| one.reason.as_str())));
    }
    for (model, missing) in &predictions.missing {
        if let Some(first) = missing.first() {
            let number = counted(missing.len(), "selected task, which counts", "selected tasks, which count");
            let more = if missing.len() > 1 { ", …" } else { "" };
            context.events.warning(format!("{model} has nothing for {number} as failed: {first}{more}"));
        }
    }
}

/// Returns the submissions that can't be read, whatever their tasks.
pub(super) fn unreadable(predictions: &Predictions) -> impl Iterator<Item = Unreadable<'_>> {
    let all = predictions.models.iter().flat_map(|(model, tasks)| tasks.iter().map(move |found| (model, found)));
    all.filter_map(|(model, (task, prediction))| {
        let reason = unreadable_anywhere(&prediction.content)?;
        Some(Unreadable { model, task, place: &prediction.place, reason })
    })
}

/// Warns of the first few, and tells how many more there are and where to find them.
pub(super) fn warn_of_first<T>(all: &[T], elsewhere: &str, context: &Context, warning: impl Fn(&T) -> String) {
    for one in all.iter().take(MOST_TOLD) {
        context.events.warning(warning(one));
    }
    if let Some(more) = all.len().checked_sub(MOST_TOLD).filter(|more| *more > 0) {
        context.events.warning(format!("{more} more like this {elsewhere}"));
    }
}

/// Returns a sentence about unknown keys, those first that mean a known one; `None` if there are none.
fn of_keys(keys: &[UnknownKey]) -> Option<String> {
    let place = keys.iter().map(|key| &key.place).min()?;
    let (like, unlike): (Vec<_>, Vec<_>) = keys.iter().partition(|key| key.meant.is_some());
    let named = like.into_iter().chain(unlike).take(MOST_KEYS).map(|UnknownKey { key, meant, .. }| match meant {
        Some(meant) => format!("`{key}` (did you mean `{meant}`?)"),
        None => format!("`{key}`"),
    });
    let named: Vec<String> = named.collect();
    let more = keys.len() - named.len();
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    Some(format!("{place}: unknown keys are ignored: {}{more}", named.join(", ")))
}

/// Returns a sentence about all unreadable submissions: their number by the codes that their reasons begin with.
fn of_reasons<'a>(reasons: impl Iterator<Item = &'a str>) -> String {
    let is_code = |code: &&str| code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let code = |reason: &'a str| reason.split_once(':').map(|(code, _)| code).filter(is_code);
    let mut codes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut number = 0;
    for reason in reasons {
        number += 1;
        *codes.entry(code(reason).unwrap_or("other")).or_default() += 1;
    }
    let codes: Vec<String> = codes.iter().map(|(code, number)| format!("{number} {code}")).collect();
    let number = counted(number, "submission", "submissions");
    format!("{number} can't be read and count as HrnsFail: {}", codes.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_by_their_codes() {
        let reasons = ["markdown_fence: a", "line 1: b", "markdown_fence: c", "the submission has 9 bytes"];
        assert_eq!(
            of_reasons(reasons.into_iter()),
            "4 submissions can't be read and count as HrnsFail: 2 markdown_fence, 2 other"
        );
    }

    #[test]
    fn keys_that_mean_a_known_one_come_first() {
        let key = |key: &str, line, meant| UnknownKey {
            key: key.to_owned(),
            place: Place { path: "p.jsonl".into(), line: Some(line) },
            meant,
        };
        assert_eq!(of_keys(&[]), None);
        let keys = [key("a", 2, None), key("cost", 3, Some("cost_usd"))];
        let expected = "`p.jsonl` line 2: unknown keys are ignored: `cost` (did you mean `cost_usd`?), `a`";
        assert_eq!(of_keys(&keys).as_deref(), Some(expected));
        let many: Vec<UnknownKey> = (0..12).map(|number| key(&number.to_string(), 1, None)).collect();
        assert!(of_keys(&many).is_some_and(|text| text.ends_with("`9`, and 2 more")));
    }
}
