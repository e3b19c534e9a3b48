//! An image's configuration and manifest: canonical JSON, so that their digests are identities.

use serde_json::json;

use super::layer::Layer;
use super::recipe::{ImageRecipe, RECIPE_VERSION, java_home};
use super::{Image, ImageError};
use crate::canonical_json::canonical_json;
use crate::digest::Digest;
use crate::engine::spec::TASK_USER;
use crate::lock::{ARCHITECTURE, LayerKind};
use crate::task::{RepositoryName, TaskId};

/// The date of [`super::tree::SOURCE_DATE_EPOCH`].
const CREATED: &str = "2025-01-01T00:00:00Z";

/// Returns the environment of commands in an image, sorted by name.
pub fn environment(jdk: u32) -> Vec<(String, String)> {
    let home = java_home(jdk);
    let path = format!("/opt/maven/bin:{home}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    [
        ("HOME", "/work/home"),
        ("JAVA_HOME", &home),
        ("LANG", "en_US.UTF-8"),
        ("MAVEN_HOME", "/opt/maven"),
        ("PATH", &path),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("TZ", "UTC"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

/// Returns the environment of agents' commands, sorted by name. It has options for Maven, whose JVM then takes less than half of
/// the processor time for a build of seconds.
pub fn agent_environment(jdk: u32) -> Vec<(String, String)> {
    let mut variables = environment(jdk);
    variables.push(("MAVEN_OPTS".to_owned(), "-XX:+UseSerialGC -XX:TieredStopAtLevel=1".to_owned()));
    variables.sort();
    variables
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

/// Returns a layer's title for people.
pub fn layer_title(kind: LayerKind) -> &'static str {
    match kind {
        LayerKind::Base => "base",
        LayerKind::Jdk => "jdk",
        LayerKind::Tools => "tools",
        LayerKind::MavenCache => "maven-cache",
        LayerKind::Agent => "agent",
        LayerKind::Workspace => "workspace",
        LayerKind::Verifier => "verifier",
    }
}

/// Returns the image configuration's bytes. Their digest is the image's identity.
pub(crate) fn configuration(recipe: &ImageRecipe, layers: &[Layer]) -> Result<Vec<u8>, ImageError> {
    let has = |kind| layers.iter().any(|layer| layer.kind == kind);
    let variables = if has(LayerKind::Agent) { agent_environment(recipe.jdk) } else { environment(recipe.jdk) };
    let variables: Vec<String> = variables.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    let labels: serde_json::Map<String, serde_json::Value> =
        labels(recipe).into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    let history: Vec<_> = layers
        .iter()
        .map(|layer| json!({"created": CREATED, "created_by": format!("testevo-sandbox {}", layer_title(layer.kind))}))
        .collect();
    let diff_ids: Vec<Digest> = layers.iter().map(|layer| layer.diff_id).collect();
    let mut config = json!({
        "Env": variables,
        "Labels": labels,
        "User": format!("{TASK_USER}:{TASK_USER}"),
        "WorkingDir": "/work",
    });
    // Agents get a shell where they name no command. Containers for scoring have a command in any case.
    if has(LayerKind::Agent) {
        config["Cmd"] = json!(["/bin/bash"]);
    }
    if has(LayerKind::Workspace) {
        config["WorkingDir"] = "/work/project".into();
    }
    Ok(canonical_json(&json!({
        "architecture": ARCHITECTURE,
        "config": config,
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

/// Returns an image's name in engines: the repository, or the toolchain, and the beginning of the config digest.
pub fn tag(image: &Image, repository: Option<&RepositoryName>, jdk: u32) -> String {
    let name = match repository {
        Some(repository) => repository_reference(repository),
        None => format!("testevo-sandbox/toolchain-{jdk}"),
    };
    format!("{name}:{}", image.short_id())
}

/// Returns the name of a repository's image for agents in engines.
pub fn agent_tag(image: &Image, repository: &RepositoryName) -> String {
    format!("{}/agent:{}", repository_reference(repository), image.short_id())
}

/// Returns the name of a task's image in engines.
pub fn task_tag(image: &Image, task: &TaskId, repository: &RepositoryName) -> String {
    // A tag has 128 characters at most. A task's id has none that a tag can't have.
    let id: String = task.as_str().chars().take(112).collect();
    format!("{}/task:{id}-{}", repository_reference(repository), image.short_id())
}

/// Returns the name of the image of a repository's verifiers in engines.
pub fn verifier_tag(image: &Image, repository: &RepositoryName) -> String {
    format!("{}/verifier:{}", repository_reference(repository), image.short_id())
}

/// Returns the name of a repository's one image that is both proven and the newest.
pub fn ready_tag(repository: &RepositoryName) -> String {
    format!("{}:ready", repository_reference(repository))
}

fn repository_reference(repository: &RepositoryName) -> String {
    let parts = [repository.owner(), repository.name()].map(reference_part);
    format!("testevo-sandbox/{}", parts.join("/"))
}

/// Returns the text as a part of an image reference: lower-case letters and digits with single separators between them.
/// Two names may give the same part; the digest in the tag distinguishes them.
fn reference_part(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_valid_references() {
        let digest = Digest::of(b"x");
        let image = Image { config_digest: digest, manifest_digest: digest, layers: Vec::new() };
        let repository = "Own-er_/A..b+C.".parse::<RepositoryName>();
        assert!(repository.is_err());
        let repository = "Own--e_r/A.b+C.".parse().unwrap();
        assert_eq!(tag(&image, Some(&repository), 8), "testevo-sandbox/own-e-r/a-b-c:2d711642b726");
        assert_eq!(ready_tag(&repository), "testevo-sandbox/own-e-r/a-b-c:ready");
        assert_eq!(tag(&image, None, 8), "testevo-sandbox/toolchain-8:2d711642b726");
    }
}
