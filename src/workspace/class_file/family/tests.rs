use super::*;

const PUBLIC: u16 = 0x0001;

fn class(name: &str, access: u16, superclass: &str, interfaces: &[&str], methods: &[&str]) -> ClassShape {
    let (package, simple) = name.rsplit_once('/').unwrap();
    let top = simple.split('$').next().unwrap();
    assert!(!package.is_empty());
    ClassShape {
        name: name.to_owned(),
        superclass: Some(superclass.to_owned()),
        interfaces: interfaces.iter().map(|one| (*one).to_owned()).collect(),
        access,
        source_file: Some(format!("{top}.java")),
        startable: true,
        methods: methods.iter().map(|method| ((*method).to_owned(), "(".to_owned())).collect(),
    }
}

fn found(classes: &[ClassShape], class: &str) -> Option<Vec<String>> {
    Family::of(classes.iter().cloned()).subclasses(class, "m").map(|found| found.classes)
}

const OBJECT: &str = "java/lang/Object";

#[test]
fn a_method_runs_in_the_concrete_subclasses_that_do_not_override_it() {
    let base = class("p/Base", PUBLIC | ABSTRACT, OBJECT, &[], &["m"]);
    let classes = [
        base.clone(),
        class("p/Middle", ABSTRACT, "p/Base", &[], &[]),
        class("q/Deep", PUBLIC, "p/Middle", &[], &["other"]),
        class("p/Overrides", PUBLIC, "p/Base", &[], &["m"]),
        class("p/BelowOverrides", PUBLIC, "p/Overrides", &[], &[]),
        class("p/Stranger", PUBLIC, OBJECT, &[], &["m"]),
        class("p/Base$Own", STATIC, "p/Base", &[], &[]),
        class("p/A-b", PUBLIC, "p/Base", &[], &[]),
        ClassShape { startable: false, ..class("p/Base$1", 0, "p/Base", &[], &[]) },
    ];
    // The file's own comes last, though its name is the first.
    assert_eq!(found(&classes, "p.Base").unwrap(), ["q.Deep", "p.Base$Own"]);
    assert_eq!(found(&classes, "q.Deep"), None, "a concrete class runs its methods itself");
    assert_eq!(found(&classes, "p.Unknown"), None);
    assert_eq!(found(&[base], "p.Base").unwrap(), Vec::<String>::new());
    // The trivial test that a submission's own subclass has instead is not the target's.
    let own = class("p/Base$Easy", STATIC, "p/Base", &[], &["m"]);
    assert_eq!(found(&[classes[0].clone(), own], "p.Base").unwrap(), Vec::<String>::new());
    // An abstract method has no code of its own.
    let declares_nothing = class("p/Base", PUBLIC | ABSTRACT, OBJECT, &[], &[]);
    assert_eq!(found(&[declares_nothing, classes[2].clone()], "p.Base").unwrap(), Vec::<String>::new());
}

#[test]
fn an_overload_in_a_subclass_hides_no_method() {
    let base = class("p/Base", PUBLIC | ABSTRACT, OBJECT, &[], &["m"]);
    let mut one = class("p/One", PUBLIC, "p/Base", &[], &[]);
    one.methods.insert(("m".to_owned(), "(I".to_owned()));
    assert_eq!(found(&[base.clone(), one], "p.Base").unwrap(), ["p.One"]);
    // And an overload that the base adds excludes no subclass that has a method of that name.
    let mut base = base;
    base.methods.insert(("m".to_owned(), "(I".to_owned()));
    let mut one = class("p/One", PUBLIC, "p/Base", &[], &[]);
    one.methods.insert(("m".to_owned(), "(I".to_owned()));
    assert_eq!(found(&[base, one], "p.Base").unwrap(), ["p.One"]);
}

#[test]
fn the_default_method_of_an_interface_runs_unless_something_overrides_it() {
    let contract = class("p/Contract", ABSTRACT | INTERFACE, OBJECT, &[], &["m"]);
    let classes = [
        contract,
        class("p/Wider", ABSTRACT | INTERFACE, OBJECT, &["p/Contract"], &[]),
        class("p/Other", ABSTRACT | INTERFACE, OBJECT, &["p/Contract"], &["m"]),
        class("p/Plain", PUBLIC, OBJECT, &["p/Contract"], &[]),
        class("p/Through", PUBLIC, "p/Plain", &["p/Wider"], &[]),
        class("p/Overridden", PUBLIC, OBJECT, &["p/Wider", "p/Other"], &[]),
        class("p/WithMethod", PUBLIC, OBJECT, &[], &["m"]),
        class("p/OfItsClass", PUBLIC, "p/WithMethod", &["p/Contract"], &[]),
    ];
    assert_eq!(found(&classes, "p.Contract").unwrap(), ["p.Plain", "p.Through"]);
}

#[test]
fn circles_end_and_the_number_is_bounded() {
    let circle = [
        class("p/A", ABSTRACT, "p/C", &["p/B"], &["m"]),
        class("p/B", ABSTRACT | INTERFACE, "p/A", &["p/B"], &[]),
        class("p/C", PUBLIC, "p/A", &["p/C"], &[]),
    ];
    assert_eq!(found(&circle, "p.A").unwrap(), ["p.C"]);
    let mut many = vec![class("p/Base", ABSTRACT, OBJECT, &[], &["m"])];
    many.extend((0..MOST_SUBCLASSES).map(|number| class(&format!("p/Z{number}"), PUBLIC, "p/Base", &[], &[])));
    many.extend((0..3).map(|number| class(&format!("p/Base$A{number}"), STATIC, "p/Base", &[], &[])));
    let subclasses = Family::of(many).subclasses("p.Base", "m").unwrap();
    assert!(subclasses.classes.iter().all(|name| name.starts_with("p.Z")), "{subclasses:?}");
    assert_eq!((subclasses.classes.len(), subclasses.left_out), (MOST_SUBCLASSES, 3));
}

#[test]
fn no_part_of_a_class_file_is_one() {
    let whole = crate::workspace::class_file::sample("p/A$B", Some("A.java"));
    let shape = ClassShape::read(&whole).unwrap();
    assert_eq!((shape.name.as_str(), shape.source_file.as_deref()), ("p/A$B", Some("A.java")));
    for length in 0..whole.len() {
        assert!(ClassShape::read(&whole[..length]).is_err(), "{length} bytes");
    }
}
