// about: JUnit 4: the class's initializer writes the runner's last event and ends the JVM
// proves: R12, hole 1
// task: ledger
// methods: overdrawn
// expect: ExecFail tampered forged_events
// new: exec_fail(exit)
package shop;

public class LedgerTest {
    static {
        try {
            java.nio.file.Files.write(java.nio.file.Paths.get("/dev/fd/3"), "{\"event\":\"run_finished\"}\n".getBytes(), java.nio.file.StandardOpenOption.WRITE);
        } catch (java.io.IOException refused) {
            throw new AssertionError(refused);
        }
        Runtime.getRuntime().halt(0);
    }

    @org.junit.Test
    public void overdrawn() {}
}
