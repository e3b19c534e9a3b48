//! The accounts of a cluster that has them, which Slurm's `sacct` shows: how a job ended long ago.

use std::ffi::OsString;

use super::ClusterError;
use super::ended::Ended;
use super::slurm::{Listed, call, unknown};

/// Asks the cluster's accounts how an element of a job ended. `None` where there are no accounts, or they do not know it.
///
/// # Errors
/// [`ClusterError`] of the client.
pub async fn accounted(number: &str, name: &str, shard: u32) -> Result<Option<Ended>, ClusterError> {
    const CLIENT: &str = "sacct";
    let arguments = ["--noheader", "--parsable2", "--allocations", "--format=JobID,State,NodeList,JobName"];
    let mut arguments = arguments.map(OsString::from).to_vec();
    // The whole job: elements that were never started have one line together, which is not found by one of them.
    arguments.push(format!("--jobs={number}").into());
    let answer = match call(CLIENT, &arguments, None).await {
        // Without accounting there may be no such client, or it says this.
        Err(ClusterError::NoClient { .. }) => return Ok(None),
        Err(ClusterError::Refused { words, .. }) if words.contains("accounting storage is disabled") => {
            return Ok(None);
        }
        answer => answer?,
    };
    let mut ended = None;
    for line in answer.lines().filter(|line| !line.trim().is_empty()) {
        let (listed, of) = parse(line).ok_or_else(|| unknown(CLIENT, line))?;
        // A controller that lost its state counts from one again.
        if listed.name == name && is_of(of, number, shard) {
            ended = listed.ended();
        }
    }
    Ok(ended)
}

/// Tells whether an id of `sacct` is of this element: `7_2`, or `7_[1-3,5]` for elements that were never started.
fn is_of(id: &str, number: &str, shard: u32) -> bool {
    let Some((job, elements)) = id.split_once('_') else { return false };
    let elements = elements.trim_start_matches('[').trim_end_matches(']');
    let holds = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let bound = |text: &str| text.parse::<u32>().ok();
        bound(first).zip(bound(last)).is_some_and(|(first, last)| (first..=last).contains(&shard))
    };
    // `%4` after the ranges bounds how many run at once.
    job == number && elements.split('%').next().is_some_and(|ranges| ranges.split(',').any(holds))
}

/// Returns the element of a line of `sacct`, and its number with that of its job.
fn parse(line: &str) -> Option<(Listed, &str)> {
    let mut fields = line.splitn(4, '|');
    let (id, state, node, name) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    // Who cancelled it follows: `CANCELLED by 1000`.
    let state = state.split(' ').next()?.to_owned();
    let listed = Listed { name: name.to_owned(), shard: 0, state, reason: String::new(), node: node.to_owned() };
    Some((listed, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_accounts_are_read() {
        let ended = |line| parse(line).and_then(|(listed, _)| listed.ended()).map(|ended| ended.to_string());
        assert_eq!(ended("2_1|CANCELLED by 0|n3|cc").unwrap(), "Slurm says CANCELLED on n3");
        assert_eq!(ended("2_1|TIMEOUT|None assigned|a|b").unwrap(), "Slurm says TIMEOUT");
        assert_eq!(ended("2_1|RUNNING|n3|cc"), None);
        assert_eq!(parse("2_1|RUNNING|n3"), None);
        assert_eq!(parse("2_1|RUNNING|n3|a|b").unwrap().0.name, "a|b");
        let of = |id: &str| is_of(id, "7", 3);
        assert!(of("7_3") && of("7_[1-4]") && of("7_[1,3%2]") && of("7_[3-3]"));
        assert!(!of("7_4") && !of("8_3") && !of("7") && !of("7_[1-2,4-9%3]") && !of("7_3.batch"));
    }
}
