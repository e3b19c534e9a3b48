// about: JUnit 4: an assumption that does not hold
// proves: R15
// task: ledger
// methods: overdrawn
// expect: ExecFail not_evaluated
// new: exec_fail(aborted)
package shop;

public class LedgerTest {
    @org.junit.Test
    public void overdrawn() {
        org.junit.Assume.assumeTrue(false);
    }
}
