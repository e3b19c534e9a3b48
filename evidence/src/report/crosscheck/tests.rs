use std::collections::{BTreeMap, BTreeSet};

use super::*;
use testevo_sandbox::focal::Rule;
use testevo_sandbox::metrics::mutation::Emitted;

fn file() -> SourceFile {
    SourceFile { package: "p".to_owned(), name: "A.java".to_owned() }
}

fn lines(lines: &[(usize, bool)]) -> BTreeMap<SourceFile, Lines> {
    BTreeMap::from([(file(), lines.iter().copied().collect())])
}

fn method(ours: &[(usize, bool)], theirs: &[(usize, bool)]) -> CheckedMethod {
    let focal = FocalLines {
        rule: Rule::Extent,
        path: "src/main/java/p/A.java".to_owned(),
        package: "p".to_owned(),
        first_line: 1,
        last_line: 10,
        added: Vec::new(),
    };
    let named = ("ATest#m".parse().unwrap(), ExecutionPath::Direct, vec!["m".to_owned()]);
    CheckedMethod::of(named, (&[focal], &[file()]), &lines(ours), &lines(theirs))
}

fn task(id: &str, coverage: Vec<CheckedMethod>, mutants: Vec<CheckedMutants>) -> CheckedTask {
    CheckedTask {
        schema: CROSSCHECK_SCHEMA,
        setting: CheckSetting { engine: "docker 1".to_owned(), version: "0".to_owned() },
        task_id: id.parse().unwrap(),
        repository: "o/n".parse().unwrap(),
        coverage,
        mutants,
        left_out: None,
        lost: false,
    }
}

#[test]
fn what_stands_more_often_on_one_side_differs() {
    let of = |ours: &[&str], theirs: &[&str]| {
        let compared = Compared::of(ours.iter(), theirs.iter(), |one| (**one).to_owned());
        (compared.differences("").is_empty(), compared.only_ours, compared.only_theirs)
    };
    assert_eq!(of(&["a", "b", "a"], &["a", "a", "b"]), (true, vec![], vec![]));
    assert_eq!(of(&["a", "b", "a"], &["a", "b", "b"]), (false, vec!["a".to_owned()], vec!["b".to_owned()]));
    assert_eq!(of(&["a"], &[]), (false, vec!["a".to_owned()], vec![]));
}

#[test]
fn every_difference_of_coverage_is_named() {
    let same = [(2, true), (3, false), (40, true)];
    assert_eq!(method(&same, &same).differences(), Vec::<String>::new());
    assert_eq!(method(&same, &same).coverage, Both { ours: Some(50.0), theirs: Some(50.0) });
    let name = "p/A.java:";
    assert_eq!(
        method(&same, &[(2, true), (3, true), (40, true)]).differences(),
        [
            format!("{name} covered lines only theirs: 3"),
            "coverage: ours Some(50.0), theirs Some(100.0)".to_owned(),
            "coverage_range: ours Some(10.0), theirs Some(20.0)".to_owned()
        ]
    );
    // Beside the focal lines as well: nothing of a file may differ.
    assert_eq!(
        method(&same, &[(2, true), (3, false), (40, false), (41, false)]).differences(),
        [format!("{name} listed lines only theirs: 41"), format!("{name} covered lines only ours: 40")]
    );
}

#[test]
fn no_lines_at_all_are_no_agreement() {
    assert!(method(&[], &[]).left_out.is_some());
    assert!(method(&[(1, true)], &[]).left_out.is_none());
}

#[test]
fn every_difference_of_mutants_is_named() {
    let texts = ["a\nB\n", "a\nC\n", "A\nb\n"];
    let made = [(2, 0), (2, 1), (1, 2), (2, 1)].map(|(line, text)| Emitted { line, text: texts[text].to_owned() });
    let ours = JudgedMutants {
        source: "a\nb\n".to_owned(),
        made: made.into(),
        copies: vec![1, 2],
        dead_lines: BTreeSet::from([1]),
        valid: vec![0],
        invalid: vec![1],
    };
    let owned = |of: &[usize]| of.iter().map(|index| texts[*index].to_owned()).collect::<Vec<_>>();
    let theirs = CommandMutants {
        made: owned(&[2, 0, 1, 1]),
        emitted: owned(&[0, 1, 1]),
        valid: owned(&[0]),
        invalid: owned(&[1, 1]),
        copies: 1,
        dead_lines: BTreeSet::from([1]),
    };
    let id = "t".parse().unwrap();
    let file = MutatedFile { task_id: &id, path: "A.java", source: b"a\nb\n", lines: &[1, 2] };
    let differences = |theirs: CommandMutants| CheckedMutants::of(&file, &ours, &theirs).differences();
    assert_eq!(differences(theirs.clone()), Vec::<String>::new());
    let other = |change: fn(&mut CommandMutants)| {
        let mut theirs = theirs.clone();
        change(&mut theirs);
        differences(theirs)
    };
    assert_eq!(other(|theirs| drop(theirs.made.pop())), ["made only ours: 2: C"]);
    assert_eq!(other(|theirs| theirs.emitted.push("A\nb\n".to_owned())), ["emitted only theirs: 1: A"]);
    assert_eq!(other(|theirs| theirs.invalid.clear()), ["invalid only ours: 2: C"]);
    assert_eq!(other(|theirs| theirs.valid.push("a\nC\n".to_owned())), ["valid only theirs: 2: C"]);
    assert_eq!(other(|theirs| theirs.dead_lines.clear()), ["dead lines only ours: 1"]);
    assert_eq!(other(|theirs| theirs.copies = 2), ["copies: ours 1, theirs 2"]);
}

#[test]
fn tasks_add_up() {
    let same = [(2, true)];
    let left_out = CheckedMethod::left_out("ATest#n".parse().unwrap(), ExecutionPath::Direct, "no provider".to_owned());
    let mutants = |left_out: Option<&str>| CheckedMutants {
        made: Compared { ours: 7, theirs: 7, ..Compared::default() },
        left_out: left_out.map(str::to_owned),
        ..CheckedMutants::default()
    };
    let different = method(&same, &[(2, false)]);
    let tasks = vec![
        task("t1", vec![method(&same, &same), left_out.clone()], vec![mutants(None)]),
        task("t2", vec![method(&same, &same), different], vec![]),
        task("t3", vec![left_out], vec![mutants(Some("unfit"))]),
    ];
    let crosscheck = crosscheck(tasks);
    let counts = |count: &Count| [count.tasks, count.tasks_equal, count.compared, count.equal, count.left_out];
    assert_eq!(counts(&crosscheck.coverage), [2, 1, 3, 2, 2]);
    assert_eq!(counts(&crosscheck.mutants), [1, 1, 1, 1, 1]);
    assert!(!crosscheck.coverage.enough);
    assert_eq!(crosscheck.differences.len(), 3);
    assert_eq!(crosscheck.left_out.len(), 3);
    let said = text(&crosscheck);
    assert!(said.contains("different: t2 ATest#m: p/A.java: covered lines only ours: 2\n"), "{said}");
    assert!(said.contains("left out: t3 mutants of : unfit\n"), "{said}");
    assert!(markdown(&crosscheck).contains("| coverage, methods | 2 | 1 | 3 | 2 | 1 | 2 |\n"));
}

#[test]
fn what_becomes_of_mutants_is_compared_and_timed() {
    use MutantEnd::{Invalid, Killed, Survived};
    let end = |name: &str, ours, theirs, ms| CheckedEnd {
        name: name.to_owned(),
        end: Both { ours, theirs },
        ms,
        limited: false,
    };
    let mutants = vec![
        end("3: x", Killed, Killed, Both { ours: 500, theirs: 6_000 }),
        end("4: y", Invalid, Invalid, Both { ours: 0, theirs: 4_000 }),
        end("5: z", Survived, Killed, Both { ours: 500, theirs: 6_000 }),
    ];
    // Of five that were judged within 1,500 milliseconds three are compared, and one more has no time that counts.
    let (limited, unknown) = (Both { ours: 120_000, theirs: 600_000 }, vec!["7: w: Maven fails otherwise".to_owned()]);
    let mutants = [mutants, vec![CheckedEnd { limited: true, ..end("6: v", Killed, Killed, limited) }]].concat();
    let (judging_ms, beginning_ms) = (1_500, 300);
    let ends = CheckedEnds { methods: 1, distinct: 5, judging_ms, beginning_ms, mutants, unknown, left_out: None };
    assert_eq!(ends.took(), Some(Both { ours: 2_200.0, theirs: 16_000.0 }));
    let file = |ends| CheckedMutants { path: "A.java".to_owned(), ends: Some(ends), ..CheckedMutants::default() };
    let left_out = CheckedEnds::left_out("Maven fails".to_owned());
    let tasks = vec![task("t1", vec![], vec![file(ends)]), task("t2", vec![], vec![file(left_out)])];
    let crosscheck = crosscheck(tasks);
    assert_eq!((crosscheck.ends.compared, crosscheck.ends.equal, crosscheck.ends.left_out), (1, 0, 1));
    assert_eq!(crosscheck.ends_compared, [1, 2, 1]);
    assert_eq!(crosscheck.differences, ["t1 what becomes of mutants of A.java: 5: z: ours Survived, theirs Killed"]);
    let said = text(&crosscheck);
    assert!(said.contains("Maven takes 7.3 times as long over files in the median"), "{said}");
    assert!(said.contains("left out: t1 mutant of A.java: 7: w: Maven fails otherwise\n"), "{said}");
    assert!(said.contains("left out: t2 what becomes of mutants of A.java: Maven fails\n"), "{said}");
}
