//! How far a stage is, and how long the rest of it takes.
//!
//! The estimate is made of medians: the typical item counts, not the sum of all. Items that were found finished take no
//! time and are no measure of the others.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// So many of the last items are looked at.
const WINDOW: usize = 64;

/// Fewer finished items than these are no base for an estimate.
const FEWEST: usize = 3;

/// What took less was not executed, but found.
const FOUND: Duration = Duration::from_millis(50);

/// The state of a stage.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    total: Option<u64>,
    done: u64,
    faults: u64,
    started: Instant,
    running: BTreeMap<String, Instant>,
    most_running: usize,
    took: VecDeque<Duration>,
}

impl Pace {
    pub(super) fn new(total: Option<u64>, done: u64, now: Instant) -> Self {
        let (running, took) = (BTreeMap::new(), VecDeque::new());
        Self { total, done, faults: 0, started: now, running, most_running: 0, took }
    }

    pub(super) fn begin(&mut self, item: String, now: Instant) {
        self.running.insert(item, now);
        self.most_running = self.most_running.max(self.running.len());
    }

    pub(super) fn end(&mut self, item: &str, fault: bool, now: Instant) {
        self.done += 1;
        self.faults += u64::from(fault);
        if let Some(began) = self.running.remove(item) {
            self.took.push_back(now.saturating_duration_since(began));
            if self.took.len() > WINDOW {
                self.took.pop_front();
            }
        }
    }

    /// Returns the number of items, if known.
    pub(super) fn total(&self) -> Option<u64> {
        self.total
    }

    /// Returns the number of items that are done, those of earlier processes included.
    pub(super) fn done(&self) -> u64 {
        self.done
    }

    /// Returns the number of items that a fault ended.
    pub(super) fn faults(&self) -> u64 {
        self.faults
    }

    /// Returns the names of running items.
    pub(super) fn running(&self) -> Vec<&str> {
        self.running.keys().map(String::as_str).collect()
    }

    /// Returns for how long the stage has been worked on.
    pub(super) fn elapsed(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.started)
    }

    /// Returns the expected duration of the rest; `None` while too little is known, or nothing is left.
    pub(super) fn left(&self, now: Instant) -> Option<Duration> {
        let left = self.total?.checked_sub(self.done).filter(|left| *left > 0)?;
        if self.took.len() < FEWEST {
            return None;
        }
        let mut executed: Vec<Duration> = self.took.iter().copied().filter(|took| *took >= FOUND).collect();
        executed.sort();
        let typical = median(&executed)?;
        let share = executed.len() as f64 / self.took.len() as f64;
        let waiting = left.saturating_sub(self.running.len() as u64) as f64 * share;
        let mut work = typical.as_secs_f64() * waiting;
        let (mut longest, mut is_known) = (Duration::ZERO, waiting > 0.0);
        for began in self.running.values() {
            // An item that outlasts the typical one is compared with those that did so, too.
            let elapsed = now.saturating_duration_since(*began);
            let longer = executed.partition_point(|took| *took <= elapsed);
            if let Some(whole) = median(&executed[longer..]) {
                let rest = whole.saturating_sub(elapsed);
                work += rest.as_secs_f64();
                longest = longest.max(rest);
                is_known = true;
            }
        }
        let workers = self.most_running.clamp(1, usize::try_from(left).unwrap_or(usize::MAX).max(1));
        let rest = Duration::try_from_secs_f64(work / workers as f64).ok()?.max(longest);
        (is_known && rest >= Duration::from_secs(1)).then_some(rest)
    }
}

/// Returns the upper median of sorted values.
fn median(sorted: &[Duration]) -> Option<Duration> {
    sorted.get(sorted.len() / 2).copied()
}

/// Returns a duration in words, with no more precision than people need.
pub(super) fn in_words(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{} ms", duration.as_millis()),
        1..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", (seconds + 30) / 60),
        _ => format!("{:.1} h", duration.as_secs_f64() / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a stage whose items took so long, one after another, and the time after them.
    fn after(total: u64, done: u64, took: &[u64]) -> (Pace, Instant) {
        let mut now = Instant::now();
        let mut pace = Pace::new(Some(total), done, now);
        for ms in took {
            pace.begin("item".to_owned(), now);
            now += Duration::from_millis(*ms);
            pace.end("item", false, now);
        }
        (pace, now)
    }

    #[test]
    fn an_estimate_needs_something_to_go_by() {
        for took in [&[][..], &[10_000], &[10_000, 10_000]] {
            let (pace, now) = after(100, 0, took);
            assert_eq!(pace.left(now), None);
        }
        // Items that were found finished tell nothing of those that are executed.
        let (pace, now) = after(100, 0, &[1; 40]);
        assert_eq!(pace.left(now), None);
        let (pace, now) = after(3, 0, &[10_000; 3]);
        assert_eq!(pace.left(now), None);
        let (pace, now) = after(2, 0, &[10_000; 3]);
        assert_eq!(pace.left(now), None, "more than announced");
        let pace = Pace::new(None, 0, now);
        assert_eq!(pace.left(now), None);
    }

    #[test]
    fn one_slow_item_does_not_move_the_estimate() {
        let (pace, now) = after(10, 0, &[10_000, 10_000, 3_600_000, 10_000, 10_000]);
        assert_eq!(pace.left(now), Some(Duration::from_secs(50)));
    }

    #[test]
    fn what_an_earlier_process_did_is_counted_but_no_measure() {
        let (pace, now) = after(105, 100, &[10_000; 3]);
        assert_eq!((pace.done(), pace.left(now)), (103, Some(Duration::from_secs(20))));
    }

    #[test]
    fn found_items_make_the_rest_shorter_in_their_share() {
        let (pace, now) = after(24, 0, &[1, 10_000, 1, 10_000]);
        assert_eq!(pace.left(now), Some(Duration::from_secs(100)));
    }

    #[test]
    fn running_items_count_with_what_is_left_of_them() {
        let (mut pace, now) = after(5, 0, &[10_000; 3]);
        pace.begin("a".to_owned(), now);
        pace.begin("b".to_owned(), now);
        assert_eq!(pace.left(now), Some(Duration::from_secs(10)));
        assert_eq!(pace.left(now + Duration::from_secs(4)), Some(Duration::from_secs(6)));
        // Nothing took as long as these have, so nobody knows.
        assert_eq!(pace.left(now + Duration::from_secs(11)), None);
    }
}
