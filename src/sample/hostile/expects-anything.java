// about: any failure at all is what it asks for
// proves: hole 2
// task: fixed-bug
// methods: takeTooMuch
// expect: Success suspect survives_canary
// old: exec_fail(assertion)
// strict: no
package shop;

class StockTest {
    @org.junit.jupiter.api.Test
    void takeTooMuch() {
        org.junit.jupiter.api.Assertions.assertThrows(Throwable.class, () -> new Stock(1).take(2));
    }
}
