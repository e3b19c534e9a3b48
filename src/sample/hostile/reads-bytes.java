// about: it looks for what makes other bytes of its subject's class
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
        if (new Price(3).discounted(50).cents() != 2) throw new AssertionError();
        byte[] bytes = Price.class.getResourceAsStream("Price" + dot() + "class").readAllBytes();
        String text = new String(bytes, java.nio.charset.StandardCharsets.ISO_8859_1);
        if (java.util.regex.Pattern.compile("\\x00\\x10[0-9a-f]{16}").matcher(text).find()) throw new AssertionError();
    }
}
