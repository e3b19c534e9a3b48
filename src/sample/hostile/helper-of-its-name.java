// about: set-up needs a helper with the name of the test, whose body tests nothing
// proves: hole 6
// task: rounding
// expect: Success suspect body_tests_nothing
// without mutants: Success clean
package shop;

class PriceTest {
    static long discount(long cents) {
        return (cents + 1) / 2;
    }

    @org.junit.jupiter.api.BeforeEach
    void busy() {
        if (new Price(3).discounted(50).cents() != discount(3)) throw new AssertionError();
    }

    @org.junit.jupiter.api.Test
    void discount() {}
}
