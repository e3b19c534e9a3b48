package testevo.tracer;

import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/** Which methods of test classes call a traced method with nothing of the project between. */
final class Callers {
    private final Set<String> tests = new HashSet<String>();
    private final Set<String> bridges = new HashSet<String>();
    private final Map<Integer, Set<String>> found = new HashMap<Integer, Set<String>>();

    /** Says that a class, by its name as stack traces have it, is a test's. */
    synchronized void addTest(String className) {
        tests.add(className);
    }

    /** Says where a method stands that the compiler made to call another one of its name. */
    synchronized void addBridge(String className, String method, int line) {
        bridges.add(place(className, method, line));
    }

    /** Looks at the stack of a probe: the probe's two methods, the traced method, and whoever called it. */
    synchronized void note(int number, StackTraceElement[] stack) {
        int at = 3;
        while (at < stack.length && bridges.contains(place(stack[at]))) {
            at++;
        }
        if (at >= stack.length || !tests.contains(stack[at].getClassName())) {
            return;
        }
        Set<String> callers = found.get(number);
        if (callers == null) {
            callers = new TreeSet<String>();
            found.put(number, callers);
        }
        callers.add(stack[at].getClassName() + "#" + stack[at].getMethodName());
    }

    synchronized Set<String> of(int number) {
        Set<String> callers = found.get(number);
        return callers == null ? Collections.<String>emptySet() : callers;
    }

    private static String place(StackTraceElement element) {
        return place(element.getClassName(), element.getMethodName(), element.getLineNumber());
    }

    private static String place(String className, String method, int line) {
        return className + "#" + method + ":" + line;
    }
}
