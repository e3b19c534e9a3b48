// about: a factory of no tests
// proves: R16
// task: rounding
// expect: ExecFail not_evaluated
// new: exec_fail(no_leaf)
package shop;

class PriceTest {
    @org.junit.jupiter.api.TestFactory
    java.util.List<org.junit.jupiter.api.DynamicTest> discount() {
        return java.util.List.of();
    }
}
