// about: no body
// proves: R19, hole 6
// task: rounding
// expect: Success suspect survives_canary no_focal_coverage
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() {}
}
