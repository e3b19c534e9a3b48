//! Tests of prepared revisions.

mod keys;
mod loading;

use super::*;

#[test]
fn a_failed_revision_can_be_described() {
    let outcome = Outcome::CompileFail(crate::outcome::CompileReason::OtherTestFile);
    let failed = Prepared::Failed { outcome, detail: "x".into() };
    let text = serde_json::to_string(&failed).unwrap();
    assert_eq!(serde_json::from_str::<Prepared>(&text).unwrap(), failed, "{text}");
}
