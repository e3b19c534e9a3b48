use super::*;

fn task(repository: &str, id: &str, track: Track, date: &str) -> Task {
    Task {
        id: id.parse().unwrap(),
        repository: repository.parse().unwrap(),
        track,
        rev1: "a".repeat(40).parse().unwrap(),
        rev2: "b".repeat(40).parse().unwrap(),
        rev1_date: date.to_owned(),
        rev2_date: date.to_owned(),
        test_file: "src/test/java/ATest.java".parse().unwrap(),
        test_methods: vec!["ATest#m".parse().unwrap()],
        focal_methods: Vec::new(),
    }
}

fn tasks() -> Vec<Task> {
    vec![
        task("casbin/jcasbin", "casbin_1", Track::TestUpdate, "2020-01-31"),
        task("casbin/jcasbin", "casbin_2", Track::TestGeneration, "2021-01-31"),
        task("jhy/jsoup", "jhy_1", Track::TestUpdate, "2022-01-31"),
    ]
}

fn ids(selector: &Selector) -> Result<Vec<String>, SelectorError> {
    Ok(selector.select(&tasks())?.into_iter().map(|task| task.id.to_string()).collect())
}

#[test]
fn names_globs_and_ids_choose() {
    for (patterns, expected) in [
        (vec![], vec!["casbin_1", "casbin_2", "jhy_1"]),
        (vec!["casbin/jcasbin"], vec!["casbin_1", "casbin_2"]),
        (vec!["jsoup"], vec!["jhy_1"]),
        (vec!["*/js*"], vec!["jhy_1"]),
        (vec!["casbin_?"], vec!["casbin_1", "casbin_2"]),
        (vec!["jhy_1", "casbin_2"], vec!["casbin_2", "jhy_1"]),
    ] {
        let selector = Selector { patterns: patterns.into_iter().map(str::to_owned).collect(), ..Selector::default() };
        assert_eq!(ids(&selector).unwrap(), expected);
    }
}

#[test]
fn tracks_dates_and_limits_narrow() {
    let since = Selector { since: Some("2021-01-31".parse().unwrap()), ..Selector::default() };
    assert_eq!(ids(&since).unwrap(), ["casbin_2", "jhy_1"]);
    let until = Selector { until: Some("2021-01-31".parse().unwrap()), ..since.clone() };
    assert_eq!(ids(&until).unwrap(), ["casbin_2"]);
    let track = Selector { track: Some(Track::TestUpdate), limit: Some(1), ..Selector::default() };
    assert_eq!(ids(&track).unwrap(), ["casbin_1"]);
    let nothing = Selector { track: Some(Track::TestUpdate), ..until };
    assert_eq!(ids(&nothing), Err(SelectorError::NothingLeft));
}

#[test]
fn a_spread_takes_of_every_repository() {
    let mut all: Vec<Task> = (0..6).map(|n| task("a/a", &format!("a_{n}"), Track::TestUpdate, "2020-01-31")).collect();
    all.push(task("b/b", "b_0", Track::TestUpdate, "2020-01-31"));
    let chosen = |most| spread(all.clone(), most).iter().map(|task| task.id.to_string()).collect::<Vec<_>>();
    assert_eq!(chosen(0), [""; 0]);
    assert_eq!(chosen(1), ["a_0"]);
    assert_eq!(chosen(2), ["a_0", "b_0"]);
    assert_eq!(chosen(4), ["a_0", "a_2", "a_4", "b_0"]);
    assert_eq!(chosen(100).len(), 7);
}

#[test]
fn an_unknown_name_gets_a_suggestion() {
    for (name, nearest) in [("casbin/jcasbim", Some("casbin/jcasbin")), ("jsuop", Some("jhy/jsoup")), ("zzzzzz", None)]
    {
        let selector = Selector { patterns: vec![name.to_owned()], ..Selector::default() };
        let Err(SelectorError::Unknown { nearest: found, .. }) = ids(&selector) else { panic!("{name}") };
        assert_eq!(found.as_deref(), nearest);
    }
    let listed = Selector { task_ids: vec!["jhy_2".to_owned()], ..Selector::default() };
    assert_eq!(ids(&listed).unwrap_err().to_string(), "there is no task `jhy_2`");
    assert_eq!(Selector::default().select(&[]), Err(SelectorError::NothingImported));
}

proptest::proptest! {
    #[test]
    fn a_star_takes_anything(prefix in "[ab]{0,5}", middle in "[ab]{0,5}", suffix in "[ab]{0,5}") {
        let text = format!("{prefix}{middle}{suffix}");
        proptest::prop_assert!(glob_fits(&text, &text));
        let pattern = format!("{prefix}*{suffix}");
        proptest::prop_assert!(glob_fits(&pattern, &text));
        let other = format!("{pattern}c");
        proptest::prop_assert!(!glob_fits(&other, &text));
    }
}
