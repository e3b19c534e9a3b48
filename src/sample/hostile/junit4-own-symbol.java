// about: JUnit 4: the new member is the test's own to call
// proves: R27, hole 3
// task: ledger
// methods: debt
// expect: Success clean
// old: compile_fail(target_file)
// strict: yes
package shop;

public class LedgerTest {
    @org.junit.Test
    public void debt() {
        Ledger ledger = new Ledger();
        ledger.book(-5);
        org.junit.Assert.assertTrue(ledger.overdrawn());
        ledger.clear();
        org.junit.Assert.assertFalse(ledger.overdrawn());
    }
}
