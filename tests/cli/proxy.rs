//! Behind a proxy that opens TLS, as companies have them: it answers `CONNECT` and then speaks in everybody's name, with
//! certificates of an authority that only this network's machines know.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fs_err as fs;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection};

use super::failures::{BUILD, CONTENT, locked};
use super::lock::imported;
use crate::support::command::CommandLine;

/// A host that nobody but the proxy knows.
const HOST: &str = "mirror.test";

/// A proxy that serves the files below a directory in the name of [`HOST`].
struct Inspecting {
    address: String,
    /// The authority's certificate, in PEM.
    authority: String,
}

impl Inspecting {
    fn new(root: PathBuf) -> Self {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name.push(DnType::CommonName, "Inspection");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let authority = CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new([HOST.to_owned()]).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, HOST);
        let certificate = parameters.signed_by(&key, &authority).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let configuration =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let configuration = configuration.with_no_client_auth();
        let configuration = Arc::new(configuration.with_single_cert(vec![certificate.der().clone()], key).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, configuration, root) = (stream.unwrap(), Arc::clone(&configuration), root.clone());
                std::thread::spawn(move || answer(stream, configuration, &root));
            }
        });
        Self { address, authority: authority.pem() }
    }

    /// Runs the program where this proxy is the only way out. The authority is known where `file` names its certificate.
    fn run(&self, line: &CommandLine, file: &str, arguments: &[&str]) -> String {
        line.write("authority.pem", &self.authority);
        let proxy = self.address.as_str();
        let variables = [
            ("HTTPS_PROXY", proxy),
            ("https_proxy", proxy),
            ("NO_PROXY", ""),
            ("no_proxy", ""),
            ("SSL_CERT_FILE", file),
        ];
        line.run_with(&variables, arguments)
    }
}

/// Answers one request. A client that does not trust the certificate goes away.
fn answer(mut stream: TcpStream, configuration: Arc<ServerConfig>, root: &Path) {
    let Some(request) = head(&mut stream) else { return };
    assert!(request.starts_with(&format!("CONNECT {HOST}:443 ")), "{request}");
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    let mut connection = ServerConnection::new(configuration).unwrap();
    let mut tls = rustls::Stream::new(&mut connection, &mut stream);
    let Some(request) = head(&mut tls) else { return };
    let target = request.split(' ').nth(1).unwrap();
    let path = target.split('?').next().unwrap().trim_start_matches('/');
    let (status, content) = match fs::read(root.join(path)) {
        Ok(content) => ("200 OK", content),
        Err(_) => ("404 Not Found", Vec::new()),
    };
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", content.len());
    let answered = tls.write_all(&[head.as_bytes(), &content].concat());
    connection.send_close_notify();
    // A client that has what it wanted may be gone.
    let _ = answered.and_then(|()| connection.complete_io(&mut stream));
}

/// Returns a request's head; `None` where the other side goes away.
fn head(stream: &mut impl Read) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            Ok(_) | Err(_) => return None,
        }
    }
    Some(String::from_utf8(head).unwrap())
}

#[test]
fn files_are_fetched_where_the_proxys_authority_is_known() {
    let line = locked();
    let root = line.path().join("served");
    fs::create_dir_all(root.join("g/a/1")).unwrap();
    fs::write(root.join("g/a/1/a-1.jar"), CONTENT).unwrap();
    let proxy = Inspecting::new(root);
    let origin = format!("central=https://{HOST}");
    let build = [&BUILD[..], &["--origin", &origin]].concat();
    let text = proxy.run(&line, "none.pem", &build);
    assert!(text.starts_with("exit 5\n") && text.contains("certificate"), "{text}");
    assert!(text.contains("hint: check the network, the proxy variables and SSL_CERT_FILE"), "{text}");
    let text = proxy.run(&line, "authority.pem", &build);
    assert!(text.starts_with("exit 0\n"), "{text}");
}

#[test]
fn sources_are_fetched_where_the_proxys_authority_is_known() {
    let line = imported();
    // A bare repository is served as files, to git as well as to anybody.
    let repository = line.path().join("mirror/sample");
    let updated = std::process::Command::new("git").arg("update-server-info").current_dir(&repository).status();
    assert!(updated.unwrap().success());
    let proxy = Inspecting::new(line.path().join("mirror"));
    let data = fs::read_to_string(line.path().join("sample.json")).unwrap();
    let own = r#""git_clone_url": "https://example.invalid/testevo/sample.git""#;
    assert!(data.contains(own), "{data}");
    line.write("sample.json", &data.replace(own, &format!(r#""git_clone_url": "https://{HOST}/sample""#)));
    assert!(line.run(&["import", "sample.json"]).starts_with("exit 0\n"));
    let text = proxy.run(&line, "none.pem", &["lock", "--check"]);
    assert!(text.starts_with("exit 5\n") && text.contains("certificate"), "{text}");
    assert!(text.contains("hint: check the network and git's own settings (proxy, certificates)"), "{text}");
    // What was fetched is looked at: nothing of it is locked yet.
    let text = proxy.run(&line, "authority.pem", &["lock", "--check"]);
    assert!(text.starts_with("exit 1\n") && text.contains("1 set of build files is not covered"), "{text}");
    // The user's own settings of git go before.
    fs::remove_dir_all(line.path().join("data/repositories/testevo__sample.git")).unwrap();
    line.write(".gitconfig", "[http]\n\tsslCAInfo = /dev/null\n");
    assert!(proxy.run(&line, "authority.pem", &["lock", "--check"]).starts_with("exit 5\n"));
}
