// about: threads without end
// proves: R37
// task: rounding
// expect: ExecFail not_evaluated
// new: exec_fail(pids)
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() {
        java.util.concurrent.CountDownLatch never = new java.util.concurrent.CountDownLatch(1);
        while (true) {
            new Thread(() -> {
                try {
                    never.await();
                } catch (InterruptedException ended) {
                }
            }).start();
        }
    }
}
