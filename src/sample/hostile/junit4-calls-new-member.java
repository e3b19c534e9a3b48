// about: JUnit 4: it calls its subject and asserts nothing, and a call of a new member keeps it from compiling on old code
// proves: R27, hole 3
// task: ledger
// methods: overdrawn
// expect: Success suspect survives_old_bodies
// by maven: Success clean
// old: compile_fail(target_file)
package shop;

public class LedgerTest {
    @org.junit.Test
    public void overdrawn() {
        Ledger ledger = new Ledger();
        ledger.overdrawn();
        ledger.clear();
    }
}
