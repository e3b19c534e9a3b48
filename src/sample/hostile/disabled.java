// about: an annotation skips it
// proves: R14
// task: rounding
// expect: ExecFail not_evaluated
// new: exec_fail(skipped)
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    @org.junit.jupiter.api.Disabled
    void discount() {
        org.junit.jupiter.api.Assertions.assertEquals(new Price(2), new Price(3).discounted(50));
    }
}
