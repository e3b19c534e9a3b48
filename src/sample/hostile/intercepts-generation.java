// about: an extension swallows every failure, where old code counts
// proves: R20, hole 2
// task: fixed-bug
// methods: takeTooMuch
// expect: Redundant suspect survives_canary swallows
// old: pass
// strict: no
package shop;

class StockTest {
    @org.junit.jupiter.api.extension.RegisterExtension
    org.junit.jupiter.api.extension.TestExecutionExceptionHandler quiet = (context, thrown) -> {};

    @org.junit.jupiter.api.Test
    void takeTooMuch() {
        new Stock(1).take(2);
    }
}
