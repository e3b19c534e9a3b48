use super::*;

#[test]
fn every_source_is_carried() {
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("images");
    let mut folders = vec![images.clone()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "java")
                || path.components().any(|part| part.as_os_str() == "META-INF")
            {
                found.push(path.strip_prefix(&images).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    let carried: Vec<&str> = SOURCES.iter().map(|(path, _)| *path).collect();
    assert_eq!(found, carried);
}

#[test]
fn jars_are_found_without_an_image_while_they_are_sound() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("store"), &directory.path().join("tmp")).unwrap();
    let recipe = Digest::of(b"recipe");
    let remembered = |recipe: &Digest| remembered(recipe, &store, &EventSink::none());
    assert!(remembered(&recipe).is_none());
    let [runner, recorder, compiler, tracer] = [b"1", b"2", b"3", b"4"].map(|jar| store.put(jar).unwrap());
    let jars = Remembered { runner, recorder, compiler, tracer };
    made::keep(&store, key(&recipe), jars).unwrap();
    assert_eq!(remembered(&recipe).unwrap().recorder, store.path(&recorder));
    assert!(remembered(&Digest::of(b"another recipe")).is_none());
    // The first damaged one hides no other.
    for jar in [runner, recorder] {
        fs::write(store.path(&jar), "x").unwrap();
    }
    assert!(remembered(&recipe).is_none());
    assert!(!store.contains(&runner) && !store.contains(&recorder) && store.contains(&compiler));
}

#[test]
fn equal_classes_give_equal_jars() {
    let classes = source_archive().unwrap();
    assert_eq!(jar(&classes, &[("r", "x")]).unwrap(), jar(&classes, &[("r", "x")]).unwrap());
    assert!(jar(&tar::Builder::new(Vec::new()).into_inner().unwrap(), &[]).is_err());
}
