//! `tasks list` and `tasks show`.

use insta::assert_snapshot;

use super::import::write_published;
use crate::support::command::CommandLine;

#[test]
fn tasks_are_listed_and_shown() {
    let line = CommandLine::new();
    write_published(&line);
    line.run(&["import", "published"]);
    assert_snapshot!(line.run(&["tasks", "list"]), @r"
    exit 0
    ---- stdout
    repository  track       date        methods  task
    first/one   update      2020-09-20  2        first_1
    first/one   generation  2020-09-20  2        first_2
    second/two  generation  2020-09-20  2        second_1
    3 tasks (1 update, 2 generation)
    ");
    assert_snapshot!(line.run(&["tasks", "list", "*/two", "--track", "generation", "--format", "json"]), @r#"
    exit 0
    ---- stdout
    {"id":"second_1","repository":"second/two","track":"test_generation","rev1":"7efa1bc42908926f441b14cdf6291c82f0504081","rev2":"f43b283a6862ddf0306c643e19b433056984688f","rev1_date":"2020-09-19","rev2_date":"2020-09-20","test_file":"src/test/java/ATest.java","test_methods":["ATest#first","ATest#second"],"focal_methods":[{"method":"A#get","anchor":{"path_sha256":"0000000000000000000000000000000000000000000000000000000000000000","side":"new","line":7}}]}
    {"schema":1,"tasks":1,"test_generation":1,"test_update":0}
    "#);
    assert_snapshot!(line.run(&["tasks", "show", "first_1"]), @r"
    exit 0
    ---- stdout
    task        first_1
    repository  first/one
    track       update
    old         7efa1bc42908926f441b14cdf6291c82f0504081  2020-09-19
    new         f43b283a6862ddf0306c643e19b433056984688f  2020-09-20
    test file   src/test/java/ATest.java
    test        ATest#first
    test        ATest#second
    focal       A#get  (line 7 of the new file)
    ");
    line.write("wanted", "# mine\nsecond_1\n\n");
    assert_snapshot!(line.run(&["--quiet", "tasks", "list", "--task-file", "wanted"]), @r"
    exit 0
    ---- stdout
    repository  track       date        methods  task
    second/two  generation  2020-09-20  2        second_1
    1 task (0 update, 1 generation)
    ");
}

#[test]
fn what_is_not_there_is_named() {
    let line = CommandLine::new();
    assert_snapshot!(line.run(&["tasks", "list"]), @r"
    exit 2
    ---- stderr
    error: there are no tasks yet
    hint: import the benchmark's data with `testevo-sandbox import DATA`
    ");
    write_published(&line);
    line.run(&["import", "published"]);
    assert_snapshot!(line.run(&["tasks", "show", "first_3"]), @r"
    exit 2
    ---- stderr
    error: there is no task `first_3`
    hint: did you mean `first_1`?
    ");
    assert_snapshot!(line.run(&["tasks", "list", "frist/one"]), @r"
    exit 2
    ---- stderr
    error: there is no repository `frist/one`
    hint: did you mean `first/one`?
    ");
    assert_snapshot!(line.run(&["tasks", "list", "--since", "2030-01-01"]), @r"
    exit 2
    ---- stderr
    error: no task is left by the given track, dates and limit
    hint: widen `--since`, `--until`, `--track` or `--limit`
    ");
    line.write("wanted", "# none\n");
    assert_snapshot!(line.run(&["tasks", "list", "--task-file", "wanted"]), @r"
    exit 2
    ---- stderr
    error: the task file `wanted` has no task ids
    hint: write one task id a line
    ");
    line.write("data/tasks/first__one.json", "{\"schema\": 7}");
    assert_snapshot!(line.run(&["tasks", "list"]), @r"
    exit 6
    ---- stderr
    error: the task file `[DIRECTORY]/data/tasks/first__one.json` has schema 7, this program knows schema 1
    hint: use the program that wrote it, or import the data again with `--replace`
    ");
}
