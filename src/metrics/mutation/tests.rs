use super::*;
use crate::outcome::ExecReason;
use crate::outcome::InfraReason;

fn mutant(line: usize, text: &str) -> Emitted {
    Emitted { line, text: text.to_owned() }
}

#[test]
fn what_was_there_before_is_redundant() {
    let emitted = vec![mutant(1, "a"), mutant(1, "s"), mutant(2, "a"), mutant(2, "b")];
    assert_eq!(mutated_lines(&emitted), BTreeSet::from([1, 2]));
    assert_eq!(distinct("s", emitted.iter().enumerate()), [0, 3]);
    assert_eq!(distinct("s", emitted.iter().enumerate().skip(1)), [2, 3]);
}

#[test]
fn a_kept_mutant_shows_what_it_changes() {
    let text = |source: &str, line, text: &str| KeptMutant::of(&mutant(line, text), source).text.unwrap();
    let source = "int f() {\n    return a + b;\n}\n}\n";
    assert_eq!(text(source, 2, "int f() {\n    return a - b;\n}\n}\n"), "return a - b;");
    assert_eq!(text(source, 2, "int f() {\n    return a + b;\n    break;\n}\n}\n"), "return a + b; break;");
    assert_eq!(text(source, 2, "int f() {\n\n}\n}\n"), "", "the mutator may leave nothing");
    assert_eq!(text(source, 2, "int f() {\n}\n}\n"), "", "nor the line");
    assert_eq!(text("}\n}\n", 1, "}\n}\n}\n"), "} }");
    assert_eq!(text("one", 9, "two"), "", "no such line");
    assert_eq!(text("one", 0, "two"), "two");
    let long = text("x", 1, &format!("x{}", "é".repeat(300)));
    assert_eq!((long.len(), long.ends_with("é…")), (199 + "…".len(), true), "no character is cut");
}

#[test]
fn garbage_leaves_comments_comments() {
    assert_eq!(garbage("  int x = f(1); // y\n"), "  QQQ Q Q Q QQQ // Q\n");
}

#[test]
fn the_sample_follows_from_task_and_path() {
    assert_eq!(sample("t", "p", 7), (0..7).collect::<Vec<_>>());
    let kept = sample("t", "p", 100);
    assert_eq!(kept.len(), MOST_KEPT);
    assert!(kept.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(kept, sample("t", "p", 100));
    assert_ne!(kept, sample("u", "p", 100));
    assert_ne!(kept, sample("t", "q", 100));
    // Over many tasks every place comes up.
    let all: BTreeSet<usize> = (0..100).flat_map(|task| sample(&task.to_string(), "p", 20)).collect();
    assert_eq!(all.len(), 20);
}

/// By another implementation, in Python, of ChaCha8, the seed and the shuffle.
#[test]
fn the_sample_is_the_one_that_others_draw() {
    let (jsoup, commons) = ("src/main/java/org/jsoup/Jsoup.java", "core/src/main/java/a/B.java");
    for (task, path, number, expected) in [
        ("jsoup-1a2b3c4", jsoup, 11, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
        ("jsoup-1a2b3c4", jsoup, 137, [24, 40, 60, 77, 95, 106, 114, 118, 125, 132]),
        ("commons__0001", commons, 37, [1, 2, 7, 11, 18, 21, 27, 28, 30, 32]),
        ("commons__0001", commons, 2500, [40, 176, 486, 608, 975, 1763, 1821, 1940, 2027, 2142]),
    ] {
        assert_eq!(sample(task, path, number), expected, "{task} {path} {number}");
    }
}

#[test]
fn kills_are_counted_twice_over() {
    let assertion = Outcome::ExecFail(ExecReason::Assertion);
    let timeout = Outcome::ExecFail(ExecReason::Timeout);
    let kills = Kills::of(&[Outcome::Pass, assertion, timeout, Outcome::Pass]).unwrap();
    assert_eq!((kills.killed, kills.killed_strict, kills.score()), (2, 1, Some(0.5)));
    assert_eq!(Kills::of(&[]).unwrap().score(), None);
    assert_eq!(Kills::of(&[assertion, Outcome::InfraFail(InfraReason::Engine)]), None);
}
