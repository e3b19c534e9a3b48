use super::*;

const PUBLIC: u16 = 0x0001;

fn class(name: &str, access: u16, superclass: &str, interfaces: &[&str], methods: &[&str]) -> ClassShape {
    let (package, simple) = name.rsplit_once('/').unwrap();
    let top = simple.split('$').next().unwrap();
    assert!(!package.is_empty());
    ClassShape {
        name: name.into(),
        superclass: Some(superclass.into()),
        interfaces: interfaces.iter().map(|one| Arc::from(*one)).collect(),
        access,
        source_file: Some(format!("{top}.java").into()),
        startable: true,
        methods: methods.iter().map(|method| (Arc::from(*method), Arc::from("("))).collect(),
    }
}

/// Returns an overload of the method `m`.
fn overload(parameters: &str) -> (Arc<str>, Arc<str>) {
    (Arc::from("m"), Arc::from(parameters))
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
    one.methods.insert(overload("(I"));
    assert_eq!(found(&[base.clone(), one], "p.Base").unwrap(), ["p.One"]);
    // And an overload that the base adds excludes no subclass that has a method of that name.
    let mut base = base;
    base.methods.insert(overload("(I"));
    let mut one = class("p/One", PUBLIC, "p/Base", &[], &[]);
    one.methods.insert(overload("(I"));
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
    assert_eq!((&*shape.name, shape.source_file.as_deref()), ("p/A$B", Some("A.java")));
    for length in 0..whole.len() {
        assert!(ClassShape::read(&whole[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn many_classes_are_no_product() {
    const MANY: usize = 20_000;
    let interface = |number: usize| format!("q/I{number:03}");
    let interfaces: Vec<String> = (0..200).map(interface).collect();
    let interfaces: Vec<&str> = interfaces.iter().map(String::as_str).collect();
    let mut classes: Vec<ClassShape> =
        interfaces.iter().map(|name| class(name, ABSTRACT | INTERFACE, OBJECT, &["q/Contract"], &["m"])).collect();
    classes.push(class("q/Contract", ABSTRACT | INTERFACE, OBJECT, &[], &["m"]));
    let mut base = class("p/Base", ABSTRACT, OBJECT, &interfaces, &["m"]);
    base.methods.extend((0..200).map(|number| overload(&format!("(I{number}"))));
    classes.push(base);
    // One below the other, and each of the interfaces as well.
    for number in 0..MANY {
        let above = if number == 0 { "p/Base".to_owned() } else { format!("p/A{:05}", number - 1) };
        classes.push(class(&format!("p/A{number:05}"), PUBLIC, &above, &["q/Contract"], &[]));
    }
    let family = Family::of(classes);
    assert_eq!(family.inherited.iter().map(Vec::len).sum::<usize>(), 400 + 2 * MANY);
    assert_eq!(family.extended.iter().map(Vec::len).sum::<usize>(), MANY);
    let found = family.subclasses("p.Base", "m").unwrap();
    assert_eq!((found.classes.len(), found.left_out), (MOST_SUBCLASSES, MANY - MOST_SUBCLASSES));
    assert_eq!(found.classes[0], "p.A00000");
    // The superclass declares the method.
    assert_eq!(family.subclasses("q.Contract", "m"), Some(Subclasses::default()));
    assert_eq!(family.subclasses("p.A00000", "m"), None);
}

#[test]
fn overloads_count_up_to_a_bound() {
    let mut base = class("p/Base", ABSTRACT, OBJECT, &[], &["m"]);
    base.methods.extend((0..500).map(|number| overload(&format!("(I{number}"))));
    let one = class("p/One", PUBLIC, "p/Base", &[], &[]);
    let mut two = class("p/Two", PUBLIC, "p/Base", &[], &[]);
    two.methods.extend(base.methods.iter().take(MOST_OVERLOADS).cloned());
    assert_eq!(found(&[base, one, two], "p.Base").unwrap(), ["p.One"]);
}

#[test]
fn a_text_that_is_named_often_is_in_memory_once() {
    let mut bytes = vec![0xCA, 0xFE, 0xBA, 0xBE, 0, 0, 0, 52, 0, 6];
    let long = format!("({})V", "I".repeat(60_000));
    for text in ["p/A", &long, "m"] {
        bytes.push(1);
        bytes.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
        bytes.extend(text.as_bytes());
    }
    // The class, and one whose name is the long text.
    bytes.extend([7, 0, 1, 7, 0, 2]);
    bytes.extend([0, 1, 0, 4, 0, 4]);
    bytes.extend(60_000_u16.to_be_bytes());
    bytes.extend([0_u8, 5].repeat(60_000));
    // Each method and its name: the class's own name, the long text, and `m`.
    bytes.extend([0, 0, 0, 3]);
    for name in 1..=3 {
        bytes.extend([0, 0, 0, name, 0, 2, 0, 0]);
    }
    bytes.extend([0, 0]);
    let shape = ClassShape::read(&bytes).unwrap();
    assert_eq!(shape.interfaces, [Arc::<str>::from(long.as_str())]);
    let parameters: Vec<&Arc<str>> = shape.methods.iter().map(|(_, parameters)| parameters).collect();
    assert_eq!(parameters.len(), 3);
    assert!(parameters.iter().all(|one| Arc::ptr_eq(one, parameters[0]) && one.len() == 60_001));
}

/// Returns the subclasses that run the method of a class, by the definition.
fn by_definition<'a>(classes: &'a [ClassShape], target: &str) -> Option<Vec<&'a str>> {
    let of = |name: &str| classes.iter().find(|class| &*class.name == name);
    let target = of(target).filter(|class| class.is_abstract())?;
    let ancestors = |class: &'a ClassShape| {
        let (mut found, mut left) = (BTreeSet::new(), vec![class]);
        while let Some(class) = left.pop() {
            for parent in class.parents().filter(|parent| found.insert(Arc::clone(parent))) {
                left.extend(of(parent));
            }
        }
        found
    };
    let runs = |class: &'a ClassShape, method: &(Arc<str>, Arc<str>)| {
        let (mut seen, mut next) = (BTreeSet::new(), Some(class));
        while let Some(one) = next.filter(|one| seen.insert(&one.name)) {
            if one.methods.contains(method) {
                return one.name == target.name;
            }
            next = one.superclass.as_deref().and_then(of);
        }
        let above = ancestors(target);
        let mut others = ancestors(class).into_iter().filter(|name| *name != target.name && !above.contains(name));
        !others.any(|name| of(&name).is_some_and(|one| one.methods.contains(method)))
    };
    let is_one = |class: &'a ClassShape| {
        let mut declared = target.methods.iter().filter(|(name, _)| &**name == "m");
        class.is_startable() && ancestors(class).contains(&target.name) && declared.any(|method| runs(class, method))
    };
    Some(classes.iter().filter(|class| is_one(class)).map(|class| &*class.name).collect())
}

proptest::proptest! {
    /// Whatever inherits from whatever, circles included, the answer is that of the definition.
    #[test]
    fn answers_are_those_of_the_definition(
        shapes in proptest::collection::vec((0_usize..7, proptest::collection::vec(0_usize..7, 0..3), 0_u8..16), 6),
    ) {
        // The last of these is no test class.
        let names = ["p/A", "p/B", "p/C", "p/D", "p/E", "p/F", "p/G"];
        let classes = shapes.iter().zip(names).map(|((superclass, interfaces, bits), name)| {
            let interfaces: Vec<&str> = interfaces.iter().map(|at| names[*at]).collect();
            let bits = *bits;
            let access = if bits & 1 == 0 { PUBLIC } else { ABSTRACT };
            let mut shape = class(name, access, names[*superclass], &interfaces, &[]);
            // All are of one file, so the answers are sorted.
            shape.source_file = None;
            for (bit, parameters) in [(2, "("), (4, "(I"), (8, "(J")] {
                if bits & bit != 0 {
                    shape.methods.insert(overload(parameters));
                }
            }
            shape
        });
        let classes: Vec<ClassShape> = classes.collect();
        for name in names {
            let binary = name.replace('/', ".");
            let expected = by_definition(&classes, name);
            let expected: Option<Vec<String>> =
                expected.map(|names| names.iter().map(|name| name.replace('/', ".")).collect());
            assert_eq!(found(&classes, &binary), expected, "{name} of {classes:?}");
        }
    }
}
