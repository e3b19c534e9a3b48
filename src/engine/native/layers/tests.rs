use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use super::*;
use crate::event::Event;

fn layer(add: impl FnOnce(&mut tar::Builder<Vec<u8>>)) -> (Digest, Vec<u8>) {
    let mut builder = tar::Builder::new(Vec::new());
    add(&mut builder);
    let bytes = builder.into_inner().unwrap();
    (Digest::of(&bytes), bytes)
}

fn entry(tar: &mut tar::Builder<Vec<u8>>, path: &str, kind: tar::EntryType, mode: u32, content: &[u8]) {
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_mtime(1_000_000);
    header.set_size(content.len() as u64);
    tar.append_data(&mut header, path, content).unwrap();
}

fn link(tar: &mut tar::Builder<Vec<u8>>, path: &str, kind: tar::EntryType, target: &str) {
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(0o777);
    header.set_mtime(0);
    header.set_size(0);
    tar.append_link(&mut header, path, target).unwrap();
}

fn sample() -> (Digest, Vec<u8>) {
    layer(|tar| {
        entry(tar, "bin", tar::EntryType::Directory, 0o555, b"");
        entry(tar, "bin/tool", tar::EntryType::Regular, 0o6755, b"tool");
        link(tar, "bin/same", tar::EntryType::Link, "bin/tool");
        link(tar, "bin/link", tar::EntryType::Symlink, "/etc/passwd");
        entry(tar, ".wh.gone", tar::EntryType::Regular, 0o644, b"");
    })
}

fn add(layers: &Layers, image: &Digest, (diff_id, bytes): &(Digest, Vec<u8>)) -> Result<(), EngineError> {
    let bytes = bytes.clone();
    let open = move || -> Result<Box<dyn Read>, EngineError> { Ok(Box::new(io::Cursor::new(bytes.clone()))) };
    layers.add(image, &[Source { diff_id: *diff_id, open: &open }], 7)
}

#[test]
fn a_layer_is_unpacked_once_with_its_modes_and_links() {
    let directory = tempfile::tempdir().unwrap();
    let layers = Layers::open(directory.path(), &Owner::current().unwrap(), &EventSink::none()).unwrap();
    let image = Digest::of(b"image");
    let sample = sample();
    assert_eq!(layers.of(&image).unwrap(), None);
    add(&layers, &image, &sample).unwrap();
    assert_eq!(layers.of(&image).unwrap(), Some(vec![sample.0.hex()]));
    let tree = directory.path().join(sample.0.hex());
    let tool = fs::metadata(tree.join("bin/tool")).unwrap();
    assert_eq!(tool.permissions().mode() & 0o7777, 0o755, "no set-uid bits");
    assert_eq!((tool.ino(), tool.mtime()), (fs::metadata(tree.join("bin/same")).unwrap().ino(), 1_000_000));
    assert_eq!(fs::read_link(tree.join("bin/link")).unwrap(), Path::new("/etc/passwd"));
    let whiteout = fs::symlink_metadata(tree.join("gone")).unwrap();
    assert_eq!((whiteout.rdev(), whiteout.mode() & libc::S_IFMT), (0, libc::S_IFCHR), "a whiteout of overlayfs");
    // Found, not made again.
    let before = fs::metadata(&tree).unwrap().ino();
    add(&layers, &Digest::of(b"another image"), &sample).unwrap();
    assert_eq!(fs::metadata(&tree).unwrap().ino(), before);
}

#[test]
fn a_layer_with_other_content_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let layers = Layers::open(directory.path(), &Owner::current().unwrap(), &EventSink::none()).unwrap();
    let (_, bytes) = sample();
    let wrong = add(&layers, &Digest::of(b"image"), &(Digest::of(b"other"), bytes));
    let wrong = wrong.unwrap_err().to_string();
    assert!(wrong.contains("its content has the digest"), "{wrong}");
    let left = fs::read_dir(directory.path()).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(left.iter().all(|name| !name.starts_with(UNFINISHED) && Digest::from_hex(name).is_err()), "{left:?}");
}

#[test]
fn hostile_layers_reach_nothing_outside() {
    let directory = tempfile::tempdir().unwrap();
    let layers =
        Layers::open(&directory.path().join("unpacked"), &Owner::current().unwrap(), &EventSink::none()).unwrap();
    let outside = directory.path().join("outside");
    fs::create_dir(&outside).unwrap();
    let through_link = layer(|tar| {
        link(tar, "way", tar::EntryType::Symlink, outside.to_str().unwrap());
        entry(tar, "way/astray", tar::EntryType::Regular, 0o644, b"x");
    });
    let hard_link = layer(|tar| {
        link(tar, "way", tar::EntryType::Symlink, "/etc");
        link(tar, "passwd", tar::EntryType::Link, "way/passwd");
    });
    let device = layer(|tar| entry(tar, "disk", tar::EntryType::Block, 0o666, b""));
    for hostile in [through_link, hard_link, device] {
        assert!(add(&layers, &hostile.0, &hostile).is_err());
        assert_eq!(layers.of(&hostile.0).unwrap(), None);
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn what_nobody_needs_goes_and_what_somebody_uses_stays() {
    let directory = tempfile::tempdir().unwrap();
    let owner = Owner::current().unwrap();
    let layers = Layers::open(directory.path(), &owner, &EventSink::none()).unwrap();
    let (kept, doomed) = (sample(), layer(|tar| entry(tar, "a", tar::EntryType::Regular, 0o644, b"a")));
    for one in [&kept, &doomed] {
        add(&layers, &one.0, one).unwrap();
    }
    let used = BTreeSet::from([kept.0]);
    let found = layers.prune(&used, true).unwrap().unwrap();
    assert_eq!(found.iter().map(|(layer, _)| *layer).collect::<Vec<_>>(), [doomed.0]);
    {
        let _other = Layers::open(directory.path(), &owner, &EventSink::none()).unwrap();
        assert!(layers.prune(&used, false).unwrap().is_none(), "another engine may use it");
    }
    assert_eq!(layers.prune(&used, false).unwrap().unwrap().len(), 1);
    assert_eq!((layers.of(&doomed.0).unwrap(), layers.of(&kept.0).unwrap().is_some()), (None, true));
    assert_eq!(layers.remove(&kept.0).unwrap(), ImageRemoval::Removed);
    assert!(!directory.path().join(kept.0.hex()).exists());
}

#[test]
fn what_is_unfinished_goes_when_nobody_makes_anything() {
    let directory = tempfile::tempdir().unwrap();
    let owner = Owner::current().unwrap();
    let maker = Layers::open(directory.path(), &owner, &EventSink::none()).unwrap();
    // As far as its number tells, the maker is dead: it is of another namespace.
    let elsewhere = directory.path().join(format!("{UNFINISHED}{}-1-0-0", std::process::id()));
    fs::create_dir_all(elsewhere.join("x")).unwrap();
    let file = directory.path().join(format!("{UNFINISHED}{owner}-a0"));
    fs::write(&file, "").unwrap();
    let making = maker.lock().unwrap();
    Layers::open(directory.path(), &owner, &EventSink::none()).unwrap();
    assert!(elsewhere.join("x").exists() && file.exists(), "somebody makes something, and it may be this");
    drop(making);
    Layers::open(directory.path(), &owner, &EventSink::none()).unwrap();
    assert!(!elsewhere.exists() && !file.exists());
}

/// Tells whether an engine of another process could open the layers now.
fn may_be_opened(directory: &Path) -> bool {
    let lock = open_lock(&directory.join(IN_USE)).unwrap();
    flock(&lock, FlockOperation::NonBlockingLockShared).is_ok()
}

#[test]
fn nobody_opens_layers_while_they_lose_their_names() {
    let directory = tempfile::tempdir().unwrap();
    let layers = Layers::open(directory.path(), &Owner::current().unwrap(), &EventSink::none()).unwrap();
    let doomed = sample();
    add(&layers, &doomed.0, &doomed).unwrap();
    let other = Layers::open(directory.path(), &Owner::current().unwrap(), &EventSink::none()).unwrap();
    assert!(layers.lock_out_others().unwrap().is_none());
    drop(other);
    {
        let locked_out = layers.lock_out_others().unwrap().unwrap();
        assert!(!may_be_opened(directory.path()));
        let named = layers.take_names(&locked_out, &|_| true).unwrap();
        assert_eq!(named.keys().collect::<Vec<_>>(), [&doomed.0]);
        assert!(named[&doomed.0].is_dir(), "it is still there, without its name");
        assert_eq!(layers.of(&doomed.0).unwrap(), None);
        assert!(!may_be_opened(directory.path()));
    }
    assert!(may_be_opened(directory.path()));
    // It is shared again, not given up.
    let lock = open_lock(&directory.path().join(IN_USE)).unwrap();
    assert!(flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err());
}

#[test]
fn a_name_is_one_images_and_can_be_taken_off_it() {
    let directory = tempfile::tempdir().unwrap();
    let layers = Layers::open(directory.path(), &Owner::current().unwrap(), &EventSink::none()).unwrap();
    let images = [Digest::of(b"first"), Digest::of(b"second")];
    for image in &images {
        add(&layers, image, &sample()).unwrap();
    }
    let names = || images.map(|image| layers.inspect(&image).unwrap().unwrap().names);
    layers.tag(&images[0], "ready").unwrap();
    layers.tag(&images[1], "ready").unwrap();
    assert_eq!(names(), [vec![], vec!["ready".to_owned()]]);
    layers.untag(&images[0], "ready").unwrap();
    assert_eq!(names(), [vec![], vec!["ready".to_owned()]], "it is another image's");
    layers.untag(&images[1], "ready").unwrap();
    assert_eq!(names(), [vec![], Vec::<String>::new()]);
    layers.untag(&Digest::of(b"unknown"), "ready").unwrap();
}

/// Flips a byte of a file and gives it back its time.
fn flip(path: &Path) {
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    let mut bytes = fs::read(path).unwrap();
    bytes[0] ^= 1;
    fs::write(path, bytes).unwrap();
    fs::File::options().write(true).open(path).unwrap().file().set_modified(modified).unwrap();
}

#[test]
fn a_damaged_layer_is_named_and_unpacked_anew() {
    let directory = tempfile::tempdir().unwrap();
    let owner = Owner::current().unwrap();
    let told = std::sync::Arc::new(Mutex::new(Vec::new()));
    let events = {
        let told = std::sync::Arc::clone(&told);
        EventSink::new(move |event| told.lock().unwrap().push(event))
    };
    let open = || Layers::open(directory.path(), &owner, &events).unwrap();
    let (image, sample) = (Digest::of(b"image"), sample());
    let tool = directory.path().join(sample.0.hex()).join("bin/tool");
    {
        let layers = open();
        add(&layers, &image, &sample).unwrap();
        assert!(layers.is_known(&image).unwrap(), "who unpacked it knows it");
    }
    let layers = open();
    assert!(!layers.is_known(&image).unwrap() && layers.is_whole(&image).unwrap() && layers.is_known(&image).unwrap());
    drop(layers);
    flip(&tool);
    let layers = open();
    let verified = layers.verify(false).unwrap();
    // The same file under two names.
    let files: Vec<_> = verified.damaged.iter().map(|damaged| damaged.file.file_name().unwrap()).collect();
    assert_eq!((verified.sound, files), (0, vec!["same".as_ref(), "tool".as_ref()]));
    assert!(told.lock().unwrap().is_empty());
    assert!(!layers.is_whole(&image).unwrap() && !layers.is_known(&image).unwrap());
    assert!(layers.damage(&image).unwrap().is_some_and(|file| file.ends_with("bin/same")));
    let told = std::mem::take(&mut *told.lock().unwrap());
    assert!(
        matches!(&told[..], [Event::Warning { text }] if text.contains("bin/same`: it holds other bytes, and 1 more"))
    );
    {
        let _other = open();
        let error = add(&layers, &image, &sample).unwrap_err();
        assert!(matches!(error, EngineError::LayerDamaged { layer, .. } if layer == sample.0), "{error}");
        assert!(!layers.is_whole(&image).unwrap(), "it is not used all the same");
    }
    add(&layers, &image, &sample).unwrap();
    assert!(layers.is_whole(&image).unwrap());
    assert_eq!(fs::read(&tool).unwrap(), b"tool");
    assert_eq!(layers.verify(false).unwrap().damaged, []);
    flip(&tool);
    assert_eq!(layers.verify(true).unwrap().removed, 1);
    assert_eq!(layers.of(&image).unwrap(), None);
    let manifests = directory.path().join(inventory::MANIFESTS);
    assert_eq!(fs::read_dir(manifests).unwrap().count(), 0, "nothing tells of what is gone");
}

#[test]
fn a_layer_of_an_earlier_program_is_compared_with_its_blob() {
    let directory = tempfile::tempdir().unwrap();
    let owner = Owner::current().unwrap();
    let open = || Layers::open(directory.path(), &owner, &EventSink::none()).unwrap();
    let (image, sample) = (Digest::of(b"image"), sample());
    let tree = directory.path().join(sample.0.hex());
    add(&open(), &image, &sample).unwrap();
    for damaged in [false, true] {
        inventory::forget(directory.path(), &sample.0).unwrap();
        let before = fs::metadata(&tree).unwrap().ino();
        if damaged {
            flip(&tree.join("bin/tool"));
        }
        let layers = open();
        assert_eq!(layers.verify(false).unwrap().unknown, 1);
        assert!(!layers.is_whole(&image).unwrap());
        add(&layers, &image, &sample).unwrap();
        assert!(layers.is_whole(&image).unwrap());
        assert_eq!(fs::metadata(&tree).unwrap().ino() != before, damaged, "a sound tree stays");
        assert_eq!(fs::read(tree.join("bin/tool")).unwrap(), b"tool");
    }
}
