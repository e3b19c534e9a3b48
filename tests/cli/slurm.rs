//! `--on slurm` without a cluster: how many shards a command plans.

use super::import::write_published;
use crate::support::command::CommandLine;

#[test]
fn recorded_costs_and_limits_decide_the_number_of_shards() {
    let line = CommandLine::new();
    write_published(&line);
    line.run(&["import", "published"]);
    let planned = |settings: &str, more: &[&str]| {
        line.write("data/settings.toml", settings);
        let said = line.run(&[&["validate", "--on", "slurm", "--dry-run"], more].concat());
        assert!(said.starts_with("exit 0\n"), "{said}");
        said
    };
    // Two tasks share a code revision, so there are two groups.
    let costs = |first: u64, second: u64| {
        let half = first / 2;
        let of_tasks = format!(r#"{{"first_1":{half},"first_2":{half},"second_1":{second}}}"#);
        line.write("costs.json", &format!(r#"{{"schema":1,"milliseconds":{of_tasks}}}"#));
    };
    let weights = ["--weights", "costs.json"];
    costs(600_000, 600_000);
    assert!(planned("", &weights).contains("would submit 2 shards of 3 tasks"));
    assert!(planned("", &[]).contains("would submit 3 shards of 3 tasks"));
    // Starting takes as long as these tasks.
    costs(5_000, 5_000);
    assert!(planned("", &weights).contains("would submit 1 shard of 3 tasks"));
    // A limit makes more of them; a group longer than it is told.
    assert!(planned("[slurm]\ntime = \"0:30\"\n", &weights).contains("would submit 2 shards of 3 tasks"));
    costs(6_000_000, 5_000);
    let said = planned("[slurm]\ntime = \"30\"\n", &weights);
    assert!(said.contains("and `time` below [slurm] is 30: tasks of one code revision stay together"), "{said}");
    // Costs of other tasks tell nothing.
    line.write("costs.json", r#"{"schema":1,"milliseconds":{"other":5}}"#);
    let said = planned("", &weights);
    assert!(said.contains("`costs.json` has no costs of these tasks, so there are 8 shards"), "{said}");
    assert!(said.contains("would submit 3 shards of 3 tasks"), "{said}");
}
