use super::*;
use crate::digest::Digest;
use crate::execution::container::Surefire;
use crate::execution::run::record::ExecutionPath;

fn inputs(shard: Option<&str>) -> RunInputs {
    RunInputs {
        shard: shard.map(|shard| ShardInputs {
            shard: shard.parse().unwrap(),
            selection: Digest::of(b"selection"),
            request: Digest::of(b"request"),
            costs: None,
        }),
        ..RunInputs::new(&[], &BTreeMap::new(), &BTreeMap::new(), Surefire::Project, &[ExecutionPath::Direct], 1)
    }
}

fn part(run: &str, shard: Option<&str>) -> Part<RunInputs> {
    Part { run: run.to_owned(), finished: true, inputs: inputs(shard) }
}

fn checked(parts: Vec<Part<RunInputs>>) -> Result<Vec<String>, String> {
    let ordered = ordered(parts, |inputs| inputs).map_err(|error| error.to_string())?;
    Ok(ordered.into_iter().map(|part| part.run).collect())
}

#[test]
fn only_complete_shards_of_one_selection_are_joined() {
    let all = || vec![part("b", Some("2/2")), part("a", Some("1/2"))];
    assert_eq!(checked(all()).unwrap(), ["a", "b"]);
    assert_eq!(checked(vec![part("b", Some("2/4"))]).unwrap_err(), "of 4 shards, these are missing: 1, 3, 4");
    assert_eq!(checked(vec![part("whole", None)]).unwrap_err(), "run `whole` is no shard");
    let mut double = all();
    double.push(part("c", Some("1/2")));
    assert_eq!(checked(double).unwrap_err(), "runs `a` and `c` are both shard 1/2");
    let mut unfinished = all();
    unfinished[1].finished = false;
    assert_eq!(checked(unfinished).unwrap_err(), "shard 1/2, run `a`, is unfinished");
    let mut of_three = all();
    of_three[1] = part("a", Some("1/3"));
    assert_eq!(
        checked(of_three).unwrap_err(),
        "run `a` is no part of the run that `b` is a part of: numbers of shards differ"
    );
    let differing = |what: &str| {
        let mut foreign = all();
        let shard = foreign[1].inputs.shard.as_mut().unwrap();
        match what {
            "selected tasks" => shard.selection = Digest::of(b"other"),
            _ => shard.costs = Some(Digest::of(b"costs")),
        }
        checked(foreign).unwrap_err()
    };
    for what in ["selected tasks", "recorded costs"] {
        assert_eq!(differing(what), format!("run `a` is no part of the run that `b` is a part of: {what} differ"));
    }
}

#[test]
fn runs_made_in_other_ways_are_not_joined() {
    let image = |text: &[u8]| BTreeMap::from([("a/b".parse().unwrap(), Digest::of(text))]);
    let other = |change: &dyn Fn(&mut RunInputs)| {
        let mut other = inputs(Some("2/2"));
        change(&mut other);
        let mut first = RunInputs { images: image(b"image"), ..inputs(Some("1/2")) };
        first.join(other, &Joining { first: "a", run: "b" }).map(|()| first).map_err(|error| error.to_string())
    };
    let foreign = |what: &str| format!("run `b` is no part of the run that `a` is a part of: {what} differ");
    assert_eq!(other(&|other| other.images = image(b"another")).unwrap_err(), foreign("images of a/b"));
    assert_eq!(other(&|other| other.repeats = 3).unwrap_err(), foreign("repeats"));
    assert_eq!(other(&|other| other.paths = vec![ExecutionPath::Maven]).unwrap_err(), foreign("paths"));
    assert_eq!(other(&|other| other.surefire = Surefire::None).unwrap_err(), foreign("settings for Surefire"));
    let mut joined = other(&|other| other.images = image(b"image")).unwrap();
    assert_eq!(joined.whole().map(|shard| shard.shard.to_string()), Some("1/2".to_owned()));
    assert_eq!(joined.shard, None);
}

#[test]
fn nothing_is_copied_by_way_of_links() {
    let directory = tempfile::tempdir().unwrap();
    let (shard, merged) = (directory.path().join("shard"), directory.path().join("merged"));
    fs::create_dir_all(shard.join("logs/task/oo")).unwrap();
    fs::write(shard.join("logs/task/oo/stdout"), "printed").unwrap();
    fs::write(directory.path().join("secret"), "secret").unwrap();
    std::os::unix::fs::symlink(directory.path().join("secret"), shard.join("logs/task/link")).unwrap();
    std::os::unix::fs::symlink(directory.path(), shard.join("logs/above")).unwrap();
    std::os::unix::fs::symlink(directory.path(), shard.join("sources")).unwrap();
    fs::create_dir_all(merged.join("submissions")).unwrap();
    fs::write(merged.join("submissions/kept"), "first").unwrap();
    fs::create_dir_all(shard.join("submissions")).unwrap();
    fs::write(shard.join("submissions/kept"), "second").unwrap();
    fs::create_dir_all(shard.join("disputes")).unwrap();
    fs::write(shard.join("disputes/t1.md"), "# A label").unwrap();
    fs::write(shard.join(RESULT_KEYS), "\nb").unwrap();
    fs::write(merged.join(RESULT_KEYS), "\na").unwrap();
    copy_files(&shard, &merged).unwrap();
    assert_eq!(fs::read_to_string(merged.join(RESULT_KEYS)).unwrap(), "\na\nb");
    assert_eq!(fs::read_to_string(merged.join("disputes/t1.md")).unwrap(), "# A label");
    assert_eq!(fs::read_to_string(merged.join("logs/task/oo/stdout")).unwrap(), "printed");
    assert_eq!(fs::read_to_string(merged.join("submissions/kept")).unwrap(), "first");
    for absent in ["logs/task/link", "logs/above", "sources"] {
        assert!(!merged.join(absent).exists(), "{absent}");
    }
}
