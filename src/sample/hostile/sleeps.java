// about: it sleeps
// proves: hole 10
// task: rounding
// seconds: 5
// expect: ExecFail not_evaluated
// new: exec_fail(timeout)
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() throws Exception {
        Thread.sleep(3_600_000);
    }
}
