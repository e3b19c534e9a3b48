package testevo.runner;

import java.io.File;
import java.io.PrintWriter;
import java.io.StringWriter;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.reporting.ReportEntry;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.TestPlan;
import org.junit.platform.reporting.legacy.xml.LegacyXmlReportGeneratingListener;

/**
 * The JUnit XML report of the platform, which keeps everything until an engine's end and writes it then: so it hears of a
 * bounded number of leaves, and beyond that none is written.
 */
final class BoundedReport implements TestExecutionListener {
    private static final int MOST_LEAVES = 10_000;
    private static final int MOST_ENTRIES = 1_000;

    private final StringWriter problems = new StringWriter();
    private final LegacyXmlReportGeneratingListener report;
    private int leaves;
    private int entries;

    BoundedReport(File directory) {
        report = new LegacyXmlReportGeneratingListener(directory.toPath(), new PrintWriter(problems));
    }

    /** Whether everything is in the report and it was written. */
    synchronized boolean isComplete() {
        return !isTooLarge() && entries <= MOST_ENTRIES && problems.getBuffer().length() == 0;
    }

    private synchronized boolean isTooLarge() {
        return leaves > MOST_LEAVES;
    }

    @Override
    public void testPlanExecutionStarted(TestPlan plan) {
        report.testPlanExecutionStarted(plan);
    }

    @Override
    public void testPlanExecutionFinished(TestPlan plan) {
        report.testPlanExecutionFinished(plan);
    }

    @Override
    public void executionSkipped(TestIdentifier identifier, String reason) {
        if (takes(identifier)) {
            report.executionSkipped(identifier, reason);
        }
    }

    @Override
    public void executionStarted(TestIdentifier identifier) {
        if (identifier.isContainer() || !isTooLarge()) {
            report.executionStarted(identifier);
        }
    }

    @Override
    public void executionFinished(TestIdentifier identifier, TestExecutionResult result) {
        if (takes(identifier) && (identifier.getParentId().isPresent() || !isTooLarge())) {
            report.executionFinished(identifier, result);
        }
    }

    @Override
    public synchronized void reportingEntryPublished(TestIdentifier identifier, ReportEntry entry) {
        if (++entries <= MOST_ENTRIES) {
            report.reportingEntryPublished(identifier, entry);
        }
    }

    private synchronized boolean takes(TestIdentifier identifier) {
        return !identifier.isTest() || ++leaves <= MOST_LEAVES;
    }
}
