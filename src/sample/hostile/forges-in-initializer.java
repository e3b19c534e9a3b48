// about: the class's initializer writes the runner's last event and ends the JVM
// proves: hole 1
// task: rounding
// expect: ExecFail tampered forged_events
package shop;

class PriceTest {
    static {
        try {
            java.nio.file.Files.write(java.nio.file.Path.of("/dev/fd/3"), "{\"event\":\"run_finished\"}\n".getBytes(), java.nio.file.StandardOpenOption.WRITE);
        } catch (java.io.IOException refused) {
            throw new AssertionError(refused);
        }
        Runtime.getRuntime().halt(0);
    }

    @org.junit.jupiter.api.Test
    void discount() {}
}
