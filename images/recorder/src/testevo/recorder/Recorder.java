package testevo.recorder;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import javax.inject.Named;
import javax.inject.Singleton;
import org.apache.maven.eventspy.AbstractEventSpy;
import org.apache.maven.execution.ExecutionEvent;
import org.apache.maven.execution.MavenExecutionResult;
import org.apache.maven.plugin.MojoExecution;
import org.apache.maven.project.MavenProject;
import org.eclipse.aether.RepositoryEvent;
import org.eclipse.aether.repository.LocalRepository;
import testevo.json.JsonObject;

/**
 * Writes down what a Maven build does, as far as a verdict depends on it: see README.md beside. It changes nothing, and does
 * nothing unless told where to write.
 */
@Named
@Singleton
public final class Recorder extends AbstractEventSpy {
    private static final String OUTPUT_PROPERTY = "testevo.recorder.output";
    private static final int MOST_RESOLUTION_FAILURES = 500;

    private final Map<MojoExecution, Long> startNanos =
            Collections.synchronizedMap(new IdentityHashMap<MojoExecution, Long>());
    /** What each thread is at, so that a failed resolution can be laid to it. */
    private final ThreadLocal<String> currentProject = new ThreadLocal<>();

    private final ThreadLocal<MojoExecution> currentMojo = new ThreadLocal<>();
    private CompilerOutput compilerOutput;
    private RecordFile file;
    private int resolutionFailures;

    @Override
    public void init(Context context) throws IOException {
        Properties user = (Properties) context.getData().get("userProperties");
        Properties system = (Properties) context.getData().get("systemProperties");
        String path = user == null ? null : user.getProperty(OUTPUT_PROPERTY);
        if (path == null) {
            return;
        }
        file = RecordFile.open(path);
        file.append(new JsonObject()
                .put("event", "recording_started")
                .put("schema", RecordFile.SCHEMA)
                .put("maven", system == null ? null : system.getProperty("maven.version"))
                .put("java", System.getProperty("java.version")));
    }

    @Override
    public void onEvent(Object event) throws IOException {
        if (file == null) {
            return;
        }
        if (event instanceof ExecutionEvent) {
            onExecution((ExecutionEvent) event);
        } else if (event instanceof RepositoryEvent) {
            onRepository((RepositoryEvent) event);
        } else if (event instanceof MavenExecutionResult) {
            onResult((MavenExecutionResult) event);
        }
    }

    @Override
    public void close() throws IOException {
        if (file != null) {
            file.close();
        }
    }

    private void onExecution(ExecutionEvent event) throws IOException {
        MavenProject project = event.getProject();
        MojoExecution mojo = event.getMojoExecution();
        switch (event.getType()) {
            case SessionStarted:
                List<JsonObject> projects = new ArrayList<>();
                for (MavenProject each : event.getSession().getProjects()) {
                    projects.add(Projects.describe(each));
                }
                file.append(new JsonObject().put("event", "session_started").put("projects", projects));
                break;
            case ProjectStarted:
                currentProject.set(Projects.id(project));
                file.append(new JsonObject().put("event", "project_started").put("project", Projects.id(project)));
                break;
            case MojoStarted:
                startNanos.put(mojo, System.nanoTime());
                currentMojo.set(mojo);
                file.append(Goals.record("mojo_started", project, mojo));
                if (Goals.compiles(mojo)) {
                    listen();
                }
                break;
            case MojoSkipped:
                file.append(Goals.record("mojo_skipped", project, mojo));
                break;
            case MojoSucceeded:
                currentMojo.remove();
                heard();
                file.append(ended(Goals.record("mojo_succeeded", project, mojo), mojo));
                if (mojo.getGoal().equals("testCompile")) {
                    file.append(Projects.describeTestCompiled(Goals.record("test_classpath", project, mojo), project));
                    for (JsonObject settings : TestSettings.describe(project, event.getSession(), mojo)) {
                        file.append(settings);
                    }
                }
                break;
            case MojoFailed:
                currentMojo.remove();
                JsonObject failed = ended(Goals.record("mojo_failed", project, mojo), mojo);
                String heard = heard();
                if (!heard.isEmpty()) {
                    failed.put("compiler_output", heard);
                }
                file.append(Failures.describe(failed, event.getException()));
                break;
            case ProjectSucceeded:
                file.append(new JsonObject().put("event", "project_succeeded").put("project", Projects.id(project)));
                break;
            case ProjectFailed:
                file.append(Failures.describe(
                        new JsonObject().put("event", "project_failed").put("project", Projects.id(project)),
                        event.getException()));
                break;
            case ProjectSkipped:
                file.append(new JsonObject().put("event", "project_skipped").put("project", Projects.id(project)));
                break;
            default:
                break;
        }
    }

    private void onRepository(RepositoryEvent event) throws IOException {
        boolean artifact = event.getType() == RepositoryEvent.EventType.ARTIFACT_RESOLVED;
        boolean metadata = event.getType() == RepositoryEvent.EventType.METADATA_RESOLVED;
        // An artifact counts once every repository was asked. Metadata that the cache alone lacks is everyday.
        if (!(artifact || metadata) || event.getExceptions().isEmpty() || event.getFile() != null) {
            return;
        }
        if (metadata && event.getRepository() instanceof LocalRepository) {
            return;
        }
        synchronized (this) {
            if (++resolutionFailures > MOST_RESOLUTION_FAILURES) {
                return;
            }
        }
        MojoExecution mojo = currentMojo.get();
        JsonObject record = new JsonObject()
                .put("event", artifact ? "artifact_unresolved" : "metadata_unresolved")
                .put(artifact ? "artifact" : "metadata", String.valueOf(artifact ? event.getArtifact() : event.getMetadata()))
                .put("repository", event.getRepository() == null ? null : event.getRepository().getId())
                .put("project", currentProject.get())
                .put("mojo", mojo == null ? null : Goals.plugin(mojo) + ":" + mojo.getGoal());
        file.append(Failures.describe(record, event.getExceptions().get(0)));
    }

    private void onResult(MavenExecutionResult result) throws IOException {
        List<JsonObject> failures = new ArrayList<>();
        for (Throwable thrown : result.getExceptions()) {
            failures.add(Failures.describe(new JsonObject(), thrown));
        }
        file.append(new JsonObject()
                .put("event", "session_ended")
                .put("success", failures.isEmpty())
                .put("failures", failures));
    }

    private synchronized void listen() {
        if (compilerOutput == null) {
            compilerOutput = CompilerOutput.listen();
        }
    }

    /** Ends listening, if it was on; with modules built in parallel the first to end ends it for all. */
    private synchronized String heard() {
        String heard = compilerOutput == null ? "" : compilerOutput.end();
        compilerOutput = null;
        return heard;
    }

    private JsonObject ended(JsonObject record, MojoExecution mojo) {
        Long start = startNanos.remove(mojo);
        return start == null ? record : record.put("elapsed_ms", (System.nanoTime() - start) / 1_000_000);
    }
}
