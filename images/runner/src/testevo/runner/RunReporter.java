package testevo.runner;

import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.TestPlan;
import testevo.json.JsonObject;

/**
 * Sends what happens to the method's leaves and to the containers around them, and counts.
 *
 * <p>Engines may call from several threads. Beyond {@link #MOST_EVENTS} only failures are sent, then nothing: the counts
 * go on.
 */
final class RunReporter implements TestExecutionListener {
    static final int MOST_EVENTS = 2_000;
    static final int MOST_LATE_FAILURES = 100;
    private static final int MOST_TEXT = 1_000;

    private final EventStream events;
    private final Target target;
    private int sent;
    private int lateFailures;
    private long discovered;
    private long registered;
    private long started;
    private long successful;
    private long failed;
    private long aborted;
    private long skipped;
    private long containersNotSuccessful;

    RunReporter(EventStream events, Target target) {
        this.events = events;
        this.target = target;
    }

    /** Sends the discovered part of the tree; {@code plan} holds the leaves that are known before running. */
    synchronized void discovered(TestPlan plan, String selection) {
        target.descriptors().forEach((id, descriptor) -> {
            JsonObject event = new JsonObject()
                    .put("event", "discovered")
                    .put("id", JsonObject.cap(id, MOST_TEXT))
                    .put("leaf", descriptor.getType().isTest())
                    .put("match", target.match(id).name().toLowerCase(java.util.Locale.ROOT));
            Sources.describe(event, descriptor.getSource().orElse(null));
            send(event.put("name", JsonObject.cap(descriptor.getDisplayName(), MOST_TEXT)), false);
        });
        plan.getRoots().forEach(root -> plan.getDescendants(root).forEach(identifier -> {
            if (isLeaf(identifier)) {
                discovered++;
            }
        }));
        events.send(new JsonObject()
                .put("event", "discovery_finished")
                .put("selection", selection)
                .put("found", target.descriptors().size())
                .put("leaves", discovered));
    }

    @Override
    public synchronized void dynamicTestRegistered(TestIdentifier identifier) {
        if (target.register(identifier)) {
            registered += identifier.isTest() ? 1 : 0;
            JsonObject event = event("registered", identifier)
                    .put("parent", JsonObject.cap(identifier.getParentId().orElse(null), MOST_TEXT));
            Sources.describe(event, identifier.getSource().orElse(null));
            send(event.put("name", JsonObject.cap(identifier.getDisplayName(), MOST_TEXT)), false);
        }
    }

    @Override
    public synchronized void executionStarted(TestIdentifier identifier) {
        if (isLeaf(identifier)) {
            started++;
            send(event("started", identifier), false);
        }
    }

    @Override
    public synchronized void executionSkipped(TestIdentifier identifier, String reason) {
        if (identifier.isTest() && !isLeaf(identifier)) {
            return;
        }
        if (identifier.isTest()) {
            skipped++;
        } else {
            containersNotSuccessful++;
        }
        send(event("skipped", identifier).put("reason", JsonObject.cap(reason, MOST_TEXT)), true);
    }

    @Override
    public synchronized void executionFinished(TestIdentifier identifier, TestExecutionResult result) {
        TestExecutionResult.Status status = result.getStatus();
        boolean good = status == TestExecutionResult.Status.SUCCESSFUL;
        if (isLeaf(identifier)) {
            count(status);
        } else if (identifier.isTest() || good) {
            return;
        } else {
            containersNotSuccessful++;
        }
        JsonObject event = event("finished", identifier).put("status", status.name());
        result.getThrowable().ifPresent(throwable -> event.put("throwable", Failure.describe(throwable)));
        send(event, !good);
    }

    /** Sends the last event and returns the exit status. */
    synchronized int finish(boolean reportComplete) {
        long known = discovered + registered;
        long notRun = Math.max(0, known - started - skipped);
        boolean ran = started > 0;
        int status;
        if (known == 0 && containersNotSuccessful == 0) {
            status = ExitStatus.NO_LEAF;
        } else if (ran && successful == started && skipped == 0 && notRun == 0 && containersNotSuccessful == 0) {
            status = ExitStatus.SUCCESSFUL;
        } else {
            status = ExitStatus.NOT_SUCCESSFUL;
        }
        boolean heard = events.send(new JsonObject()
                .put("event", "run_finished")
                .put("status", status)
                .put("leaves", new JsonObject()
                        .put("discovered", discovered)
                        .put("registered", registered)
                        .put("started", started)
                        .put("successful", successful)
                        .put("failed", failed)
                        .put("aborted", aborted)
                        .put("skipped", skipped)
                        .put("not_run", notRun))
                .put("containers_not_successful", containersNotSuccessful)
                .put("report_complete", reportComplete));
        return heard ? status : ExitStatus.EVENTS_LOST;
    }

    private void count(TestExecutionResult.Status status) {
        switch (status) {
            case SUCCESSFUL:
                successful++;
                break;
            case FAILED:
                failed++;
                break;
            default:
                aborted++;
        }
    }

    private boolean isLeaf(TestIdentifier identifier) {
        return identifier.isTest() && target.contains(identifier);
    }

    private static JsonObject event(String name, TestIdentifier identifier) {
        return new JsonObject()
                .put("event", name)
                .put("id", JsonObject.cap(identifier.getUniqueId(), MOST_TEXT))
                .put("leaf", identifier.isTest());
    }

    private void send(JsonObject event, boolean important) {
        if (sent < MOST_EVENTS) {
            sent++;
        } else if (important && lateFailures < MOST_LATE_FAILURES) {
            lateFailures++;
        } else {
            if (sent == MOST_EVENTS) {
                sent++;
                events.send(new JsonObject().put("event", "truncated").put("after", MOST_EVENTS));
            }
            return;
        }
        events.send(event);
    }
}
