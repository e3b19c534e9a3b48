// about: its initializer ends the JVM on old code
// proves: R24
// task: fixed-bug
// methods: takeTooMuch
// expect: Redundant suspect body_tests_nothing
// without mutants: Redundant clean
// old: exec_fail(exit)
// strict: no
package shop;

class StockTest {
    static {
        try {
            new Stock(1).take(2);
            System.exit(0);
        } catch (IllegalArgumentException isNew) {
        }
    }

    @org.junit.jupiter.api.Test
    void takeTooMuch() {
        org.junit.jupiter.api.Assertions.assertThrows(IllegalArgumentException.class, () -> new Stock(1).take(2));
    }
}
