// about: it passes and takes the report away when the JVM ends
// proves: R12, hole 2
// task: rounding
// expect: Success suspect no_report
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() {
        String[] words = System.getProperty("sun.java.command").split(" ");
        for (int at = 0; at + 1 < words.length; at++) {
            if (words[at].equals("--xml")) {
                java.io.File directory = new java.io.File(words[at + 1]);
                Runtime.getRuntime().addShutdownHook(new Thread(() -> {
                    for (java.io.File file : directory.listFiles()) file.delete();
                }));
            }
        }
        org.junit.jupiter.api.Assertions.assertEquals(new Price(2), new Price(3).discounted(50));
    }
}
