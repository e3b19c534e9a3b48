// about: JUnit 4: no body
// proves: R19, hole 6
// task: ledger
// methods: overdrawn
// expect: Redundant suspect survives_canary no_focal_coverage
// old: pass
// strict: no
package shop;

public class LedgerTest {
    @org.junit.Test
    public void overdrawn() {}
}
