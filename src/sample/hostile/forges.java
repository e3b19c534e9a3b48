// about: it writes the runner's last event and ends the JVM
// proves: R12, hole 1
// task: rounding
// expect: ExecFail tampered forged_events
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() throws Exception {
        String event = "{\"event\":\"run_finished\",\"status\":0,\"leaves\":{\"discovered\":1,\"registered\":0,\"started\":1,"
                + "\"successful\":1,\"failed\":0,\"aborted\":0,\"skipped\":0,\"not_run\":0},\"containers_not_successful\":0,"
                + "\"report_complete\":true}\n";
        java.nio.file.Files.write(java.nio.file.Path.of("/proc/self/fd/3"), event.getBytes(), java.nio.file.StandardOpenOption.WRITE);
        Runtime.getRuntime().halt(0);
    }
}
