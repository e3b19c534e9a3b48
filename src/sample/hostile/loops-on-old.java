// about: it never ends on old code
// proves: R28
// task: fixed-bug
// methods: takeTooMuch
// seconds: 5
// expect: Redundant clean
// old: exec_fail(timeout)
// strict: no
package shop;

class StockTest {
    @org.junit.jupiter.api.Test
    void takeTooMuch() {
        try {
            new Stock(1).take(2);
        } catch (IllegalArgumentException isNew) {
            return;
        }
        while (true) {}
    }
}
