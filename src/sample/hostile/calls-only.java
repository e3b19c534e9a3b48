// about: it calls its subject and asserts nothing
// proves: R33
// task: rounding
// expect: Success clean
// clean mutation: 0
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() {
        new Price(3).discounted(50);
    }
}
