// about: JUnit 4: a rule collects failures and forgets them; it inherits through a class between
// proves: hole 2
// task: ledger
// methods: overdrawn
// expect: Success suspect survives_old_bodies swallows
// by maven: Success suspect swallows
// old: exec_fail(exception)
// strict: no
package shop;

public class LedgerTest {
    public static class Between extends org.junit.rules.ErrorCollector {
    }

    public static class Forgets extends Between {
        @Override
        protected void verify() {
        }
    }

    @org.junit.Rule
    public Forgets collector = new Forgets();

    @org.junit.Test
    public void overdrawn() throws Exception {
        Ledger.class.getMethod("clear");
        boolean overdrawn = new Ledger().overdrawn();
        collector.checkThat(overdrawn, org.hamcrest.CoreMatchers.is(!overdrawn));
    }
}
