//! Failures of submissions on trees that lack contents.

use super::*;

const REPOSITORY: &str = include_str!("../../../sample/demo/repository.txtar");
const NEW_CLASS: &str = include_str!("../../../sample/demo/3-new-class.txtar");
const POINTER: &str = "version https://git-lfs.github.com/spec/v1\n";

/// Returns the outcomes on new and on old code, each with what the tree lacks, where nothing compiles.
async fn failures(pointer: &str, basis: Basis) -> [(Outcome, Vec<String>); 2] {
    let text = format!("{NEW_CLASS}-- {pointer} --\n{POINTER}");
    let repository = SampleRepository::parse(REPOSITORY, &[("new-class", &text)]).unwrap();
    let file = "src/test/java/shop/VoucherTest.java";
    let place = Place::of(&repository, &["new-class"], move |_, _| compilation(Some(file)));
    let known: Vec<ScoreRecord> = place
        .own()
        .into_iter()
        .map(|record| match record {
            ScoreRecord::OwnFocal(mut own) => {
                own.methods.iter_mut().for_each(|method| method.basis = basis);
                ScoreRecord::OwnFocal(own)
            }
            other => other,
        })
        .collect();
    let mut found = Vec::new();
    // What a fault of the sources hides is no result that another run finds.
    for run in ["first", "second"] {
        let (records, _) = place.score(&ALL, &mut place.begin(run), known.clone()).await;
        let executions = records.iter().filter_map(|record| match record {
            ScoreRecord::Execution(one) => Some(one),
            _ => None,
        });
        let executions: Vec<&ExecutionRecord> = executions.collect();
        for one in &executions {
            let is_fault = matches!(one.outcome, Outcome::InfraFail(_));
            assert_eq!(one.cached, run == "second" && !is_fault, "{one:?}");
            assert_eq!(one.detail.starts_with("the tree lacks 1 content, "), is_fault, "{one:?}");
            assert!(one.detail.contains("no such symbol"), "{one:?}");
        }
        found.push([Side::New, Side::Old].map(|code| {
            let one = executions.iter().find(|one| one.code == code).unwrap();
            (one.outcome, one.missing.clone())
        }));
    }
    assert_eq!(found[0], found[1]);
    found.remove(0)
}

#[tokio::test]
async fn a_failure_that_missing_contents_may_explain_is_no_submissions() {
    let failed = (Outcome::CompileFail(CompileReason::TargetFile), Vec::new());
    let lacks = (Outcome::InfraFail(InfraReason::Source), vec!["large.bin".to_owned()]);
    for (pointer, basis, expected) in [
        // Old code lacks what new code lacks: where the method passes on new code, that is not why it fails here.
        ("both/large.bin", Basis::NotTraced, [lacks.clone(), failed.clone()]),
        ("new/large.bin", Basis::NotTraced, [lacks.clone(), failed.clone()]),
        ("old/large.bin", Basis::NotTraced, [failed.clone(), lacks.clone()]),
        // The developers' test passes on new code, so the tree has all that is needed.
        ("both/large.bin", Basis::Called, [failed.clone(), failed.clone()]),
        ("old/large.bin", Basis::Called, [failed.clone(), lacks]),
    ] {
        assert_eq!(failures(pointer, basis).await, expected, "{pointer} {basis:?}");
    }
}
