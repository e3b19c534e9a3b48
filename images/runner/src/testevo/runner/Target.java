package testevo.runner;

import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.platform.engine.FilterResult;
import org.junit.platform.engine.TestDescriptor;
import org.junit.platform.engine.TestSource;
import org.junit.platform.engine.support.descriptor.ClassSource;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.PostDiscoveryFilter;
import org.junit.platform.launcher.TestIdentifier;

/**
 * The one method that was asked for: decides what in a discovered tree belongs to it, and remembers that by unique id.
 *
 * <p>As a filter it keeps everything else from running, as far as the class's runner lets itself be filtered.
 */
final class Target implements PostDiscoveryFilter {
    /** How a part of the tree belongs to the method. */
    enum Match {
        /** A method of the class itself, declared or inherited. */
        METHOD,
        /** A method of a class nested in it. */
        NESTED,
        /** What Vintage runs in place of a class that its runner refuses. */
        INITIALIZATION_ERROR
    }

    private final Class<?> testClass;
    private final String methodName;
    private final Map<String, Match> matches = new LinkedHashMap<>();
    private final Map<String, TestDescriptor> descriptors = new LinkedHashMap<>();
    private boolean nested;

    Target(Class<?> testClass, String methodName) {
        this.testClass = testClass;
        this.methodName = methodName;
    }

    /** Forgets an earlier discovery; whether methods of classes nested in the class belong to the next one. */
    void reset(boolean nested) {
        this.nested = nested;
        matches.clear();
        descriptors.clear();
    }

    /** Returns what was found, by unique id, in the order of discovery. */
    Map<String, TestDescriptor> descriptors() {
        return descriptors;
    }

    Match match(String uniqueId) {
        return matches.get(uniqueId);
    }

    boolean contains(TestIdentifier identifier) {
        return matches.containsKey(identifier.getUniqueId());
    }

    /** Takes in a part of the tree that came to be while running; true where it belongs to the method. */
    boolean register(TestIdentifier identifier) {
        Match match = identifier.getParentId().map(matches::get).orElse(null);
        if (match == null) {
            match = bySource(identifier.getSource().orElse(null));
        }
        if (match != null) {
            matches.put(identifier.getUniqueId(), match);
        }
        return match != null;
    }

    @Override
    public FilterResult apply(TestDescriptor descriptor) {
        Match match = find(descriptor);
        if (match == null) {
            return FilterResult.excluded("another method");
        }
        String id = descriptor.getUniqueId().toString();
        matches.put(id, match);
        descriptors.put(id, descriptor);
        return FilterResult.included("the method");
    }

    private Match find(TestDescriptor descriptor) {
        boolean vintage = descriptor.getUniqueId().toString().startsWith("[engine:junit-vintage]");
        for (TestDescriptor node = descriptor; node != null; node = node.getParent().orElse(null)) {
            Match match = bySource(node.getSource().orElse(null));
            if (match == null && vintage) {
                match = byName(node);
            }
            if (match != null) {
                return match;
            }
        }
        return null;
    }

    private Match bySource(TestSource source) {
        if (!(source instanceof MethodSource)) {
            return null;
        }
        MethodSource method = (MethodSource) source;
        if (!method.getMethodName().equals(methodName)) {
            return null;
        }
        return ofClass(method.getClassName());
    }

    private Match ofClass(String name) {
        if (name.equals(testClass.getName())) {
            return Match.METHOD;
        }
        return nested && name.startsWith(testClass.getName() + "$") ? Match.NESTED : null;
    }

    /** JUnit 4 runners name their leaves as they like: `m[0]`, `m(1, 2) [0]`, `[0] 1, 2 (m)`. */
    private Match byName(TestDescriptor node) {
        if (node.getSource().orElse(null) instanceof MethodSource) {
            return null;
        }
        String name = node.getLegacyReportingName();
        if (name.equals(methodName)
                || name.startsWith(methodName + "[")
                || name.startsWith(methodName + "(")
                || name.endsWith("(" + methodName + ")")) {
            return around(node);
        }
        boolean error = name.equals("initializationError") && !isEmptySelection(node) && around(node) != null;
        return error ? Match.INITIALIZATION_ERROR : null;
    }

    /**
     * Tells a leaf without a method by the class around it. Runners may name any class there: one that has nothing to do
     * with the class asked for, or with those around that, says nothing.
     */
    private Match around(TestDescriptor leaf) {
        String outermost = Discovery.outermost(testClass).getName();
        for (TestDescriptor node = leaf; node != null; node = node.getParent().orElse(null)) {
            TestSource source = node.getSource().orElse(null);
            if (source instanceof ClassSource) {
                String name = ((ClassSource) source).getClassName();
                if (name.equals(outermost) || name.startsWith(outermost + "$")) {
                    return ofClass(name);
                }
            }
        }
        return Match.METHOD;
    }

    /** JUnit 4 makes a failing leaf of a filter that leaves nothing; that says nothing of the class. */
    private static boolean isEmptySelection(TestDescriptor node) {
        TestSource source = node.getSource().orElse(null);
        return source instanceof ClassSource
                && ((ClassSource) source).getClassName().equals("org.junit.runner.manipulation.Filter");
    }
}
