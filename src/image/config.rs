//! An image's configuration and manifest: canonical JSON, so that their digests are identities.

use serde_json::json;

use super::ImageError;
use super::layer::Layer;
use super::recipe::{ImageRecipe, RECIPE_VERSION, TASK_ID, java_home};
use crate::canonical_json::canonical_json;
use crate::digest::Digest;
use crate::lock::LayerKind;

/// The date of [`super::tree::SOURCE_DATE_EPOCH`].
const CREATED: &str = "2025-01-01T00:00:00Z";

/// Returns the environment that commands get in an image, sorted by name.
pub fn environment(jdk: u32) -> Vec<(String, String)> {
    let home = java_home(jdk);
    let path = format!("/opt/maven/bin:{home}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    [
        ("HOME", "/work/home"),
        ("JAVA_HOME", &home),
        ("LANG", "C.UTF-8"),
        ("MAVEN_HOME", "/opt/maven"),
        ("PATH", &path),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("TZ", "UTC"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

/// Returns the labels of an image, sorted by name.
pub(crate) fn labels(recipe: &ImageRecipe) -> Vec<(&'static str, String)> {
    let mut labels =
        vec![("testevo-sandbox.jdk", recipe.jdk.to_string()), ("testevo-sandbox.recipe", RECIPE_VERSION.to_string())];
    if let Some(repository) = &recipe.repository {
        labels.push(("testevo-sandbox.repository", repository.to_string()));
    }
    labels
}

/// Returns what a layer is called where people read it.
pub fn layer_title(kind: LayerKind) -> &'static str {
    match kind {
        LayerKind::Base => "base",
        LayerKind::Jdk => "jdk",
        LayerKind::Tools => "tools",
        LayerKind::MavenCache => "maven-cache",
    }
}

/// Returns the image configuration's bytes. Their digest is the image's identity.
pub(crate) fn configuration(recipe: &ImageRecipe, layers: &[Layer]) -> Result<Vec<u8>, ImageError> {
    let variables: Vec<String> =
        environment(recipe.jdk).into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    let labels: serde_json::Map<String, serde_json::Value> =
        labels(recipe).into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    let history: Vec<_> = layers
        .iter()
        .map(|layer| json!({"created": CREATED, "created_by": format!("testevo-sandbox {}", layer_title(layer.kind))}))
        .collect();
    let diff_ids: Vec<Digest> = layers.iter().map(|layer| layer.diff_id).collect();
    Ok(canonical_json(&json!({
        "architecture": "amd64",
        "config": {
            "Env": variables,
            "Labels": labels,
            "User": format!("{TASK_ID}:{TASK_ID}"),
            "WorkingDir": "/work",
        },
        "created": CREATED,
        "history": history,
        "os": "linux",
        "rootfs": {"diff_ids": diff_ids, "type": "layers"},
    }))?)
}

/// Returns the image manifest's bytes.
pub(crate) fn manifest(config: Digest, config_size: u64, layers: &[Layer]) -> Result<Vec<u8>, ImageError> {
    let layers: Vec<_> = layers
        .iter()
        .map(|layer| {
            json!({
                "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
                "digest": layer.digest,
                "size": layer.size,
            })
        })
        .collect();
    Ok(canonical_json(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {
            "mediaType": "application/vnd.oci.image.config.v1+json",
            "digest": config,
            "size": config_size,
        },
        "layers": layers,
    }))?)
}
