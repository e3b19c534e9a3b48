//! The image of a repository's verifiers: the image for agents, and on top this program with a bundle for scorers.

use std::io::Write;

use super::super::bundle::create::{CreateRequest, create};
use super::super::workbench::{Workbench, blocking};
use crate::agent::harbor::verifier::VerifierTree;
use crate::agent::{AgentError, packing};
use crate::bundle::Audience;
use crate::digest::{Digest, HashingWriter};
use crate::engine::Engine;
use crate::error::CommandError;
use crate::execution::container::temporary::Spool;
use crate::image::recipe::ImageRecipe;
use crate::image::{Image, verifier_tag, with_layer};
use crate::lock::LayerKind;
use crate::task::selector::Selector;
use crate::task::{RepositoryName, Task};

/// Owner of the layer's files.
const ROOT: u32 = 0;

/// Loads the image of the verifiers of a repository's tasks into the engine, and returns its name there.
pub(super) async fn load(
    (repository, tasks): (&RepositoryName, &[&Task]),
    (agent, recipe): (&Image, &ImageRecipe),
    workbench: &Workbench<'_>,
    engine: &dyn Engine,
) -> Result<String, CommandError> {
    let context = workbench.context;
    let spool = Spool::create(&workbench.data_dir.temporary()).map_err(AgentError::Io)?;
    let tree = VerifierTree::write(spool.path()).map_err(AgentError::Io)?;
    let selector = Selector { task_ids: tasks.iter().map(|task| task.id.to_string()).collect(), ..Selector::default() };
    let (output, base, sign) = (tree.bundle(), None, None);
    let request = CreateRequest { audience: Audience::Scorer, selector, output, base, runs: Vec::new(), sign };
    create(&request, context).await?.verdict?;
    let (agent, recipe, store) = (agent.clone(), recipe.clone(), workbench.store.clone());
    let composing = blocking(move || {
        let root = spool.path();
        let mut hash = HashingWriter::new(std::io::sink());
        packing::plain(root, "", ROOT, &mut hash).map_err(AgentError::Io)?;
        let (_, content, _) = hash.finish();
        let key = Digest::of(format!("{} {content}", agent.config_digest).as_bytes());
        let write = |out: &mut dyn Write| packing::plain(root, "", ROOT, out).map(drop);
        Ok(with_layer((&agent, &recipe), LayerKind::Verifier, key, &store, write)?)
    });
    let stage = context.events.stage("compose image for verifiers", None, 0);
    let image = stage.during(repository.as_str(), context.until_interrupted(composing)).await?;
    let name = verifier_tag(&image, repository);
    workbench.load_as(engine, &image, &name).await?;
    Ok(name)
}
