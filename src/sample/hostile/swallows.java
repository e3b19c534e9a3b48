// about: a handler around the body swallows every failure
// proves: R20, hole 2
// task: rounding
// expect: Success suspect survives_canary
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() {
        try {
            if (new Price(3).discounted(50).cents() != 2) throw new AssertionError();
        } catch (Throwable all) {
        }
    }
}
