// about: the assertion fails in a thread that nobody asks
// proves: R22
// task: rounding
// expect: Success suspect survives_canary
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() throws Exception {
        Thread thread = new Thread(() -> {
            if (new Price(3).discounted(50).cents() != 2) throw new AssertionError();
        });
        thread.setUncaughtExceptionHandler((where, thrown) -> {});
        thread.start();
        thread.join();
    }
}
