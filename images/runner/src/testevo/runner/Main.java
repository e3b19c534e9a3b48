package testevo.runner;

import java.io.IOException;
import org.junit.jupiter.engine.JupiterTestEngine;
import org.junit.platform.launcher.LauncherSession;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestPlan;
import org.junit.platform.launcher.core.LauncherConfig;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.vintage.engine.VintageTestEngine;
import testevo.json.JsonObject;

/** Runs one test method on the JUnit Platform and tells the host through a file descriptor. See README.md beside. */
public final class Main {
    private Main() {}

    public static void main(String[] words) {
        Arguments arguments;
        try {
            arguments = Arguments.parse(words);
        } catch (IllegalArgumentException wrong) {
            System.err.println("testevo runner: " + wrong.getMessage() + "\n" + Arguments.USAGE);
            System.exit(ExitStatus.USAGE);
            return;
        }
        EventStream events;
        try {
            events = EventStream.open(arguments.eventsDescriptor, Seal.take(arguments.seal));
        } catch (IOException closed) {
            System.err.println("testevo runner: events: " + closed.getMessage());
            System.exit(ExitStatus.EVENTS_LOST);
            return;
        }
        // Not halt: agents write their data in shutdown hooks. Threads that a test left behind end here too.
        System.exit(run(arguments, events));
    }

    private static int run(Arguments arguments, EventStream events) {
        boolean heard = events.send(new JsonObject()
                .put("event", "run_started")
                .put("schema", EventStream.SCHEMA)
                .put("class", arguments.className)
                .put("method", arguments.methodName)
                .put("platform", LauncherFactory.class.getPackage().getImplementationVersion())
                .put("java", System.getProperty("java.version")));
        if (!heard) {
            return ExitStatus.EVENTS_LOST;
        }
        Class<?> testClass;
        try {
            testClass = Class.forName(arguments.className, false, ClassLoader.getSystemClassLoader());
        } catch (ClassNotFoundException | LinkageError missing) {
            return failed(events, "class_not_loaded", missing, ExitStatus.CLASS_NOT_LOADED);
        }
        try {
            return launch(arguments, testClass, events);
        } catch (Throwable thrown) {
            if (Failure.kind(thrown).equals("out_of_memory")) {
                return failed(events, "run_failed", thrown, ExitStatus.OUT_OF_MEMORY);
            }
            return failed(events, "run_failed", thrown, ExitStatus.PLATFORM_FAILED);
        }
    }

    private static int launch(Arguments arguments, Class<?> testClass, EventStream events) {
        // Engines of the project's own class path are not wanted: they may not even fit this platform.
        LauncherConfig config = LauncherConfig.builder()
                .enableTestEngineAutoRegistration(false)
                .addTestEngines(new JupiterTestEngine(), new VintageTestEngine())
                .build();
        Target target = new Target(testClass, arguments.methodName);
        RunReporter reporter = new RunReporter(events, target);
        BoundedReport report = arguments.reportDirectory == null ? null : new BoundedReport(arguments.reportDirectory);
        try (LauncherSession session = LauncherFactory.openSession(config)) {
            Discovery discovery = new Discovery(session.getLauncher(), target, new DiscoveryReporter(events));
            TestPlan plan;
            try {
                plan = discovery.discover(testClass, arguments.methodName);
            } catch (LinkageError missing) {
                return failed(events, "class_not_loaded", missing, ExitStatus.CLASS_NOT_LOADED);
            }
            reporter.discovered(plan, discovery.selection());
            if (!target.descriptors().isEmpty()) {
                TestExecutionListener[] listeners =
                        report == null ? new TestExecutionListener[] {reporter} : new TestExecutionListener[] {reporter, report};
                session.getLauncher().execute(plan, listeners);
            }
        }
        return reporter.finish(report == null || report.isComplete());
    }

    private static int failed(EventStream events, String name, Throwable thrown, int status) {
        boolean heard = events.send(new JsonObject()
                .put("event", name)
                .put("status", status)
                .put("throwable", Failure.describe(thrown)));
        return heard ? status : ExitStatus.EVENTS_LOST;
    }
}
