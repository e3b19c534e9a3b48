//! What methods of test files reach. `«` stands right before each error, with a letter that names it.

use super::*;

/// Returns the source without its marks, and the places of the marks by letter.
fn marked(text: &str) -> (String, Vec<(char, Place)>) {
    let (mut source, mut marks) = (String::new(), Vec::new());
    let (mut line, mut column) = (1, 1);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '«' {
            marks.push((chars.next().unwrap(), Place { line, column: Some(column) }));
            continue;
        }
        source.push(c);
        match c {
            '\n' => (line, column) = (line + 1, 1),
            '\t' => column = (column - 1) / 8 * 8 + 9,
            _ => column += c.len_utf16(),
        }
    }
    (source, marks)
}

/// Returns the letters of the marks that a method reaches, with and without columns.
fn reached_by(text: &str, class: &str, method: &str, hides_uses: bool) -> (String, String) {
    let (source, marks) = marked(text);
    let source = TestSource::parse(source.as_bytes()).unwrap();
    let reach = source.reach(class, method);
    let of = |without_column: bool| {
        let place = |place: Place| if without_column { Place { column: None, ..place } } else { place };
        marks
            .iter()
            .filter(|(_, at)| reach.has_any(&source.find(&[place(*at)]), hides_uses))
            .map(|(letter, _)| *letter)
            .collect()
    };
    (of(false), of(true))
}

/// Checks what methods reach, by columns and by lines alone.
fn check(text: &str, expected: &[(&str, &str, &str)]) {
    for (class, method, letters) in expected {
        let (by_column, by_line) = reached_by(text, class, method, true);
        assert_eq!((by_column.as_str(), by_line.as_str()), (*letters, *letters), "{class}#{method} in {text}");
    }
}

#[test]
fn a_sibling_does_not_reach_what_another_method_uses() {
    check(
        "package «kp;
import org.junit.Test;
import p.«aNewApi;
import static p.Other.«bfresh;
import p.«cUnused;

public class ATest {
    @Test public void usesIt() { NewApi.«dmake(); «efresh(); }
    «f@NewApi.Mark
    @Test public void marked() { }
    @Test public void trivial() { assert true; }
    @Test public void callsAHelper() { helper(1); }
    private void helper(int x) {
        other(«gx);
    }
    private void helper(String x) { «hx.no(); }
    private void other(int x) { new «iNewApi(); }
    private void unused() { «jfresh(); }
    // trivial, usesIt and unused are mentioned here: «ltrivial
}
",
        &[
            ("ATest", "usesIt", "kabde"),
            ("ATest", "marked", "kaf"),
            ("ATest", "trivial", "k"),
            ("ATest", "callsAHelper", "kaghi"),
            ("ATest", "absent", "k"),
            ("BTest", "trivial", ""),
        ],
    );
}

#[test]
fn what_runs_with_every_test_is_reached_by_every_test() {
    check(
        "import org.junit.*;
@«aMark
public class ATest extends «bBase<ATest> implements «cOther {
    private final Api one = «dmake();
    private «eApi unused;
    @Rule
    public «fApi rule;
    static { «gmake(); }
    { «hmake(); }
    public ATest() { «imake(); }
    @Before
    public void first() { indirect(); }
    @AfterClass
    public static void last() { «jmake(); }
    public void setUp() { «kmake(); }
    private void indirect() { «lmake(); }
    @Test
    public void one() { «mmake(); }
    @Test
    public void two() { }
}
",
        &[("ATest", "two", "abcdfghijkl"), ("ATest", "one", "abcdfghijklm")],
    );
}

#[test]
fn names_of_junit_3_need_a_superclass() {
    let text = |header: &str| format!("{header} {{\n  void setUp() {{\n    «ax();\n  }}\n  void testOne() {{ }}\n}}\n");
    check(&text("class ATest extends TestCase"), &[("ATest", "testOne", "a")]);
    check(&text("class ATest"), &[("ATest", "testOne", "")]);
}

#[test]
fn nested_classes_have_their_own_methods_and_their_outer_ones_lifecycle() {
    check(
        "class ATest {
    @BeforeEach
    void before() { «abad(); }
    void helper() { «bbad(); }
    @Nested
    class Inner {
        @BeforeEach
        void before() { «cbad(); }
        @Test
        void same() { helper(); }
        @Nested class Deep {
            @Test
            void same() { «dbad(); }
        }
    }
    @Nested
    class «eOther extends «fBad {
        @BeforeEach
        void before() { «gbad(); }
        @Test
        void same() { «hbad(); }
    }
}
",
        &[
            ("ATest$Inner", "same", "abc"),
            ("ATest$Inner$Deep", "same", "acd"),
            ("ATest$Other", "same", "aefgh"),
            ("Inner", "same", ""),
            ("ATest$Missing", "same", ""),
        ],
    );
}

#[test]
fn superclasses_in_the_file_bring_their_lifecycle_and_methods() {
    check(
        "abstract class Base extends «aBad {
    @Before
    public void up() { «bbad(); }
    @Test
    public void inherited() { «cbad(); }
    @Test
    public void other() { «dbad(); }
    Object field = «ebad();
}
class Unrelated {
    Object field2 = «fbad();
}
public class ATest extends Base {
    @Test
    public void own() { }
}
",
        &[("ATest", "own", "abe"), ("ATest", "inherited", "abce")],
    );
}

#[test]
fn types_that_are_mentioned_are_reached_as_far_as_they_may_run() {
    check(
        "class ATest {
    @Test
    void usesAll() { new Helper(); Kind.ONE.name(); new Point(1, 2); Mark.class.getName(); Shape s = () -> 1; }
    @Test
    void usesNone() { }
    static class «aHelper implements Comparable<Helper> {
        Object field = «bbad();
        «cBad unset;
        Helper() { «dbad(); }
        public int compareTo(Helper other) { «ebad(); return 0; }
        private void hidden() { «fbad(); }
        static void apart() { «gbad(); }
        @Override
        public String toString() { return «hbad(); }
    }
    enum «iKind {
        ONE(«jbad()),
        TWO { void m() { «kbad(); } };
        static void apart() { «lbad(); }
    }
    record «mPoint(«nBad x, int y) {
        «oPoint { bad(); }
        int sum() { return «pbad(); }
    }
    @interface «qMark {
        «rBad value();
    }
    interface «sShape {
        «tBad area();
        default void apart() { «ubad(); }
    }
}
",
        &[("ATest", "usesAll", "abdehijkmnoqrst"), ("ATest", "usesNone", "")],
    );
}

#[test]
fn factories_are_reached_by_name() {
    check(
        "class ATest {
    @ParameterizedTest
    @MethodSource(\"cases\")
    void one(int x) { }
    @ParameterizedTest
    @MethodSource({\"p.ATest#others\", \"cases\"})
    void two(int x) { }
    @ParameterizedTest @MethodSource
    void three(int x) { }
    @Parameters
    void four(int x) { }
    @UseDataProvider(\"named\")
    void five(int x) { }
    @DisplayName(\"what cases there are\")
    void six(String cases) { String s = \"others\"; }
    static Stream<Integer> cases() { return «abad(); }
    static Stream<Integer> others() { return «bbad(); }
    static Stream<Integer> three() { return «cbad(); }
    static Object parametersForFour() { return «dbad(); }
    @DataProvider(name = \"named\")
    static Object anyName() { return «ebad(); }
}
",
        &[
            ("ATest", "one", "a"),
            ("ATest", "two", "ab"),
            ("ATest", "three", "c"),
            ("ATest", "four", "d"),
            ("ATest", "five", "e"),
            ("ATest", "six", ""),
        ],
    );
}

/// A lambda in a field runs where somebody calls it, so a new symbol in one is the error of those methods that mention the field.
#[test]
fn a_lambda_in_a_field_is_of_the_methods_that_mention_it() {
    check(
        "class ATest {
    static final Supplier<Object> MADE = () -> «aNew.make();
    private final Function<String, Object> cast = (Function<String, Object>) (text -> «bbad(text));
    Runnable reference = («cNew::run);
    «hNew
        typed = () -> 1;
    Object called = call(() -> «dbad());
    @RegisterExtension
    final BeforeEachCallback before = context -> «ebad();
    @Test
    void one() { MADE.get(); }
    @Test
    void two() { indirect(); }
    @Test
    void three() { reference.run(); Helper.made.get(); }
    @Test
    void trivial() { new Helper(); }
    void indirect() { cast.apply(\"\"); }
    static class Helper {
        static Supplier<Object> made = () -> «fbad();
        Object value = «gbad();
    }
}
",
        &[
            ("ATest", "one", "achde"),
            ("ATest", "two", "bchde"),
            ("ATest", "three", "chdefg"),
            ("ATest", "trivial", "chdeg"),
        ],
    );
}

#[test]
fn parameters_of_a_class_are_every_methods() {
    check(
        "@RunWith(Parameterized.class)
public class ATest {
    @Parameters(name = \"{0}\")
    public static Object[] data() { return «abad(); }
    @Parameter
    public «bBad value;
    public «cBad unset;
    @Test
    public void one() { }
}
",
        &[("ATest", "one", "ab")],
    );
}

#[test]
fn accessors_that_lombok_makes_are_of_fields() {
    check(
        "class ATest {
    @Test
    void one() { new Dto().getTitle(); Dto.builder().size(1); new Dto().isOpen(); }
    @Data @Builder
    static class Dto {
        «aBad title;
        «bBad size;
        boolean «copen;
        «dBad other;
    }
}
",
        &[("ATest", "one", "abc")],
    );
}

#[test]
fn texts_comments_and_char_literals_mention_nothing() {
    check(
        "class ATest {
    @Test
    void one() {
        String s = \"\"\"
            dead() «a\\\"\"\" { }
            \"\"\";
        char c = '\"'; /* dead(); */ String t = \"dead()\";
    }
    void dead() { «bbad(); }
    <T extends Comparable<T>> void generic(java.util.Map<String, T[]> map) { this.<T>dead(); }
    @Test
    void two() { java.util.function.Supplier<Object> s = ATest::dead2; }
    static Object dead2() { return «cbad(); }
}
",
        &[("ATest", "one", "a"), ("ATest", "two", "c"), ("ATest", "generic", "b")],
    );
}

#[test]
fn columns_tell_members_of_one_line_apart_and_lines_alone_do_not() {
    let text = "class ATest {
    int[] one = {1}, «atwo[] = «bbad(); Bad «cthree;
\tvoid m() { «done(); } void n() { «ebad(); }
}
";
    assert_eq!(reached_by(text, "ATest", "m", true), ("abd".into(), String::new()));
    assert_eq!(reached_by(text, "ATest", "n", true), ("abe".into(), String::new()));
    // A tool that counts a tab as one character names another column.
    let (source, _) = marked(text);
    let source = TestSource::parse(source.as_bytes()).unwrap();
    let has = |method: &str, column| has(&source, ("ATest", method), (3, Some(column)));
    assert!(has("m", 13), "by both readings");
    assert!(!has("m", 25) && !has("n", 25), "the readings differ, and the line has both methods");
    assert!(has("n", 38));
}

#[test]
fn on_demand_imports_count_where_the_compiler_hides_their_uses() {
    let text = "import org.junit.jupiter.api.Test;
import p.«a*;
import static p.Other.«b*;
import q.Known;
class ATest {
    @Test
    void one() { New.make(); }
    @Test
    void two() { fresh(); }
    @Test
    void three() { String s = \"\"; Known.m(); Own o = null; helper(s.length()); }
    void helper(int count) { }
    static class Own { }
}
";
    check(text, &[("ATest", "one", "ab"), ("ATest", "two", "b"), ("ATest", "three", "")]);
    for method in ["one", "two", "three"] {
        assert_eq!(reached_by(text, "ATest", method, false), (String::new(), String::new()), "{method}");
    }
}

#[test]
fn damaged_sources_have_errors_of_the_text_they_stand_in() {
    check(
        "class ATest {
    @Test
    void one() { int x = «a; }
    @Test
    void two() { }
}
",
        &[("ATest", "one", "a"), ("ATest", "two", "")],
    );
}

/// Tells whether a method reaches a place.
fn has(source: &TestSource<'_>, (class, method): (&str, &str), (line, column): (usize, Option<usize>)) -> bool {
    source.reach(class, method).has_any(&source.find(&[Place { line, column }]), true)
}

#[test]
fn places_outside_of_the_file_are_nobodys() {
    let source = TestSource::parse(b"class ATest { void m() { } }\r\rclass B { }\r\n").unwrap();
    for place in [(0, None), (0, Some(1)), (4, Some(1)), (5, None), (usize::MAX, Some(usize::MAX)), (3, None)] {
        assert!(!has(&source, ("ATest", "m"), place), "{place:?}");
    }
    assert!(has(&source, ("ATest", "m"), (1, Some(0))), "no column is none");
    let both = source.find(&[Place { line: 9, column: None }, Place { line: 1, column: Some(16) }]);
    assert!(source.reach("ATest", "m").has_any(&both, true));
    assert!(!source.reach("ATest", "m").has_any(&[], true));
}

#[test]
fn what_is_not_utf_8_is_counted_by_bytes() {
    let source = b"class ATest { void m() { String s = \"\xe9\xe9\"; bad(); } void n() { } }";
    let source = TestSource::parse(source).unwrap();
    assert!(has(&source, ("ATest", "m"), (1, Some(43))));
    assert!(!has(&source, ("ATest", "n"), (1, Some(43))));
    let wide = "class ATest { void m() { s(\"😀\"); bad(); } void n() { } }";
    let at = wide.chars().map(char::len_utf16).sum::<usize>() - 12;
    let source = TestSource::parse(wide.as_bytes()).unwrap();
    assert!(has(&source, ("ATest", "n"), (1, Some(at))));
}

#[test]
fn deep_and_wide_files_have_answers() {
    let deep = format!("{}void m() {{ }}{}", "class A { ".repeat(3_000), "}".repeat(3_000));
    let source = TestSource::parse(deep.as_bytes()).unwrap();
    assert!(!has(&source, ("B", "m"), (1, None)));
    assert!(has(&source, ("A", "m"), (1, Some(3))));
    let wide = format!("class A {{ {} }}", format!("void m() {{ {} }}\n", "m(); ".repeat(30)).repeat(300));
    let source = TestSource::parse(wide.as_bytes()).unwrap();
    assert!(has(&source, ("A", "m"), (1, Some(20))));
}

/// How often the tests below repeat each part of a file. A product of two such numbers takes gigabytes or minutes.
const MANY: usize = 20_000;

/// Returns a file whose declaration of fields has as many further modifiers as further fields.
fn fields(first: &str, modifier: &str, last: &str, method: &str) -> String {
    let (modifiers, fields) = (modifier.repeat(MANY), ", b".repeat(MANY));
    format!("class ATest {{ {first}{modifiers}{last} int a{fields};\nvoid m() {{ {method} }}\nvoid n() {{ }} }}")
}

#[test]
fn a_supertypes_name_counts_once() {
    let (supertypes, types) = (", B".repeat(MANY), "class B extends B implements B { Object o = m(); }\n".repeat(MANY));
    let text = format!("class ATest implements B{supertypes} {{ void m() {{ }} }}\n{types}");
    let source = TestSource::parse(text.as_bytes()).unwrap();
    assert_eq!((source.outline.types.len(), source.types_by_name["B"].len()), (MANY + 1, MANY));
    let mut search = Search::new(&source);
    search.begin("ATest", "m");
    assert_eq!((search.chain.len(), search.items.len()), (MANY + 1, MANY + 1));
    // A range for the header of each type and for each member.
    assert!(search.left.len() <= 3 * MANY + 2, "{}", search.left.len());
    search.run();
    assert_eq!(search.end().others, BTreeSet::new());
}

#[test]
fn annotations_are_their_declarations_and_not_each_fields() {
    let text = fields("", "@A ", "static", "b();");
    let source = TestSource::parse(text.as_bytes()).unwrap();
    let outline = &source.outline;
    assert_eq!((outline.items.len(), outline.declarations.len()), (MANY + 3, 3));
    assert_eq!(outline.declarations[0].items, 0..MANY + 1);
    assert_eq!(outline.declarations.iter().map(|one| one.annotations.len()).sum::<usize>(), MANY);
    assert!(outline.declarations[0].is_static && !outline.declarations[0].is_private);
    // A framework may set each annotated field, so every method reaches all of them.
    for method in ["m", "n"] {
        let mut search = Search::new(&source);
        search.begin("ATest", method);
        assert_eq!(search.items.len(), MANY + 2, "{method}");
    }
}

#[test]
fn modifiers_are_read_once() {
    let text = fields("", "static ", "private", "b();");
    let source = TestSource::parse(text.as_bytes()).unwrap();
    let outline = &source.outline;
    assert_eq!((outline.items.len(), outline.declarations.len()), (MANY + 3, 3));
    assert!(outline.declarations[0].is_static && outline.declarations[0].is_private);
    assert_eq!(source.items_by_name["b"].len(), MANY);
    let reached = |method| source.reach("ATest", method).reached.len();
    assert_eq!(reached("m"), reached("n") + MANY + 1, "the declarators, and the part that they share");
}

#[test]
fn names_of_a_data_provider_are_their_declarations() {
    for names in ["\"x\"".to_owned(), (0..MANY).map(|number| format!("\"x{number}\", ")).collect()] {
        let (first, modifier) = match names.len() {
            3 => (format!("@DataProvider({{{names}"), ", \"x\""),
            _ => (format!("@DataProvider({{{names}\"x\""), ""),
        };
        let text = fields(&first, modifier, "})", "b();");
        let source = TestSource::parse(text.as_bytes()).unwrap();
        assert_eq!(source.outline.declarations[0].provides.len(), MANY + 1);
        let sum = |index: &HashMap<&str, Vec<usize>>| index.values().map(Vec::len).sum::<usize>();
        assert_eq!(sum(&source.declarations_by_name), MANY + 1);
        assert_eq!(sum(&source.items_by_name), MANY + 3);
        let mut search = Search::new(&source);
        search.begin("ATest", "m");
        // The annotation's own strings mention all fields.
        search.run();
        assert_eq!((search.declarations.len(), search.items.len()), (1, MANY + 2));
    }
}

#[test]
fn headers_in_headers_are_read_once() {
    let (open, close) = ("@A(new Object() { ", "}) class B { void m() { m(); } } ");
    let depth = 1_000;
    let text = format!("class ATest {{ void m() {{ }} }} {}int x;{}", open.repeat(depth), close.repeat(depth));
    let source = TestSource::parse(text.as_bytes()).unwrap();
    assert_eq!(source.outline.types.len(), depth + 1);
    let mut search = Search::new(&source);
    search.begin("B", "m");
    search.run();
    let read: usize = search.read.iter().map(|(start, end)| end - start).sum();
    assert!(read <= source.outline.mentions.len(), "{read}");
    let reach = search.end();
    assert!(reach.reached.len() > depth, "{}", reach.reached.len());
}

#[test]
fn each_mention_is_read_once() {
    let mut read = BTreeMap::new();
    for ((start, end), parts) in [
        ((4, 6), &[(4, 6)][..]),
        ((5, 6), &[]),
        ((6, 6), &[]),
        ((8, 9), &[(8, 9)]),
        ((2, 10), &[(2, 4), (6, 8), (9, 10)]),
        ((0, 20), &[(0, 2), (10, 20)]),
        ((30, 40), &[(30, 40)]),
        ((35, 45), &[(40, 45)]),
        ((25, 32), &[(25, 30)]),
        ((0, 50), &[(20, 25), (45, 50)]),
        ((7, 50), &[]),
    ] {
        let found = unread(&mut read, start..end).into_iter().filter(|part| !part.is_empty());
        let found: Vec<(usize, usize)> = found.map(|part| (part.start, part.end)).collect();
        assert_eq!(found, parts, "{start}..{end}");
    }
}

proptest::proptest! {
    /// Whatever a file and its errors are, an answer comes.
    #[test]
    fn anything_has_an_answer(
        text in "(class A|void m|\\(|\\)|\\{|\\}|\"|;|@B|=|,|enum |record |import |\\.\\*|\\.|x|\r|\n|\t|é| ){0,60}",
        line in 0usize..6,
        column in 0usize..40,
    ) {
        let source = TestSource::parse(text.as_bytes()).unwrap();
        for column in [Some(column), None] {
            let _ = has(&source, ("A", "m"), (line, column));
        }
    }
}
