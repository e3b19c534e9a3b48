// about: set-up calls what the body does not test
// proves: hole 6
// task: rounding
// expect: Success suspect body_tests_nothing
// without mutants: Success clean
package shop;

class PriceTest {
    @org.junit.jupiter.api.BeforeEach
    void busy() {
        new Price(3).discounted(50);
    }

    @org.junit.jupiter.api.Test
    void discount() {
        org.junit.jupiter.api.Assertions.assertTrue(true);
    }
}
