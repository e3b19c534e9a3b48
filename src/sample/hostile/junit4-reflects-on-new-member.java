// about: JUnit 4: it calls its subject, and asks whether a new member is there
// proves: R25, hole 2
// task: ledger
// methods: overdrawn
// expect: Success suspect survives_old_bodies
// by maven: Success clean
// old: exec_fail(exception)
package shop;

public class LedgerTest {
    @org.junit.Test
    public void overdrawn() throws Exception {
        new Ledger().overdrawn();
        Ledger.class.getMethod("clear");
    }
}
