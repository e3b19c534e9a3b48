// about: JUnit 4: set-up calls what the body does not test, and the body throws what its annotation expects
// proves: hole 6
// task: ledger
// methods: overdrawn
// expect: Redundant suspect body_tests_nothing
// without mutants: Redundant clean
// old: pass
// strict: no
package shop;

public class LedgerTest {
    @org.junit.Before
    public void busy() {
        new Ledger().overdrawn();
    }

    @org.junit.Test(expected = IllegalStateException.class)
    public void overdrawn() {
        throw new IllegalStateException();
    }
}
