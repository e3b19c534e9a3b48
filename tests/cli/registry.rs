//! `bundle push` and `bundle pull` with a real registry, and one whose bytes are changed behind its back.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fs_err as fs;
use serde_json::Value;

use super::bundle::{Maker, largest};
use crate::support::command::CommandLine;

/// The user `user` with the password `secret`.
const USERS: &str = "user:$2b$04$gnExdU9cbxCBCzxcHml9S.McpnmHVbT7Zfkk8S3gtSK27ODeLP1Tu\n";
/// The same, as Docker and Podman keep it.
const LOGIN: &str = "dXNlcjpzZWNyZXQ=";

/// Debian's registry on a port of its own.
struct Registry {
    process: Child,
    root: PathBuf,
    host: String,
}

impl Registry {
    fn start(directory: &Path, closed: bool) -> Self {
        let root = directory.join(if closed { "closed" } else { "open" });
        fs::create_dir_all(&root).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut configuration = format!(
            "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {}}}}}\nhttp: {{addr: '127.0.0.1:{port}'}}\n",
            root.display()
        );
        if closed {
            let users = directory.join("users");
            fs::write(&users, USERS).unwrap();
            configuration.push_str(&format!("auth: {{htpasswd: {{realm: here, path: {}}}}}\n", users.display()));
        }
        let file = root.with_extension("yml");
        fs::write(&file, configuration).unwrap();
        let mut command = Command::new("docker-registry");
        let process = command.arg("serve").arg(file).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let host = format!("127.0.0.1:{port}");
        let began = Instant::now();
        while TcpStream::connect(&host).is_err() {
            assert!(began.elapsed() < Duration::from_secs(60), "the registry does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { process, root, host }
    }

    fn reference(&self, name: &str) -> String {
        format!("{}/{name}", self.host)
    }

    /// Returns the file that has a blob's bytes.
    fn blob(&self, hex: &str) -> PathBuf {
        self.root.join("docker/registry/v2/blobs/sha256").join(&hex[..2]).join(hex).join("data")
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// Lets a registry send so many bytes, and then cuts every connection. Returns where it listens.
fn cut_after(host: &str, bytes: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (host, left) = (host.to_owned(), Arc::new(AtomicUsize::new(bytes)));
    std::thread::spawn(move || {
        // A client that went away is none of this thread's business.
        for mut client in listener.incoming().flatten() {
            let Ok(mut server) = TcpStream::connect(&host) else { return };
            let (mut asking, mut asked) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut asking, &mut asked));
            let left = Arc::clone(&left);
            std::thread::spawn(move || {
                let mut buffer = [0; 1024];
                while let Ok(count @ 1..) = server.read(&mut buffer) {
                    let fits = left.try_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(count));
                    if fits.is_err() || client.write_all(&buffer[..count]).is_err() {
                        left.store(0, Ordering::SeqCst);
                        let _ = client.shutdown(Shutdown::Both);
                        return;
                    }
                }
            });
        }
    });
    address
}

fn run(line: &CommandLine, variables: &[(&str, &str)], arguments: &[&str]) -> String {
    let ours =
        [("NO_PROXY", "127.0.0.1"), ("DOCKER_CONFIG", "no"), ("XDG_RUNTIME_DIR", "no"), ("REGISTRY_AUTH_FILE", "no")];
    line.run_with(&[&ours, variables].concat(), &[&["bundle"], arguments].concat())
}

fn json(said: &str) -> Value {
    let (head, rest) = said.split_once("---- stdout\n").unwrap_or_else(|| panic!("{said}"));
    assert_eq!(head, "exit 0\n", "{said}");
    serde_json::from_str(rest.lines().next().unwrap()).unwrap()
}

#[test]
fn a_bundle_comes_back_from_a_registry_as_it_was() {
    let maker = Maker::new();
    maker.fine(&["bundle", "create", "--audience", "scorer", "-o", "made"]);
    let line = &maker.line;
    let registry = Registry::start(line.path(), false);
    let reference = registry.reference("some/bundle:one");
    // A dry run sends nothing, and says what would be sent.
    let would = run(line, &[], &["push", "made", &reference, "--dry-run"]);
    assert!(would.starts_with("exit 0\n") && would.contains("would send ") && would.contains("; 0 there"), "{would}");
    assert!(run(line, &[], &["pull", &reference, "-o", "none"]).contains("there is no `"));
    let said = run(line, &[], &["push", "made", &reference, "--format", "json"]);
    assert!(said.contains("can read the developers' tests"), "{said}");
    let pushed = json(&said);
    let sent = pushed["blobs"].as_u64().unwrap();
    assert!(sent > 5 && pushed["present"] == 0, "{said}");
    let again = json(&run(line, &[], &["push", "made", &reference, "--format", "json"]));
    assert_eq!((again["blobs"].as_u64(), again["present"].as_u64()), (Some(0), Some(sent)));

    let would = run(line, &[], &["pull", &reference, "-o", "none", "--dry-run"]);
    assert!(would.contains(&format!("would fetch {sent} blobs")) && !line.path().join("none").exists(), "{would}");
    assert!(!line.path().join(".none.unfinished").exists());

    let index = pushed["index"].as_str().unwrap();
    for (from, to) in
        [(reference.clone(), "by-tag"), (registry.reference(&format!("some/bundle@{index}")), "by-digest")]
    {
        let pulled = json(&run(line, &[], &["pull", &from, "-o", to, "--format", "json"]));
        assert_eq!((&pulled["index"], &pulled["images"]), (&pushed["index"], &pushed["images"]));
        let differ = Command::new("diff").args(["-r", "made", to]).current_dir(line.path()).output().unwrap();
        assert!(differ.status.success(), "{}", String::from_utf8_lossy(&differ.stdout));
    }
    let there = CommandLine::new();
    let import = ["bundle", "import", &format!("{}/by-tag", line.path().display())];
    assert!(there.run(&import).starts_with("exit 0"));

    // Other programs know what lies there.
    let raw = Command::new("skopeo")
        .args(["inspect", "--raw", "--tls-verify=false", &format!("docker://{reference}")])
        .output();
    assert_eq!(raw.unwrap().stdout, fs::read(line.path().join("made/index.json")).unwrap());
    let image = pushed["images"][0].as_str().unwrap();
    let pulled = Command::new("docker").args(["pull", "-q", image]).output().unwrap();
    assert!(pulled.status.success(), "{}", String::from_utf8_lossy(&pulled.stderr));
    let removed = Command::new("docker").args(["image", "rm", image]).output().unwrap();
    assert!(removed.status.success(), "{}", String::from_utf8_lossy(&removed.stderr));
}

#[test]
fn a_registry_that_lies_or_has_something_else_is_told() {
    let maker = Maker::new();
    maker.fine(&["bundle", "create", "--audience", "scorer", "-o", "made"]);
    let line = &maker.line;
    let registry = Registry::start(line.path(), false);
    let reference = registry.reference("bundle:one");
    run(line, &[], &["push", "made", &reference]);
    let largest = largest(&line.path().join("made"));
    let kept = registry.blob(largest.file_name().unwrap().to_str().unwrap());
    let whole = fs::read(&kept).unwrap();
    let mut changed = whole.clone();
    changed[100] ^= 1;
    let longer = format!("sends more than {} bytes for sha256:", whole.len());
    for (lie, expected) in [
        (changed, "gives other bytes for sha256:"),
        ([&whole[..], b"more"].concat(), &*longer),
        (whole[..whole.len() - 7].to_vec(), "gives other bytes for sha256:"),
    ] {
        fs::write(&kept, lie).unwrap();
        let said = run(line, &[], &["pull", &reference, "-o", "pulled"]);
        assert!(said.starts_with("exit 6\n") && said.contains(expected), "{said}");
        assert!(!line.path().join("pulled").exists());
    }
    // What came before is not fetched again.
    fs::write(&kept, &whole).unwrap();
    let pulled = json(&run(line, &[], &["pull", &reference, "-o", "pulled", "--format", "json"]));
    let fetched = pulled["blobs"].as_u64().unwrap();
    assert!(fetched > 0 && pulled["present"].as_u64().unwrap() > 0, "{pulled}");
    assert!(line.run(&["bundle", "verify", "pulled"]).starts_with("exit 0"));

    // A registry that stops half way is told, and leaves nothing that looks like a bundle. The rest comes from where it answers.
    let size = |blob: &PathBuf| usize::try_from(fs::metadata(blob).unwrap().len()).unwrap();
    for most in [0, 3 << 10, size(&largest)] {
        let broken = format!("{}/bundle:one", cut_after(&registry.host, most));
        let said = run(line, &[], &["pull", &broken, "-o", "half"]);
        assert!(said.starts_with("exit 5\n") && said.contains("\nhint: "), "{said}");
        assert!(!line.path().join("half").exists());
    }
    assert!(run(line, &[], &["pull", &reference, "-o", "half"]).starts_with("exit 0\n"));
    let differ = Command::new("diff").args(["-r", "made", "half"]).current_dir(line.path()).output().unwrap();
    assert!(differ.status.success(), "{}", String::from_utf8_lossy(&differ.stdout));

    // A bundle that is damaged here is the reason itself.
    fs::write(&largest, &whole[1..]).unwrap();
    let said = run(line, &[], &["push", "made", &registry.reference("other:one")]);
    assert!(said.starts_with("exit 4\n") && said.contains("bytes instead of"), "{said}");

    let image = Path::new("made").join("nothing");
    for (arguments, code, expected) in [
        (vec!["pull", &*registry.reference("bundle:two"), "-o", "x"], 5, "there is no `"),
        (vec!["pull", &*reference, "-o", "pulled"], 2, "`pulled` exists"),
        (vec!["pull", &*reference, "-o", "x", "--offline"], 2, "can't be reached with `--offline`"),
        (vec!["pull", "no-host:one", "-o", "x"], 2, "it names no registry"),
        (vec!["pull", "127.0.0.1:1/x:y", "-o", "x"], 5, "logging in"),
        (vec!["push", image.to_str().unwrap(), &*reference], 3, "nothing"),
    ] {
        let said = run(line, &[], &arguments);
        assert!(said.starts_with(&format!("exit {code}\n")) && said.contains(expected), "{arguments:?}: {said}");
    }
    // An image is no bundle.
    let archive = format!("oci:{}/pulled", line.path().display());
    let index: Value = serde_json::from_slice(&fs::read(line.path().join("pulled/index.json")).unwrap()).unwrap();
    let name = index["manifests"][1]["annotations"]["org.opencontainers.image.ref.name"].as_str().unwrap();
    let to = format!("docker://{}", registry.reference("image:one"));
    let copied = Command::new("skopeo")
        .args(["copy", "-q", "--dest-tls-verify=false", &format!("{archive}:{name}"), &to])
        .output();
    let copied = copied.unwrap();
    assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
    let said = run(line, &[], &["pull", &registry.reference("image:one"), "-o", "x"]);
    assert!(said.starts_with("exit 4\n") && said.contains("is no bundle"), "{said}");
    assert!(!line.path().join("x").exists());
}

#[test]
fn only_who_logged_in_comes_to_a_closed_registry_and_only_the_signed_is_fetched() {
    let maker = Maker::new();
    let line = &maker.line;
    let registry = Registry::start(line.path(), true);
    let reference = registry.reference("bundle:one");
    let key = line.path().join("key");
    for name in ["key", "other"] {
        let made = Command::new("ssh-keygen")
            .args(["-q", "-N", "", "-C", "", "-t", "ed25519", "-f"])
            .arg(line.path().join(name))
            .status();
        assert!(made.unwrap().success());
    }
    maker.fine(&["bundle", "create", "--audience", "scorer", "-o", "made", "--sign", key.to_str().unwrap()]);
    let said = run(line, &[], &["push", "made", &reference]);
    assert!(said.starts_with("exit 5\n") && said.contains("does not let this user in"), "{said}");
    let logins = format!(r#"{{"auths": {{"{}": {{"auth": "{LOGIN}"}}}}}}"#, registry.host);
    line.write("docker/config.json", &logins);
    line.write("auth.json", &logins);
    let by_docker = [("DOCKER_CONFIG", "docker")];
    assert!(run(line, &by_docker, &["push", "made", &reference]).starts_with("exit 0"));

    // A helper is asked as Docker asks it, by the name of the registry on stdin.
    line.write("helped/config.json", &format!(r#"{{"credHelpers": {{"{}": "ours"}}}}"#, registry.host));
    line.write(
        "bin/docker-credential-ours",
        "#!/bin/sh\ncat >&2\necho '{\"Username\": \"user\", \"Secret\": \"secret\"}'\n",
    );
    let helper = line.path().join("bin/docker-credential-ours");
    fs::set_permissions(helper, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", line.path().join("bin").display(), std::env::var("PATH").unwrap());
    let said = run(line, &[("DOCKER_CONFIG", "helped"), ("PATH", &path)], &["push", "made", &reference]);
    assert!(said.starts_with("exit 0\n"), "{said}");

    line.write("broken/config.json", &logins.replace(LOGIN, "no base64"));
    let said = run(line, &[("DOCKER_CONFIG", "broken")], &["push", "made", &reference]);
    assert!(said.starts_with("exit 5\n") && said.contains("credentials can't be used"), "{said}");

    let by_podman = [("REGISTRY_AUTH_FILE", "auth.json")];
    for (name, code, expected) in [("other", 6, "is none that"), ("key", 0, "signed by maker")] {
        let public = fs::read_to_string(line.path().join(format!("{name}.pub"))).unwrap();
        line.write("allowed", &format!("maker namespaces=\"testevo-sandbox-bundle\" {public}"));
        let said = run(line, &by_podman, &["pull", &reference, "-o", "pulled", "--allowed-signers", "allowed"]);
        assert!(said.starts_with(&format!("exit {code}\n")) && said.contains(expected), "{said}");
        let there = line.files().iter().any(|file| file.contains("pulled"));
        assert_eq!(there, code == 0, "nothing is fetched that is not signed");
    }
    assert!(line.run(&["bundle", "verify", "pulled", "--allowed-signers", "allowed"]).contains("signed by maker"));
}
