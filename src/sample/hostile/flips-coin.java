// about: it fails every other time
// proves: R34
// task: rounding
// repeats: 12
// expect: Success flaky clean | Success flaky suspect looks_at_bytes | Success flaky suspect no_focal_coverage | Success flaky suspect looks_at_bytes no_focal_coverage | ExecFail flaky not_evaluated
// strict: no
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() {
        if (new java.util.Random().nextBoolean()) throw new AssertionError();
        org.junit.jupiter.api.Assertions.assertEquals(new Price(2), new Price(3).discounted(50));
    }
}
