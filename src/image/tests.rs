//! Whole images from tiny packages, jars and wheels that are made here: equal bytes whatever the circumstances.

use std::io::{Cursor, Write as _};
use std::path::Path;

use fs_err as fs;
use proptest::prelude::*;

use super::deb::tests::package;
use super::*;
use crate::artifact::store::Store;
use crate::data_dir::DataDir;
use crate::lock::{
    DebianPackage, FrozenMetadata, JdkLock, LockFile as _, LockedJar, MavenFile, RepositoryLock, ToolFile, ToolRole,
    ToolchainLock,
};

mod agent;
mod exported;

/// A locked package of the files given.
fn debian(store: &Store, name: &str, files: &[(&str, u32, &str)], compression: &str) -> DebianPackage {
    let control = format!("Package: {name}\nVersion: 1.0-1\nArchitecture: amd64\nDescription: test\n");
    let bytes = package(&control, files, compression);
    DebianPackage {
        name: name.to_owned(),
        version: "1.0-1".to_owned(),
        architecture: "amd64".to_owned(),
        suite: "test".to_owned(),
        path: format!("pool/{name}.deb"),
        sha256: store.put(&bytes).unwrap(),
        size: bytes.len() as u64,
    }
}

fn tool(store: &Store, role: ToolRole, path: &str, bytes: &[u8]) -> ToolFile {
    ToolFile {
        role,
        name: path.to_owned(),
        version: "1".to_owned(),
        origin: "test".to_owned(),
        path: path.to_owned(),
        sha256: store.put(bytes).unwrap(),
        size: bytes.len() as u64,
    }
}

fn maven_archive() -> Vec<u8> {
    let mut builder = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for (path, content) in [("apache-maven-1/bin/mvn", "#!/bin/sh\n"), ("apache-maven-1/conf/settings.xml", "<x/>")] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o775);
        builder.append_data(&mut header, path, content.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

fn wheel() -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default()
        .last_modified_time(zip::DateTime::default())
        .compression_method(zip::CompressionMethod::Stored);
    for name in ["universalmutator/__init__.py", "universalmutator-1.dist-info/LICENSE"] {
        writer.start_file(name, options).unwrap();
        writer.write_all(name.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn certificate(text: &str) -> String {
    let certificate = trust::Certificate { name: String::new(), der: text.as_bytes().to_vec() };
    trust::pem_bundle(&[certificate])
}

fn toolchain(store: &Store) -> ToolchainLock {
    let (first, second) = (certificate("first"), certificate("second"));
    ToolchainLock {
        schema: 1,
        base: vec![
            debian(
                store,
                "base-files",
                &[
                    ("./tmp/", 0o1777, ""),
                    ("./usr/", 0o755, ""),
                    ("./var/run/", 0o755, ""),
                    ("./usr/lib/os-release", 0o644, "NAME=test\n"),
                    ("./usr/share/doc/base-files/copyright", 0o644, "free"),
                ],
                ".xz",
            ),
            debian(
                store,
                "ca-certificates",
                &[
                    ("./usr/share/ca-certificates/mozilla/B.crt", 0o644, &first),
                    ("./usr/share/ca-certificates/mozilla/Főa.crt", 0o644, &second),
                ],
                ".gz",
            ),
            debian(
                store,
                "shell",
                &[
                    ("./bin/sh", 0o4755, "shell"),
                    ("./usr/lib/locale/C.utf8/LC_CTYPE", 0o644, "locale"),
                    ("./usr/bin/mawk", 0o755, "awk"),
                    ("./usr/share/man/man1/sh.1", 0o644, "manual"),
                    (&format!("./usr/lib/{}/{}", "long".repeat(30), "name".repeat(30)), 0o644, "long"),
                ],
                ".zst",
            ),
        ],
        jdks: vec![JdkLock {
            major: 8,
            packages: vec![debian(
                store,
                "openjdk-8",
                &[
                    ("./usr/lib/jvm/java-8-openjdk-amd64/bin/java", 0o755, "java"),
                    ("./usr/lib/os-release", 0o644, "NAME=test\n"),
                ],
                "",
            )],
        }],
        tools_packages: vec![debian(store, "python3", &[("./usr/bin/python3", 0o755, "python")], ".xz")],
        tools: vec![
            tool(store, ToolRole::Maven, "m/apache-maven-1-bin.tar.gz", &maven_archive()),
            tool(store, ToolRole::JunitConsole, "console.jar", b"console"),
            tool(store, ToolRole::Junit6Console, "console6.jar", b"console 6"),
            tool(store, ToolRole::JacocoAgent, "agent.jar", b"agent"),
            tool(store, ToolRole::JacocoCli, "cli.jar", b"cli"),
            tool(store, ToolRole::Python, "universalmutator-1-py3-none-any.whl", &wheel()),
        ],
        indexes: Vec::new(),
        agent_packages: vec![
            debian(store, "git", &[("./usr/bin/git", 0o755, "git"), ("./usr/bin/less", 0o755, "less")], ".xz"),
            // The development kit brings another build of it.
            debian(store, "openjdk-8", &[("./usr/lib/os-release", 0o644, "NAME=other\n")], ""),
        ],
    }
}

fn repository(store: &Store) -> RepositoryLock {
    let file = |path: &str, bytes: &[u8]| MavenFile {
        path: path.to_owned(),
        origin: "central".to_owned(),
        sha256: store.put(bytes).unwrap(),
        size: bytes.len() as u64,
        own: false,
        released: false,
    };
    RepositoryLock {
        schema: 1,
        repository: "owner/name".parse().unwrap(),
        jdk: 8,
        maven_arguments: None,
        files: vec![file("g/a/1/a-1.jar", b"jar"), file("g/a/1/a-1.pom", b"pom")],
        metadata: vec![FrozenMetadata {
            path: "g/a/maven-metadata-testevo.xml".to_owned(),
            rule: "test".to_owned(),
            chosen: None,
            content: "<metadata/>".to_owned(),
        }],
        build_sets: Vec::new(),
        whole_sets: Vec::new(),
        unresolved: Vec::new(),
        extension_jars: Vec::new(),
    }
}

/// An empty data directory and its store; they vanish with the first value.
fn world() -> (tempfile::TempDir, DataDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = DataDir::open(&directory.path().join("data")).unwrap();
    let store = Store::of(&data_dir).unwrap();
    (directory, data_dir, store)
}

fn recipe(store: &Store) -> recipe::ImageRecipe {
    recipe::ImageRecipe::new(&toolchain(store), 8, Some(&repository(store))).unwrap()
}

/// What identifies an image, and what is written of it.
fn summary(image: &Image, store: &Store) -> String {
    let mut text = format!("config {}\n", image.config_digest);
    for layer in &image.layers {
        text.push_str(&format!("{} {} {}\n", layer_title(layer.kind), layer.diff_id, layer.uncompressed_size));
    }
    let mut archive = Vec::new();
    write_image_archive(image, store, &["x/y:z".to_owned()], &mut archive).unwrap();
    text.push_str(&format!("archive {}\n", Digest::of(&archive)));
    text
}

#[test]
fn an_image_holds_what_the_recipe_says() {
    let (_directory, _, store) = world();
    let image = compose_recipe(&recipe(&store), &store, 2).unwrap();
    let mut listing = String::new();
    for (kind, index) in compose::indexes(&image, &store).unwrap() {
        for (path, entry) in index {
            let tree::IndexEntry { mode, uid, gid, mtime, node } = entry;
            let what = match node {
                tree::IndexNode::Directory => "/".to_owned(),
                tree::IndexNode::File { size, .. } => format!(" {size} bytes"),
                tree::IndexNode::Symlink { target } => format!(" -> {target}"),
            };
            listing.push_str(&format!("{} {mode:04o} {uid}:{gid} {mtime} {path}{what}\n", layer_title(kind)));
        }
    }
    insta::assert_snapshot!(listing);
}

#[test]
fn extension_jars_lie_in_the_development_kit_and_change_one_layer() {
    let (_directory, _, store) = world();
    let lock = repository(&store);
    let jar = LockedJar { sha256: store.put(b"fx").unwrap(), size: 2 };
    let extended = RepositoryLock { extension_jars: vec![jar], ..lock.clone() };
    let image = |lock: &RepositoryLock| compose(&toolchain(&store), 8, Some(lock), &store).unwrap();
    let (before, after) = (image(&lock), image(&extended));
    assert_eq!(before.layers[..3], after.layers[..3]);
    assert_ne!(before.layers[3], after.layers[3]);
    let recipe = recipe::ImageRecipe::new(&toolchain(&store), 8, Some(&extended)).unwrap();
    let path = format!("usr/lib/jvm/java-8-openjdk-amd64/jre/lib/ext/{}.jar", jar.sha256.hex());
    let lies =
        |source: &recipe::Source| matches!(source, recipe::Source::Blob { path: found, .. } if found.as_str() == path);
    assert!(recipe.layers[3].sources.iter().any(lies));
    let later = RepositoryLock { jdk: 17, ..extended };
    let error = recipe::ImageRecipe::new(&toolchain(&store), 17, Some(&later)).unwrap_err();
    assert!(matches!(error, ImageError::UnknownJdk { .. } | ImageError::Lock { .. }), "{error}");
}

#[test]
fn identities_are_golden() {
    // A change of these digests is a change of every image: it needs a new RECIPE_VERSION and a line in the changelog.
    let (_directory, _, store) = world();
    let image = compose_recipe(&recipe(&store), &store, 1).unwrap();
    let identity = summary(&image, &store);
    let without_archive: Vec<&str> = identity.lines().filter(|line| !line.starts_with("archive")).collect();
    insta::assert_snapshot!(without_archive.join("\n"));
    let configuration = String::from_utf8(store.read(&image.config_digest).unwrap()).unwrap();
    insta::assert_snapshot!(configuration);
}

/// Not a test of its own: what [`a_full_disk_is_told_and_leaves_nothing_half`] runs in another process.
#[test]
fn child_process_of_the_full_disk() {
    let Some(directory) = std::env::var_os("TESTEVO_TEST_FULL_DISK") else { return };
    let store = Store::of(&DataDir::open(Path::new(&directory)).unwrap()).unwrap();
    let (toolchain, mut repository) = (toolchain(&store), repository(&store));
    // Incompressible, so that the layer's blob grows beyond what a file may hold.
    let noise: Vec<u8> =
        (0..40_000_u32).flat_map(|number| Digest::of(&number.to_le_bytes()).hex().into_bytes()).collect();
    for (number, piece) in noise.chunks(50_000).enumerate() {
        let (path, digest) = (format!("g/n/{number}"), store.put(piece).unwrap());
        let size = piece.len() as u64;
        repository.files.push(MavenFile {
            path,
            origin: "test".to_owned(),
            sha256: digest,
            size,
            own: false,
            released: false,
        });
    }
    let error = compose(&toolchain, 8, Some(&repository), &store).unwrap_err();
    assert!(matches!(error, ImageError::Io { .. }), "{error}");
    assert!(error.to_string().starts_with("writing a layer failed: "), "{error}");
    assert!(error.hint().unwrap().contains("free space"));
    let is_gzip = |path: &Path| fs::read(path).unwrap().starts_with(&[0x1f, 0x8b]);
    for entry in fs::read_dir(store.root().join("blobs/sha256")).unwrap() {
        let path = entry.unwrap().path();
        assert!(!is_gzip(&path) || fs::metadata(&path).unwrap().len() < 20_000, "a torn layer stayed");
    }
    fs::write(Path::new(&directory).join("told"), "").unwrap();
}

#[test]
fn a_full_disk_is_told_and_leaves_nothing_half() {
    let (directory, ..) = world();
    let data = directory.path().join("small");
    // A limit on files' sizes fails writes in the middle as a full disk does; its signal is ignored, as the error says all.
    let status = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 1024; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "image::tests::child_process_of_the_full_disk"])
        .env("TESTEVO_TEST_FULL_DISK", &data)
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success() && data.join("told").is_file());

    let (_directory, _, store) = world();
    let image = compose_recipe(&recipe(&store), &store, 1).unwrap();
    let mut full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let error = write_image_archive(&image, &store, &[], &mut full).unwrap_err();
    assert!(error.to_string().contains("No space left on device"), "{error}");
}

/// Not a test of its own: what [`circumstances_do_not_matter`] runs in other processes.
#[test]
fn child_process_of_circumstances() {
    let Some(directory) = std::env::var_os("TESTEVO_TEST_DATA_DIR") else { return };
    let umask = u32::from_str_radix(&std::env::var("TESTEVO_TEST_UMASK").unwrap(), 8).unwrap();
    rustix::process::umask(rustix::fs::Mode::from_bits_truncate(umask));
    let store = Store::of(&DataDir::open(Path::new(&directory)).unwrap()).unwrap();
    let threads = std::env::var("TESTEVO_TEST_THREADS").unwrap().parse().unwrap();
    let image = compose_recipe(&recipe(&store), &store, threads).unwrap();
    fs::write(Path::new(&directory).join("summary"), summary(&image, &store)).unwrap();
}

#[test]
fn circumstances_do_not_matter() {
    let (directory, ..) = world();
    let mut summaries = Vec::new();
    for (number, (umask, zone, locale, threads)) in
        [("022", "UTC", "C", "1"), ("077", "Asia/Kathmandu", "tr_TR.UTF-8", "7"), ("000", "", "de_DE", "2")]
            .into_iter()
            .enumerate()
    {
        let working = directory.path().join(format!("working {number}"));
        fs::create_dir_all(&working).unwrap();
        let data = directory.path().join(format!("data-{number}"));
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "image::tests::child_process_of_circumstances"])
            .envs([("TESTEVO_TEST_UMASK", umask), ("TESTEVO_TEST_THREADS", threads)])
            .envs([("TZ", zone), ("LC_ALL", locale), ("LANG", locale)])
            .env("TESTEVO_TEST_DATA_DIR", &data)
            .current_dir(&working)
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
        summaries.push(fs::read_to_string(data.join("summary")).unwrap());
    }
    assert_eq!(summaries[0], summaries[1]);
    assert_eq!(summaries[0], summaries[2]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn the_order_of_a_locks_entries_does_not_matter(seed in any::<u64>()) {
        let (_directory, _, store) = world();
        let (mut toolchain, mut repository) = (toolchain(&store), repository(&store));
        let sorted = compose(&toolchain, 8, Some(&repository), &store).unwrap();
        let shift = |length: usize| (seed % length as u64) as usize;
        let packages = toolchain.base.len();
        toolchain.base.rotate_left(shift(packages));
        let length = toolchain.tools.len();
        toolchain.tools.rotate_left(shift(length));
        toolchain.tools.swap(0, shift(length));
        repository.files.reverse();
        let (_other_directory, _, other) = world();
        for entry in fs::read_dir(store.root().join("blobs/sha256")).unwrap() {
            other.put(&fs::read(entry.unwrap().path()).unwrap()).unwrap();
        }
        let shuffled = compose(&toolchain, 8, Some(&repository), &other).unwrap();
        prop_assert_eq!(sorted, shuffled);
    }
}

#[test]
fn images_of_one_toolchain_have_all_but_the_maven_cache_in_common() {
    let (_directory, _, store) = world();
    let (mut toolchain, repository) = (toolchain(&store), repository(&store));
    let whole = compose(&toolchain, 8, Some(&repository), &store).unwrap();
    let alone = compose(&toolchain, 8, None, &store).unwrap();
    assert_ne!(whole.config_digest, alone.config_digest);
    assert_eq!(whole.toolchain(), alone.toolchain());
    toolchain.base.truncate(2);
    assert_ne!(compose(&toolchain, 8, None, &store).unwrap().toolchain(), alone.toolchain());
}

#[test]
fn a_finished_layer_is_not_made_again_and_a_lost_one_is() {
    let (_directory, _, store) = world();
    let recipe = recipe(&store);
    let image = compose_recipe(&recipe, &store, 2).unwrap();
    assert!(compose::missing_inputs(&recipe, &store).unwrap().is_empty());
    // Without its inputs a finished layer still serves; without its blob the inputs are needed again.
    for source in recipe.layers.iter().flat_map(|layer| &layer.sources) {
        source.digest().iter().for_each(|digest| store.remove(digest).unwrap());
    }
    assert_eq!(compose_recipe(&recipe, &store, 2).unwrap(), image);
    assert!(compose::missing_inputs(&recipe, &store).unwrap().is_empty());
    store.remove(&image.layers[3].digest).unwrap();
    assert_eq!(compose::missing_inputs(&recipe, &store).unwrap().len(), 2);
    assert!(matches!(compose_recipe(&recipe, &store, 2), Err(ImageError::Store(StoreError::Missing { .. }))));
    repository(&store);
    assert_eq!(compose_recipe(&recipe, &store, 2).unwrap(), image);
}

#[test]
fn corrupted_blobs_are_found_before_anybody_gets_them() {
    let (_directory, _, store) = world();
    let recipe = recipe(&store);
    let image = compose_recipe(&recipe, &store, 2).unwrap();
    let blob = &image.layers[0];
    let mut bytes = fs::read(store.path(&blob.digest)).unwrap();
    bytes[100] ^= 1;
    fs::write(store.path(&blob.digest), &bytes).unwrap();
    let error = write_image_archive(&image, &store, &[], &mut Vec::new()).unwrap_err();
    assert!(matches!(error, ImageError::Store(StoreError::Corrupted { .. })), "{error}");
    let (_directory, _, store) = world();
    let toolchain = toolchain(&store);
    fs::write(store.path(&toolchain.base[0].sha256), b"garbage").unwrap();
    let error = compose(&toolchain, 8, None, &store).unwrap_err();
    assert!(matches!(error, ImageError::Store(StoreError::Corrupted { .. })), "{error}");
}

#[test]
fn what_a_package_claims_to_be_must_be_what_was_locked() {
    let (_directory, _, store) = world();
    let mut toolchain = toolchain(&store);
    toolchain.base[0].version = "2".to_owned();
    let error = compose(&toolchain, 8, None, &store).unwrap_err();
    assert_eq!(error.to_string(), "`base-files` can't be put into an image: its Version is `1.0-1`, the lock says `2`");
    assert!(matches!(compose(&toolchain, 99, None, &store), Err(ImageError::UnknownJdk { jdk: 99, .. })));
    toolchain.base[0].name = "../x".to_owned();
    assert!(matches!(compose(&toolchain, 8, None, &store), Err(ImageError::Lock { .. })));
    let mut repository = repository(&store);
    repository.files[0].path = "../../etc/passwd".to_owned();
    let toolchain = super::tests::toolchain(&store);
    assert!(matches!(compose(&toolchain, 8, Some(&repository), &store), Err(ImageError::Lock { .. })));
}

#[test]
fn built_images_are_listed_compared_and_pruned() {
    let (_directory, data_dir, store) = world();
    let (toolchain, mut repository) = (toolchain(&store), repository(&store));
    let builder = ImageBuilder::new(&data_dir, |_| {}).unwrap();
    let used = || Used::of(builder.catalog(), None).unwrap();
    let locks = LockDigests { toolchain: toolchain.digest(), repository: repository.digest() };
    assert_eq!(builder.catalog().up_to_date(&repository.repository, locks).unwrap(), None);
    let first = builder.build(&toolchain, &repository, locks).unwrap();
    assert_eq!(builder.catalog().up_to_date(&repository.repository, locks).unwrap().as_ref(), Some(&first));
    assert_eq!(builder.catalog().prune(&used(), false).unwrap(), Pruned::default());

    repository.files.pop();
    let locks = LockDigests { repository: repository.digest(), ..locks };
    assert_eq!(builder.catalog().up_to_date(&repository.repository, locks).unwrap(), None);
    let second = builder.build(&toolchain, &repository, locks).unwrap();
    assert_eq!(builder.catalog().all().unwrap(), std::slice::from_ref(&second));
    let difference = difference(&first.image, &second.image, &store).unwrap();
    let paths: Vec<&str> =
        difference.layers.iter().flat_map(|layer| &layer.changes).map(|change| change.path.as_str()).collect();
    assert_eq!((paths, difference.configuration), (vec!["opt/maven-repository/g/a/1/a-1.pom"], false));

    let planned = builder.catalog().prune(&used(), true).unwrap();
    assert_eq!(planned.layers, [first.image.layers[3].clone()]);
    assert_eq!(builder.catalog().prune(&used(), false).unwrap(), planned);
    assert!(!store.contains(&first.image.layers[3].digest) && builder.catalog().is_complete(&second.image));
    assert_eq!(builder.catalog().prune(&used(), false).unwrap(), Pruned::default());
}

#[test]
fn the_present_toolchain_is_in_use_before_any_image_is_built() {
    let (_directory, data_dir, store) = world();
    let toolchain = toolchain(&store);
    let catalog = Catalog::open(&data_dir).unwrap();
    let image = compose(&toolchain, 8, None, &store).unwrap();
    let used = Used::of(&catalog, Some(&toolchain)).unwrap();
    assert!(used.images.contains(&image.config_digest));
    assert_eq!(catalog.prune(&used, false).unwrap(), Pruned::default());
    // What is half composed is about to be used.
    let record = super::compose::record_path(&store, &image.layers[2].recipe);
    let text = fs::read(&record).unwrap();
    fs::remove_file(&record).unwrap();
    let half = Used::of(&catalog, Some(&toolchain)).unwrap();
    assert!(half.images.is_empty());
    assert_eq!(catalog.prune(&half, false).unwrap(), Pruned::default());
    fs::write(&record, text).unwrap();
    // Another toolchain's layers are not.
    assert_eq!(catalog.prune(&Used::of(&catalog, None).unwrap(), false).unwrap().layers.len(), 3);
}

#[test]
fn licences_are_found() {
    let (_directory, _, store) = world();
    let image = compose_recipe(&recipe(&store), &store, 2).unwrap();
    let components = components(&image, &store).unwrap();
    let licences = |name: &str| {
        let component = components.iter().find(|component| component.name == name).unwrap();
        component.licenses.iter().map(TreePath::to_string).collect::<Vec<_>>()
    };
    assert_eq!(licences("base-files"), ["usr/share/doc/base-files/copyright"]);
    let python = "opt/python/universalmutator-1.dist-info";
    assert_eq!(licences(python), [format!("{python}/LICENSE")]);
    assert!(licences("opt/jacoco/cli.jar").is_empty());
}
