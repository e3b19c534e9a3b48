// about: set-up calls what the body does not test, and the body is inherited from an interface
// proves: hole 6
// task: rounding
// expect: Success suspect body_tests_nothing
// without mutants: Success clean
package shop;

class PriceTest implements Inherited {
    @org.junit.jupiter.api.BeforeEach
    void busy() {
        new Price(3).discounted(50);
    }
}

interface Inherited {
    @org.junit.jupiter.api.Test
    default void discount() {
        org.junit.jupiter.api.Assertions.assertTrue(true);
    }
}
