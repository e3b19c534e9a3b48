//! Checks the built-in engine with a real container; a failing step is named with its remedy.

use std::path::Path;

use serde_json::json;

use super::Check;
use super::engines::{isolation, limits};
use crate::engine::native::NativeEngine;
use crate::engine::{Engine as _, EngineError};
use crate::error::Failure as _;

/// The result of checking the built-in engine.
#[derive(Debug)]
pub struct Native {
    /// Whether the engine works, and which limits it enforces.
    pub checks: Vec<Check>,
    /// Why the engine can't be used; `None` if it can.
    pub missing: Option<EngineError>,
}

/// Creates a container with the engine if `spool` is given, an existing directory of this process. `needed` says
/// whether there is no other engine.
pub async fn native(engine: Result<NativeEngine, EngineError>, spool: Option<&Path>, needed: bool) -> Native {
    match attempt(engine, spool).await {
        Ok(checks) if needed => Native { checks, missing: None },
        // The limits of the other engine count, because that one is used.
        Ok(checks) => Native { checks: checks.into_iter().take(1).collect(), missing: None },
        Err(error) => {
            let detail = format!("native: {error}");
            let advice = error.hint().unwrap_or_else(|| "use Docker or Podman".to_owned());
            let check = if needed {
                Check::fail("engine", detail, advice)
            } else {
                // Another engine answers, so this one is not needed.
                Check { advice: Some(advice), ..Check::ok("engine", detail) }
            };
            Native { checks: vec![check.with(facts(&error))], missing: needed.then_some(error) }
        }
    }
}

async fn attempt(engine: Result<NativeEngine, EngineError>, spool: Option<&Path>) -> Result<Vec<Check>, EngineError> {
    let engine = engine?;
    let took = match spool {
        Some(spool) => Some(engine.probe(spool).await?),
        None => None,
    };
    let found = engine.describe().await?;
    let whose = if found.isolation.rootless { "without root's rights" } else { "with root's rights" };
    let groups = match found.cgroup_version {
        Some(version) => format!("control groups version {version}"),
        None => "no control groups, limits by its own account".to_owned(),
    };
    let made = match took {
        Some(took) => format!("a container was made {whose} in {} ms", took.as_millis()),
        None => format!("this is a dry run: no container was made {whose}"),
    };
    let detail = format!("native {}: {made}; {groups}, kernel {}", found.version, found.kernel);
    Ok(vec![Check::ok("engine", detail).with(json!(found)), limits(&found), isolation(&found)])
}

fn facts(error: &EngineError) -> serde_json::Value {
    match error {
        EngineError::NativeStep { stage, errno, .. } => json!({"name": "native", "step": stage, "errno": errno}),
        _ => json!({"name": "native"}),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;
    use crate::engine::native::Stage;

    fn refused() -> EngineError {
        EngineError::NativeStep {
            purpose: "probe".into(),
            stage: Stage::Namespaces,
            errno: libc::ENOSPC,
            message: "making a process in namespaces of its own (clone3)".into(),
        }
    }

    #[tokio::test]
    async fn the_failing_step_is_named_with_its_remedy() {
        let found = native(Err(refused()), Some(Path::new("/")), true).await;
        assert_eq!((found.checks[0].status, found.missing.is_some()), (Status::Fail, true));
        assert!(found.checks[0].advice.as_ref().unwrap().contains("max_user_namespaces"));
        assert_eq!(found.checks[0].facts["step"], "namespaces");
        let found = native(Err(refused()), Some(Path::new("/")), false).await;
        assert_eq!((found.checks[0].status, found.missing.is_some()), (Status::Ok, false), "another engine answers");
    }
}
