// about: the method stands in a nested class only
// proves: R18
// task: rounding
// expect: HrnsFail not_evaluated
// new: harness_fail(no_target_method)
package shop;

class PriceTest {
    @org.junit.jupiter.api.Nested
    class Inner {
        @org.junit.jupiter.api.Test
        void discount() {
            org.junit.jupiter.api.Assertions.assertEquals(new Price(2), new Price(3).discounted(50));
        }
    }
}
