// about: it calls its subject, and looks for new code's message in the source
// proves: R25, R26, hole 2
// task: fixed-bug
// methods: takeTooMuch
// expect: Success suspect survives_old_bodies mentions
// by maven: Success suspect mentions
// old: exec_fail(assertion)
// strict: no
package shop;

class StockTest {
    @org.junit.jupiter.api.Test
    void takeTooMuch() throws Exception {
        new Stock(5).take(1);
        String text = java.nio.file.Files.readString(java.nio.file.Path.of("src/main/java/shop/Stock.java"));
        org.junit.jupiter.api.Assertions.assertTrue(text.contains("IllegalArgumentException"));
    }
}
