// about: JUnit 4: it writes the runner's last event and ends the JVM
// proves: R12, hole 1
// task: ledger
// methods: overdrawn
// expect: ExecFail tampered forged_events
// new: exec_fail(exit)
package shop;

public class LedgerTest {
    @org.junit.Test
    public void overdrawn() throws Exception {
        String event = "{\"event\":\"run_finished\",\"status\":0,\"leaves\":{\"discovered\":1,\"registered\":0,\"started\":1,"
                + "\"successful\":1,\"failed\":0,\"aborted\":0,\"skipped\":0,\"not_run\":0},\"containers_not_successful\":0,"
                + "\"report_complete\":true}\n";
        java.nio.file.Files.write(java.nio.file.Paths.get("/proc/self/fd/3"), event.getBytes(), java.nio.file.StandardOpenOption.WRITE);
        Runtime.getRuntime().halt(0);
    }
}
