// about: a process of its own session stays behind
// proves: R36
// task: rounding
// expect: Success clean
// strict: yes
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() throws Exception {
        new ProcessBuilder("/bin/sh", "-c", "setsid sleep 3600 || sleep 3600").start();
        org.junit.jupiter.api.Assertions.assertEquals(new Price(2), new Price(3).discounted(50));
    }
}
