use fs_err as fs;

use super::*;
use crate::execution::direct::write_files;

/// Returns what comes of looking at a tree of these files with this recording, in which all calls are of tests.
fn looked(files: &[(&str, &[u8])], call: &serde_json::Value) -> (Store, tempfile::TempDir, Looked) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("store"), directory.path()).unwrap();
    let source = directory.path().join("source.tar");
    write_files(&source, files.iter().copied()).unwrap();
    let tree = store.put(&fs::read(&source).unwrap()).unwrap();
    let call: CompilerCall = serde_json::from_value(call.clone()).unwrap();
    let recording = Recording { compilations: vec![call], ..Recording::default() };
    let build = Sources {
        source: &source,
        project: "g:a",
        test_calls: &recording.compilations,
        test_output: "/work/project/target/test-classes",
    };
    let looked = look(&store, &tree, &recording, &build).unwrap();
    (store, directory, looked)
}

#[test]
fn what_compilers_read_of_the_project_is_given_to_the_warm_one() {
    let files: [(&str, &[u8]); 5] = [
        ("src/ATest.java", b"class ATest {}"),
        ("lib/own.jar", b"jar"),
        ("target/classes/A.class", b"main"),
        ("target/test-classes/ATest.class", b"test"),
        ("data/x.txt", b"data"),
    ];
    let call = |class_path: &[&str], arguments: &[&str]| {
        serde_json::json!({
            "project": "g:a", "goal": "testCompile", "compiler": "javac", "arguments": arguments,
            "sources": ["/work/project/src/ATest.java"], "source_roots": ["/work/project/src"], "proc": null,
            "generated_sources": "/work/project/target/generated", "class_path": class_path,
            "output": "/work/project/target/test-classes",
        })
    };
    let [jar, beside, classes] =
        ["/work/project/lib/own.jar", "/work/project/app/../lib/own.jar", "/work/project/target/classes"];
    let list = format!("/work/project/target/test-classes:{classes}:{jar}:/m2/a.jar:/work/project/none");
    let elements: Vec<&str> = list.split(':').chain([beside]).collect();
    let arguments = ["-d", "/work/project/target/test-classes", "-classpath", &list, "-sourcepath"];
    let roots = "/work/project/src:/work/project/target/generated:";
    let fit = call(&elements, &[&arguments[..], &[roots, "-Xlint:all", "-Akey=1.8"]].concat());
    let (store, _directory, looked_at) = looked(&files, &fit);
    assert_eq!(looked_at.unfit, None);
    assert_eq!(looked_at.jars.keys().map(String::as_str).collect::<Vec<_>>(), [beside, jar, classes]);
    for path in [jar, beside] {
        assert_eq!(store.read(&looked_at.jars[path]).unwrap(), b"jar");
    }
    for argument in [
        "-Adata=/work/project/data/x.txt",
        "-Adata=data/x.txt",
        "-Adata=file:/work/project/./data",
        "-Xplugin:Check \"-config data/x.txt\"",
        "@data/x.txt",
        "-Aroot=/work/project",
        "-Aroot=.",
        "-processorpath=/work/project/lib/own.jar/../../data",
    ] {
        let unfit = looked(&files, &call(&elements, &[&arguments[..4], &[argument]].concat())).2.unfit;
        assert!(unfit.is_some_and(|reason| reason.contains("is told of")), "{argument}");
    }
    let mut forked = call(&elements, &["-Adata=x.txt"]);
    assert_eq!(looked(&files, &forked).2.unfit, None, "nothing lies there");
    forked["working_directory"] = "/work/project/data".into();
    assert_eq!(looked(&files, &forked).2.unfit, None, "a compiler in Maven's process works in the tree's directory");
    forked["fork"] = true.into();
    assert!(looked(&files, &forked).2.unfit.is_some_and(|reason| reason.contains("`data/x.txt`")));
    for argument in ["-Adata=/opt/data/x.txt", "-Adata=../data/x.txt", "-Adata=/work/projects/data/x.txt"] {
        assert_eq!(looked(&files, &call(&elements, &[argument])).2.unfit, None, "{argument}");
    }
}

#[test]
fn what_a_link_leads_to_is_unfit() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tree.tar");
    let mut builder = tar::Builder::new(fs::File::create(&path).unwrap());
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    builder.append_link(&mut header, "lib", "/elsewhere").unwrap();
    builder.into_inner().unwrap();
    let tree = CompiledTree::open(&path).unwrap();
    assert_eq!(["lib", "lib/own.jar", "libs"].map(|path| tree.at(path)), {
        [EntryKind::Unclear, EntryKind::Unclear, EntryKind::Nothing]
    });
}
