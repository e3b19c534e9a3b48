package testevo.runner;

import org.junit.platform.engine.DiscoveryIssue;
import org.junit.platform.engine.UniqueId;
import org.junit.platform.launcher.EngineDiscoveryResult;
import org.junit.platform.launcher.LauncherDiscoveryListener;
import testevo.json.JsonObject;

/** Sends what engines complain about while they discover. */
final class DiscoveryReporter implements LauncherDiscoveryListener {
    private static final int MOST_ISSUES = 50;
    private static final int MOST_MESSAGE = 2_000;

    private final EventStream events;
    private int issues;

    DiscoveryReporter(EventStream events) {
        this.events = events;
    }

    @Override
    public void engineDiscoveryFinished(UniqueId engine, EngineDiscoveryResult result) {
        if (result.getStatus() == EngineDiscoveryResult.Status.FAILED) {
            JsonObject event = new JsonObject().put("event", "discovery_failed").put("engine", engine.toString());
            result.getThrowable().ifPresent(throwable -> event.put("throwable", Failure.describe(throwable)));
            events.send(event);
        }
    }

    @Override
    public void issueEncountered(UniqueId engine, DiscoveryIssue issue) {
        if (++issues > MOST_ISSUES) {
            return;
        }
        JsonObject event = new JsonObject()
                .put("event", "discovery_issue")
                .put("engine", engine.toString())
                .put("severity", issue.severity().name())
                .put("message", JsonObject.cap(issue.message(), MOST_MESSAGE));
        issue.cause().ifPresent(throwable -> event.put("throwable", Failure.describe(throwable)));
        events.send(event);
    }
}
