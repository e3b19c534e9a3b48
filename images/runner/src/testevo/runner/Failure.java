package testevo.runner;

import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import testevo.json.JsonObject;

/** Turns a throwable into data. Its methods may be the test's own, so each call is guarded and every size bounded. */
final class Failure {
    private static final int MOST_MESSAGE = 4_000;
    private static final int MOST_FRAMES = 60;
    private static final int MOST_CAUSES = 6;
    private static final int MOST_NAME = 500;

    private Failure() {}

    static JsonObject describe(Throwable throwable) {
        JsonObject object = describeOne(throwable).put("kind", kind(throwable));
        List<JsonObject> causes = new ArrayList<>();
        for (Throwable cause : chain(throwable)) {
            if (cause != throwable) {
                causes.add(describeOne(cause));
            }
        }
        return object.put("causes", causes);
    }

    /** {@code assertion}, {@code exception} or {@code out_of_memory}. */
    static String kind(Throwable throwable) {
        for (Throwable cause : chain(throwable)) {
            if (cause instanceof OutOfMemoryError) {
                return "out_of_memory";
            }
        }
        return isAssertion(throwable) ? "assertion" : "exception";
    }

    /** Every assertion library's failure extends {@link AssertionError}; JUnit 3's own once extended {@link Error}. */
    private static boolean isAssertion(Throwable throwable) {
        if (throwable instanceof AssertionError) {
            return true;
        }
        for (Class<?> type = throwable.getClass(); type != null; type = type.getSuperclass()) {
            if (type.getName().equals("junit.framework.AssertionFailedError")) {
                return true;
            }
        }
        return false;
    }

    private static List<Throwable> chain(Throwable throwable) {
        List<Throwable> chain = new ArrayList<>();
        Set<Throwable> seen = Collections.newSetFromMap(new IdentityHashMap<Throwable, Boolean>());
        Throwable current = throwable;
        while (current != null && chain.size() <= MOST_CAUSES && seen.add(current)) {
            chain.add(current);
            try {
                current = current.getCause();
            } catch (Throwable hostile) {
                current = null;
            }
        }
        return chain;
    }

    private static JsonObject describeOne(Throwable throwable) {
        JsonObject object = new JsonObject();
        object.put("class", JsonObject.cap(throwable.getClass().getName(), MOST_NAME));
        try {
            object.put("message", JsonObject.cap(throwable.getMessage(), MOST_MESSAGE));
        } catch (Throwable hostile) {
            object.put("message", (String) null);
        }
        List<String> frames = new ArrayList<>();
        try {
            StackTraceElement[] trace = throwable.getStackTrace();
            for (int index = 0; index < trace.length && index < MOST_FRAMES; index++) {
                frames.add(JsonObject.cap(String.valueOf(trace[index]), MOST_NAME));
            }
            object.put("frames", trace.length);
        } catch (Throwable hostile) {
            object.put("frames", 0);
        }
        return object.put("stack", frames);
    }
}
