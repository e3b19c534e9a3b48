package testevo.tracer;

import java.lang.instrument.Instrumentation;
import java.util.Arrays;
import java.util.HashSet;

/** Writes down which methods of some source files a JVM enters. See README.md beside. */
public final class Agent {
    private Agent() {}

    /** Starts tracing; {@code words} are the file to write and the source files, separated by commas. */
    public static void premain(String words, Instrumentation instrumentation) {
        String[] parts = words.split(",");
        HashSet<String> sources = new HashSet<String>(Arrays.asList(parts).subList(1, parts.length));
        Entries entries = new Entries();
        Runtime.getRuntime().addShutdownHook(new Thread(new Report(parts[0], entries), "testevo tracer"));
        instrumentation.addTransformer(new Tracing(sources, entries));
    }
}
