use super::*;

#[test]
fn hostile_texts_are_no_ids_or_paths() {
    for bad in ["", "-x", "../x", "a/b", "a\0", "a b", "..", "x..y", "\u{1b}[31m"] {
        assert!(bad.parse::<TaskId>().is_err(), "{bad:?} is no task id");
    }
    for bad in ["", "/etc/passwd", "a/../b", "a//b", ".git/config", "a/.GIT/x", "-o", "a\nb", "a\\b", "./a"] {
        assert!(bad.parse::<RepositoryPath>().is_err(), "{bad:?} is no path");
    }
    for bad in ["HEAD", "abc", "--upload-pack=x", &"A".repeat(40)] {
        assert!(bad.parse::<Revision>().is_err(), "{bad:?} is no revision");
    }
    for bad in ["a", "a/b/c", "../a", "a/..", "-a/b", "a__b/c", "a_/b", "a/_b"] {
        assert!(bad.parse::<RepositoryName>().is_err(), "{bad:?} is no repository");
    }
    for bad in ["A", "#m", "A#", "A#m;rm", "A#m\u{1b}[2J", "A/../B#m"] {
        assert!(bad.parse::<MethodId>().is_err(), "{bad:?} is no method");
    }
}

#[test]
fn no_two_repositories_share_a_file() {
    let stems = ["a/b__c", "a_b/c", "a/b_c", "a/b__", "a_short/b"].map(|name| {
        let name: RepositoryName = name.parse().unwrap();
        let stem = name.file_stem();
        assert_eq!(stem.split_once("__"), Some((name.owner(), name.name())));
        stem
    });
    assert_eq!(std::collections::BTreeSet::from(stems).len(), 5);
}

#[test]
fn published_forms_are_accepted() {
    "casbin_jcasbin-v1.99.0__324b192_abdbe3e__ManagementAPIUnitTest_faaf4924".parse::<TaskId>().unwrap();
    "src/test/java/org/casbin/jcasbin/main/ManagementAPIUnitTest.java".parse::<RepositoryPath>().unwrap();
    for good in ["CodeBlock$Builder#add", "JavaFile$2#openInputStream", "A#<init>"] {
        good.parse::<MethodId>().unwrap();
    }
}
