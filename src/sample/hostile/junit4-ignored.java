// about: JUnit 4: an annotation skips it
// proves: R14
// task: ledger
// methods: overdrawn
// expect: ExecFail not_evaluated
// new: exec_fail(skipped)
package shop;

public class LedgerTest {
    @org.junit.Test
    @org.junit.Ignore
    public void overdrawn() {}
}
