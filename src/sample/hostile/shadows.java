// about: it brings its own subject
// proves: R23
// task: rounding
// expect: Success tampered shadows replaces survives_canary no_focal_coverage
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() {
        org.junit.jupiter.api.Assertions.assertEquals(2, new Price(3).discounted(50).cents());
    }
}

class Price {
    Price(long cents) {}

    Price discounted(int percent) {
        return this;
    }

    long cents() {
        return 2;
    }
}
