// about: set-up calls what no dynamic test tests
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

    @org.junit.jupiter.api.TestFactory
    java.util.stream.Stream<org.junit.jupiter.api.DynamicTest> discount() {
        return java.util.stream.Stream.of(org.junit.jupiter.api.DynamicTest.dynamicTest("one", () -> {}));
    }
}
