//! The images that `index.json` names. Container tools find an image by its name there, so each name must be that of the image
//! that the description has. `application::bundle` calls this before it takes, verifies, sends or keeps a fetched bundle.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use super::description::{IMAGE_NAME, ImageReference, MOST_DESCRIPTION_BYTES};
use super::layout::Layout;
use super::{BundleError, Description};
use crate::digest::Digest;
use crate::image::{BuiltImage, agent_tag, tag};
use crate::output::escape;
use crate::task::RepositoryName;

/// The most characters that a message shows of a name.
const MOST_SHOWN: usize = 200;

/// Returns the images of a repository as `index.json` names them. `size` returns the size of a blob in bytes.
///
/// # Errors
/// Errors of `size`.
pub fn references<E>(built: &BuiltImage, size: impl Fn(&Digest) -> Result<u64, E>) -> Result<Vec<ImageReference>, E> {
    let scoring = (&built.image, tag(&built.image, Some(&built.repository), built.jdk));
    let agent = built.agent.as_ref().map(|image| (image, agent_tag(image, &built.repository)));
    let named = [scoring].into_iter().chain(agent).map(|(image, name)| {
        let manifest = image.manifest_digest;
        Ok(ImageReference { manifest, size: size(&manifest)?, name })
    });
    named.collect()
}

/// Checks that `index.json` names the images of the description and nothing else, and that their manifests have the layers
/// that the description lists.
///
/// # Errors
/// [`BundleError::ImageName`] for another name; [`BundleError::Malformed`] for another image; [`BundleError::Damaged`];
/// [`BundleError::Io`].
pub fn check(layout: &Layout, description: &Description, index: &[u8]) -> Result<(), BundleError> {
    let malformed = |reason: String| layout.malformed(reason);
    let mut expected = Vec::new();
    for (repository, record) in description.images() {
        let built = image(layout, description, repository, record)?;
        let unlisted =
            |digest: &Digest| malformed(format!("image of {repository} names blob {digest}, which is not listed"));
        let size = |digest: &Digest| description.blobs().get(digest).copied().ok_or_else(|| unlisted(digest));
        for image in [&built.image].into_iter().chain(&built.agent) {
            let length = size(&image.manifest_digest)?;
            if length > MOST_DESCRIPTION_BYTES {
                return Err(malformed(format!("manifest {} has {length} bytes", image.manifest_digest)));
            }
            let bytes = layout.read_blob(&image.manifest_digest, length)?;
            let manifest: ManifestFile = serde_json::from_slice(&bytes)
                .map_err(|error| malformed(format!("manifest of an image of {repository}: {error}")))?;
            let layers = image.layers.iter().map(|layer| layer.digest);
            if manifest.config.digest != image.config_digest || !manifest.layers.iter().map(|one| one.digest).eq(layers)
            {
                return Err(malformed(format!(
                    "manifest {} is of another image of {repository} than its record",
                    image.manifest_digest
                )));
            }
        }
        expected.extend(references(&built, size)?);
    }
    let found: Value = serde_json::from_slice(index).map_err(|error| malformed(format!("index.json: {error}")))?;
    check_names(layout, &expected, &found)?;
    // What other tools see of the bundle is what this program reads. Of a key that is there twice, another parser may take the other.
    let [_, _, own] = description.render(&expected).map_err(|error| malformed(error.to_string()))?;
    match own == index {
        true => Ok(()),
        false => Err(malformed("its index.json does not follow from its description".to_owned())),
    }
}

/// Compares the names of images, so that the error says which one differs.
fn check_names(layout: &Layout, expected: &[ImageReference], index: &Value) -> Result<(), BundleError> {
    let entries = index.get("manifests").and_then(Value::as_array).into_iter().flatten();
    // The bundle's own manifest is an artifact and has no name.
    for entry in entries.filter(|entry| entry.get("artifactType").is_none()) {
        let shown = |text: &str| escape(&text.chars().take(MOST_SHOWN).collect::<String>()).into_owned();
        let found =
            entry.get("annotations").and_then(|all| all.get(IMAGE_NAME)).and_then(Value::as_str).unwrap_or_default();
        let digest = entry.get("digest").and_then(Value::as_str).unwrap_or_default();
        let of_image: BTreeSet<&str> = expected
            .iter()
            .filter(|image| image.manifest.to_string() == digest)
            .map(|image| image.name.as_str())
            .collect();
        if of_image.is_empty() {
            return Err(
                layout.malformed(format!("index.json names the image `{}`, which is not its own", shown(digest)))
            );
        }
        if !of_image.contains(found) {
            return Err(BundleError::ImageName {
                name: layout.name().to_owned(),
                manifest: shown(digest),
                found: shown(found),
                expected: of_image.into_iter().collect::<Vec<_>>().join("` or `"),
            });
        }
    }
    Ok(())
}

/// Returns the image in a record of a bundle.
///
/// # Errors
/// [`BundleError::Malformed`], also for another repository's image; [`BundleError::Damaged`]; [`BundleError::Io`].
pub fn image(
    layout: &Layout,
    description: &Description,
    repository: &RepositoryName,
    record: &Digest,
) -> Result<BuiltImage, BundleError> {
    let bytes = layout.read_blob(record, description.records().get(record).copied().unwrap_or(0))?;
    let built =
        BuiltImage::parse(&bytes).map_err(|reason| layout.malformed(format!("image of {repository}: {reason}")))?;
    match built.repository == *repository {
        true => Ok(built),
        false => Err(layout.malformed(format!("what it has for {repository} is of another repository"))),
    }
}

/// The parts of an image's manifest that are compared.
#[derive(Deserialize)]
struct ManifestFile {
    config: Named,
    layers: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    digest: Digest,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use fs_err as fs;
    use serde_json::json;

    use super::*;
    use crate::bundle::agents::{AgentDescription, AgentRepository};
    use crate::bundle::description::SCHEMA;
    use crate::bundle::layout::{BLOBS, INDEX, LAYOUT, LAYOUT_TEXT, blob_name};
    use crate::canonical_json::canonical_json;

    fn put(directory: &Path, bytes: &[u8]) -> (Digest, u64) {
        let digest = Digest::of(bytes);
        fs::write(directory.join(blob_name(&digest)), bytes).unwrap();
        (digest, bytes.len() as u64)
    }

    /// Writes a bundle of two repositories with an image each; the first one's manifest names the layers `named`. Returns its
    /// index.
    fn bundle(directory: &Path, named: &[Digest]) -> Value {
        fs::create_dir_all(directory.join(BLOBS)).unwrap();
        fs::write(directory.join(LAYOUT), LAYOUT_TEXT).unwrap();
        let (bill, size) = put(directory, b"bill");
        let mut description = AgentDescription {
            schema: SCHEMA,
            repositories: BTreeMap::new(),
            layers: BTreeMap::new(),
            bill,
            records: BTreeMap::from([(bill, size)]),
            blobs: BTreeMap::new(),
        };
        let mut images = Vec::new();
        for (name, layers) in [("owner/one", named), ("owner/two", &[])] {
            let (config, size) = put(directory, format!("configuration of {name}").as_bytes());
            description.blobs.insert(config, size);
            let of_layer = |digest: &Digest| json!({"digest": digest});
            let manifest =
                json!({"config": {"digest": config}, "layers": layers.iter().map(of_layer).collect::<Vec<_>>()});
            let (manifest, size) = put(directory, manifest.to_string().as_bytes());
            description.blobs.insert(manifest, size);
            let built = json!({
                "schema": 1, "repository": name, "jdk": 8, "recipe_version": 1,
                "image": {"config_digest": config, "manifest_digest": manifest, "layers": []},
                "locks": {"toolchain": bill, "repository": bill},
            });
            let built = built.to_string();
            images.extend(references(&BuiltImage::parse(built.as_bytes()).unwrap(), |_| Ok::<_, ()>(size)).unwrap());
            let (image, size) = put(directory, built.as_bytes());
            description.records.insert(image, size);
            let repository = AgentRepository { image, limits: None, tasks: BTreeMap::new() };
            description.repositories.insert(name.parse().unwrap(), repository);
        }
        let description = Description::Agent(Box::new(description));
        let [text, manifest, index] = description.render(&images).unwrap();
        put(directory, &text);
        put(directory, &manifest);
        serde_json::from_slice(&index).unwrap()
    }

    fn checked(directory: &Path, index: &Value) -> Result<(), BundleError> {
        checked_bytes(directory, &canonical_json(index).unwrap())
    }

    fn checked_bytes(directory: &Path, bytes: &[u8]) -> Result<(), BundleError> {
        fs::write(directory.join(INDEX), bytes).unwrap();
        let layout = Layout::open(directory).unwrap();
        let (description, _) = Description::read(&layout, bytes)?;
        check(&layout, &description, bytes)
    }

    #[test]
    fn an_index_names_the_images_of_the_description_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let index = bundle(directory.path(), &[]);
        checked(directory.path(), &index).unwrap();

        // Two names change places. Each digest stays right.
        let name = |index: &Value, number: usize| index["manifests"][number]["annotations"][IMAGE_NAME].clone();
        let mut swapped = index.clone();
        for (number, other) in [(1, 2), (2, 1)] {
            swapped["manifests"][number]["annotations"][IMAGE_NAME] = name(&index, other);
        }
        match checked(directory.path(), &swapped) {
            Err(BundleError::ImageName { manifest, found, expected, .. }) => {
                assert_eq!(index["manifests"][1]["digest"], *manifest);
                assert_eq!((name(&index, 2), name(&index, 1)), (found.into(), expected.into()));
            }
            other => panic!("{other:?}"),
        }
        let mut nameless = index.clone();
        nameless["manifests"][2]["annotations"] = json!({});
        assert!(matches!(checked(directory.path(), &nameless), Err(BundleError::ImageName { .. })));

        let refused = |change: &dyn Fn(&mut Value), expected: &str| {
            let mut changed = index.clone();
            change(&mut changed);
            match checked(directory.path(), &changed) {
                Err(BundleError::Malformed { reason, .. }) => assert!(reason.contains(expected), "{reason}"),
                other => panic!("{expected}: {other:?}"),
            }
        };
        let other = Digest::of(b"other").to_string();
        refused(&|index| index["manifests"][1]["digest"] = other.as_str().into(), "which is not its own");
        refused(&|index| drop(index["manifests"].as_array_mut().unwrap().pop()), "does not follow");
        refused(&|index| index["manifests"][1]["artifactType"] = "other".into(), "does not follow");
        refused(&|index| index["manifests"][1]["size"] = 1.into(), "does not follow");
        refused(&|index| index["annotations"] = json!({"note": "x"}), "does not follow");

        // Another parser may take the first of two equal keys.
        let bytes = String::from_utf8(canonical_json(&index).unwrap()).unwrap();
        let twice = bytes.replacen('{', "{\"manifests\":[],", 1);
        assert!(matches!(checked_bytes(directory.path(), twice.as_bytes()), Err(BundleError::Malformed { .. })));

        // A manifest with other layers makes other tools run another image.
        let directory = tempfile::tempdir().unwrap();
        let index = bundle(directory.path(), &[Digest::of(b"layer")]);
        let refused = checked(directory.path(), &index).unwrap_err().to_string();
        assert!(refused.contains("is of another image of owner/one than its record"), "{refused}");
    }
}
