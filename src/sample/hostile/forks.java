// about: processes without end
// proves: R37
// task: rounding
// expect: ExecFail not_evaluated
// new: exec_fail(pids)
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() throws Exception {
        while (true) {
            new ProcessBuilder("/bin/sleep", "3600").start();
        }
    }
}
