// about: no body, where old code counts
// proves: R19, hole 6
// task: fixed-bug
// methods: takeTooMuch
// expect: Redundant suspect survives_canary no_focal_coverage
// old: pass
// strict: no
package shop;

class StockTest {
    @org.junit.jupiter.api.Test
    void takeTooMuch() {}
}
