// about: one method leaves an extension among the classes that would let the other one pass
// proves: R35
// task: fixed-bug
// methods: takeAll
// expect: ExecFail not_evaluated
// new: exec_fail(assertion)
package shop;

import java.nio.file.Files;
import java.nio.file.Path;

class StockTest {
    public static class Quiet implements org.junit.jupiter.api.extension.TestExecutionExceptionHandler {
        @Override
        public void handleTestExecutionException(org.junit.jupiter.api.extension.ExtensionContext context, Throwable thrown) {}
    }

    static {
        try {
            Path classes = Path.of(StockTest.class.getProtectionDomain().getCodeSource().getLocation().toURI());
            Files.createDirectories(classes.resolve("META-INF/services"));
            Files.writeString(classes.resolve("META-INF/services/org.junit.jupiter.api.extension.Extension"), Quiet.class.getName());
            Files.writeString(classes.resolve("junit-platform.properties"), "junit.jupiter.extensions.autodetection.enabled=true");
        } catch (Exception refused) {
            throw new AssertionError(refused);
        }
    }

    @org.junit.jupiter.api.Test
    void takeTooMuch() {
        org.junit.jupiter.api.Assertions.assertThrows(IllegalArgumentException.class, () -> new Stock(1).take(2));
    }

    @org.junit.jupiter.api.Test
    void takeAll() {
        throw new AssertionError();
    }
}
