use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use fs_err as fs;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::artifact::origin::{Machine, OriginOptions};

/// A server that gives the nth answer to the nth request and keeps what was asked.
struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(answers: Vec<String>) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&requests);
        tokio::spawn(async move {
            let next = AtomicUsize::new(0);
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = Vec::new();
                let mut buffer = [0; 1024];
                while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                    match stream.read(&mut buffer).await {
                        Ok(0) | Err(_) => break,
                        Ok(count) => request.extend_from_slice(&buffer[..count]),
                    }
                }
                kept.lock().unwrap().push(String::from_utf8_lossy(&request).to_lowercase());
                let number = next.fetch_add(1, Ordering::Relaxed).min(answers.len() - 1);
                let _ = stream.write_all(answers[number].as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        });
        Self { address, requests }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n{body}")
}

fn ok(body: &str) -> String {
    answer("200 OK", &format!("content-length: {}\r\n", body.len()), body)
}

fn client(directory: &Path, addresses: &[String], offline: bool) -> Client {
    let given = BTreeMap::from([("central".to_owned(), addresses.join(" "))]);
    let options = OriginOptions::new(&given, offline, None).unwrap();
    let origins = Origins::new(options, Machine::at(directory, None, &[]), directory);
    let store = Store::open(&directory.join("store"), &directory.join("tmp")).unwrap();
    Client::new(origins, store, EventSink::none()).unwrap()
}

async fn fetch(client: &Client, expected: Option<&str>) -> Result<(Digest, u64), FetchError> {
    let expected = expected.map(|text| Digest::of(text.as_bytes()));
    client.fetch(&OriginName::central(), "g/a.jar", expected.as_ref(), 100).await
}

async fn run(answers: Vec<String>, expected: Option<&str>) -> (Result<(Digest, u64), FetchError>, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(answers).await;
    let client = client(directory.path(), &[format!("http://user:secret@{}/base", server.address)], false);
    let result = fetch(&client, expected).await;
    if let Err(error) = &result {
        let text = format!("{error} {error:?} {:?}", error.hint());
        assert!(!text.contains("secret") && !text.contains("127.0.0.1"), "{text}");
        assert_eq!(fs::read_dir(directory.path().join("store/blobs/sha256")).unwrap().count(), 0);
    }
    assert_eq!(fs::read_dir(directory.path().join("tmp")).map_or(0, Iterator::count), 0);
    (result, server.requests())
}

#[tokio::test]
async fn passing_faults_are_retried_and_others_are_not() {
    let busy = || answer("503 Busy", "content-length: 0\r\n", "");
    let (result, requests) = run(vec![busy(), busy(), ok("content")], None).await;
    assert_eq!(result.unwrap(), (Digest::of(b"content"), 7));
    assert_eq!(requests.len(), 3);
    assert!(requests[0].starts_with("get /base/g/a.jar ") && requests[0].contains("authorization: basic"));

    let (result, requests) = run(vec![busy()], None).await;
    assert!(matches!(result, Err(FetchError::OriginUnreachable { .. })));
    assert_eq!(requests.len(), 4);

    for (status, gone) in [("404 Not Found", true), ("410 Gone", true), ("403 Forbidden", false)] {
        let (result, requests) = run(vec![answer(status, "content-length: 0\r\n", "")], None).await;
        assert_eq!(matches!(result, Err(FetchError::Gone { .. })), gone, "{status}");
        assert_eq!(requests.len(), 1);
    }
}

#[tokio::test]
async fn wrong_bytes_and_too_many_are_refused() {
    let (result, requests) = run(vec![ok("<html>login</html>")], Some("content")).await;
    assert!(matches!(result, Err(FetchError::Garbage { .. })));
    assert_eq!(requests.len(), 1);
    let (result, _) = run(vec![ok(&"x".repeat(101))], None).await;
    assert!(matches!(result, Err(FetchError::TooLarge { limit: 100, .. })));
    // Without an announced length the limit holds too.
    let (result, _) = run(vec![answer("200 OK", "", &"x".repeat(101))], None).await;
    assert!(matches!(result, Err(FetchError::TooLarge { limit: 100, .. })));
}

#[tokio::test]
async fn a_broken_transfer_goes_on_where_it_stopped() {
    let broken = || answer("200 OK", "content-length: 7\r\netag: \"t\"\r\n", "con");
    let rest = answer("206 Partial", "content-length: 4\r\ncontent-range: bytes 3-6/7\r\n", "tent");
    let (result, requests) = run(vec![broken(), rest], None).await;
    assert_eq!(result.unwrap(), (Digest::of(b"content"), 7));
    assert!(requests[1].contains("range: bytes=3-") && requests[1].contains("if-range: \"t\""), "{requests:?}");

    // An origin that can't continue starts anew, and one that continues elsewhere is not believed.
    let (result, _) = run(vec![broken(), ok("content")], Some("content")).await;
    assert_eq!(result.unwrap().1, 7);
    let elsewhere = answer("206 Partial", "content-length: 3\r\ncontent-range: bytes 0-2/7\r\n", "xxx");
    let (result, _) = run(vec![broken(), elsewhere], Some("content")).await;
    assert!(matches!(result, Err(FetchError::Garbage { .. })));
    let unsatisfiable = answer("416 Range", "content-length: 0\r\n", "");
    let (result, _) = run(vec![broken(), unsatisfiable, ok("content")], Some("content")).await;
    assert_eq!(result.unwrap().1, 7);

    // Always cut off at the same place, without a way to continue.
    let cut = answer("200 OK", "content-length: 7\r\n", "con");
    let (result, _) = run(vec![cut], None).await;
    assert!(matches!(result, Err(FetchError::OriginUnreachable { .. })));
}

#[tokio::test]
async fn the_next_address_is_tried_and_what_the_store_has_is_not_fetched() {
    let directory = tempfile::tempdir().unwrap();
    let mirror = directory.path().join("mirror");
    fs::create_dir_all(mirror.join("g")).unwrap();
    fs::write(mirror.join("g/a.jar"), "content").unwrap();
    let empty = directory.path().join("empty");
    let addresses = [format!("file://{}", empty.display()), format!("file://{}", mirror.display())];
    let client = client(directory.path(), &addresses, false);
    assert_eq!(fetch(&client, Some("content")).await.unwrap(), (Digest::of(b"content"), 7));
    let head = client.head(&OriginName::central(), "g/a.jar").await.unwrap();
    assert!(head.size == Some(7) && head.last_modified.is_some());
    fs::write(mirror.join("g/a.jar"), "other").unwrap();
    assert_eq!(fetch(&client, Some("content")).await.unwrap().1, 7);
    assert!(matches!(fetch(&client, Some("more")).await, Err(FetchError::Garbage { .. })));
    fs::write(mirror.join("g/a.jar"), "x".repeat(101)).unwrap();
    assert!(matches!(fetch(&client, None).await, Err(FetchError::TooLarge { .. })));
    fs::remove_file(mirror.join("g/a.jar")).unwrap();
    assert!(matches!(fetch(&client, None).await, Err(FetchError::Gone { .. })));
    let path = "../store/x";
    let result = client.fetch(&OriginName::central(), path, None, 10).await;
    assert!(matches!(result, Err(FetchError::InvalidPath { .. })));
    let result = client.fetch(&"other".parse().unwrap(), "x", None, 10).await;
    assert!(matches!(result, Err(FetchError::Origin(OriginError::Unknown { .. }))));
}

/// A file whose content is its name.
fn item(name: &str) -> FetchItem {
    FetchItem {
        name: name.to_owned(),
        origin: OriginName::central(),
        path: name.to_owned(),
        project: None,
        digest: Digest::of(name.as_bytes()),
        size: name.len() as u64,
    }
}

#[tokio::test]
async fn many_files_are_fetched_and_every_failure_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let mirror = directory.path().join("mirror");
    fs::create_dir_all(&mirror).unwrap();
    let items: Vec<FetchItem> = (0..20).map(|number| item(&format!("file-{number}"))).collect();
    for item in &items {
        fs::write(mirror.join(&item.path), &item.name).unwrap();
    }
    let client = client(directory.path(), &[format!("file://{}", mirror.display())], false);
    let jobs = std::num::NonZeroUsize::new(4).unwrap();
    // A blob that was cut off is fetched again.
    client.store().put(b"file-0").unwrap();
    fs::write(client.store().path(&items[0].digest), "fi").unwrap();
    client.store().put(b"file-1").unwrap();
    let summary = client.fetch_all(&items, jobs, &EventSink::none()).await.unwrap();
    assert_eq!((summary.present, summary.fetched, summary.bytes), (1, 19, 6 * 9 + 7 * 10));
    client.store().verify(&items[0].digest).unwrap();

    let mut more = items.clone();
    more.extend([item("gone-1"), item("gone-2"), item("wrong")]);
    fs::write(mirror.join("wrong"), "right").unwrap();
    let error = client.fetch_all(&more, jobs, &EventSink::none()).await.unwrap_err();
    assert_eq!((error.total, error.others.len()), (3, 2));
    // One after another, so that the first is known.
    let error = client.fetch_all(&more, std::num::NonZeroUsize::MIN, &EventSink::none()).await.unwrap_err();
    assert!(matches!(&*error.first, FetchError::Gone { path, .. } if path == "gone-1"), "{error}");
    more.insert(items.len() + 1, FetchItem { origin: "nowhere".parse().unwrap(), ..item("stop") });
    let error = client.fetch_all(&more, std::num::NonZeroUsize::MIN, &EventSink::none()).await.unwrap_err();
    assert!(matches!(&*error.first, FetchError::Origin(_)), "what stopped all comes first: {error}");
    assert_eq!((error.total, error.others.len()), (4, 1));
}

#[tokio::test]
async fn offline_only_the_store_answers() {
    let directory = tempfile::tempdir().unwrap();
    let client = client(directory.path(), &["http://127.0.0.1:1/".to_owned()], true);
    assert!(matches!(fetch(&client, Some("content")).await, Err(FetchError::Offline { .. })));
    client.store().put(b"content").unwrap();
    assert_eq!(fetch(&client, Some("content")).await.unwrap().1, 7);
    // Of many files as of one, and nothing is begun.
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&told);
    let events = EventSink::new(move |event| kept.lock().unwrap().push(format!("{event:?}")));
    let items: Vec<FetchItem> = ["content", "z", "a", "b"].iter().map(|name| item(name)).collect();
    let jobs = std::num::NonZeroUsize::new(4).unwrap();
    let error = client.fetch_all(&items, jobs, &events).await.unwrap_err();
    assert!(matches!(&*error.first, FetchError::Offline { path, .. } if path == "z"), "{error}");
    assert_eq!((error.total, error.others.len(), told.lock().unwrap().len()), (3, 2, 0));
    assert_eq!(client.fetch_all(&items[..1], jobs, &events).await.unwrap().present, 1);
}

/// A table of names instead of a server of names; what it does not have is this machine.
struct Names(Vec<(&'static str, SocketAddr)>);

impl reqwest::dns::Resolve for Names {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let found = self.0.iter().filter(|(known, _)| *known == name.as_str()).map(|(_, address)| *address);
        let mut found: Vec<SocketAddr> = found.collect();
        if found.is_empty() {
            found = vec!["127.0.0.1:0".parse().unwrap(), "[fd00::1]:0".parse().unwrap()];
        }
        Box::pin(async move { Ok(Box::new(found.into_iter()) as reqwest::dns::Addrs) })
    }
}

/// A machine whose interfaces have these addresses.
fn own(addresses: &[&str]) -> guard::Interfaces {
    let addresses: BTreeSet<std::net::IpAddr> = addresses.iter().map(|address| address.parse().unwrap()).collect();
    Arc::new(move || Ok(addresses.clone()))
}

/// A client that knows the origin `declared` from a POM. Its server is reached although it is on this machine, as if
/// `public.test` were a public name; every other name goes through the guard.
fn guarded_client(directory: &Path, address: &str, public: SocketAddr, proxy: Option<&str>) -> Client {
    let mut client = client(directory, &["http://127.0.0.1:1/".to_owned()], false);
    let text = format!("schema = 1\n[origins]\ndeclared = \"{address}\"\n");
    fs::write(directory.join("origins.toml"), text).unwrap();
    let proxy = proxy.map(str::to_owned);
    client.guard = guard::Guard::new(&|name| proxy.clone().filter(|_| name == "http_proxy"), own(&["203.0.113.9"]));
    let builder = connect::builder(&connect::tls().unwrap()).no_proxy().resolve("public.test", public);
    client.guarded = client.guard.apply(builder, Arc::new(Names(Vec::new()))).build().unwrap();
    client
}

#[tokio::test]
async fn what_a_pom_declares_leads_to_nothing_of_this_machine() {
    let private = Server::start(vec![ok("secret")]).await;
    let refused = |result: Result<(Digest, u64), FetchError>, case: &str| {
        let error = result.unwrap_err();
        assert!(matches!(error, FetchError::Origin(OriginError::Private { .. })), "{case}: {error}");
        assert!(error.hint().unwrap().contains("--origin declared=URL") && !error.to_string().contains("127.0"));
    };
    let port = private.address.port();
    let elsewhere = [
        format!("http://127.0.0.1:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://inner.test:{port}/"),
        format!("http://proxy.test:{port}/"),
        format!("http://203.0.113.9:{port}/"),
        format!("http://[64:ff9b::203.0.113.9]:{port}/"),
    ];
    for target in &elsewhere {
        // As the address itself, and as what a public server sends on to.
        let moved = answer("302 Found", &format!("content-length: 0\r\nlocation: {target}g/a.jar\r\n"), "");
        let public = Server::start(vec![moved]).await;
        for address in [target.clone(), format!("http://public.test:{}/", public.address.port())] {
            let directory = tempfile::tempdir().unwrap();
            let client = guarded_client(directory.path(), &address, public.address, Some("proxy.test:3128"));
            let declared = "declared".parse().unwrap();
            refused(client.fetch(&declared, "g/a.jar", None, 100).await, &address);
            refused(client.head(&declared, "g/a.jar").await.map(|_| unreachable!()), &address);
            assert_eq!(fs::read_dir(directory.path().join("store/blobs/sha256")).unwrap().count(), 0);
        }
        assert!(!public.requests().is_empty());
    }
    assert_eq!(private.requests(), Vec::<String>::new(), "nothing arrived where it may not");

    // A public server is asked, and may send on to another public place.
    let target = Server::start(vec![ok("content")]).await;
    let directory = tempfile::tempdir().unwrap();
    let place = format!("http://public.test:{}/", target.address.port());
    let client = guarded_client(directory.path(), &place, target.address, None);
    assert_eq!(client.fetch(&"declared".parse().unwrap(), "g/a.jar", None, 100).await.unwrap().1, 7);

    // The user's own origin may be anywhere.
    let own = self::client(directory.path(), &[format!("http://127.0.0.1:{port}/")], false);
    assert_eq!(fetch(&own, None).await.unwrap().1, 6);
}

#[tokio::test]
async fn of_a_names_addresses_the_public_ones_are_kept() {
    use reqwest::dns::Resolve as _;
    let addresses = |names: Names, proxy: &'static str, name: &'static str| async move {
        let guard = guard::Guard::new(&|variable| (variable == "HTTPS_PROXY").then(|| proxy.to_owned()), own(&[]));
        let found = guard.names(Arc::new(names)).resolve(name.parse().unwrap()).await;
        found.map(|found| found.map(|address| address.ip().to_string()).collect::<Vec<_>>())
    };
    let both = || Names(["8.8.8.8:0", "10.0.0.1:0"].map(|address| ("a.test", address.parse().unwrap())).into());
    assert_eq!(addresses(both(), "", "a.test").await.unwrap(), ["8.8.8.8"]);
    assert!(guard::refused(addresses(both(), "", "b.test").await.unwrap_err().as_ref()));
    // A proxy is where it is.
    for proxy in ["http://user:password@Proxy.test:3128", "proxy.test", "socks5://proxy.test./"] {
        assert_eq!(addresses(both(), proxy, "proxy.test").await.unwrap().len(), 2, "{proxy}");
    }
}

#[tokio::test]
async fn a_machines_own_public_addresses_are_its_own() {
    use reqwest::dns::Resolve as _;
    let names = || {
        let addresses = ["203.0.113.9:0", "8.8.8.8:0", "[2001:db8::9]:0", "[2002:cb00:7109::1]:0"];
        Arc::new(Names(addresses.map(|address| ("a.test", address.parse().unwrap())).into()))
    };
    let found = async |interfaces: guard::Interfaces| {
        let found = guard::Guard::new(&|_| None, interfaces).names(names()).resolve("a.test".parse().unwrap()).await;
        found.map(|found| found.map(|address| address.ip().to_string()).collect::<Vec<_>>())
    };
    assert_eq!(found(own(&[])).await.unwrap().len(), 4);
    assert_eq!(found(own(&["203.0.113.9", "2001:db8::9"])).await.unwrap(), ["8.8.8.8"]);
    // What can't be read admits nothing.
    let unreadable: guard::Interfaces = Arc::new(|| Err(std::io::Error::other("no interfaces")));
    assert!(guard::refused(found(unreadable).await.unwrap_err().as_ref()));
    // The machine's own list is read anew each time, and holds the loopback interface wherever there is one.
    assert!(guard::interfaces().unwrap().contains(&"127.0.0.1".parse().unwrap()));
}

#[tokio::test]
#[ignore = "needs the network and a machine whose clients know all origins"]
async fn this_machines_own_origins_answer() {
    let directory = tempfile::tempdir().unwrap();
    let origins = Origins::new(OriginOptions::default(), Machine::current(), directory.path());
    let store = Store::open(&directory.path().join("store"), &directory.path().join("tmp")).unwrap();
    let client = Client::new(origins, store, EventSink::none()).unwrap();
    for (origin, path) in [
        (OriginName::debian(), "dists/trixie/InRelease"),
        (OriginName::central(), "junit/junit/4.13.2/junit-4.13.2.jar"),
        (OriginName::pypi(), "pip/"),
    ] {
        let (_, size) = client.fetch(&origin, path, None, 10 << 20).await.unwrap();
        assert!(size > 1000, "{origin}");
    }
    let head = client.head(&OriginName::central(), "junit/junit/4.13.2/junit-4.13.2.jar").await.unwrap();
    assert!(head.size.is_some());
    let missing = client.fetch(&OriginName::central(), "junit/junit/0/junit-0.jar", None, 100).await;
    assert!(matches!(missing, Err(FetchError::Gone { .. })));
}

#[tokio::test]
async fn an_origin_that_does_not_answer_is_asked_once() {
    let directory = tempfile::tempdir().unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let client = client(directory.path(), &[format!("http://{address}/")], false);
    let silent = |result: Result<(Digest, u64), FetchError>| {
        assert!(matches!(result, Err(FetchError::OriginUnreachable { silent: true, .. })), "{result:?}");
    };
    // Requests at the same time wait for the first one's result.
    let (first, second) = tokio::join!(fetch(&client, None), fetch(&client, None));
    silent(first);
    silent(second);
    let listener = tokio::net::TcpListener::bind(address).await.unwrap();
    silent(fetch(&client, None).await);
    assert!(client.head(&OriginName::central(), "g/b.jar").await.is_err());
    let asked = tokio::time::timeout(Duration::from_millis(50), listener.accept()).await;
    assert!(asked.is_err(), "it was asked again");
}

#[tokio::test]
async fn a_status_is_an_answer() {
    let directory = tempfile::tempdir().unwrap();
    let gone = || answer("404 Not Found", "content-length: 0\r\n", "");
    let busy = || answer("503 Busy", "content-length: 0\r\n", "");
    let server = Server::start(vec![gone(), busy(), busy(), busy(), busy(), ok("content")]).await;
    let client = client(directory.path(), &[format!("http://{}/", server.address)], false);
    assert!(matches!(fetch(&client, None).await, Err(FetchError::Gone { .. })));
    assert!(matches!(fetch(&client, None).await, Err(FetchError::OriginUnreachable { silent: false, .. })));
    fetch(&client, None).await.unwrap();
}

#[tokio::test]
async fn an_origin_that_the_user_calls_gone_has_nothing_and_is_not_asked() {
    let directory = tempfile::tempdir().unwrap();
    let given = BTreeMap::from([("jboss".to_owned(), String::new())]);
    let options = OriginOptions::new(&given, false, None).unwrap();
    let origins = Origins::new(options, Machine::at(directory.path(), None, &[]), directory.path());
    let store = Store::open(&directory.path().join("store"), &directory.path().join("tmp")).unwrap();
    let client = Client::new(origins, store, EventSink::none()).unwrap();
    let jboss: OriginName = "jboss".parse().unwrap();
    let declared = client.origins().declare("jboss", "http://gone.example/maven2").unwrap();
    assert_eq!(declared, crate::artifact::origin::Declared::Known(jboss.clone()));
    assert!(matches!(client.fetch(&jboss, "g/a.jar", None, 9).await, Err(FetchError::Gone { .. })));
    assert!(matches!(client.head(&jboss, "g/a.jar").await, Err(FetchError::Gone { .. })));
    let central = BTreeMap::from([("central".to_owned(), String::new())]);
    assert!(OriginOptions::new(&central, false, None).is_err());
}
