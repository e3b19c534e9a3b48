// about: it calls new code that throws on purpose, and lets nothing be seen
// proves: R20, hole 2
// task: fixed-bug
// methods: takeTooMuch
// expect: Redundant suspect survives_canary
package shop;

class StockTest {
    @org.junit.jupiter.api.Test
    void takeTooMuch() {
        try {
            new Stock(1).take(2);
        } catch (Throwable any) {
        }
    }

    @org.junit.jupiter.api.Test
    void takeAll() {
        Stock stock = new Stock(2);
        stock.take(2);
        if (stock.left() != 0) throw new AssertionError();
    }
}
