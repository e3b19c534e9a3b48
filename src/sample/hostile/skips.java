// about: an assumption that does not hold
// proves: R15
// task: rounding
// expect: ExecFail not_evaluated
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() {
        org.junit.jupiter.api.Assumptions.assumeTrue(false);
    }
}
