// about: fifty megabytes
// proves: R10
// task: rounding
// pad: 50000000 20
// expect: HrnsFail not_evaluated
// new: harness_fail(size)
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() {
        org.junit.jupiter.api.Assertions.assertEquals(new Price(2), new Price(3).discounted(50));
    }
}
