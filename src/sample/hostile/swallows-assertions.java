// about: it swallows its own assertion, and nothing else
// proves: R20
// task: rounding
// expect: Success suspect survives_canary
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() {
        try {
            org.junit.jupiter.api.Assertions.assertEquals(999, new Price(3).discounted(50).cents());
        } catch (AssertionError | Exception ignored) {
        }
    }
}
