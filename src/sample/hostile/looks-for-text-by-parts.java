// about: it calls its subject, and looks for new code's message in the class file, whose name it puts together
// proves: R25, R26, hole 2
// task: fixed-bug
// methods: takeTooMuch
// expect: Success suspect survives_old_bodies
// by maven: Success clean
// old: exec_fail(assertion)
package shop;

class StockTest {
    @org.junit.jupiter.api.Test
    void takeTooMuch() throws Exception {
        new Stock(5).take(1);
        String name = "Stock" + new StringBuilder("ssalc.").reverse();
        byte[] bytes = Stock.class.getResourceAsStream(name).readAllBytes();
        String text = new String(bytes, java.nio.charset.StandardCharsets.ISO_8859_1);
        org.junit.jupiter.api.Assertions.assertTrue(text.contains("IllegalArgumentException"));
    }
}
