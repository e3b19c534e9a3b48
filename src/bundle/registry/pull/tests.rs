use std::path::Path;
use std::sync::{Arc, Mutex};

use fs_err as fs;
use oci_client::Reference;
use oci_client::secrets::RegistryAuth;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

/// What a registry answers.
struct Answer {
    head: String,
    body: Vec<u8>,
    /// Whether the body never ends.
    endless: bool,
}

fn answer(head: &str, body: &[u8]) -> Answer {
    Answer { head: head.to_owned(), body: body.to_vec(), endless: false }
}

/// A registry that answers as a test says, and keeps the requests for blobs and manifests.
struct Server {
    registry: Registry,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(answers: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let (kept, answers) = (Arc::clone(&requests), Arc::new(answers));
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let (kept, answers) = (Arc::clone(&kept), Arc::clone(&answers));
                tokio::spawn(async move {
                    let (mut request, mut buffer) = (Vec::new(), [0; 1024]);
                    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                        match stream.read(&mut buffer).await {
                            Ok(0) | Err(_) => return,
                            Ok(count) => request.extend_from_slice(&buffer[..count]),
                        }
                    }
                    let request = String::from_utf8_lossy(&request).to_lowercase();
                    // Everybody may log in.
                    let answer = match request.starts_with("get /v2/ ") {
                        true => answer("200 OK\r\ncontent-length: 0", b""),
                        false => {
                            kept.lock().unwrap().push(request.clone());
                            answers(&request)
                        }
                    };
                    let head = format!("HTTP/1.1 {}\r\nconnection: close\r\n\r\n", answer.head);
                    // The client may have gone away.
                    let mut sent = stream.write_all(&[head.as_bytes(), &answer.body].concat()).await;
                    while answer.endless && sent.is_ok() {
                        sent = stream.write_all(&[b' '; 1 << 16]).await;
                    }
                    let _ = stream.shutdown().await;
                });
            }
        });
        Self { registry: Registry::open(&format!("{address}/some/bundle:one"), false).unwrap(), requests }
    }

    fn requests(&self) -> Vec<String> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }

    /// Fetches a blob into the unfinished directory of `output`.
    async fn fetch(&self, content: &[u8], output: &Path) -> Result<(), RegistryError> {
        let unfinished = Unfinished::open(output, Umask::take()).unwrap();
        let blob = named(content);
        let (missing, _) = unfinished.missing(&BTreeMap::from([(blob.digest, blob.size)])).unwrap();
        assert_eq!(missing, [blob]);
        self.registry.blob(blob, &unfinished).await
    }
}

fn named(content: &[u8]) -> Named {
    Named { digest: Digest::of(content), size: content.len() as u64 }
}

/// Returns the files that lie where a blob is fetched, with their contents.
fn there(output: &Path) -> BTreeMap<String, Vec<u8>> {
    let directory = output.with_file_name(".new.unfinished").join("blobs/sha256");
    let files = fs::read_dir(directory).unwrap().map(|file| file.unwrap());
    files.map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap())).collect()
}

#[tokio::test]
async fn a_manifest_is_read_up_to_its_limit() {
    let server = Server::start(|request| match request {
        // Neither a length nor an end.
        request if request.contains("/manifests/one ") => {
            Answer { head: "200 OK".to_owned(), body: Vec::new(), endless: true }
        }
        request if request.contains("/manifests/two ") => answer("200 OK\r\ncontent-length: 1099511627776", b""),
        request if request.contains("/manifests/refused ") => {
            Answer { head: "500 Broken".to_owned(), body: b"words".to_vec(), endless: true }
        }
        request if request.contains("/manifests/three ") => {
            answer(&format!("200 OK\r\ndocker-content-digest: {}", Digest::of(b"other")), b"manifest")
        }
        request if request.contains("/manifests/none ") => answer("404 Not Found", b""),
        _ => answer("200 OK", b"manifest"),
    })
    .await;
    let registry = &server.registry;
    let tag =
        |tag: &str| -> Reference { format!("{}/some/bundle:{tag}", registry.reference.registry()).parse().unwrap() };
    let too_large = |error: RegistryError| match error {
        RegistryError::TooLarge { reference, what, limit } => (reference, what, limit),
        other => panic!("{other:?}"),
    };
    for name in ["one", "two"] {
        let error = registry.manifest(&tag(name), &[MANIFEST_TYPE], 1 << 20).await.unwrap_err();
        assert_eq!(too_large(error), (registry.name(), name.to_owned(), 1 << 20));
    }
    let error = registry.index().await.unwrap_err();
    assert_eq!(too_large(error), (registry.name(), "one".to_owned(), MOST_INDEX_BYTES));

    // A manifest is as long as the index says.
    let manifest = registry.at(&Digest::of(b"manifest"));
    assert_eq!(registry.manifest(&manifest, &[MANIFEST_TYPE], 8).await.unwrap(), b"manifest");
    let error = registry.manifest(&manifest, &[MANIFEST_TYPE], 7).await.unwrap_err();
    assert_eq!(too_large(error), (registry.name(), Digest::of(b"manifest").to_string(), 7));
    for at in [registry.at(&Digest::of(b"another")), tag("three")] {
        let error = registry.manifest(&at, &[MANIFEST_TYPE], 8).await.unwrap_err();
        assert!(matches!(error, RegistryError::Lies { .. }), "{error:?}");
    }
    let error = registry.manifest(&tag("none"), &[MANIFEST_TYPE], 8).await.unwrap_err();
    assert!(matches!(error, RegistryError::Missing(_)), "{error:?}");
    // Endless words about an error are no reason to wait or to keep them.
    match registry.manifest(&tag("refused"), &[MANIFEST_TYPE], 8).await.unwrap_err() {
        RegistryError::Exchange { reason, .. } => assert!(reason.contains("words") && reason.len() < 1000, "{reason}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_password_is_shown_after_a_refusal_only() {
    let mut server = Server::start(|request| match request.contains("\r\nauthorization: basic ") {
        true => answer("200 OK", b"manifest"),
        false => answer("401 Unauthorized", b""),
    })
    .await;
    let at = server.registry.at(&Digest::of(b"manifest"));
    let error = server.registry.manifest(&at, &[MANIFEST_TYPE], 8).await.unwrap_err();
    assert!(matches!(error, RegistryError::Unauthorized { .. }), "{error:?}");
    server.registry.authentication = RegistryAuth::Basic("user".to_owned(), "secret".to_owned());
    server.requests();
    assert_eq!(server.registry.manifest(&at, &[MANIFEST_TYPE], 8).await.unwrap(), b"manifest");
    let shown: Vec<bool> = server.requests().iter().map(|request| request.contains("authorization: ")).collect();
    assert_eq!(shown, [false, true]);
}

#[tokio::test]
async fn a_blob_goes_on_where_the_registry_stopped() {
    const CONTENT: &[u8] = b"some bytes of a blob";
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("new");
    let part = format!("{}.part", Digest::of(CONTENT).hex());
    let whole = BTreeMap::from([(Digest::of(CONTENT).hex().to_owned(), CONTENT.to_vec())]);

    // One registry ends a connection early, another says how much would come.
    for (head, expected) in [("200 OK", "stopped 11 bytes before the end"), ("200 OK\r\ncontent-length: 20", "")] {
        let server = Server::start(move |_| answer(head, &CONTENT[..9])).await;
        match server.fetch(CONTENT, &output).await {
            Err(RegistryError::Exchange { reason, .. }) => assert!(reason.contains(expected), "{reason}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(there(&output), BTreeMap::from([(part.clone(), CONTENT[..9].to_vec())]));
        fs::remove_dir_all(output.with_file_name(".new.unfinished")).unwrap();
    }

    let put = |bytes: &[u8]| {
        let blobs = output.with_file_name(".new.unfinished").join("blobs/sha256");
        fs::create_dir_all(&blobs).unwrap();
        let _ = fs::remove_file(blobs.join(Digest::of(CONTENT).hex()));
        fs::write(blobs.join(&part), bytes).unwrap();
    };
    let rest = |request: &str| match request.contains("\r\nrange: bytes=9-\r\n") {
        true => answer("206 Partial Content\r\ncontent-range: bytes 9-19/20", &CONTENT[9..]),
        false => answer("200 OK", CONTENT),
    };
    let server = Server::start(rest).await;
    put(&CONTENT[..9]);
    server.fetch(CONTENT, &output).await.unwrap();
    assert_eq!((there(&output), server.requests().len()), (whole.clone(), 1));
    // A beginning that is damaged is given up, as is one of all bytes.
    for (damaged, requests) in [(&b"Some byte"[..], 2), (b"Some bytes of a blob", 1)] {
        put(damaged);
        server.fetch(CONTENT, &output).await.unwrap();
        assert_eq!((there(&output), server.requests().len()), (whole.clone(), requests));
    }
    // A registry may know nothing of parts.
    let plain = Server::start(|_| answer("200 OK", CONTENT)).await;
    put(&CONTENT[..9]);
    plain.fetch(CONTENT, &output).await.unwrap();
    assert_eq!(there(&output), whole);
    // A registry that has a fault is not asked for the whole blob: what is here stays for later.
    let faulty = Server::start(|_| answer("503 Service Unavailable", b"")).await;
    put(&CONTENT[..9]);
    faulty.fetch(CONTENT, &output).await.unwrap_err();
    assert_eq!(there(&output), BTreeMap::from([(part.clone(), CONTENT[..9].to_vec())]));
    assert!(faulty.requests().iter().all(|request| request.contains("\r\nrange: bytes=9-\r\n")));
    let refusing = Server::start(|request| match request.contains("\r\nrange: ") {
        true => answer("416 Range Not Satisfiable", b""),
        false => answer("200 OK", CONTENT),
    })
    .await;
    put(&CONTENT[..9]);
    refusing.fetch(CONTENT, &output).await.unwrap();
    assert_eq!(there(&output), whole);
}

#[tokio::test]
async fn a_blob_has_as_many_bytes_as_the_index_says() {
    const CONTENT: &[u8] = b"some bytes";
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("new");
    for head in ["200 OK", "200 OK\r\ncontent-length: 14"] {
        let server = Server::start(move |_| answer(head, b"some bytesmore")).await;
        match server.fetch(CONTENT, &output).await {
            Err(RegistryError::TooLarge { reference, what, limit }) => {
                assert_eq!((reference, what, limit), (server.registry.name(), Digest::of(CONTENT).to_string(), 10));
            }
            other => panic!("{other:?}"),
        }
    }
    // Other bytes, and fewer by the registry's own account, come to nothing however often they are asked for.
    for (head, body) in [("200 OK", &b"Some bytes"[..]), ("200 OK\r\ncontent-length: 4", b"some")] {
        let server = Server::start(move |_| answer(head, body)).await;
        for _ in 0..2 {
            let error = server.fetch(CONTENT, &output).await.unwrap_err();
            assert!(matches!(error, RegistryError::Lies { .. }), "{error:?}");
        }
        assert!(there(&output).values().all(Vec::is_empty));
    }
}
