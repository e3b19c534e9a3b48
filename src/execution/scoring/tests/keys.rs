//! Keys of measurements.

use super::*;
use crate::execution::build::prepared::RevisionInput;
use crate::execution::control::classes::FocalExtent;
use crate::execution::control::control_key;
use crate::execution::module::ModuleArguments;

/// Everything that a key of a measurement depends on changes it.
#[test]
fn keys_of_measurements_name_their_inputs() {
    let launch = |text: &str| Digest::of(text.as_bytes());
    let file = |package: &str, name: &str| SourceFile { package: package.to_owned(), name: name.to_owned() };
    let lines = |path: &str, lines: &[usize]| BTreeMap::from([(path.to_owned(), lines.to_vec())]);
    let task = |id: &str| id.parse::<TaskId>().unwrap();
    let own = |first_line, last_line| {
        let (path, package) = ("A.java".to_owned(), "p".to_owned());
        [FocalLines { rule: Rule::Extent, path, package, first_line, last_line, added: Vec::new() }]
    };
    let mutation = |of: &str, by, id: &str, (path, some): (&str, &[usize]), own: &[FocalLines]| {
        mutation_key(launch(of), by, &task(id), (&lines(path, some), own), &[file("p", "A.java")], None)
    };
    let trace = |launch: &Digest, tracer: &str| {
        let jars = ToolJars { tracer: Path::new(tracer).to_owned(), ..ToolJars::below(Path::new("/x")) };
        trace_key(*launch, &jars)
    };
    let revision = |tree: &str, directory: &str| RevisionInput {
        tree: tree.to_owned(),
        module: ModuleArguments { directory: directory.to_owned(), ..ModuleArguments::default() },
    };
    let extent = |last_line| {
        let (package, file) = ("p".to_owned(), "A.java".to_owned());
        [FocalExtent { package, file, first_line: 1, last_line }]
    };
    let sources = [file("p", "A.java")];
    let controls = |of: &str, last_line, old: Option<&RevisionInput>, measured: u32| {
        control_key(launch(of), (&extent(last_line), &sources), old, &measured, None)
    };
    let old = revision("tree", "module");
    let keys = [
        ("controls", controls("a", 2, Some(&old), 1)),
        ("its launch", controls("b", 2, Some(&old), 1)),
        ("its focal methods", controls("a", 3, Some(&old), 1)),
        ("what is measured", controls("a", 2, Some(&old), 2)),
        ("its old code", controls("a", 2, Some(&revision("other", "module")), 1)),
        ("its old module", controls("a", 2, Some(&revision("tree", "other")), 1)),
        ("no old code", controls("a", 2, None, 1)),
        ("its sources", control_key(launch("a"), (&extent(2), &[]), Some(&old), &1, None)),
        ("coverage", coverage_key(launch("a"), &[file("p", "A.java")])),
        ("its launch", coverage_key(launch("b"), &[file("p", "A.java")])),
        ("its package", coverage_key(launch("a"), &[file("q", "A.java")])),
        ("its file", coverage_key(launch("a"), &[file("p", "B.java")])),
        ("its number of files", coverage_key(launch("a"), &[file("p", "A.java"), file("p", "B.java")])),
        ("mutation", mutation("a", JudgedBy::Warm, "t", ("A.java", &[1]), &own(1, 2))),
        ("its launch", mutation("b", JudgedBy::Warm, "t", ("A.java", &[1]), &own(1, 2))),
        ("its judge", mutation("a", JudgedBy::Maven, "t", ("A.java", &[1]), &own(1, 2))),
        ("its task", mutation("a", JudgedBy::Warm, "u", ("A.java", &[1]), &own(1, 2))),
        ("its path", mutation("a", JudgedBy::Warm, "t", ("B.java", &[1]), &own(1, 2))),
        ("its lines", mutation("a", JudgedBy::Warm, "t", ("A.java", &[2]), &own(1, 2))),
        ("its number of lines", mutation("a", JudgedBy::Warm, "t", ("A.java", &[1, 2]), &own(1, 2))),
        ("its own focal methods", mutation("a", JudgedBy::Warm, "t", ("A.java", &[1]), &own(1, 1))),
        ("all of them", mutation("a", JudgedBy::Warm, "t", ("A.java", &[1]), &[])),
        (
            "its sources",
            mutation_key(launch("a"), JudgedBy::Warm, &task("t"), (&lines("A.java", &[1]), &own(1, 2)), &[], None),
        ),
        (
            "a chosen seed",
            mutation_key(
                launch("a"),
                JudgedBy::Warm,
                &task("t"),
                (&lines("A.java", &[1]), &own(1, 2)),
                &[file("p", "A.java")],
                Some(1),
            ),
        ),
        ("a chosen seed of controls", control_key(launch("a"), (&extent(2), &sources), Some(&old), &1, Some(1))),
        ("trace", trace(&launch("a"), "tracer")),
        ("its launch", trace(&launch("b"), "tracer")),
        ("its tracer", trace(&launch("a"), "other")),
        ("start", starting_file::start_key(launch("a"))),
        ("its launch", starting_file::start_key(launch("b"))),
        ("no measurement", launch("a")),
    ];
    for (at, (name, key)) in keys.iter().enumerate() {
        for (other, same) in &keys[..at] {
            assert_ne!(key, same, "{name} and {other}");
        }
    }
    assert_eq!(keys[13].1, mutation("a", JudgedBy::Warm, "t", ("A.java", &[1]), &own(1, 2)));
}
