//! The report's pages by keyboard alone, in a real browser: Tab reaches all that can be used and the focus is seen, Enter opens
//! and unfolds, and who comes back finds the place again.

use fs_err as fs;
use serde_json::{Value, json};

use crate::support::browser::Browser;
use crate::support::command::CommandLine;
use crate::support::scored::ScoredRun;

/// Tells what the Tab key must reach, where the focus is, and whether it is seen.
const KEYS: &str = include_str!("page/keys.js");

/// Writes a report of two models, one of them with two samples, as one page and as a directory of pages.
fn report() -> CommandLine {
    let line = CommandLine::new();
    let models = ["atlas", "birch (sample 1)", "birch (sample 2)", "gold"].map(str::to_owned).into();
    ScoredRun { run_id: "r1", models, tasks: 12, strange: "" }.write(&line.path().join("data"));
    // On a busy machine progress would be told as well.
    let page = line.run(&["report", "r1", "--quiet", "--format", "html"]);
    let page = page.strip_prefix("exit 0\n---- stdout\n").unwrap_or_else(|| panic!("{page}"));
    fs::write(line.path().join("page.html"), page).unwrap();
    let said = line.run(&["report", "r1", "--quiet", "--format", "html", "--output", "pages"]);
    assert_eq!(said, "exit 0\n---- stdout\npages/index.html\n");
    line
}

fn path(line: &CommandLine, name: &str) -> String {
    line.path().join(name).display().to_string()
}

/// Presses Tab through the page, asserts that everything is reached in order and seen, and returns the names.
fn walk(browser: &mut Browser) -> Vec<String> {
    let names: Vec<String> = serde_json::from_value(browser.evaluate("reached().map(called)")).unwrap();
    for (place, name) in names.iter().enumerate() {
        browser.press("Tab");
        // The page may still move below the focus while charts are drawn, as once seen under load.
        browser.until("focused().seen");
        let expected = json!({ "place": place, "name": name, "seen": true });
        assert_eq!(browser.evaluate("focused()"), expected, "{names:?}");
    }
    names
}

/// Presses a key until what is called so has the focus.
fn press_until(browser: &mut Browser, key: &str, name: &str) {
    let most = browser.evaluate("reached().length").as_u64().unwrap();
    for _ in 0..=most {
        browser.press(key);
        let focused = browser.evaluate("focused()");
        if focused["name"] == name {
            browser.until("focused().seen");
            return;
        }
    }
    panic!("{key} does not lead to {name}");
}

#[test]
fn keys_alone_reach_and_open_everything_of_the_pages() {
    let line = report();
    let [index, seventh] = ["pages/index.html", "pages/tasks/t0007.html"].map(|name| path(&line, name));
    let mut browser = Browser::start(line.path());
    browser.open(&index, KEYS);
    let names = walk(&mut browser);
    assert_eq!(names[0], "Skip to the tasks");
    let filters = ["text", "track", "outcome", "model", "repository", "jdk", "reason", "order"];
    let last: Vec<String> = filters.iter().map(|name| format!("by-{name}")).chain(["tasks".to_owned()]).collect();
    let tasks: Vec<String> = (0..12).map(|task| format!("t{task:04}")).collect();
    assert!(names.ends_with(&[last, tasks].concat()), "{names:?}");
    let folded = names.iter().filter(|name| *name == "2 samples").count();
    let sorted = names.iter().filter(|name| *name == "Every pair of models").count();
    assert_eq!((folded, sorted), (2, 2), "for each track: {names:?}");

    // After the last one comes the first again: past everything to the filters, which take text, and to the task that is left.
    press_until(&mut browser, "Tab", "Skip to the tasks");
    browser.press("Enter");
    browser.press("Tab");
    assert_eq!(browser.evaluate("focused().name"), "by-text");
    for letter in ["t", "0", "0", "0", "7"] {
        browser.press(letter);
    }
    assert_eq!(browser.evaluate("tasksListed()"), json!(["t0007"]));
    press_until(&mut browser, "Tab", "t0007");
    browser.press("Enter");
    let opened = "location.pathname.endsWith('/tasks/t0007.html') && document.querySelector('#task h1') !== null";
    browser.loaded(opened, KEYS);
    let of_task = walk(&mut browser);
    assert_eq!(of_task[..4], ["Skip to the task", "← All tasks", "← t0006", "t0008 →"], "{of_task:?}");
    // A model's name in the comparison leads to its part of the page.
    press_until(&mut browser, "Shift+Tab", "atlas");
    browser.press("Enter");
    assert_eq!(browser.evaluate("document.activeElement.id"), "m0");

    // Back leads to the list as it was left, and so does the link above the task.
    let returned = "location.pathname.endsWith('/index.html') && document.querySelector('#tasks tbody a') !== null";
    browser.back();
    browser.loaded(returned, KEYS);
    assert_eq!(browser.evaluate("tasksListed()"), json!(["t0007"]));
    browser.open(&format!("{seventh}#from=tasks?text=t000"), KEYS);
    press_until(&mut browser, "Tab", "← All tasks");
    browser.press("Enter");
    browser.loaded(returned, KEYS);
    assert_eq!(browser.evaluate("tasksListed().length"), 10);
    browser.press("Tab");
    assert_eq!(browser.evaluate("focused().name"), "by-text", "the list, not the top of the page");
    assert_eq!(browser.complaints, Vec::<Value>::new());
}

#[test]
fn keys_alone_use_the_page_of_everything() {
    let line = report();
    let mut browser = Browser::start(line.path());
    browser.open(&path(&line, "page.html"), KEYS);
    // A model's samples unfold below it, and fold again.
    let samples = "[...document.querySelectorAll('tr.sample')].map(row => !row.hidden && row.checkVisibility())";
    press_until(&mut browser, "Tab", "2 samples");
    for (key, unfolded) in [(" ", true), ("Enter", false), ("Enter", true)] {
        browser.press(key);
        assert_eq!(browser.evaluate(samples), json!([unfolded, unfolded, false, false]), "after {key:?}");
        assert_eq!(browser.evaluate("document.activeElement.ariaExpanded"), json!(unfolded.to_string()));
    }
    // Arrows choose another reading, and what is unfolded stays.
    press_until(&mut browser, "Shift+Tab", "Skip to the tasks");
    let reading = "document.activeElement.name + ' ' + document.activeElement.value";
    while browser.evaluate(reading) != "reading paper" {
        assert_ne!(browser.evaluate("document.activeElement.id"), "by-order", "no reading is reached");
        browser.press("Tab");
    }
    browser.press("ArrowRight");
    assert_eq!(browser.evaluate(reading), "reading strict", "clean success is not known without controls");
    assert_eq!(browser.evaluate(samples), json!([true, true, false, false]));

    // Its samples are one model in the curves and in the list, and can be chosen one by one.
    let texts = |of: &str| format!("[...document.querySelectorAll({of:?})].map(one => one.textContent)");
    assert_eq!(browser.evaluate(&texts("#curve-legend button")), json!(["atlas", "birch", "gold"]));
    assert_eq!(browser.evaluate(&texts("#tasks thead .sideways")), json!(["atlas", "birch", "gold"]));
    let models = json!(["all", "atlas", "birch", "– birch (sample 1)", "– birch (sample 2)", "gold"]);
    assert_eq!(browser.evaluate(&texts("#by-model option")), models);
    let cell = "document.querySelector('#tasks tbody td[data-label=birch]')";
    assert_eq!(browser.evaluate(&format!("{cell}.querySelectorAll('.of-sample').length")), 2);
    let said = browser.evaluate(&format!("{cell}.firstChild.textContent"));
    assert!(said.as_str().is_some_and(|said| said.ends_with(" of 2 samples succeed")), "{said}");
    let curves =
        "document.querySelectorAll('#curves path.line').length / document.querySelectorAll('#curves svg').length";
    assert_eq!(browser.evaluate(curves), 2);

    press_until(&mut browser, "Tab", "t0003");
    browser.press("Enter");
    browser.until("location.hash === '#task=t0003' && document.activeElement.id === 'task'");
    assert_eq!(browser.evaluate("document.title"), "t0003 – Scores");
    browser.press("Tab");
    assert_eq!(browser.evaluate("[focused().name, focused().seen]"), json!(["← All tasks", true]));
    // The link and the browser's Back both lead to the link that was followed.
    browser.press("Enter");
    let returned = "document.getElementById('task').hidden && document.activeElement.textContent === 't0003'";
    browser.until(returned);
    browser.press("Enter");
    browser.until("location.hash === '#task=t0003' && document.activeElement.id === 'task'");
    browser.back();
    browser.until(returned);
    assert_eq!(browser.evaluate("focused().seen"), true);
    assert_eq!(browser.complaints, Vec::<Value>::new());
}
