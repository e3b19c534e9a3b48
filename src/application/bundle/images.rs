//! `bundle import` of a bundle for agents: takes its images.

use super::Opened;
use super::summary::Imported;
use crate::application::disk::Needs;
use crate::application::workbench::{Workbench, blocking};
use crate::bundle::BundleError;
use crate::bundle::agents::AgentDescription;
use crate::error::CommandError;
use crate::image::{BuiltImage, Catalog, keep_layer};

/// Takes the images of a bundle; with `replace`, also instead of others of the same repositories. The records that name them are written last.
pub(super) async fn take(
    opened: Opened,
    description: &AgentDescription,
    replace: bool,
    workbench: &Workbench<'_>,
) -> Result<Imported, CommandError> {
    opened.check_records()?;
    opened.check_names()?;
    let layers = opened.layers()?;
    let mut images = Vec::new();
    for (name, repository) in &description.repositories {
        images.push(opened.image(name, &repository.image)?);
    }
    let mut needs = Needs::new(workbench).await;
    needs.bundle(&opened.missing(&workbench.store)?, std::iter::empty());
    needs.ensure().await?;
    // What no record names may have gone to make room.
    let missing = opened.missing(&workbench.store)?;
    let _held = [workbench.hold("import").await?, workbench.hold("images").await?];
    let catalog = Catalog::open(&workbench.data_dir)?;
    let mut new = Vec::new();
    for built in images {
        let repository = built.repository.clone();
        match wanted(catalog.get(&repository)?, built, replace) {
            Some(wanted) => new.extend(wanted),
            None => {
                let name = opened.layout.name().to_owned();
                return Err(BundleError::OtherImage { name, repository }.into());
            }
        }
    }
    let imported = Imported::of(&opened, &missing);
    if workbench.context.options.dry_run {
        return Ok(imported);
    }
    let store = workbench.store.clone();
    let take = move || {
        opened.store(&missing, &store)?;
        for layer in &layers {
            keep_layer(&store, layer)?;
        }
        new.iter().try_for_each(|built| Ok(catalog.put(built)?))
    };
    let stage = workbench.context.events.stage("import bundle", None, 0);
    workbench.context.until_interrupted(blocking(take)).await?;
    drop(stage);
    Ok(imported)
}

/// Returns the record to write, if one is to be written. `None` if the present one contradicts the bundle's and stays.
fn wanted(present: Option<BuiltImage>, built: BuiltImage, replace: bool) -> Option<Option<BuiltImage>> {
    match present {
        Some(mut present) if present.image == built.image && present.locks == built.locks => {
            match (&present.agent, &built.agent) {
                (_, None) => Some(None),
                (Some(there), Some(here)) if there == here => Some(None),
                (Some(_), Some(_)) if !replace => None,
                _ => {
                    present.agent = built.agent;
                    Some(Some(present))
                }
            }
        }
        Some(_) if !replace => None,
        _ => Some(Some(built)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::digest::Digest;

    fn built(image: &str, agent: Option<&str>, previous: Option<&str>) -> BuiltImage {
        let of = |name: &str| {
            let digest = Digest::of(name.as_bytes());
            json!({"config_digest": digest, "manifest_digest": digest, "layers": []})
        };
        let lock = Digest::of(b"lock");
        let record = json!({
            "schema": 1, "repository": "owner/name", "jdk": 8, "recipe_version": 1, "image": of(image),
            "locks": {"toolchain": lock, "repository": lock}, "agent": agent.map(of), "previous": previous.map(of),
        });
        BuiltImage::parse(record.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn an_image_that_differs_is_replaced_on_request_only() {
        let bundled = || built("image", Some("tools"), None);
        for (present, kept, replaced) in [
            (None, Some(Some(bundled())), Some(Some(bundled()))),
            (Some(bundled()), Some(None), Some(None)),
            // What is here of the same image stays.
            (
                Some(built("image", None, Some("earlier"))),
                Some(Some(built("image", Some("tools"), Some("earlier")))),
                Some(Some(built("image", Some("tools"), Some("earlier")))),
            ),
            (Some(built("image", Some("other tools"), None)), None, Some(Some(bundled()))),
            (Some(built("other", Some("tools"), None)), None, Some(Some(bundled()))),
        ] {
            assert_eq!(wanted(present.clone(), bundled(), false), kept, "{present:?}");
            assert_eq!(wanted(present, bundled(), true), replaced);
        }
        let without = built("image", None, None);
        assert_eq!(wanted(Some(bundled()), without, true), Some(None), "tools that are here stay");
    }
}
