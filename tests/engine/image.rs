//! Tiny images, for the tests and for what measures the engines.

use testevo_sandbox::digest::Digest;
use testevo_sandbox::engine::ImageIdentity;

/// Returns an image with nothing but these files, each with its path and mode, as `docker load` takes it: whether it keeps
/// images in a store of its own or in containerd's.
pub(crate) fn image(tag: &str, files: &[(&str, u32, &[u8])]) -> (ImageIdentity, Vec<u8>) {
    let mut layer = tar::Builder::new(Vec::new());
    let mut add = |path: &str, kind: tar::EntryType, mode: u32, content: &[u8]| {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(content.len() as u64);
        layer.append_data(&mut header, path, content).unwrap();
    };
    for directory in ["bin", "etc", "dev", "proc", "sys", "tmp", "work", "testevo"] {
        add(directory, tar::EntryType::Directory, 0o755, b"");
    }
    add(
        "etc/passwd",
        tar::EntryType::Regular,
        0o644,
        b"root:x:0:0::/:/bin/false\ntask:x:1000:1000::/work/home:/bin/false\n",
    );
    for (path, mode, content) in files {
        add(path, tar::EntryType::Regular, *mode, content);
    }
    let layer = layer.into_inner().unwrap();
    let config = serde_json::json!({
        "architecture": "amd64", "os": "linux", "config": {"Env": ["FROM_THE_IMAGE=1"]},
        "rootfs": {"type": "layers", "diff_ids": [Digest::of(&layer).to_string()]},
    });
    let config = serde_json::to_vec(&config).unwrap();
    let digest = Digest::of(&config);
    let name = |bytes: &[u8]| format!("blobs/sha256/{}", Digest::of(bytes).hex());
    let tag = format!("testevo-sandbox/{tag}:{}", &digest.hex()[..12]);
    let docker = serde_json::json!([{"Config": name(&config), "RepoTags": [tag], "Layers": [name(&layer)]}]);
    let descriptor = |kind: &str, bytes: &[u8]| {
        serde_json::json!({
            "mediaType": format!("application/vnd.oci.image.{kind}"), "digest": Digest::of(bytes), "size": bytes.len(),
        })
    };
    let manifest = serde_json::json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("config.v1+json", &config), "layers": [descriptor("layer.v1.tar", &layer)],
    });
    let manifest = manifest.to_string().into_bytes();
    let mut entry = descriptor("manifest.v1+json", &manifest);
    entry["annotations"] = serde_json::json!({
        "io.containerd.image.name": tag, "org.opencontainers.image.ref.name": tag,
    });
    let index = serde_json::json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [entry],
    });
    let mut archive = tar::Builder::new(Vec::new());
    for (name, bytes) in [
        (name(&config), config.as_slice()),
        (name(&layer), layer.as_slice()),
        (name(&manifest), manifest.as_slice()),
        ("index.json".to_owned(), index.to_string().as_bytes()),
        ("manifest.json".to_owned(), docker.to_string().as_bytes()),
        ("oci-layout".to_owned(), br#"{"imageLayoutVersion":"1.0.0"}"#),
    ] {
        let mut header = tar::Header::new_ustar();
        header.set_mode(0o644);
        header.set_size(bytes.len() as u64);
        archive.append_data(&mut header, name, bytes).unwrap();
    }
    let identity = ImageIdentity {
        config_digest: digest,
        manifest_digest: Digest::of(&manifest),
        layers: vec![Digest::of(&layer)],
        names: vec![tag],
    };
    (identity, archive.into_inner().unwrap())
}
