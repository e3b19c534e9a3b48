//! Settings: the file, the environment, flags, in rising order.

use super::import::write_published;
use crate::support::command::CommandLine;

#[test]
fn flags_go_before_the_environment_and_that_before_the_file() {
    let line = CommandLine::new();
    write_published(&line);
    line.run(&["import", "published"]);
    line.write("data/settings.toml", "git_mirror = \"file/{name}\"\n");
    let asked = |variables: &[(&str, &str)], flags: &[&str]| {
        let text = line.run_with(variables, &[&["lock", "--check", "first/one"], flags].concat());
        assert!(text.starts_with("exit 5\n"), "{text}");
        let (_, rest) = text.split_once("there is no git repository of first/one at `").unwrap();
        rest.split_once('`').unwrap().0.to_owned()
    };
    let (variable, flag) = ([("TESTEVO_SANDBOX_GIT_MIRROR", "variable/{name}")], ["--git-mirror", "flag/{name}"]);
    assert_eq!(asked(&[], &[]), "file/one");
    assert_eq!(asked(&variable, &[]), "variable/one");
    assert_eq!(asked(&variable, &flag), "flag/one");
    assert_eq!(asked(&[], &flag), "flag/one");
}

#[test]
fn each_origin_is_looked_for_in_that_order() {
    let line = CommandLine::new();
    line.write("there/junit/junit/maven-metadata.xml", "");
    line.write("there/universalmutator/index.html", "");
    let place = |name: &str| format!("file://{}/{name}", line.path().display());
    let [there, nowhere] = [place("there"), place("nowhere")];
    let socket = format!("unix://{}/none.sock", line.path().display());
    let answers = |file: &str, variable: &str, flag: Option<&str>| {
        // The other origin is named in the file alone, which nothing hides.
        line.write("data/settings.toml", &format!("[origins]\npypi = \"{there}\"\ncentral = \"{file}\"\n"));
        let origins = if variable.is_empty() { String::new() } else { format!("central={variable}") };
        let variables = [("DOCKER_HOST", socket.as_str()), ("TESTEVO_SANDBOX_ORIGINS", origins.as_str())];
        let flag = flag.map(|flag| ["--origin".to_owned(), format!("central={flag}")]);
        let mut arguments = vec!["doctor", "--engine", "docker"];
        arguments.extend(flag.iter().flatten().map(String::as_str));
        let text = line.run_with(&variables, &arguments);
        let check = |name: &str| text.lines().find(|line| line.contains(&format!("origin          {name}:"))).unwrap();
        assert!(check("pypi").starts_with("ok "), "{text}");
        check("central").starts_with("ok ")
    };
    assert!(answers(&there, "", None));
    assert!(!answers(&nowhere, "", None));
    assert!(answers(&nowhere, &there, None));
    assert!(!answers(&there, &nowhere, None));
    assert!(answers(&nowhere, &nowhere, Some(&there)));
    assert!(!answers(&there, &there, Some(&nowhere)));
}
