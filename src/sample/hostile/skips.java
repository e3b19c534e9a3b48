// about: an assumption that does not hold
// proves: R15
// task: rounding
// expect: ExecFail not_evaluated
// new: exec_fail(aborted)
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() {
        org.junit.jupiter.api.Assumptions.assumeTrue(false);
    }
}
