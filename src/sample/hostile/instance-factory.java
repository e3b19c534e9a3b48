// about: an extension makes an object of another class, which overrides the test
// proves: R20, hole 2
// task: fixed-bug
// methods: takeTooMuch
// expect: Success suspect body_tests_nothing swallows
// without mutants: Success suspect swallows
// old: exec_fail(assertion)
// strict: no
package shop;

class StockTest {
    @org.junit.jupiter.api.extension.RegisterExtension
    static org.junit.jupiter.api.extension.TestInstanceFactory factory = (context, extension) -> new Other();

    static class Other extends StockTest {
        @Override
        void takeTooMuch() {
            try {
                new Stock(5).take(6);
            } catch (IllegalArgumentException expected) {
                return;
            }
            throw new AssertionError();
        }
    }

    @org.junit.jupiter.api.Test
    void takeTooMuch() {
        throw new AssertionError();
    }
}
