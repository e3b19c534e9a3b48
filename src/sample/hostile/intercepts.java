// about: an extension swallows every failure
// proves: R20, hole 2
// task: rounding
// expect: Success suspect survives_canary swallows
package shop;

class PriceTest {
    @org.junit.jupiter.api.extension.RegisterExtension
    org.junit.jupiter.api.extension.TestExecutionExceptionHandler quiet = (context, thrown) -> {};

    @org.junit.jupiter.api.Test
    void discount() {
        if (new Price(3).discounted(50).cents() != 2) throw new AssertionError();
    }
}
