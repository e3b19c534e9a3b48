use super::*;
use crate::manifest::Limits;

fn manifest() -> RepositoryManifest {
    RepositoryManifest {
        schema: MANIFEST_SCHEMA,
        repository: "owner/name".parse().unwrap(),
        clone_url: "https://example.org/owner/name.git".parse().unwrap(),
        java_version: 8,
        jdk: 8,
        build: Build::default(),
        limits: Limits::default(),
        extension_jars: Vec::new(),
    }
}

#[test]
fn extension_jars_need_jdk_8_and_differ() {
    let path = Path::new("owner__name.toml");
    let head = toml::to_string(&manifest()).unwrap();
    let digest = crate::digest::Digest::of(b"jar");
    let jar = format!("[[overrides.extension_jars]]\nfile = \"fx.jar\"\nsha256 = \"{digest}\"\n");
    let parsed = RepositoryManifest::parse(path, &format!("{head}[overrides]\n{jar}")).unwrap();
    assert!(parsed.has_extension_jars([digest].into_iter()) && !parsed.has_extension_jars([].into_iter()));
    let refused = |text: &str| RepositoryManifest::parse(path, &format!("{head}{text}")).unwrap_err().to_string();
    assert!(
        refused(&format!("[overrides]\njdk = 11\n{jar}")).ends_with("`extension_jars` need `jdk = 8`, and `jdk` is 11")
    );
    assert!(refused(&format!("{jar}{jar}")).contains("two of `extension_jars` have the digest"));
    assert!(refused(&jar.repeat(17)).contains("more than 16"));
}

#[test]
fn overrides_survive_and_apply() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("owner__name.toml");
    assert_eq!(manifest().store(&path).unwrap(), Written::New);
    assert_eq!(manifest().store(&path).unwrap(), Written::Unchanged);
    assert_eq!(RepositoryManifest::load(&path).unwrap(), manifest());

    let text = fs::read_to_string(&path).unwrap();
    let own = "[overrides]\n# why\njdk = 11\nbuild.maven_arguments = [\"-Pa\"]\n[overrides.limits]\nrun_cpus = 1\n";
    let (head, _) = text.split_once("[overrides]\n#").unwrap();
    fs::write(&path, format!("{head}{own}")).unwrap();
    let changed = RepositoryManifest { java_version: 7, ..manifest() };
    assert_eq!(changed.store(&path).unwrap(), Written::Updated);
    assert!(fs::read_to_string(&path).unwrap().ends_with(own));
    let loaded = RepositoryManifest::load(&path).unwrap();
    assert_eq!((loaded.java_version, loaded.jdk, loaded.limits.run_cpus), (7, 11, 1));
    assert_eq!(loaded.build.maven_arguments, ["-Pa"]);
    assert_eq!(loaded.build.skip_flags, manifest().build.skip_flags);
}

#[test]
fn only_overrides_that_change_what_maven_is_told_count() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("owner__name.toml");
    let other: Build = Build { skip_flags: vec!["-Da".into(), "-Db".into()], ..Build::default() };
    let overridden = |overrides: &str| {
        fs::remove_file(&path).ok();
        // As an earlier program wrote it: what this one would write plays no part.
        RepositoryManifest { build: other.clone(), ..manifest() }.store(&path).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{text}{overrides}\n")).unwrap();
        RepositoryManifest::load(&path).unwrap().build.overridden_arguments()
    };
    assert_eq!(overridden(""), None);
    assert_eq!(overridden("jdk = 11\nlimits.run_cpus = 1\nbuild.launcher = \"platform1\""), None);
    assert_eq!(overridden("build.skip_flags = [\"-Da\"]\nbuild.maven_arguments = [\"-Db\"]"), None);
    let more = overridden("build.maven_arguments = [\"-Pa\"]");
    assert!(more.is_some() && more != overridden("build.maven_arguments = [\"-Pb\"]"));
}

#[test]
fn overrides_that_stand_elsewhere_are_kept_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("owner__name.toml");
    manifest().store(&path).unwrap();
    let text = fs::read_to_string(&path).unwrap().replace(OVERRIDES, "");
    fs::write(&path, format!("overrides.jdk = 17\n{text}")).unwrap();
    manifest().store(&path).unwrap();
    assert_eq!(RepositoryManifest::load(&path).unwrap().jdk, 17);
}

#[test]
fn what_can_not_be_understood_is_not_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("owner__name.toml");
    for (text, expected) in
        [("schema = 99\n", "schema 99"), ("schema = [", "can't be understood"), ("x = 1\n", "no `schema`")]
    {
        fs::write(&path, text).unwrap();
        assert!(manifest().store(&path).unwrap_err().to_string().contains(expected));
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn wrong_overrides_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("owner__name.toml");
    for (overrides, expected) in [
        ("jdk = 9", "9"),
        ("build.debian_packages = [\"openjfx\"]", "`build.debian_packages`, which is not supported"),
        ("repository = \"a/b\"", "overrides.repository"),
        ("limits.run_cpu = 1", "run_cpu"),
        ("limits.run_cpus = 0", "0 as `limits.run_cpus`, which must be from 1 to 1024"),
        ("limits.run_memory_mib = 0", "0 as `limits.run_memory_mib`"),
        ("limits.run_processes = 0", "0 as `limits.run_processes`"),
        ("limits.run_wall_seconds = 0", "0 as `limits.run_wall_seconds`"),
        ("limits.compile_memory_mib = 17592186044416", "17592186044416 as `limits.compile_memory_mib`"),
        ("limits.output_mib = 9223372036854775807", "9223372036854775807 as `limits.output_mib`"),
        ("limits.run_heap_mib = -1", "`-1`"),
        ("clone_url = \"ext::x\"", "ext::x"),
    ] {
        fs::remove_file(&path).ok();
        manifest().store(&path).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{text}{overrides}\n")).unwrap();
        let error = RepositoryManifest::load(&path).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
