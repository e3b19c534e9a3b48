package testevo.tracer;

import java.lang.instrument.Instrumentation;

/** Writes down which of a project's methods a JVM enters, and who of its tests calls them. See README.md beside. */
public final class Agent {
    private Agent() {}

    /** Starts tracing; {@code path} is the file to write. */
    public static void premain(String path, Instrumentation instrumentation) {
        Entries entries = new Entries();
        Runtime.getRuntime().addShutdownHook(new Thread(new Report(path, entries), "testevo tracer"));
        instrumentation.addTransformer(new Tracing(Directories.ofClassPath(), entries));
    }
}
