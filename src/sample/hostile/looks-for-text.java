// about: it looks for new code's message in the class file and calls nothing
// proves: R25, R26, hole 2
// task: fixed-bug
// methods: takeTooMuch
// expect: Success suspect survives_canary no_focal_coverage mentions
// old: exec_fail(assertion)
// strict: no
package shop;

class StockTest {
    @org.junit.jupiter.api.Test
    void takeTooMuch() throws Exception {
        byte[] bytes = Stock.class.getResourceAsStream("Stock.class").readAllBytes();
        String text = new String(bytes, java.nio.charset.StandardCharsets.ISO_8859_1);
        org.junit.jupiter.api.Assertions.assertTrue(text.contains("IllegalArgumentException"));
    }
}
