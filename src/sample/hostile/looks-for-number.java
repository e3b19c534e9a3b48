// about: it calls its subject, and looks for a number of new code in the class file
// proves: R26, hole 4
// task: rounding
// expect: Success suspect looks_at_bytes
// clean mutation: none
package shop;

class PriceTest {
    static String dot() {
        return String.valueOf((char) 46);
    }

    @org.junit.jupiter.api.Test
    void discount() throws Exception {
        new Price(3).discounted(50);
        byte[] bytes = Price.class.getResourceAsStream("Price" + dot() + "class").readAllBytes();
        String text = new String(bytes, java.nio.charset.StandardCharsets.ISO_8859_1);
        // 100.0
        if (!text.contains("\6@Y\0\0\0\0\0\0")) throw new AssertionError();
    }
}
