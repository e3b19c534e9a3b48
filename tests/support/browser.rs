//! A real browser: it shows a file and ends, or it stays and keys are pressed in it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use fs_err as fs;
use serde_json::{Value, json};

use super::waiting::wait_until;

/// Ends a browser that would hang, with its descendants.
const LIMIT: [&str; 3] = ["timeout", "--kill-after=10", "300"];

/// Returns the document that a browser makes of a file, and what it said.
pub(crate) fn browse(file: &Path, directory: &Path, arguments: &[String]) -> (String, String) {
    let browser = program();
    let output = Command::new(LIMIT[0])
        .args(&LIMIT[1..])
        .arg(browser)
        .args(options(directory))
        .args(arguments)
        .arg(format!("file://{}", file.display()))
        .env("HOME", directory)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{browser}: {}\n{said}", output.status);
    (String::from_utf8_lossy(&output.stdout).into_owned(), said)
}

fn program() -> &'static str {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let there = |name: &&&str| {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&paths).any(|path| path.join(name).is_file())
    };
    names.iter().find(there).copied().unwrap_or_else(|| {
        panic!(
            "no browser to look at the page with: none of {names:?} is there; `apt-get install chromium` does (as `.ci/run` does)"
        )
    })
}

fn options(directory: &Path) -> Vec<String> {
    // A frame and the page around it are two files, and files are strangers to each other otherwise.
    let options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
    let more = ["--allow-file-access-from-files", "--enable-logging=stderr"];
    let profile = format!("--user-data-dir={}", directory.join("browser").display());
    options.iter().chain(&more).map(|option| (*option).to_owned()).chain([profile]).collect()
}

/// A browser with one page, which it shows until it is dropped. It is spoken to by its protocol for developers, through pipes.
pub(crate) struct Browser {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    log: PathBuf,
    /// The page's session; null before there is one.
    session: Value,
    requested: u64,
    /// What the page's scripts threw and its policy refused.
    pub(crate) complaints: Vec<Value>,
}

impl Browser {
    /// Starts a browser, whose profile and log are kept in `directory`.
    pub(crate) fn start(directory: &Path) -> Self {
        let log = directory.join("browser.log");
        // The browser hears at descriptor 3 and answers at descriptor 4.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 0</dev/null 1>&2", "sh"])
            .args(LIMIT)
            .arg(program())
            .args(options(directory))
            .args(["--remote-debugging-pipe", "--window-size=1200,900", "about:blank"])
            .env("HOME", directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&log).unwrap().into_parts().0)
            .spawn()
            .unwrap();
        let (requests, answers) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let complaints = Vec::new();
        let mut browser = Self { child, requests, answers, log, session: Value::Null, requested: 0, complaints };
        let target = browser.ask("Target.createTarget", json!({ "url": "about:blank" })).unwrap();
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        browser.session = browser.ask("Target.attachToTarget", attach).unwrap()["sessionId"].clone();
        for domain in ["Page", "Log", "Runtime"] {
            browser.ask(&format!("{domain}.enable"), json!({})).unwrap();
        }
        browser
    }

    /// Opens a file, whose name may be followed by a fragment, and waits until it is loaded and `script` is evaluated in it.
    pub(crate) fn open(&mut self, file: &str, script: &str) {
        self.ask("Page.navigate", json!({ "url": format!("file://{file}") })).unwrap();
        let address = format!("location.pathname === {}", json!(file.split('#').next()));
        self.loaded(&address, script);
    }

    /// Waits until a page at whose address `condition` holds is loaded, and evaluates `script` in it.
    pub(crate) fn loaded(&mut self, condition: &str, script: &str) {
        self.until(&format!("document.readyState === 'complete' && {condition}"));
        self.evaluate(script);
    }

    /// Waits until an expression is true. Between two pages there may be nothing that could evaluate it.
    pub(crate) fn until(&mut self, expression: &str) {
        wait_until(expression, || (self.asked(expression).ok()? == true).then_some(()));
    }

    /// Returns the value of an expression in the page. The page's policy does not apply to it.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        self.asked(expression).unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    fn asked(&mut self, expression: &str) -> Result<Value, Value> {
        let found = self.ask("Runtime.evaluate", json!({ "expression": expression, "returnByValue": true }))?;
        assert!(found["exceptionDetails"].is_null(), "{expression}: {found}");
        Ok(found["result"]["value"].clone())
    }

    /// Presses and releases a key: a letter or digit, or a key by its name, also with `Shift+` before it.
    pub(crate) fn press(&mut self, key: &str) {
        let (shift, key) = key.strip_prefix("Shift+").map_or((0, key), |key| (8, key));
        let (code, number, text) = match key {
            "Tab" => (key, 9, None),
            "Enter" => (key, 13, Some("\r")),
            "ArrowRight" => (key, 39, None),
            " " => ("Space", 32, Some(" ")),
            _ => {
                assert_eq!(key.chars().count(), 1, "{key} is no key that this knows");
                ("", 0, Some(key))
            }
        };
        let mut event = json!({ "type": "keyDown", "key": key, "code": code, "windowsVirtualKeyCode": number });
        event["modifiers"] = shift.into();
        if let Some(text) = text {
            event["text"] = text.into();
        }
        self.ask("Input.dispatchKeyEvent", event.clone()).unwrap();
        event["type"] = "keyUp".into();
        self.ask("Input.dispatchKeyEvent", event).unwrap();
    }

    /// Goes back to the address before this one, as the browser's own button does: a browser without a window has no key for it.
    pub(crate) fn back(&mut self) {
        let history = self.ask("Page.getNavigationHistory", json!({})).unwrap();
        let current = history["currentIndex"].as_u64().unwrap() as usize;
        let entry = &history["entries"][current.checked_sub(1).unwrap()]["id"];
        self.ask("Page.navigateToHistoryEntry", json!({ "entryId": entry })).unwrap();
    }

    /// Sends a request and returns its result, or the browser's error.
    fn ask(&mut self, method: &str, parameters: Value) -> Result<Value, Value> {
        self.requested += 1;
        let mut request = json!({ "id": self.requested, "method": method, "params": parameters });
        if !self.session.is_null() {
            request["sessionId"] = self.session.clone();
        }
        // A browser that is gone says nothing, which is noticed below.
        let _ = self.requests.write_all(format!("{request}\0").as_bytes()).and_then(|()| self.requests.flush());
        loop {
            let mut message = Vec::new();
            self.answers.read_until(0, &mut message).unwrap();
            if message.pop() != Some(0) {
                panic!("the browser ended before it answered {request}\n{}", fs::read_to_string(&self.log).unwrap());
            }
            let mut message: Value = serde_json::from_slice(&message).unwrap();
            let complains = match message["method"].as_str() {
                Some("Runtime.exceptionThrown") => true,
                Some("Log.entryAdded") => message["params"]["entry"]["level"] == "error",
                _ => false,
            };
            if complains {
                self.complaints.push(message);
            } else if message["id"] == self.requested {
                return match message.get_mut("error") {
                    Some(error) => Err(error.take()),
                    None => Ok(message["result"].take()),
                };
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let close = json!({ "id": self.requested + 1, "method": "Browser.close" });
        // Where it has ended already there is nothing to close.
        let _ = self.requests.write_all(format!("{close}\0").as_bytes()).and_then(|()| self.requests.flush());
        let _ = self.child.wait();
    }
}
