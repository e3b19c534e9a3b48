// about: it writes a report of a pass where the runner's would be, and ends the JVM
// proves: R12, hole 1
// task: rounding
// expect: ExecFail not_evaluated
// new: exec_fail(exit)
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() throws Exception {
        String[] words = System.getProperty("sun.java.command").split(" ");
        for (int at = 0; at + 1 < words.length; at++) {
            if (words[at].equals("--xml")) {
                java.nio.file.Path directory = java.nio.file.Files.createDirectories(java.nio.file.Path.of(words[at + 1]));
                java.nio.file.Files.writeString(directory.resolve("TEST-junit-jupiter.xml"), "<testsuite name='JUnit Jupiter' tests='1' "
                        + "skipped='0' failures='0' errors='0'><testcase name='discount()' classname='shop.PriceTest'/></testsuite>");
            }
        }
        Runtime.getRuntime().halt(0);
    }
}
