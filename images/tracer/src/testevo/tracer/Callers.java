package testevo.tracer;

import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;

/** Which methods of test classes call a traced method with nothing of the project between. */
final class Callers {
    /** Names the classes on the stack, which costs a fraction of naming methods and lines. It is never installed. */
    private static final class Stack extends SecurityManager {
        Class<?>[] classes() {
            return getClassContext();
        }
    }

    private static final int MOST_READS = 1000;

    private final Stack stack = new Stack();
    private final Set<String> tests = Collections.newSetFromMap(new ConcurrentHashMap<String, Boolean>());
    private final Set<String> bridges = new HashSet<String>();
    private final Set<String> bridgeClasses = Collections.newSetFromMap(new ConcurrentHashMap<String, Boolean>());
    private final Map<String, Set<String>> inherited = new TreeMap<String, Set<String>>();
    /** So many whole stacks are read for a method: they cost the most. */
    private final short[] reads = new short[Probe.MOST];
    private final Map<Integer, Set<String>> found = new HashMap<Integer, Set<String>>();

    /** Says that a class, by its name as stack traces have it, is a test's, and what it inherits from. */
    synchronized void addTest(String className, Set<String> parents) {
        tests.add(className);
        inherited.put(className, parents);
    }

    /** Returns what each test class inherits from. */
    synchronized Map<String, Set<String>> tests() {
        return new TreeMap<String, Set<String>>(inherited);
    }

    /** Says where a method stands that the compiler made to call another one of its name. */
    synchronized void addBridge(String className, String method, int line) {
        bridges.add(place(className, method, line));
        bridgeClasses.add(className);
    }

    /** Looks at who called the traced method that called a probe. */
    void look(int number) {
        if (reads[number] < MOST_READS && mayBeTest()) {
            reads[number]++;
            note(number, new Throwable().getStackTrace());
        }
    }

    /** Tells whether the first class on the stack that can be the caller's, neither ours nor the traced one, is a test's. */
    private boolean mayBeTest() {
        Class<?> traced = null;
        for (Class<?> one : stack.classes()) {
            if (one == Stack.class || one == Callers.class || one == Probe.class) {
                continue;
            }
            if (traced == null) {
                traced = one;
            } else if (one != traced && !bridgeClasses.contains(one.getName()) && !one.getName().contains("$$Lambda")) {
                return tests.contains(one.getName());
            }
        }
        return false;
    }

    /** Reads a stack: this class and the probe, the traced method, bridges to it, and whoever called it. */
    private synchronized void note(int number, StackTraceElement[] trace) {
        int at = 0;
        while (at < trace.length && isOurs(trace[at].getClassName())) {
            at++;
        }
        String traced = at < trace.length ? trace[at].getMethodName() : "";
        at++;
        while (at < trace.length && trace[at].getMethodName().equals(traced) && bridges.contains(place(trace[at]))) {
            at++;
        }
        if (at >= trace.length || !tests.contains(trace[at].getClassName())) {
            return;
        }
        Set<String> callers = found.get(number);
        if (callers == null) {
            callers = new TreeSet<String>();
            found.put(number, callers);
        }
        callers.add(trace[at].getClassName() + "#" + trace[at].getMethodName());
    }

    synchronized Set<String> of(int number) {
        Set<String> callers = found.get(number);
        return callers == null ? Collections.<String>emptySet() : new TreeSet<String>(callers);
    }

    private static boolean isOurs(String className) {
        return className.equals(Callers.class.getName()) || className.equals(Probe.class.getName());
    }

    private static String place(StackTraceElement element) {
        return place(element.getClassName(), element.getMethodName(), element.getLineNumber());
    }

    private static String place(String className, String method, int line) {
        return className + "#" + method + ":" + line;
    }
}
