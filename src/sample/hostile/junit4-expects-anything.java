// about: JUnit 4: any failure at all makes it pass
// proves: hole 2
// task: ledger
// methods: overdrawn
// expect: Success suspect survives_canary no_focal_coverage swallows
// old: exec_fail(assertion)
// strict: no
package shop;

public class LedgerTest {
    @org.junit.Test(expected = Throwable.class)
    public void overdrawn() throws Exception {
        try {
            Ledger.class.getMethod("clear");
        } catch (NoSuchMethodException isOld) {
            return;
        }
        throw new AssertionError();
    }
}
