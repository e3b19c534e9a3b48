// about: a NUL byte at the end
// proves: R10
// task: rounding
// pad: 1 00
// expect: HrnsFail not_evaluated
// new: harness_fail(encoding)
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() {
        org.junit.jupiter.api.Assertions.assertEquals(new Price(2), new Price(3).discounted(50));
    }
}
