// about: JUnit 4: a member that nobody calls keeps the file from compiling on old code
// proves: R27, hole 3
// task: ledger
// methods: debt
// expect: Success clean
// old: compile_fail(target_file)
// strict: no
package shop;

public class LedgerTest {
    void unused() {
        new Ledger().clear();
    }

    @org.junit.Test
    public void debt() {
        Ledger ledger = new Ledger();
        ledger.book(-5);
        org.junit.Assert.assertTrue(ledger.overdrawn());
    }
}
