// about: set-up calls what the body does not test, and the end asks whether the body ran
// proves: hole 6
// task: rounding
// expect: Success suspect body_tests_nothing
// without mutants: Success clean
package shop;

class PriceTest {
    private final java.util.concurrent.atomic.AtomicInteger count = new java.util.concurrent.atomic.AtomicInteger();
    private boolean ran;

    @org.junit.jupiter.api.BeforeEach
    void busy() {
        new Price(3).discounted(50);
    }

    @org.junit.jupiter.api.Test
    void discount() {
        org.junit.jupiter.api.Assertions.assertTrue(true);
        count.incrementAndGet();
        ran = true;
    }

    @org.junit.jupiter.api.AfterEach
    void ran() {
        org.junit.jupiter.api.Assertions.assertTrue(ran);
        org.junit.jupiter.api.Assertions.assertEquals(1, count.get());
    }
}
