package testevo.recorder;

import javax.inject.Named;
import javax.inject.Singleton;
import org.apache.maven.execution.MojoExecutionEvent;
import org.apache.maven.execution.MojoExecutionListener;

/** Sees every goal's configured object just before it runs, which events do not carry. */
@Named
@Singleton
public final class GoalListener implements MojoExecutionListener {
    @Override
    public void beforeMojoExecution(MojoExecutionEvent event) {
        RecordFile file = RecordFile.current();
        if (file != null && Goals.isCompiler(event.getExecution())) {
            CompilerCall.listen(event, file);
        }
    }

    @Override
    public void afterMojoExecutionSuccess(MojoExecutionEvent event) {}

    @Override
    public void afterExecutionFailure(MojoExecutionEvent event) {}
}
