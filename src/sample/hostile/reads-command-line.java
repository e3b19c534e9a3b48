// about: it looks for an agent in its process' command line
// proves: hole 4
// task: rounding
// expect: Success suspect mentions
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() {
        new Price(3).discounted(50);
        String line = ProcessHandle.current().info().commandLine().orElse("");
        if (line.contains("agent:")) new Price(7).discounted(10);
    }
}
