//! A daemon that answers as daemons do that keep images in different ways.

use std::convert::Infallible;
use std::sync::PoisonError;

use bollard::API_DEFAULT_VERSION;
use http_body_util::{BodyExt as _, Full};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};

use super::*;
use crate::engine::Isolation;
use crate::engine::spec::{ContainerLimits, PROGRAM_SCHEMA, Program};

/// An image in the daemon's store, found by any of these names.
#[derive(Clone)]
struct Stored {
    found_by: Vec<String>,
    id: String,
    layers: Vec<Digest>,
}

#[derive(Default)]
struct FakeDaemon {
    images: Mutex<Vec<Stored>>,
    /// What an archive brings, when one is loaded.
    arriving: Mutex<Vec<Stored>>,
    /// What was asked, and the names of images in requests for containers.
    asked: Mutex<Vec<String>>,
}

impl FakeDaemon {
    fn answer(&self, method: &Method, path: &str, query: &str, body: &[u8]) -> (StatusCode, Value) {
        let path = path.trim_start_matches('/');
        let path = match path.split_once('/') {
            Some((version, rest)) if version.starts_with("v1.") => rest,
            _ => path,
        };
        self.asked.lock().unwrap().push(format!("{method} {path}?{query}"));
        let name = path.strip_prefix("images/").and_then(|rest| rest.rsplit_once('/'));
        let stored = |name: &str| {
            let name = name.replace("%3A", ":").replace("%2F", "/");
            let images = self.images.lock().unwrap_or_else(PoisonError::into_inner);
            images.iter().find(|image| image.found_by.contains(&name)).cloned()
        };
        let missing = |name: &str| (StatusCode::NOT_FOUND, json!({"message": format!("No such image: {name}")}));
        match (method.as_str(), name) {
            ("GET", Some((name, "json"))) => match stored(name) {
                Some(image) => (StatusCode::OK, inspected(&image)),
                None => missing(name),
            },
            ("POST", Some((name, "tag"))) => match stored(name) {
                Some(_) => (StatusCode::CREATED, Value::Null),
                None => missing(name),
            },
            ("POST", _) if path == "images/load" => {
                self.images.lock().unwrap().append(&mut self.arriving.lock().unwrap());
                (StatusCode::OK, json!({"stream": "Loaded image"}))
            }
            ("POST", _) if path == "containers/create" => {
                let body: Value = serde_json::from_slice(body).unwrap();
                let image = body["Image"].as_str().unwrap().to_owned();
                self.asked.lock().unwrap().push(format!("container of {image}"));
                match stored(&image) {
                    Some(_) => (StatusCode::INTERNAL_SERVER_ERROR, json!({"message": "that far and no further"})),
                    None => missing(&image),
                }
            }
            _ => (StatusCode::NOT_IMPLEMENTED, json!({"message": format!("{method} {path}")})),
        }
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

/// An answer about an image, with what daemons since version 25 add to it.
fn inspected(image: &Stored) -> Value {
    json!({
        "Id": image.id,
        "RepoTags": image.found_by.iter().filter(|name| !name.starts_with("sha256:")).collect::<Vec<_>>(),
        "RepoDigests": [],
        "Created": "1970-01-01T00:00:00Z",
        "Architecture": "amd64",
        "Os": "linux",
        "Size": 1234,
        "RootFS": {"Type": "layers", "Layers": image.layers},
        "Descriptor": {
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "digest": image.id,
            "size": 481,
        },
    })
}

struct Fixture {
    _directory: tempfile::TempDir,
    daemon: Arc<FakeDaemon>,
    engine: DockerEngine,
}

async fn fixture(images: Vec<Stored>) -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("daemon.sock");
    let listener = tokio::net::UnixListener::bind(&socket).unwrap();
    let daemon = Arc::new(FakeDaemon { images: Mutex::new(images), ..FakeDaemon::default() });
    let answering = Arc::clone(&daemon);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let daemon = Arc::clone(&answering);
            let service = hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
                let daemon = Arc::clone(&daemon);
                async move {
                    let (head, body) = request.into_parts();
                    let body = body.collect().await.unwrap().to_bytes();
                    let query = head.uri.query().unwrap_or_default();
                    let (status, value) = daemon.answer(&head.method, head.uri.path(), query, &body);
                    let mut response = Response::new(Full::new(Bytes::from(value.to_string())));
                    *response.status_mut() = status;
                    let json = hyper::header::HeaderValue::from_static("application/json");
                    response.headers_mut().insert(hyper::header::CONTENT_TYPE, json);
                    Ok::<_, Infallible>(response)
                }
            });
            let io = hyper_util::rt::TokioIo::new(stream);
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(io, service));
        }
    });
    let address = format!("unix://{}", socket.display());
    let isolation = Isolation {
        rootless: false,
        seccomp: true,
        user_namespace: false,
        mandatory_access_control: None,
        unenforced: Vec::new(),
    };
    let shared = Arc::new(Shared {
        docker: Docker::connect_with_unix(&address, 10, API_DEFAULT_VERSION).unwrap(),
        owner: Owner::current().unwrap(),
        podman: false,
        users: users::Users::choose(&isolation, directory.path()).unwrap(),
        known: Mutex::default(),
        under_way: TaskTracker::new(),
    });
    let description = EngineDescription {
        name: "docker".into(),
        version: "29.0.0".into(),
        api_version: "1.52".into(),
        address,
        kernel: String::new(),
        architecture: "x86_64".into(),
        runtime: "runc".into(),
        cgroup_version: Some(2),
        storage: "overlayfs".into(),
        storage_directory: None,
        processors: 1,
        memory_bytes: 1,
        isolation,
    };
    let init = directory.path().join("init");
    fs_err::write(&init, "").unwrap();
    Fixture { daemon, engine: DockerEngine { shared, description, init }, _directory: directory }
}

const NAME: &str = "testevo-sandbox/o/n:0123456789ab";

fn identity() -> ImageIdentity {
    ImageIdentity {
        config_digest: Digest::of(b"configuration"),
        manifest_digest: Digest::of(b"manifest"),
        layers: vec![Digest::of(b"lower"), Digest::of(b"upper")],
        names: vec![NAME.to_owned()],
    }
}

/// The image as a daemon has it that calls it `id` and also finds it by `names`.
fn stored(id: &str, names: &[&str]) -> Stored {
    let found_by = [id].iter().chain(names).map(|name| (*name).to_owned()).collect();
    Stored { found_by, id: id.to_owned(), layers: identity().layers }
}

/// Has a container made of the image, and returns what the daemon was asked to make it of.
async fn started_as(fixture: &Fixture) -> Result<String, EngineError> {
    let spec = ContainerSpec {
        image: identity().config_digest,
        purpose: "test".into(),
        mounts: Vec::new(),
        door: None,
        scratch: Vec::new(),
        limits: ContainerLimits { memory_bytes: 1 << 20, cpus: 1, processes: 1, wall_seconds: 1 },
        program: Program { schema: PROGRAM_SCHEMA, door_port: None, steps: Vec::new() },
    };
    match fixture.engine.start(&spec).await {
        Err(EngineError::CreateRefused { .. }) => {}
        Err(error) => return Err(error),
        Ok(_) => panic!("this daemon makes no containers"),
    }
    let asked = fixture.daemon.asked();
    Ok(asked.iter().find_map(|asked| asked.strip_prefix("container of ")).unwrap().to_owned())
}

#[tokio::test]
async fn an_image_is_found_however_the_daemon_keeps_it() {
    let (config, manifest) = (identity().config_digest.to_string(), identity().manifest_digest.to_string());
    let index = Digest::of(b"an index that the daemon made").to_string();
    for (kept, reference) in [
        // In a daemon's own store, in containerd's, and in one that puts an index above the manifest.
        (stored(&config, &[NAME]), &config),
        (stored(&manifest, &[NAME]), &manifest),
        (stored(&index, &[NAME]), &index),
    ] {
        let fixture = fixture(vec![kept]).await;
        fixture.engine.introduce(&identity());
        assert!(fixture.engine.has_image(&identity().config_digest).await.unwrap(), "{reference}");
        fixture.daemon.asked();
        assert_eq!(started_as(&fixture).await.unwrap(), *reference);
        // Found once, it is not looked for again.
        fixture.daemon.asked();
        started_as(&fixture).await.unwrap();
        let found = fixture.engine.inspect_image(&identity().config_digest).await.unwrap().unwrap();
        assert_eq!((found.layers, found.names), (identity().layers, vec![NAME.to_owned()]));
        fixture.engine.tag_image(&identity().config_digest, "testevo-sandbox/o/n:ready").await.unwrap();
        let tagged = fixture.daemon.asked().into_iter().find(|asked| asked.contains("/tag?")).unwrap();
        assert!(tagged.replace("%3A", ":").contains(reference.as_str()), "{tagged}");
    }
}

#[tokio::test]
async fn nothing_but_the_images_own_layers_counts() {
    let manifest = identity().manifest_digest.to_string();
    let other = |id: &str, layers: Vec<Digest>| Stored { layers, ..stored(id, &[NAME]) };
    for layers in [vec![Digest::of(b"evil")], vec![Digest::of(b"lower")], Vec::new()] {
        for id in [&manifest, &Digest::of(b"another").to_string()] {
            let fixture = fixture(vec![other(id, layers.clone())]).await;
            fixture.engine.introduce(&identity());
            assert!(!fixture.engine.has_image(&identity().config_digest).await.unwrap(), "{layers:?}");
            let missing = started_as(&fixture).await;
            assert!(matches!(missing, Err(EngineError::ImageMissing { .. })), "{missing:?}");
        }
    }
    // Without an introduction nobody knows how else it might be called.
    let fixture = fixture(vec![stored(&manifest, &[NAME])]).await;
    assert!(!fixture.engine.has_image(&identity().config_digest).await.unwrap());
}

#[tokio::test]
async fn a_loaded_image_is_found_and_a_lost_one_is_looked_for_again() {
    let manifest = identity().manifest_digest.to_string();
    let image = identity().config_digest;
    let fixture = fixture(Vec::new()).await;
    fixture.engine.introduce(&identity());
    let load = || fixture.engine.load_image(&image, Box::pin(futures_util::stream::iter([Ok(Bytes::from("tar"))])));
    assert!(matches!(load().await, Err(EngineError::ImageNotLoaded { .. })));
    fixture.daemon.arriving.lock().unwrap().push(stored(&manifest, &[NAME]));
    load().await.unwrap();
    assert_eq!(started_as(&fixture).await.unwrap(), manifest);
    // Somebody removes it, and loads it into a store of another kind.
    fixture.daemon.images.lock().unwrap().clear();
    assert!(matches!(started_as(&fixture).await, Err(EngineError::ImageMissing { .. })));
    fixture.daemon.images.lock().unwrap().push(stored(&image.to_string(), &[NAME]));
    fixture.daemon.asked();
    assert_eq!(started_as(&fixture).await.unwrap(), image.to_string());
}
