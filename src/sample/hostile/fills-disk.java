// about: it writes until nothing more fits
// proves: R38
// task: rounding
// expect: ExecFail not_evaluated
// new: exec_fail(disk)
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() throws Exception {
        byte[] bytes = new byte[1 << 20];
        try (java.io.OutputStream file = java.nio.file.Files.newOutputStream(java.nio.file.Files.createTempFile("fill", ""))) {
            while (true) {
                file.write(bytes);
            }
        }
    }
}
