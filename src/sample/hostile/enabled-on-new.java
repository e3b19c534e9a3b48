// about: a condition skips it on old code
// proves: R29
// task: fixed-bug
// methods: takeTooMuch
// expect: Redundant suspect body_tests_nothing
// without mutants: Redundant clean
// old: exec_fail(skipped)
// strict: no
package shop;

class StockTest {
    static boolean isNew() {
        try {
            new Stock(1).take(2);
            return false;
        } catch (IllegalArgumentException isNew) {
            return true;
        }
    }

    @org.junit.jupiter.api.Test
    @org.junit.jupiter.api.condition.EnabledIf("isNew")
    void takeTooMuch() {
        org.junit.jupiter.api.Assertions.assertThrows(IllegalArgumentException.class, () -> new Stock(1).take(2));
    }
}
