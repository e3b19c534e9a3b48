//! The page that `report --format html` makes, in a real browser: its script runs, its tables sort, a task opens to cells,
//! covered lines, differences and logs, and nothing of a stranger's is taken for markup.

use std::path::Path;
use std::process::Command;

use fs_err as fs;
use serde_json::Value;
use testevo_sandbox::output::visible_lines;

use crate::support::command::CommandLine;
use crate::support::scored::{ScoredRun, starts_compile};

/// What would show that a text is taken for markup.
const STRANGE: &str =
    "</script></pre><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">&lt;\u{2028}";

/// Loads the page, uses it as a reader does, and writes down what is to be seen.
const READER: &str = r##"<!DOCTYPE html>
<iframe src="page.html" id="page" width="1200" height="900"></iframe>
<pre id="seen">nothing</pre>
<script>
const frame = document.getElementById("page");
frame.addEventListener("load", () => {
  const seen = {};
  try {
    const page = frame.contentDocument;
    const texts = (place, what) => [...place.querySelectorAll(what)].map(one => one.textContent);
    const figures = page.getElementById("figures");
    const success = texts(figures, "th").indexOf("Success%");
    const column = () => [...figures.tBodies[0].rows].map(row => row.cells[success].textContent);
    const heading = figures.querySelectorAll("th")[success];
    heading.click(); seen.ascending = column();
    heading.click(); seen.descending = column();
    const tasks = page.getElementById("tasks");
    const ids = () => [...tasks.tBodies[0].rows].map(row => row.cells[5].textContent);
    tasks.querySelectorAll("th")[5].click(); seen.tasks = ids();
    tasks.querySelectorAll("th")[5].click(); seen.backwards = ids();
    const filter = page.getElementById("filter");
    filter.value = "t0007"; filter.dispatchEvent(new Event("input")); seen.filtered = ids();
    filter.value = ""; filter.dispatchEvent(new Event("input"));
    seen.opened = [...tasks.tBodies[0].rows].map(row => {
      row.click();
      const task = page.getElementById("task");
      return {
        cells: texts(task, "table:not(.lines) tbody tr").length, headings: texts(task, "h2"),
        covered: texts(task, "td.covered").length, missed: texts(task, "td.missed").length,
        added: texts(task, "pre .added").length, removed: texts(task, "pre .removed").length,
        start: texts(task, "p.start"), logs: texts(task, "details pre"), source: texts(task, ".lines tbody td:last-child").join(),
      };
    });
    seen.shares = page.querySelectorAll("#shares svg rect").length;
    const measure = page.getElementById("measure");
    seen.plots = [...measure.options].map(option => {
      measure.value = option.value; measure.dispatchEvent(new Event("change"));
      return page.querySelectorAll("#plot circle").length;
    });
    seen.notes = texts(page, "#notes li");
    seen.sheets = [...page.querySelectorAll("details")].filter(one => one.querySelector("table.sheet")).map(one => {
      const table = one.querySelector("table.sheet");
      table.querySelectorAll("th")[1].click(); table.querySelectorAll("th")[1].click();
      return { title: one.querySelector("summary").textContent, models: [...table.tBodies[0].rows].map(row => row.cells[1].textContent) };
    });
    seen.title = page.title;
    seen.elements = [...new Set([...page.querySelectorAll("*")].map(one => one.localName))].sort();
    seen.requests = frame.contentWindow.performance.getEntriesByType("resource").map(one => one.name);
    const foreign = page.createElement("script"); foreign.textContent = "document.title = 'foreign'";
    page.body.append(foreign); seen.after = page.title;
  } catch (error) { seen.error = String(error); }
  document.getElementById("seen").textContent = JSON.stringify(seen);
});
</script>
"##;

#[test]
fn a_browser_shows_the_page() {
    let line = CommandLine::new();
    // The page shows no character that would reorder or hide others.
    let shown = visible_lines(STRANGE);
    assert_ne!(shown, STRANGE);
    let models = vec![format!("one {STRANGE}"), "two".to_owned()];
    let run = ScoredRun { run_id: "r1", models, tasks: 12, strange: STRANGE };
    run.write(&line.path().join("data"));
    let page = line.run(&["report", "r1", "--format", "html"]);
    let page = page.strip_prefix("exit 0\n---- stdout\n").unwrap_or_else(|| panic!("{page}"));
    fs::write(line.path().join("page.html"), page).unwrap();
    fs::write(line.path().join("reader.html"), READER).unwrap();
    let (document, said) = browse(&line.path().join("reader.html"), line.path());
    let seen = document.split_once("<pre id=\"seen\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let seen = seen.unwrap_or_else(|| panic!("{document}\n{said}")).0;
    let seen = ["&lt;<", "&gt;>", "&amp;&"].iter().fold(seen.to_owned(), |text, pair| {
        let (escaped, plain) = pair.split_at(pair.len() - 1);
        text.replace(escaped, plain)
    });
    let seen: Value = serde_json::from_str(&seen).unwrap_or_else(|error| panic!("{error}: {seen}\n{said}"));
    assert_eq!(seen["error"], Value::Null, "{said}");

    let sorted = |values: &Value| -> Vec<f64> {
        values.as_array().unwrap().iter().map(|value| value.as_str().unwrap().parse().unwrap()).collect()
    };
    let (up, mut down) = (sorted(&seen["ascending"]), sorted(&seen["descending"]));
    assert!(up.len() == 4 && up.is_sorted(), "{up:?}");
    down.reverse();
    assert_eq!(up, down);
    let ids = |values: &Value| -> Vec<String> {
        values.as_array().unwrap().iter().map(|value| value.as_str().unwrap().to_owned()).collect()
    };
    let (up, mut down) = (ids(&seen["tasks"]), ids(&seen["backwards"]));
    assert!(up.len() == 24 && up.is_sorted(), "{up:?}");
    down.reverse();
    assert_eq!(up, down);
    assert_eq!(ids(&seen["filtered"]), ["t0007", "t0007"]);

    let opened = seen["opened"].as_array().unwrap();
    let number = |task: &Value, what: &str| task[what].as_u64().unwrap();
    let sum = |what: &str| opened.iter().map(|task| number(task, what)).sum::<u64>();
    assert_eq!(sum("cells"), 2 * 2 * (1..=3).sum::<u64>() * 4, "each method on new and on old code");
    assert!(sum("covered") > 0 && sum("missed") > 0, "{opened:?}");
    let executed = || opened.iter().filter(|task| !task["logs"].as_array().unwrap().is_empty());
    assert!(executed().count() > 12);
    for task in executed() {
        assert!(number(task, "added") > 0 && number(task, "removed") > 0, "{task}");
        assert!(task["logs"][0].as_str().unwrap().contains(&shown), "{task}");
    }
    assert!(opened.iter().any(|task| task["source"].as_str().unwrap().contains(&shown)));
    for task in opened {
        // Generation tasks are those with odd numbers, and only they have a file whose compilation is looked at.
        let index: usize = task["headings"][0].as_str().unwrap().strip_prefix('t').unwrap().parse().unwrap();
        let said = |how: &str| vec![format!("the file that it starts from {how}")];
        let expected = match (index.is_multiple_of(2), starts_compile(index)) {
            (true, _) => Vec::new(),
            (false, true) => said("compiles on new code"),
            (false, false) => said(&format!("does not compile on new code: cannot find symbol {shown}")),
        };
        assert_eq!(ids(&task["start"]), expected, "{task}");
    }
    assert!(number(&seen, "shares") >= 8, "{seen}");
    assert!(seen["plots"].as_array().is_some_and(|plots| plots.len() == 3 && plots.iter().all(|dots| *dots != 0)));

    let sheets = seen["sheets"].as_array().unwrap();
    let titles: Vec<&str> = sheets.iter().map(|sheet| sheet["title"].as_str().unwrap()).collect();
    assert!(matches!(titles[..], [_, _, "By half-year", "By repository", "By Java development kit"]), "{titles:?}");
    for sheet in sheets {
        let models = ids(&sheet["models"]);
        assert_eq!((models[0].as_str(), models.last().unwrap().as_str()), ("two", &*format!("one {shown}")), "{sheet}");
    }
    let notes = ids(&seen["notes"]);
    let [unknown, failing, not_selected] = notes.as_slice() else { panic!("{notes:?}") };
    assert!(unknown.contains("1 prediction for an unknown task: gone </script></pre><script>"), "{unknown}");
    assert!(failing.starts_with("r1: the developers' tests of 7 tasks fail on new code"), "{failing}");
    assert_eq!(not_selected, "r1: 3 predictions for tasks that were not selected");

    let elements = ids(&seen["elements"]);
    assert!(!elements.iter().any(|name| name == "img"), "{elements:?}");
    assert_eq!((&seen["title"], &seen["requests"]), (&Value::from("Scores"), &Value::Array(Vec::new())));
    assert_eq!(seen["after"], "Scores", "the page's policy lets no other script run");
    let complaints: Vec<&str> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
    // The one script that the reader itself put there.
    assert!(
        matches!(complaints.as_slice(), [refused] if refused.contains("Content Security Policy")),
        "{complaints:?}"
    );
}

/// Returns the document that a browser makes of a file, and what it said.
fn browse(file: &Path, directory: &Path) -> (String, String) {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let there = |name: &&&str| {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&paths).any(|path| path.join(name).is_file())
    };
    let Some(browser) = names.iter().find(there) else {
        panic!(
            "no browser to look at the page with: none of {names:?} is there; `apt-get install chromium` does (as `.ci/run` does)"
        );
    };
    let output = Command::new("timeout")
        .args(["--kill-after=10", "300", *browser, "--headless", "--no-sandbox", "--disable-gpu"])
        // A frame and the page around it are two files, and files are strangers to each other otherwise.
        .args(["--disable-dev-shm-usage", "--allow-file-access-from-files", "--enable-logging=stderr", "--dump-dom"])
        .arg(format!("--user-data-dir={}", directory.join("browser").display()))
        .arg(format!("file://{}", file.display()))
        .env("HOME", directory)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{browser}: {}\n{said}", output.status);
    (String::from_utf8_lossy(&output.stdout).into_owned(), said)
}
