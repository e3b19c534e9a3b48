// about: a test that tells old code from new
// proves: R01
// task: fixed-bug
// methods: takeTooMuch
// expect: Success clean
// old: exec_fail(assertion)
// strict: yes
package shop;

class StockTest {
    @org.junit.jupiter.api.Test
    void takeTooMuch() {
        org.junit.jupiter.api.Assertions.assertThrows(IllegalArgumentException.class, () -> new Stock(1).take(2));
    }
}
