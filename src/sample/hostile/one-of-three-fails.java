// about: one of three invocations fails
// proves: R17
// task: rounding
// expect: ExecFail not_evaluated
// new: exec_fail(assertion)
package shop;

class PriceTest {
    @org.junit.jupiter.params.ParameterizedTest
    @org.junit.jupiter.params.provider.ValueSource(ints = {2, 3, 2})
    void discount(int expected) {
        org.junit.jupiter.api.Assertions.assertEquals(new Price(expected), new Price(3).discounted(50));
    }
}
