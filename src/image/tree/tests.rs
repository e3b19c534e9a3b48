use super::*;
use proptest::prelude::*;

fn place(path: &str, entry: Entry) -> PlacedEntry {
    PlacedEntry { path: path.parse().unwrap(), entry }
}

fn file(path: &str, text: &str) -> PlacedEntry {
    place(path, Entry::file(0o644, 5, Content::of(text)))
}

fn insert(tree: &mut Tree<'_>, placed: PlacedEntry) -> Result<(), ImageError> {
    tree.insert(placed, &Arc::from("test"), Precedence::Package)
}

fn paths(tree: Tree<'_>) -> Vec<String> {
    tree.finish().unwrap().into_keys().map(String::from).collect()
}

#[test]
fn ancestors_that_are_links_are_followed_inside_the_tree() {
    let mut tree = Tree::new(None);
    insert(&mut tree, place("bin", Entry::symlink("usr/bin", 0))).unwrap();
    insert(&mut tree, place("up", Entry::symlink("../../../etc", 0))).unwrap();
    insert(&mut tree, file("bin/sh", "sh")).unwrap();
    insert(&mut tree, place("bin", Entry::directory(0o700, 0))).unwrap();
    insert(&mut tree, file("up/passwd", "x")).unwrap();
    assert_eq!(paths(tree), ["bin", "etc", "etc/passwd", "up", "usr", "usr/bin", "usr/bin/sh"]);
}

#[test]
fn loops_of_links_and_conflicts_are_errors() {
    let mut tree = Tree::new(None);
    insert(&mut tree, place("a", Entry::symlink("b", 0))).unwrap();
    insert(&mut tree, place("b", Entry::symlink("a", 0))).unwrap();
    assert!(matches!(insert(&mut tree, file("a/x", "")), Err(ImageError::Archive { .. })));
    insert(&mut tree, file("c", "1")).unwrap();
    insert(&mut tree, file("c", "1")).unwrap();
    assert!(matches!(insert(&mut tree, file("c", "2")), Err(ImageError::PathConflict { .. })));
    assert!(matches!(insert(&mut tree, file("c/d", "2")), Err(ImageError::PathConflict { .. })));
    tree.insert(file("c", "2"), &Arc::from("recipe"), Precedence::Recipe).unwrap();
}

#[test]
fn an_upper_layer_holds_what_is_new_and_its_parents_as_they_are_below() {
    let mut base = Tree::new(None);
    insert(&mut base, place("tmp", Entry::directory(0o1777, 7))).unwrap();
    insert(&mut base, file("etc/same", "same")).unwrap();
    let below: LayerIndex = base.finish().unwrap().into_iter().map(|(path, entry)| (path, entry.describe())).collect();
    let mut upper = Tree::new(Some(&below));
    insert(&mut upper, file("etc/same", "same")).unwrap();
    insert(&mut upper, place("tmp", Entry::directory(0o755, 9))).unwrap();
    insert(&mut upper, file("tmp/new", "new")).unwrap();
    let entries = upper.finish().unwrap();
    assert_eq!(entries.keys().map(TreePath::as_str).collect::<Vec<_>>(), ["tmp", "tmp/new"]);
    assert_eq!(entries[&"tmp".parse::<TreePath>().unwrap()].mode, 0o1777);
}

#[test]
fn set_user_id_and_foreign_writing_are_dropped() {
    assert_eq!(Entry::file(0o4775, 0, Content::of("")).mode, 0o755);
    assert_eq!(Entry::directory(0o2777, 0).mode, 0o755);
    assert_eq!(Entry::directory(0o1777, 0).mode, 0o1777);
    assert_eq!(Entry::directory(0o755, u64::MAX).mtime, SOURCE_DATE_EPOCH);
}

proptest! {
    #[test]
    fn the_order_of_files_does_not_matter(order in Just((0..20).collect::<Vec<u32>>()).prop_shuffle()) {
        let build = |order: &[u32]| {
            let mut tree = Tree::new(None);
            for number in order {
                insert(&mut tree, file(&format!("d{}/e{}/f{number}", number % 3, number % 5), "x")).unwrap();
            }
            tree.finish().unwrap().into_iter().map(|(path, entry)| (path, entry.describe())).collect::<Vec<_>>()
        };
        let sorted: Vec<u32> = (0..20).collect();
        prop_assert_eq!(build(&order), build(&sorted));
    }
}
