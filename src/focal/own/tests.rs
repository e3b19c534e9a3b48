use super::*;
use crate::focal::Rule;

fn focal(path: &str, first_line: usize, last_line: usize) -> FocalLines {
    let (path, package) = (path.to_owned(), "p/q".to_owned());
    FocalLines { rule: Rule::Extent, path, package, first_line, last_line, added: Vec::new() }
}

fn entered(class: &str, method: &str, lines: &[usize], callers: &[&str]) -> Entered {
    Entered {
        class: format!("p/q/{class}"),
        package: "p/q".to_owned(),
        file: format!("{class}.java"),
        method: method.to_owned(),
        descriptor: "()V".to_owned(),
        lines: lines.iter().copied().collect(),
        callers: callers.iter().map(|caller| (*caller).to_owned()).collect(),
    }
}

fn classes() -> BTreeSet<String> {
    BTreeSet::from(["p.q.ATest".to_owned(), "java.lang.Object".to_owned()])
}

#[test]
fn what_no_test_can_call_is_not_believed() {
    let listed = [focal("src/p/q/A.java", 10, 14)];
    let many: Vec<Entered> =
        (1..=MOST_OWN + 1).map(|line| entered("A", &format!("m{line}"), &[line], &["p.q.ATest#m"])).collect();
    let own = OwnFocal::of("p.q.ATest#m".parse().unwrap(), &classes(), &listed, &many);
    assert_eq!((own.basis, own.own.len()), (Basis::NotTraced, 1));
    let own = OwnFocal::of("p.q.ATest#m".parse().unwrap(), &classes(), &listed, &many[1..]);
    assert_eq!((own.basis, own.own.len()), (Basis::Called, MOST_OWN));
}

#[test]
fn what_the_test_calls_is_own() {
    let listed = [focal("src/p/q/A.java", 10, 14), focal("src/p/q/A.java", 20, 20), focal("src/p/q/B.java", 10, 14)];
    let of = |entered: &[Entered]| {
        let own = OwnFocal::of("p.q.ATest#m".parse().unwrap(), &classes(), &listed, entered);
        let names: Vec<(String, Option<usize>)> = own.own.iter().map(|own| (own.name.clone(), own.listed)).collect();
        (own.basis, names)
    };
    let own = |name: &str, listed| (name.to_owned(), listed);
    // Listed or not; constructors are none, nor is what another test or the project itself calls.
    let calls = ["p.q.ATest#m"];
    assert_eq!(
        of(&[
            entered("A", "f", &[11, 12], &calls),
            entered("A", "g", &[30], &["p.q.ATest#lambda$m$0"]),
            entered("A", "<init>", &[3, 20], &calls),
            entered("B", "f", &[11], &["p.q.ATest#other", "p.q.ATest#lambda$mm$0"]),
            entered("B", "g", &[14], &[]),
            entered("B", "h", &[14], &["p.q.Fixture#m"]),
        ]),
        (Basis::Called, vec![own("A#f", Some(0)), own("A#g", None)])
    );
    // One that calls none itself has the listed ones that it enters. A constructor's lines begin with field initializers'.
    let helped = [entered("A", "<init>", &[3, 20], &[]), entered("B", "f", &[14], &["p.q.ATest#help"])];
    assert_eq!(of(&helped), (Basis::Entered, vec![own("A.java:20", Some(1)), own("B.java:10", Some(2))]));
    let all = vec![own("A.java:10", Some(0)), own("A.java:20", Some(1)), own("B.java:10", Some(2))];
    assert_eq!(of(&[entered("A", "n", &[15, 30], &[])]), (Basis::NoneEntered, all.clone()));
    let elsewhere = Entered { package: "p".to_owned(), ..entered("A", "m", &[11], &[]) };
    assert_eq!(of(&[elsewhere]), (Basis::NoneEntered, all));
}

#[test]
fn overloads_are_told_apart_by_their_lines() {
    let listed = [focal("src/p/q/A.java", 10, 14)];
    let calls = ["p.q.ATest#m"];
    let methods = [entered("A", "f", &[12], &calls), entered("A", "f", &[22], &calls)];
    let own = OwnFocal::of("p.q.ATest#m".parse().unwrap(), &classes(), &listed, &methods);
    let found: Vec<_> = own.own.iter().map(|own| (own.first_line, own.last_line, own.lines.clone())).collect();
    assert_eq!(found, [(10, 14, vec![12]), (22, 22, vec![22])]);
    assert_eq!(own.places().collect::<Vec<_>>(), [0]);
}
