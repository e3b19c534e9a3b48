// about: a class of its own swallows every failure as an extension, where old code counts
// proves: R20, hole 2
// task: fixed-bug
// methods: takeTooMuch
// expect: Redundant suspect survives_canary swallows
// old: pass
// strict: no
package shop;

class StockTest {
    static class Quiet implements org.junit.jupiter.api.extension.TestExecutionExceptionHandler {
        @Override
        public void handleTestExecutionException(org.junit.jupiter.api.extension.ExtensionContext context, Throwable thrown) {}
    }

    @org.junit.jupiter.api.extension.RegisterExtension
    Quiet quiet = new Quiet();

    @org.junit.jupiter.api.Test
    void takeTooMuch() {
        new Stock(1).take(2);
    }
}
