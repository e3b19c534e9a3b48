package testevo.runner;

import org.junit.platform.engine.TestSource;
import org.junit.platform.engine.support.descriptor.ClassSource;
import org.junit.platform.engine.support.descriptor.MethodSource;
import testevo.json.JsonObject;

/** Says in an event where a test comes from. */
final class Sources {
    private static final int MOST_TEXT = 1_000;

    private Sources() {}

    /** Adds {@code class}, {@code method} and {@code parameters}; null where unknown. */
    static void describe(JsonObject event, TestSource source) {
        String className = null;
        String methodName = null;
        String parameters = null;
        if (source instanceof MethodSource) {
            MethodSource method = (MethodSource) source;
            className = method.getClassName();
            methodName = method.getMethodName();
            parameters = method.getMethodParameterTypes();
        } else if (source instanceof ClassSource) {
            className = ((ClassSource) source).getClassName();
        }
        event.put("class", JsonObject.cap(className, MOST_TEXT));
        event.put("method", JsonObject.cap(methodName, MOST_TEXT));
        event.put("parameters", JsonObject.cap(parameters, MOST_TEXT));
    }
}
