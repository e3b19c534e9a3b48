//! `tasks list`, `tasks show` and `tasks focal`.

use fs_err as fs;
use insta::assert_snapshot;

use super::import::write_published;
use super::score::imported;
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
    label       oo: pass
    label       nn: pass
    label       on: exec_fail(assertion) or exec_fail(exception) or compile_fail
    label       no: any outcome
    focal       A#get  (line 7 of the new file)
    ");
    line.write("wanted", "# mine\nsecond_1\n\n");
    // An id of a narrow table names its task.
    assert_eq!(line.run(&["tasks", "show", "fir\u{2026}_1"]), line.run(&["tasks", "show", "first_1"]));
    assert_snapshot!(line.run(&["--quiet", "tasks", "list", "--task-file", "wanted"]), @r"
    exit 0
    ---- stdout
    repository  track       date        methods  task
    second/two  generation  2020-09-20  2        second_1
    1 task (0 update, 1 generation)
    ");
}

/// What is found is told, and kept beside the tasks with how it was found.
#[test]
fn focal_methods_are_found_and_kept() {
    let line = imported();
    let focal =
        |arguments: &[&str]| line.run(&[&["tasks", "focal", "--git-mirror", "sources/{name}"][..], arguments].concat());
    let kept = || fs::read_to_string(line.path().join("data/focal/testevo__sample.json")).unwrap();
    assert_snapshot!(focal(&[]), @"
    exit 0
    ---- stdout
    task                  method            found             lines  added  own of  file
    testevo__s…fixed-bug  Stock#take        resolved(extent)  10-15  3      ?       src/main/j…tock.java
    testevo__s…new-class  Voucher#isValid   resolved(extent)  10-12  3      ?       src/main/j…cher.java
    testevo__s…ed-method  Cart#total        resolved(extent)  13-15  2      ?       src/main/j…Cart.java
    testevo__s…_rounding  Price#discounted  resolved(extent)  4-6    1      ?       src/main/j…rice.java
    testevo__s…ter-input  Label#text        resolved(extent)  6-8    1      ?       src/main/j…abel.java
    5 resolved(extent)
    ---- stderr
    `?`: `score --predictions gold` finds out which test methods have a focal method for their own
    ");
    let all = kept();
    assert_snapshot!(all, @r#"{"repository":"testevo/sample","schema":2,"tasks":{"testevo__sample__fixed-bug":{"focal":[{"added":[11,12,13],"first_line":10,"found":"resolved","last_line":15,"method":"Stock#take","package":"shop","path":"src/main/java/shop/Stock.java","rule":"extent"}]},"testevo__sample__new-class":{"focal":[{"added":[10,11,12],"first_line":10,"found":"resolved","last_line":12,"method":"Voucher#isValid","package":"shop","path":"src/main/java/shop/Voucher.java","rule":"extent"}]},"testevo__sample__renamed-method":{"focal":[{"added":[13,14],"first_line":13,"found":"resolved","last_line":15,"method":"Cart#total","package":"shop","path":"src/main/java/shop/Cart.java","rule":"extent"}]},"testevo__sample__rounding":{"focal":[{"added":[5],"first_line":4,"found":"resolved","last_line":6,"method":"Price#discounted","package":"shop","path":"src/main/java/shop/Price.java","rule":"extent"}]},"testevo__sample__stricter-input":{"focal":[{"added":[7],"first_line":6,"found":"resolved","last_line":8,"method":"Label#text","package":"shop","path":"src/main/java/shop/Label.java","rule":"extent"}]}}}"#);
    assert_snapshot!(focal(&["testevo__sample__rounding", "testevo__sample__new-class", "--format", "json"]), @r#"
    exit 0
    ---- stdout
    {"focal":[{"added":[10,11,12],"first_line":10,"found":"resolved","last_line":12,"method":"Voucher#isValid","package":"shop","path":"src/main/java/shop/Voucher.java","rule":"extent"}],"own":null,"task_id":"testevo__sample__new-class"}
    {"focal":[{"added":[5],"first_line":4,"found":"resolved","last_line":6,"method":"Price#discounted","package":"shop","path":"src/main/java/shop/Price.java","rule":"extent"}],"own":null,"task_id":"testevo__sample__rounding"}
    {"found":{"resolved(extent)":2},"schema":1,"tasks":2}
    "#);
    assert_eq!(kept(), all, "what was found for other tasks stays");

    // Data with another name and another line: what can't be found says why, in place of what was found before.
    let data = fs::read_to_string(line.path().join("demo.json")).unwrap();
    line.write("demo.json", &data.replace("Label#text", "Label#title").replace("336050603R4\"", "336050603R40\""));
    line.run(&["import", "demo.json"]);
    assert_snapshot!(focal(&["--track", "update"]), @"
    exit 0
    ---- stdout
    task                 method            found                lines  added  own of  file
    testevo__…ed-method  Cart#total        resolved(extent)     13-15  2      ?       src/main/…art.java
    testevo__…_rounding  Price#discounted  unresolve…far_away)
    testevo__…ter-input  Label#title       unresolve…o_method)
    1 resolved(extent)
    1 unresolved(far_away)
    1 unresolved(no_method)
    ---- stderr
    `?`: `score --predictions gold` finds out which test methods have a focal method for their own
    ");
    let found = r#"{"added":[5],"first_line":4,"found":"resolved","last_line":6,"method":"Price#discounted","package":"shop","path":"src/main/java/shop/Price.java","rule":"extent"}"#;
    let far_away = r#"{"found":"unresolved","method":"Price#discounted","reason":"far_away"}"#;
    assert!(all.contains(found));
    let text = r#"{"added":[7],"first_line":6,"found":"resolved","last_line":8,"method":"Label#text","package":"shop","path":"src/main/java/shop/Label.java","rule":"extent"}"#;
    let no_method = r#"{"found":"unresolved","method":"Label#title","reason":"no_method"}"#;
    assert_eq!(kept(), all.replace(found, far_away).replace(text, no_method));
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
