//! Class files: of submissions' tests and of a repository's build.

use std::collections::BTreeSet;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use testevo_sandbox::submission::mentions::findings;
use testevo_sandbox::workspace::class_file::edit::{Code, MethodFacts, rebuilt, with_code, with_code_of};
use testevo_sandbox::workspace::class_file::{ClassContent, ClassFacts};

use crate::Target;

const WORDS: &[&[u8]] = &[
    b"Code",
    b"SourceFile",
    b"LineNumberTable",
    b"LocalVariableTable",
    b"LocalVariableTypeTable",
    b"StackMapTable",
    b"RuntimeVisibleAnnotations",
    b"Lorg/junit/Test;",
    b"expected",
    b"java/lang/Error",
    b"()V",
    b"(IJ)Lp/A;",
    b"\xca\xfe\xba\xbe\x00\x00\x00\x34",
];

/// Facts and content of a class, and what is found in it.
pub(super) const READER: Target =
    Target { name: "class_reader", run: read, seeds, words: WORDS, runs: 1250, most_bytes: 64 << 10, memory: 120 };

/// Classes written anew for controls.
pub(super) const EDITOR: Target =
    Target { name: "class_editor", run: edit, seeds, words: WORDS, runs: 1250, most_bytes: 64 << 10, memory: 120 };

fn read(input: &[u8]) {
    let production = BTreeSet::from(["Price".to_owned(), "A$B".to_owned()]);
    let facts = ClassFacts::read(input);
    let found = findings([input], &production);
    assert_eq!(found.is_ok(), ClassContent::read(input).is_ok());
    if let Ok(found) = found {
        assert!(found.len() <= 20 * 16);
        assert!(found.iter().all(|one| one.text.chars().count() <= 200 && !one.text.contains(char::is_control)));
    }
    if let (Ok(facts), Ok(content)) = (facts, ClassContent::read(input)) {
        assert_eq!(facts.name.as_str(), &*content.name);
    }
}

fn edit(input: &[u8]) {
    let facts = ClassFacts::read(input);
    let message = "0123456789abcdef";
    let seed = input.iter().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add((*byte).into()));
    let focal = |method: &MethodFacts<'_>| method.lines.iter().all(|line| (3..10).contains(line));
    let own = BTreeSet::from(["p/PriceTest".to_owned()]);
    let new = [
        with_code(input, |_| Some(Code::Throws(message))),
        with_code(input, |facts| focal(facts).then_some(Code::Throws(message))),
        with_code(input, |_| Some(Code::Returns)),
        with_code(input, |_| Some(Code::ThrowsNew { class: "p/E", with_message: false })),
        with_code(input, |_| Some(Code::OneTest)),
        with_code(input, |_| Some(Code::KeepsState { own: &own, throws: Some("p/E") })),
        rebuilt(input, &mut ChaCha8Rng::seed_from_u64(seed)).map(Some),
    ];
    let whole = shared_code();
    for (one, other) in [(input, whole.as_slice()), (&whole, input), (input, input)] {
        if let Ok(Some(grafted)) = with_code_of(one, other, message, |_| true) {
            let facts = ClassFacts::read(one);
            assert!(facts.is_err() || ClassFacts::read(&grafted.class) == facts);
            // Each class's own parts, and one further byte for each of an instruction's two.
            let most = 12 * one.len() + 3 * other.len() + 1024;
            assert!(grafted.class.len() <= most, "{} of {} and {}", grafted.class.len(), one.len(), other.len());
        }
    }
    let emptied = with_code(input, |_| Some(Code::Returns));
    for edited in new.into_iter().filter_map(Result::ok).flatten() {
        // It is as much of a class as it was. What names a constant beyond the last one may name one that was added.
        if facts.is_ok() {
            assert_eq!(ClassFacts::read(&edited), facts);
        }
        if ClassContent::read(input).is_ok() {
            assert!(ClassContent::read(&edited).is_ok());
        }
        // Constants and padding: each method gets at most 48 bytes of it, no entry of a table grows by more than 2, and the most that
        // an instruction of two bytes grows to is a `ldc`'s ten, with two constants of five bytes.
        assert!(edited.len() <= 12 * input.len() + 1024, "{} of {}", edited.len(), input.len());
        // It can be written anew once more, if it could be once.
        assert!(emptied.is_err() || with_code(&edited, |_| Some(Code::Returns)).is_ok());
    }
    if let Ok(Some(edited)) = emptied {
        // Code without lines or anything else is as it is written: a second time changes nothing.
        assert_eq!(with_code(&edited, |_| Some(Code::Returns)), Ok(Some(edited)));
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let mut plain = ClassBuilder::new("p/Price", "java/lang/Object");
    plain.method("total", "(I)J", &[3, 4], true);
    plain.method("none", "()V", &[], false);
    plain.string("/proc/self/fd/3");
    plain.string("Price.class");
    let mut test = ClassBuilder::new("p/PriceTest", "junit/framework/TestCase");
    test.reference("java/lang/Runtime", "halt", "(I)V");
    test.lambda("()Lorg/junit/rules/TestRule;");
    test.annotated("Lorg/junit/Test;", "expected", "Ljava/lang/Throwable;");
    test.method("runTest", "()V", &[9, 10, 11], true);
    let alone = ClassBuilder::new("A", "java/lang/Object").build();
    vec![alone, plain.build(), test.build(), shared_texts(2000), shared_code()]
}

/// A class with two methods of one name, and with lambdas of one bootstrap method.
fn shared_code() -> Vec<u8> {
    let mut class = ClassBuilder::new("p/Price", "java/lang/Object");
    for _ in 0..2 {
        class.method("total", "(I)J", &[3, 4], true);
    }
    class.method("lambda$total$0", "()V", &[4], true);
    class.reference("p/Price", "lambda$total$0", "()V");
    class.constant(15, &[6, 0, 1]);
    class.lambda("()Ljava/lang/Runnable;");
    class.attribute("BootstrapMethods", &[0, 1, 0, 1, 0, 2, 0, 1, 0, 2]);
    class.build()
}

/// A class whose constants and annotations name the same long text many times.
fn shared_texts(times: u16) -> Vec<u8> {
    let mut class = ClassBuilder::new("A", "java/lang/Object");
    let text = class.text(&"x".repeat(20_000));
    for _ in 0..times {
        class.constant(8, &text.to_be_bytes());
    }
    let other = class.constant(7, &text.to_be_bytes());
    let member = class.pair(12, text, text);
    for _ in 0..times {
        class.pair(10, other, member);
        class.pair(18, 0, member);
    }
    let annotation = class.text("LA;");
    let mut content = [&[0, 1], &annotation.to_be_bytes()[..], &[0, 1], &text.to_be_bytes(), b"["].concat();
    content.extend(times.to_be_bytes());
    for _ in 0..times {
        content.extend([&b"c"[..], &text.to_be_bytes()].concat());
    }
    class.attribute("RuntimeVisibleAnnotations", &content);
    class.build()
}

/// Writes small class files.
struct ClassBuilder {
    constants: Vec<u8>,
    count: u16,
    names: [u16; 2],
    methods: Vec<Vec<u8>>,
    attributes: Vec<Vec<u8>>,
}

impl ClassBuilder {
    fn new(name: &str, superclass: &str) -> Self {
        let mut class =
            Self { constants: Vec::new(), count: 1, names: [0; 2], methods: Vec::new(), attributes: Vec::new() };
        class.names = [name, superclass].map(|name| class.class(name));
        let simple = name.rsplit('/').next().unwrap_or(name);
        let file = class.text(&format!("{simple}.java"));
        class.attribute("SourceFile", &file.to_be_bytes());
        class
    }

    fn constant(&mut self, tag: u8, content: &[u8]) -> u16 {
        self.constants.push(tag);
        self.constants.extend(content);
        self.count += 1;
        self.count - 1
    }

    fn text(&mut self, text: &str) -> u16 {
        let length = u16::try_from(text.len()).unwrap_or_else(|_| panic!("a seed's text is too long"));
        self.constant(1, &[&length.to_be_bytes(), text.as_bytes()].concat())
    }

    fn pair(&mut self, tag: u8, one: u16, other: u16) -> u16 {
        self.constant(tag, &[one.to_be_bytes(), other.to_be_bytes()].concat())
    }

    fn class(&mut self, name: &str) -> u16 {
        let name = self.text(name);
        self.constant(7, &name.to_be_bytes())
    }

    fn string(&mut self, text: &str) {
        let text = self.text(text);
        self.constant(8, &text.to_be_bytes());
    }

    fn name_and_type(&mut self, name: &str, descriptor: &str) -> u16 {
        let (name, descriptor) = (self.text(name), self.text(descriptor));
        self.pair(12, name, descriptor)
    }

    fn reference(&mut self, class: &str, name: &str, descriptor: &str) {
        let (class, member) = (self.class(class), self.name_and_type(name, descriptor));
        self.pair(10, class, member);
    }

    fn lambda(&mut self, descriptor: &str) {
        let member = self.name_and_type("apply", descriptor);
        self.pair(18, 0, member);
    }

    fn attribute(&mut self, name: &str, content: &[u8]) {
        let attribute = self.attribute_of(name, content);
        self.attributes.push(attribute);
    }

    fn attribute_of(&mut self, name: &str, content: &[u8]) -> Vec<u8> {
        let name = self.text(name);
        [&name.to_be_bytes()[..], &(content.len() as u32).to_be_bytes(), content].concat()
    }

    fn annotated(&mut self, annotation: &str, element: &str, class: &str) {
        let [annotation, element, class] = [annotation, element, class].map(|text| self.text(text).to_be_bytes());
        let content =
            [&[0, 1], &annotation[..], &[0, 2], &element, b"c", &class, &element, b"[\0\x01@", &annotation, &[0, 0]];
        self.attribute("RuntimeVisibleAnnotations", &content.concat());
    }

    /// Adds a method whose code has lines, a handler, variables and frames of every kind.
    fn method(&mut self, name: &str, descriptor: &str, lines: &[u16], has_code: bool) {
        let [name, descriptor] = [name, descriptor].map(|text| self.text(text).to_be_bytes());
        let mut attributes = Vec::new();
        if has_code {
            let instructions = [0x03, 0x57, 0x04, 0x57, 0x05, 0x57, 0x06, 0x57, 0xb1];
            let mut table = (lines.len() as u16).to_be_bytes().to_vec();
            for (at, line) in lines.iter().enumerate() {
                table.extend([(at as u16).to_be_bytes(), line.to_be_bytes()].concat());
            }
            let lines = self.attribute_of("LineNumberTable", &table);
            let variables = self.attribute_of("LocalVariableTable", &[0, 1, 0, 0, 0, 9, 0, 1, 0, 1, 0, 0]);
            let frames: [&[u8]; 8] = [
                &[0, 7],
                // Same, same with one on the stack, the same further off, chopped, same further off.
                &[1],
                &[65, 1],
                &[247, 0, 0, 7, 0, 2],
                &[250, 0, 0],
                &[251, 0, 0],
                // Appended and full.
                &[252, 0, 0, 8, 0, 0],
                &[255, 0, 0, 0, 1, 1, 0, 1, 7, 0, 2],
            ];
            let frames = self.attribute_of("StackMapTable", &frames.concat());
            let mut code = vec![0, 1, 0, 2];
            code.extend((instructions.len() as u32).to_be_bytes());
            code.extend(instructions);
            code.extend([0, 1, 0, 0, 0, 4, 0, 6, 0, 0, 0, 3]);
            code.extend([lines, variables, frames].concat());
            attributes.push(self.attribute_of("Code", &code));
        }
        let number = (attributes.len() as u16).to_be_bytes();
        self.methods.push([&[0, 1], &name[..], &descriptor, &number, &attributes.concat()].concat());
    }

    fn build(self) -> Vec<u8> {
        let [name, superclass] = self.names;
        let mut bytes = vec![0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 52];
        bytes.extend(self.count.to_be_bytes());
        bytes.extend(self.constants);
        bytes.extend([0, 1]);
        bytes.extend([name.to_be_bytes(), superclass.to_be_bytes()].concat());
        bytes.extend([0, 0, 0, 0]);
        bytes.extend((self.methods.len() as u16).to_be_bytes());
        bytes.extend(self.methods.concat());
        bytes.extend((self.attributes.len() as u16).to_be_bytes());
        bytes.extend(self.attributes.concat());
        bytes
    }
}
