//! Images in the daemon: lookup, names, and removal.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};

use bollard::Docker;
use bollard::errors::Error as DaemonError;
use bollard::models::ImageInspect;
use bollard::query_parameters::{RemoveImageOptionsBuilder, TagImageOptionsBuilder};

use super::super::{EngineError, EngineImage, ImageIdentity, ImageRemoval};
use super::{Shared, daemon};
use crate::digest::Digest;

/// Beginning of all names that this program gives to images.
const OWN_NAMES: &str = "testevo-sandbox/";

/// An image that was introduced.
pub(super) struct Known {
    identity: ImageIdentity,
    /// The image's name in requests; `None` until it was found.
    found: Option<String>,
}

impl Shared {
    fn known(&self) -> MutexGuard<'_, BTreeMap<Digest, Known>> {
        // Every change is a single operation, so the map is sound even if another holder panicked.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers the image's digests and names.
    pub(super) fn introduce(&self, image: &ImageIdentity) {
        let mut known = self.known();
        if known.get(&image.config_digest).is_none_or(|known| known.identity != *image) {
            known.insert(image.config_digest, Known { identity: image.clone(), found: None });
        }
    }

    /// Returns the image's name in requests: its config digest, unless it was found under another one.
    pub(super) async fn reference(&self, image: &Digest) -> Result<String, EngineError> {
        let found = match self.known().get(image) {
            Some(known) => known.found.clone(),
            None => return Ok(image.to_string()),
        };
        match found {
            Some(found) => Ok(found),
            None => Ok(find(self, image).await?.map_or_else(|| image.to_string(), |(reference, _)| reference)),
        }
    }

    /// Forgets the name of a removed image.
    pub(super) fn forget(&self, image: &Digest) {
        if let Some(known) = self.known().get_mut(image) {
            known.found = None;
        }
    }
}

/// Looks for the image by its config digest, its manifest digest and our names, in this order. Most daemons use the
/// config digest; daemons that keep images in containerd use the manifest digest. A candidate counts only if it has the
/// image's layers. The returned reference is the daemon's own id, which no other image can get.
pub(super) async fn find(shared: &Shared, image: &Digest) -> Result<Option<(String, ImageInspect)>, EngineError> {
    let identity = shared.known().get(image).map(|known| known.identity.clone());
    let mut result = None;
    if let Some(found) = look(&shared.docker, &image.to_string()).await? {
        result = Some((image.to_string(), found));
    } else if let Some(identity) = identity {
        for name in [identity.manifest_digest.to_string()].iter().chain(&identity.names) {
            let Some(found) = look(&shared.docker, name).await? else { continue };
            if layers(&found).as_ref() != Some(&identity.layers) {
                tracing::warn!(name, %image, "another image has this name in the engine");
                continue;
            }
            if let Some(id) = found.id.clone() {
                result = Some((id, found));
                break;
            }
        }
    }
    if let Some(known) = shared.known().get_mut(image) {
        known.found = result.as_ref().map(|(reference, _)| reference.clone());
    }
    Ok(result)
}

async fn look(docker: &Docker, name: &str) -> Result<Option<ImageInspect>, EngineError> {
    match docker.inspect_image(name).await {
        Ok(found) => Ok(Some(found)),
        Err(DaemonError::DockerResponseServerError { status_code: 404, .. }) => Ok(None),
        Err(error) => Err(daemon("look for an image", error)),
    }
}

/// Returns the digests of an image's uncompressed layers; `None` if one is malformed.
fn layers(found: &ImageInspect) -> Option<Vec<Digest>> {
    found.root_fs.as_ref()?.layers.as_ref()?.iter().map(|layer| layer.parse().ok()).collect()
}

/// Returns the daemon's information about the image.
pub(super) async fn inspect(shared: &Shared, image: &Digest) -> Result<Option<EngineImage>, EngineError> {
    let Some((_, found)) = find(shared, image).await? else { return Ok(None) };
    Ok(Some(EngineImage {
        layers: layers(&found).unwrap_or_default(),
        names: found.repo_tags.unwrap_or_default(),
        size_bytes: found.size.and_then(|size| size.try_into().ok()).unwrap_or(0),
    }))
}

/// Gives the image a name.
pub(super) async fn tag(shared: &Shared, image: &Digest, name: &str) -> Result<(), EngineError> {
    // A colon may also stand in a registry's address, but ours have none.
    let (repository, tag) = name.rsplit_once(':').unwrap_or((name, "latest"));
    let options = TagImageOptionsBuilder::default().repo(repository).tag(tag).build();
    match shared.docker.tag_image(&shared.reference(image).await?, Some(options)).await {
        Ok(()) => Ok(()),
        Err(DaemonError::DockerResponseServerError { status_code: 404, .. }) => {
            shared.forget(image);
            Err(EngineError::ImageMissing { image: *image })
        }
        Err(error) => Err(daemon("name an image", error)),
    }
}

/// Removes a name from the image. The daemon removes the image with its last name.
pub(super) async fn untag(shared: &Shared, image: &Digest, name: &str) -> Result<(), EngineError> {
    let Some(found) = inspect(shared, image).await? else { return Ok(()) };
    let Some(known) = found.names.iter().find(|known| without_registry(known) == name) else { return Ok(()) };
    let options = RemoveImageOptionsBuilder::default().force(false).build();
    let removed = shared.docker.remove_image(known, Some(options), None).await;
    shared.forget(image);
    match removed {
        Ok(_) | Err(DaemonError::DockerResponseServerError { status_code: 404, .. }) => Ok(()),
        Err(error) => Err(daemon("take a name off an image", error)),
    }
}

/// Removes our names from the image, and the image itself if it has no other name.
pub(super) async fn remove(shared: &Shared, image: &Digest) -> Result<ImageRemoval, EngineError> {
    let Some(found) = inspect(shared, image).await? else { return Ok(ImageRemoval::Absent) };
    let (own, others): (Vec<String>, Vec<String>) = found.names.into_iter().partition(|name| is_own(name));
    let reference = shared.reference(image).await?;
    shared.forget(image);
    // The daemon removes the image with its last name. An image without names is removed by its digest.
    let unnamed = (own.is_empty() && others.is_empty()).then_some(reference);
    for name in own.into_iter().chain(unnamed) {
        let options = RemoveImageOptionsBuilder::default().force(false).build();
        match shared.docker.remove_image(&name, Some(options), None).await {
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

/// Tells whether this program gave the name.
fn is_own(name: &str) -> bool {
    without_registry(name).starts_with(OWN_NAMES)
}

/// Returns the name without the registry that Podman puts before it.
fn without_registry(name: &str) -> &str {
    ["localhost/", "docker.io/"].iter().find_map(|registry| name.strip_prefix(registry)).unwrap_or(name)
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
