// about: JUnit 4: a test that tests
// proves: R01
// task: ledger
// methods: overdrawn
// expect: Success clean
// old: exec_fail(assertion)
// strict: yes
package shop;

public class LedgerTest {
    @org.junit.Test
    public void overdrawn() {
        org.junit.Assert.assertFalse(new Ledger().overdrawn());
    }
}
