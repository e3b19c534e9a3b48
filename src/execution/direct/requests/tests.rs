use super::*;
use crate::execution::build::masked::tests::masked;
use crate::workspace::class_file::sample;

#[test]
fn what_is_asked_for_reaches_as_far_as_it_must() {
    let files: [(&str, &[u8]); 5] = [
        ("src/ATest.java", b"class ATest {}"),
        ("src/Alone.java", b"class Alone {}"),
        ("src/Middle.java", b"class Middle extends ATest {}"),
        ("src/lombok.config", b"lombok.x = 1"),
        ("lombok.config", b"lombok.y = 2"),
    ];
    let (_directory, masked) = masked(&files, "src/ATest.java");
    let masked = masked.unwrap();
    let text = b"class ATest { int x; }".to_vec();
    for (reach, expected) in
        [(Reach::Dependents, &["ATest", "Middle"][..]), (Reach::Part, &["ATest", "Alone", "Middle"])]
    {
        let request = test_request(&masked, text.clone(), reach).unwrap().unwrap();
        let expected: Vec<String> =
            expected.iter().map(|name| format!("{}/src/{name}.java", places::PROJECT)).collect();
        let mut sources = request.sources.clone();
        sources.sort();
        assert_eq!(sources, expected, "{reach:?}");
        let mut given: Vec<&str> = request.files.iter().map(|(path, _)| path.as_str()).collect();
        given.sort();
        let settings = ["lombok.config", "src/lombok.config"].map(|path| format!("{}/{path}", places::PROJECT));
        let mut needed: Vec<&str> = expected.iter().chain(&settings).map(String::as_str).collect();
        needed.sort();
        assert_eq!(given, needed, "{reach:?}");
        let own = request.files.iter().find(|(path, _)| *path == masked.path()).unwrap();
        assert_eq!(own.1, text);
    }
}

#[test]
fn what_processors_made_is_told_from_what_sources_did() {
    let request = CompileRequest {
        output: "/o".to_owned(),
        files: vec![("/s/p/A.java".to_owned(), b"package p; class A {}".to_vec())],
        ..CompileRequest::default()
    };
    let class = |name: &str, source| (format!("{name}.class"), sample(name, source));
    let own = vec![class("p/A", Some("A.java")), class("p/A$B", Some("A.java"))];
    assert!(made_by_processors(&request, &own, &Files::new()).is_empty());
    let others =
        [class("p/C", Some("C.java")), class("q/A", Some("A.java")), class("p/D", None), ("x.class".into(), vec![1])];
    for other in others {
        let made = made_by_processors(&request, &[&own[..], std::slice::from_ref(&other)].concat(), &Files::new());
        assert_eq!(made, [(format!("/o/{}", other.0), other.1)]);
    }
    let resource = vec![("/o/META-INF/x".to_owned(), b"x".to_vec())];
    assert_eq!(made_by_processors(&request, &own, &resource), resource);
}
