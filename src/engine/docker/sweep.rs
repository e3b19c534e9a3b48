//! Decides by its labels who owns a container and whether it may be removed.

use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bollard::errors::Error;
use bollard::models::ContainerSummary;
use bollard::query_parameters::ListContainersOptionsBuilder;
use tokio::time::sleep;

use super::super::EngineError;
use super::{Shared, daemon};
use crate::data_dir::Owner;

/// Label of the process that created the container.
const OWNER: &str = "testevo-sandbox.owner";

/// Label of the owner's process namespace. A process number is meaningless outside of it.
const NAMESPACE: &str = "testevo-sandbox.namespace";

/// How long a list is requested again if it contains a container state that the API does not define.
const MOST_CLEANING_UP: Duration = Duration::from_secs(10);
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Label of the time in seconds since 1970 after which the container counts as ended, whoever owns it.
const EXPIRES: &str = "testevo-sandbox.expires";

/// Clocks of machines that share a daemon may differ by this many seconds.
const GRACE_SECONDS: u64 = 3600;

/// Returns the labels of a container that this process creates and ends after at most `wall_seconds`.
pub(super) fn labels(owner: &Owner, wall_seconds: u64) -> HashMap<String, String> {
    let expires = now().saturating_add(wall_seconds).saturating_add(GRACE_SECONDS);
    HashMap::from([
        (OWNER.to_owned(), owner.to_string()),
        (NAMESPACE.to_owned(), namespace()),
        (EXPIRES.to_owned(), expires.to_string()),
    ])
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}

fn namespace() -> String {
    fs_err::read_link("/proc/self/ns/pid").map_or_else(|_| "unknown".into(), |link| link.display().to_string())
}

/// Removes containers of dead owners.
pub(super) async fn sweep(shared: &Shared) -> Result<usize, EngineError> {
    let mut removed = 0;
    for container in list(shared, OWNER.to_owned()).await? {
        let labels = container.labels.unwrap_or_default();
        if let Some(id) = container.id.filter(|_| is_left_over(&labels, &namespace(), now())) {
            shared.remove(&id).await?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// Removes all containers of this process.
pub(super) async fn remove_own(shared: &Shared) -> Result<(), EngineError> {
    for container in list(shared, format!("{OWNER}={}", shared.owner)).await? {
        if let Some(id) = container.id {
            shared.remove(&id).await?;
        }
    }
    Ok(())
}

async fn list(shared: &Shared, label: String) -> Result<Vec<ContainerSummary>, EngineError> {
    let filters = HashMap::from([("label".to_owned(), vec![label])]);
    let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
    let began = Instant::now();
    loop {
        match shared.docker.list_containers(Some(options.clone())).await {
            // During its own cleanup, Podman reports the state `stopped`, which the API does not define.
            Err(Error::JsonDataError { .. }) if began.elapsed() < MOST_CLEANING_UP => sleep(BETWEEN_LOOKS).await,
            listed => return listed.map_err(|error| daemon("list containers", error)),
        }
    }
}

/// Tells whether no process can use the container any more. An owner's life can be checked only in its own process
/// namespace. Elsewhere, and after a restart of the machine, the time decides.
fn is_left_over(labels: &HashMap<String, String>, namespace: &str, now: u64) -> bool {
    let label = |name: &str| labels.get(name).map(String::as_str).unwrap_or_default();
    let expired = label(EXPIRES).parse::<u64>().is_ok_and(|expires| expires < now);
    let Some(owner) = Owner::parse(label(OWNER)) else { return expired };
    let comparable = label(NAMESPACE) == namespace && namespace != "unknown" && owner.is_of_this_boot();
    expired || (comparable && !owner.is_alive())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_can_want_is_left_over() {
        let own = Owner::current().unwrap();
        let mine = labels(&own, 60);
        let here = namespace();
        assert!(!is_left_over(&mine, &here, now()));
        assert!(is_left_over(&mine, &here, now() + 60 + GRACE_SECONDS + 1), "its time is over");

        let with = |owner: &str| {
            let mut labels = mine.clone();
            labels.insert(OWNER.into(), owner.into());
            labels
        };
        let (pid, boot) = (std::process::id(), own.to_string().rsplit('-').next().unwrap().to_owned());
        let dead = with(&format!("{pid}-1-{boot}"));
        assert!(is_left_over(&dead, &here, now()));
        assert!(!is_left_over(&dead, "pid:[1]", now()), "another namespace's process numbers mean nothing here");
        assert!(!is_left_over(&with(&format!("{pid}-1-0123")), &here, now()), "it may be another machine's");
        assert!(!is_left_over(&with("not ours"), &here, now()));
    }
}
