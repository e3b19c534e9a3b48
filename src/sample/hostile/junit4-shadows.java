// about: JUnit 4: it brings its own subject
// proves: R23
// task: ledger
// methods: overdrawn
// expect: Redundant tampered shadows replaces survives_canary no_focal_coverage
package shop;

public class LedgerTest {
    @org.junit.Test
    public void overdrawn() throws Exception {
        Class.forName("shop.Ledger").getDeclaredMethod("overdrawn");
    }
}

class Ledger {
    boolean overdrawn() {
        return false;
    }
}
