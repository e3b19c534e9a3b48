// about: JUnit 4: a rule swallows what fails, and fails itself on old code
// proves: hole 2
// task: ledger
// methods: overdrawn
// expect: Success suspect survives_canary swallows
// old: exec_fail(exception)
// strict: no
package shop;

public class LedgerTest {
    @org.junit.Rule
    public org.junit.rules.TestRule quiet = (base, description) -> new org.junit.runners.model.Statement() {
        @Override
        public void evaluate() throws Throwable {
            Ledger.class.getMethod("clear");
            try {
                base.evaluate();
            } catch (Throwable swallowed) {
            }
        }
    };

    @org.junit.Test
    public void overdrawn() {
        org.junit.Assert.assertFalse(new Ledger().overdrawn());
    }
}
