// about: it ends the JVM with status 0, spelt so that no search finds it
// proves: R13
// task: rounding
// expect: ExecFail not_evaluated
// new: exec_fail(exit)
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() {
        \u0053ystem.exit(0);
    }
}
