//! Dockerfiles for people who want `docker build`: rendered from the recipe, with the finished layers as the build's
//! context.
//!
//! An image that `docker build` makes of them has the same files but another identity, because its configuration
//! contains times.

use std::io;
use std::path::Path;

use fs_err as fs;

use super::compose::check_blob;
use super::config::{agent_environment, environment, layer_title};
use super::{Image, ImageError};
use crate::artifact::store::Store;
use crate::digest::HashingWriter;
use crate::engine::spec::TASK_USER;
use crate::lock::LayerKind;

const REPOSITORY_LAYERS: [LayerKind; 4] = [LayerKind::Base, LayerKind::Jdk, LayerKind::Tools, LayerKind::MavenCache];

/// Returns the Dockerfile for a repository's image with this Java development kit.
pub fn render_dockerfile(jdk: u32) -> String {
    render(jdk, &REPOSITORY_LAYERS)
}

fn render(jdk: u32, layers: &[LayerKind]) -> String {
    let mut text =
        "# Rendered from the image recipe. `testevo-sandbox images export --context DIRECTORY` writes this file\n\
                    # next to the layers that it adds.\n\
                    FROM scratch\n"
            .to_owned();
    for kind in layers {
        text.push_str(&format!("ADD {} /\n", layer_file(*kind)));
    }
    text.push_str("ENV");
    let for_agents = layers.contains(&LayerKind::Agent);
    for (name, value) in if for_agents { agent_environment(jdk) } else { environment(jdk) } {
        let value = if value.contains(' ') { format!("\"{value}\"") } else { value };
        text.push_str(&format!(" \\\n    {name}={value}"));
    }
    text.push_str(&format!("\nUSER {TASK_USER}:{TASK_USER}\nWORKDIR /work\n"));
    if for_agents {
        text.push_str("CMD [\"/bin/bash\"]\n");
    }
    text
}

fn layer_file(kind: LayerKind) -> String {
    format!("layers/{}.tar.gz", layer_title(kind))
}

/// Writes the image's layers and its Dockerfile to `directory`, which must be empty or missing.
///
/// # Errors
/// [`ImageError::Io`]; [`ImageError::NotEmpty`]; [`ImageError::Store`] for missing or corrupted blobs.
pub fn export_context(image: &Image, jdk: u32, store: &Store, directory: &Path) -> Result<(), ImageError> {
    let io = |source| ImageError::Io { doing: "exporting a build context".to_owned(), source };
    fs::create_dir_all(directory).map_err(io)?;
    if fs::read_dir(directory).map_err(io)?.next().is_some() {
        return Err(ImageError::NotEmpty { directory: directory.to_owned() });
    }
    fs::create_dir_all(directory.join("layers")).map_err(io)?;
    for layer in &image.layers {
        let file = fs::File::create(directory.join(layer_file(layer.kind))).map_err(io)?;
        let mut writer = HashingWriter::new(file);
        io::copy(&mut store.open_blob(&layer.digest)?, &mut writer).map_err(io)?;
        check_blob(store, &layer.digest, writer.finish().1)?;
    }
    let layers: Vec<LayerKind> = image.layers.iter().map(|layer| layer.kind).collect();
    fs::write(directory.join("Dockerfile"), render(jdk, &layers)).map_err(io)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_dockerfiles_are_what_the_recipe_says() {
        for jdk in crate::manifest::JDK_MAJORS {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("dockerfiles/jdk{jdk}.Dockerfile"));
            let committed = fs::read_to_string(&path).unwrap_or_default();
            let rendered = render_dockerfile(jdk);
            if std::env::var_os("RENDER_DOCKERFILES").is_some() {
                fs::write(&path, &rendered).unwrap();
                continue;
            }
            assert!(committed == rendered, "{} has drifted; RENDER_DOCKERFILES=1 renders it", path.display());
        }
    }
}
