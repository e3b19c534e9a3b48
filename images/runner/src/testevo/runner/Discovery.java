package testevo.runner;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectMethod;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.junit.platform.commons.annotation.Testable;
import org.junit.platform.commons.support.AnnotationSupport;
import org.junit.platform.commons.support.HierarchyTraversalMode;
import org.junit.platform.commons.support.ReflectionSupport;
import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.launcher.EngineFilter;
import org.junit.platform.launcher.Launcher;
import org.junit.platform.launcher.LauncherDiscoveryListener;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestPlan;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;

/** Finds the method's part of the tree without scanning the class path. */
final class Discovery {
    private static final String JUPITER = "junit-jupiter";
    private static final String VINTAGE = "junit-vintage";

    private final Launcher launcher;
    private final Target target;
    private final LauncherDiscoveryListener listener;
    private String selection = "methods";

    Discovery(Launcher launcher, Target target, LauncherDiscoveryListener listener) {
        this.launcher = launcher;
        this.target = target;
        this.listener = listener;
    }

    /** Returns which selection found what was found: {@code methods} or {@code class}. */
    String selection() {
        return selection;
    }

    /**
     * Returns the plan; whether anything in it is the method's, the target knows.
     *
     * <p>Throws {@link LinkageError} where the class or what its methods mention can't be loaded.
     */
    TestPlan discover(Class<?> testClass, String methodName) {
        List<Method> candidates = ReflectionSupport.findMethods(
                testClass, method -> method.getName().equals(methodName), HierarchyTraversalMode.BOTTOM_UP);
        if (!candidates.isEmpty()) {
            List<DiscoverySelector> selectors = new ArrayList<>();
            for (Method candidate : candidates) {
                selectors.add(selectMethod(testClass, candidate));
            }
            TestPlan plan = discover(engines(testClass, candidates), selectors, false);
            if (!target.descriptors().isEmpty()) {
                return plan;
            }
        }
        // Runners whose descriptions no method selector matches, or that run nested classes as their own; and only where the
        // class has no such method, those of classes nested in it.
        selection = "class";
        Class<?> outermost = outermost(testClass);
        TestPlan plan = discover(testClass, false);
        if (target.descriptors().isEmpty() && outermost != testClass) {
            plan = discover(outermost, false);
        }
        if (target.descriptors().isEmpty()) {
            plan = discover(testClass, true);
        }
        if (target.descriptors().isEmpty() && outermost != testClass) {
            plan = discover(outermost, true);
        }
        return plan;
    }

    /** Returns the class at a file's top level that a class stands in, or the class itself. */
    static Class<?> outermost(Class<?> nested) {
        Class<?> outermost = nested;
        for (Class<?> around = nested; around != null; around = around.getEnclosingClass()) {
            outermost = around;
        }
        return outermost;
    }

    private TestPlan discover(Class<?> whole, boolean nested) {
        return discover(Arrays.asList(JUPITER, VINTAGE), Collections.singletonList(selectClass(whole)), nested);
    }

    private TestPlan discover(List<String> engines, List<? extends DiscoverySelector> selectors, boolean nested) {
        target.reset(nested);
        LauncherDiscoveryRequest request = LauncherDiscoveryRequestBuilder.request()
                .selectors(selectors)
                .filters(EngineFilter.includeEngines(engines), target)
                .listeners(listener)
                // Whatever the project's own properties say: problems are reported, and tests really run.
                .configurationParameter("junit.platform.discovery.listener.default", "logging")
                .configurationParameter("junit.platform.execution.dryRun.enabled", "false")
                .build();
        return launcher.discover(request);
    }

    /** An engine costs a third of the start, so where the method is plainly one engine's the other stays unloaded. */
    private static List<String> engines(Class<?> testClass, List<Method> candidates) {
        boolean vintage = junit.framework.TestCase.class.isAssignableFrom(testClass);
        boolean jupiter = false;
        for (Method candidate : candidates) {
            vintage |= candidate.isAnnotationPresent(org.junit.Test.class);
            jupiter |= AnnotationSupport.isAnnotated(candidate, Testable.class);
        }
        if (vintage == jupiter) {
            return Arrays.asList(JUPITER, VINTAGE);
        }
        return Collections.singletonList(vintage ? VINTAGE : JUPITER);
    }
}
