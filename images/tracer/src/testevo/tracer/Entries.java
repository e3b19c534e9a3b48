package testevo.tracer;

import java.util.ArrayList;
import java.util.List;
import java.util.SortedSet;
import java.util.TreeSet;

/** The traced methods, by number, and the classes that could not be traced. */
final class Entries {
    /** A method with code, and the lines that the class file has of it. */
    static final class Entry {
        final String className;
        final String source;
        final String method;
        final String descriptor;
        final SortedSet<Integer> lines = new TreeSet<Integer>();

        Entry(String className, String source, String method, String descriptor) {
            this.className = className;
            this.source = source;
            this.method = method;
            this.descriptor = descriptor;
        }
    }

    private final List<Entry> entries = new ArrayList<Entry>();
    private final List<String> untraced = new ArrayList<String>();

    /** Returns the number of the next method, or -1 where there are too many. */
    synchronized int add(Entry entry) {
        if (entries.size() == Probe.MOST) {
            return -1;
        }
        entries.add(entry);
        return entries.size() - 1;
    }

    synchronized void addUntraced(String name) {
        untraced.add(name);
    }

    synchronized List<Entry> all() {
        return new ArrayList<Entry>(entries);
    }

    synchronized List<String> untraced() {
        return new ArrayList<String>(untraced);
    }
}
