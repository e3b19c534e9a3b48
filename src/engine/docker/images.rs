//! Images that are loaded into the daemon: what it knows of them, their names, and their removal.

use bollard::Docker;
use bollard::errors::Error as DaemonError;
use bollard::query_parameters::{RemoveImageOptionsBuilder, TagImageOptionsBuilder};

use super::super::{EngineError, EngineImage, ImageRemoval};
use super::{DockerEngine, daemon};
use crate::digest::Digest;

/// What all names begin with that this program gives to images.
const OWN_NAMES: &str = "testevo-sandbox/";

/// Returns what the daemon knows of the image.
pub(super) async fn inspect(docker: &Docker, image: &Digest) -> Result<Option<EngineImage>, EngineError> {
    let found = match docker.inspect_image(&DockerEngine::reference(image)).await {
        Ok(found) => found,
        Err(DaemonError::DockerResponseServerError { status_code: 404, .. }) => return Ok(None),
        Err(error) => return Err(daemon("look for an image", error)),
    };
    let layers = found.root_fs.and_then(|root| root.layers).unwrap_or_default();
    Ok(Some(EngineImage {
        names: found.repo_tags.unwrap_or_default(),
        layers: layers.iter().filter_map(|layer| layer.parse().ok()).collect(),
        size_bytes: found.size.and_then(|size| size.try_into().ok()).unwrap_or(0),
    }))
}

/// Gives the image a name.
pub(super) async fn tag(docker: &Docker, image: &Digest, name: &str) -> Result<(), EngineError> {
    // A colon may also stand in a registry's address, but ours have none.
    let (repository, tag) = name.rsplit_once(':').unwrap_or((name, "latest"));
    let options = TagImageOptionsBuilder::default().repo(repository).tag(tag).build();
    match docker.tag_image(&DockerEngine::reference(image), Some(options)).await {
        Ok(()) => Ok(()),
        Err(DaemonError::DockerResponseServerError { status_code: 404, .. }) => {
            Err(EngineError::ImageMissing { image: *image })
        }
        Err(error) => Err(daemon("name an image", error)),
    }
}

/// Takes our names off the image, and removes it where it has no other.
pub(super) async fn remove(docker: &Docker, image: &Digest) -> Result<ImageRemoval, EngineError> {
    let Some(found) = inspect(docker, image).await? else { return Ok(ImageRemoval::Absent) };
    let (own, others): (Vec<String>, Vec<String>) = found.names.into_iter().partition(|name| is_own(name));
    let reference = DockerEngine::reference(image);
    // The image goes with its last name; one without a name is named by its digest.
    let unnamed = (own.is_empty() && others.is_empty()).then_some(reference);
    for name in own.into_iter().chain(unnamed) {
        let options = RemoveImageOptionsBuilder::default().force(false).build();
        match docker.remove_image(&name, Some(options), None).await {
            Ok(_) | Err(DaemonError::DockerResponseServerError { status_code: 404, .. }) => {}
            Err(DaemonError::DockerResponseServerError { status_code: 409, message }) => {
                return Ok(ImageRemoval::Kept { reason: message.trim().to_owned() });
            }
            Err(error) => return Err(daemon("remove an image", error)),
        }
    }
    match others.first() {
        None => Ok(ImageRemoval::Removed),
        Some(name) => Ok(ImageRemoval::Kept { reason: format!("it is also named {name}") }),
    }
}

/// Tells whether this program gave the name. Podman puts a registry before it.
fn is_own(name: &str) -> bool {
    name.starts_with(OWN_NAMES)
        || ["localhost/", "docker.io/"]
            .iter()
            .any(|registry| name.strip_prefix(registry).is_some_and(|name| name.starts_with(OWN_NAMES)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_names_are_ours() {
        assert!(is_own("testevo-sandbox/a/b:1") && is_own("localhost/testevo-sandbox/a/b:1"));
        assert!(!is_own("testevo-sandboxes/a:1") && !is_own("mine/testevo-sandbox/a:1"));
    }
}
