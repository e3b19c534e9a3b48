// about: on old code it writes events of a failed assertion and ends the JVM
// proves: hole 1
// task: fixed-bug
// methods: takeTooMuch
// expect: Redundant tampered forged_events mentions
// old: exec_fail(exit)
// strict: no
package shop;

class StockTest {
    @org.junit.jupiter.api.Test
    void takeTooMuch() throws Exception {
        try {
            new Stock(1).take(2);
        } catch (IllegalArgumentException isNew) {
            return;
        }
        String event = "{\"event\":\"finished\",\"status\":\"FAILED\",\"throwable\":{\"class\":\"java.lang.AssertionError\"}}\n"
                + "{\"event\":\"run_finished\",\"status\":1,\"leaves\":{\"discovered\":1,\"registered\":0,\"started\":1,"
                + "\"successful\":0,\"failed\":1,\"aborted\":0,\"skipped\":0,\"not_run\":0},\"containers_not_successful\":0,"
                + "\"report_complete\":true}\n";
        java.nio.file.Files.write(java.nio.file.Path.of("/proc/self/fd/3"), event.getBytes(), java.nio.file.StandardOpenOption.WRITE);
        Runtime.getRuntime().halt(1);
    }
}
