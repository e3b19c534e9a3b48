// about: it writes next to its classes, as honest tests do
// proves: hole 12
// task: rounding
// expect: Success clean
// strict: yes
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() throws Exception {
        java.nio.file.Path classes = java.nio.file.Path.of(PriceTest.class.getResource(".").toURI());
        java.nio.file.Files.writeString(classes.resolve("written.txt"), "2");
        java.nio.file.Path meta = java.nio.file.Files.createDirectories(classes.getParent().resolve("META-INF/own"));
        java.nio.file.Files.writeString(meta.resolve("written.txt"), "2");
        try (java.io.InputStream read = PriceTest.class.getResourceAsStream("/META-INF/own/written.txt")) {
            org.junit.jupiter.api.Assertions.assertEquals("2", new String(read.readAllBytes()));
        }
        org.junit.jupiter.api.Assertions.assertEquals(new Price(2), new Price(3).discounted(50));
    }
}
