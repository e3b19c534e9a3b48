//! Images for agents: the image for scoring, unchanged, below a layer of tools.

use super::*;

fn agent_recipe(store: &Store) -> recipe::ImageRecipe {
    recipe(store).with_agent_tools(&toolchain(store)).unwrap()
}

#[test]
fn tools_of_agents_are_a_layer_on_an_image_that_stays_the_same() {
    let (_directory, _, store) = world();
    let scoring = compose_recipe(&recipe(&store), &store, 2).unwrap();
    let agent = compose_recipe(&agent_recipe(&store), &store, 2).unwrap();
    assert_eq!(agent.layers[..4], scoring.layers);
    assert_eq!((agent.layers.len(), agent.toolchain()), (5, scoring.toolchain()));
    let index = compose::indexes(&agent, &store).unwrap().remove(&LayerKind::Agent).unwrap();
    let paths: Vec<&str> = index.keys().map(TreePath::as_str).collect();
    for path in ["etc/gitconfig", "usr/bin/git", "usr/bin/pager", "var/lib/dpkg/status.d/git"] {
        assert!(paths.contains(&path), "{paths:?}");
    }
    assert!(!paths.contains(&"usr/lib/os-release"), "the development kit's package is the one that is there");
    let config = |image: &Image| -> serde_json::Value {
        serde_json::from_slice(&store.read(&image.config_digest).unwrap()).unwrap()
    };
    let (scoring, agent) = (config(&scoring), config(&agent));
    assert_eq!(agent["config"]["Cmd"], serde_json::json!(["/bin/bash"]));
    assert!(scoring["config"].get("Cmd").is_none() && agent["config"].get("Entrypoint").is_none());
    assert_eq!(scoring["config"]["User"], agent["config"]["User"]);
    let has_options = |config: &serde_json::Value| config["config"]["Env"].to_string().contains("MAVEN_OPTS=-XX:");
    assert!(has_options(&agent) && !has_options(&scoring));
}

#[test]
fn pruning_keeps_tools_of_agents_while_an_image_has_them() {
    let (_directory, data_dir, store) = world();
    let (toolchain, lock) = (toolchain(&store), repository(&store));
    let builder = ImageBuilder::new(&data_dir, |_| ()).unwrap();
    let locks = LockDigests { toolchain: toolchain.digest(), repository: lock.digest() };
    builder.build(&toolchain, &lock, locks).unwrap();
    let agent = builder.build_agent(&agent_recipe(&store), &lock.repository).unwrap();
    let used = || Used::of(builder.catalog(), Some(&toolchain)).unwrap();
    assert!(used().images.contains(&agent.config_digest));
    assert_eq!(builder.catalog().prune(&used(), true).unwrap(), Pruned::default());
    let built = builder.catalog().get(&lock.repository).unwrap().unwrap();
    assert!(agent.blobs().all(|blob| built.blobs().contains(&blob)), "the store keeps it as well");
    // A new image for scoring has none for agents yet.
    builder.build(&toolchain, &lock, locks).unwrap();
    assert_eq!(builder.catalog().prune(&used(), true).unwrap().layers, agent.layers[4..]);
}

#[test]
fn locks_that_differ_in_tools_of_agents_alone_are_united() {
    let (_directory, _, store) = world();
    let with = toolchain(&store);
    let without = ToolchainLock { agent_packages: Vec::new(), ..with.clone() };
    assert_eq!(with.united(&without), Some(with.clone()));
    assert_eq!(without.united(&with), Some(with.clone()));
    let other = ToolchainLock { agent_packages: with.agent_packages[..1].to_vec(), ..with.clone() };
    assert_eq!(with.united(&other), None);
    assert_eq!(with.united(&ToolchainLock { base: Vec::new(), ..without }), None);
}
