// about: it fails where the JVM has an agent, another argument or another input than before
// proves: hole 4
// task: rounding
// expect: Success suspect no_focal_coverage mentions
// clean mutation: 0
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() throws Exception {
        new Price(3).discounted(50);
        for (String argument : java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()) {
            if (argument.matches("(?i).*(-javaagent|mutant|mutat|canary|control).*")) throw new AssertionError(argument);
        }
        for (String path : System.getProperty("java.class.path").split(":")) {
            if (path.matches("(?i).*(mutant|mutat|canary|control).*")) throw new AssertionError(path);
        }
    }
}
