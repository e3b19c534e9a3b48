//! Pictures of the report in a real browser: at the widths of a phone, a tablet and a wide screen, in both schemes.

use std::path::Path;

use fs_err as fs;
use serde_json::{Value, json};

use crate::support::browser::browse;
use crate::support::command::CommandLine;
use crate::support::png::Picture;
use crate::support::scored::ScoredRun;

/// Shows the index in frames of three widths in both schemes, its top and its charts, and tells where in the picture
/// stands what must be visible, in which colour.
const GALLERY: &str = include_str!("page/gallery.html");

/// The most milliseconds until a modest run's index is loaded.
const MOST_MILLISECONDS: f64 = 2000.0;

/// Writes a report of invented models.
fn write(line: &CommandLine, tasks: usize, models: &[&str], to: &str) {
    let models = models.iter().map(|name| (*name).to_owned()).chain(["gold".to_owned()]).collect();
    let run = ScoredRun { run_id: "sample", models, tasks, strange: "" }.write(&line.path().join("data"));
    // A task without the source of its focal method.
    let lost = fs::read_dir(run.join("sources")).unwrap().map(|entry| entry.unwrap().path());
    let lost = lost.filter(|path| fs::read_to_string(path).unwrap().contains("class C3 "));
    lost.for_each(|path| fs::remove_file(path).unwrap());
    let said = line.run(&["report", "sample", "--format", "html", "--output", to]);
    assert!(said.starts_with("exit 0\n"), "{said}");
}

#[test]
fn what_must_be_visible_is_visible_at_each_width_in_both_schemes() {
    let line = CommandLine::new();
    write(&line, 120, &["atlas-large", "birch-2", "cedar-mini", "dune-coder"], "pages");
    fs::write(line.path().join("gallery.html"), GALLERY).unwrap();
    // The picture stays where a person can look at it.
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gallery.png");
    let arguments = [
        "--dump-dom".to_owned(),
        format!("--screenshot={}", file.display()),
        "--window-size=3014,3600".to_owned(),
        "--hide-scrollbars".to_owned(),
    ];
    let (document, said) = browse(&line.path().join("gallery.html"), line.path(), &arguments);
    let seen = document.split_once("<pre id=\"seen\" hidden=\"\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let seen: Value = serde_json::from_str(seen.unwrap_or_else(|| panic!("{document}\n{said}")).0).unwrap();
    assert_eq!(seen["error"], Value::Null, "{said}");
    let picture = Picture::read(&fs::read(&file).unwrap());
    let frames = seen["frames"].as_array().unwrap();
    assert_eq!(frames.len(), 12);
    for frame in frames {
        let about = format!("{} px, {}, {}", frame["width"], frame["scheme"], frame["place"]);
        let light: u32 = colour(&frame["ground"]).iter().map(|part| u32::from(*part)).sum();
        assert_eq!(light > 600, frame["scheme"] == "light", "{about}: {}", frame["ground"]);
        let mut kinds: Vec<&str> = Vec::new();
        for part in frame["parts"].as_array().unwrap() {
            let [left, top, right, bottom] =
                [0, 1, 2, 3].map(|end| part["box"][end].as_f64().unwrap().round() as usize);
            let near = picture.nearest((left, top), (right, bottom), colour(&part["colour"]));
            // Thin lines and text are smoothed.
            assert!(near <= part["within"].as_u64().unwrap(), "{about}: {near} off, {part}");
            kinds.push(part["kind"].as_str().unwrap());
        }
        kinds.sort_unstable();
        kinds.dedup();
        let expected: &[&str] = match frame["place"].as_str().unwrap() {
            "top" => &["dot", "gold", "ground", "outcome", "title"],
            _ => &["gold", "ground", "mark"],
        };
        assert_eq!(kinds, expected, "{about}");
    }
    let milliseconds = seen["milliseconds"].as_f64().unwrap();
    assert!(milliseconds > 0.0 && milliseconds < MOST_MILLISECONDS, "{milliseconds} ms");
    // Models are in the order of their success. Ranks are what this run gives.
    let ranks = |last: [&str; 2]| {
        json!([["1", "atlas-large"], ["1", "birch-2"], [last[0], "cedar-mini"], [last[1], "dune-coder"]])
    };
    assert_eq!(seen["ranks"], json!([ranks(["1", "2"]), ranks(["2", "2"])]));
    assert_eq!(seen["left"][0].as_str().unwrap(), "The source is not in this page.");
    assert_eq!(seen["left"][1], 10, "without a source every mutant stands in the list below");
}

fn colour(text: &Value) -> [u8; 3] {
    let text = text.as_str().unwrap();
    let inner = text.split_once('(').and_then(|(_, rest)| rest.split_once(')')).unwrap_or_else(|| panic!("{text}")).0;
    let parts: Vec<u8> = inner.split(',').take(3).map(|part| part.trim().parse().unwrap()).collect();
    parts.try_into().unwrap()
}

/// Writes a report of invented models, and takes the pictures of the documentation. They replace those in `docs/images` with
/// `RENDER_PICTURES=1` only.
#[test]
#[ignore = "takes the documentation's pictures; RENDER_PICTURES=1 writes them into docs/images"]
fn pictures_of_the_report() {
    let line = CommandLine::new();
    let names = ["atlas-large", "birch-2", "cedar-mini", "dune-coder", "elm-small", "fjord-pro"];
    let report = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pictures");
    if report.exists() {
        fs::remove_dir_all(&report).unwrap();
    }
    write(&line, 240, &names, report.to_str().unwrap());
    let images = match std::env::var_os("RENDER_PICTURES") {
        Some(_) => Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/images"),
        None => report.join("images"),
    };
    fs::create_dir_all(&images).unwrap();
    for (page, picture, size) in
        [("index.html", "report.png", "1180,1080"), ("tasks/t0007.html", "report-task.png", "1180,1250")]
    {
        let arguments = [format!("--screenshot={}", images.join(picture).display()), format!("--window-size={size}")];
        browse(&report.join(page), line.path(), &arguments);
    }
}
