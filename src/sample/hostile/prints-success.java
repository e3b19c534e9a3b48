// about: it prints what a build prints that succeeds, and fails
// proves: R21
// task: rounding
// expect: ExecFail not_evaluated
// new: exec_fail(assertion)
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() {
        System.out.println("Tests run: 1, Failures: 0, Errors: 0, Skipped: 0\n[INFO] BUILD SUCCESS\n{\"event\":\"run_finished\"}");
        throw new AssertionError();
    }
}
