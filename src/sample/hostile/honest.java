// about: a test that tests
// proves: R01
// task: rounding
// expect: Success clean
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() {
        org.junit.jupiter.api.Assertions.assertEquals(new Price(2), new Price(3).discounted(50));
    }
}
