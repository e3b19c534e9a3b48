// about: it ends the JVM with status 0
// proves: R11
// task: rounding
// expect: ExecFail not_evaluated
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() {
        System.exit(0);
    }
}
