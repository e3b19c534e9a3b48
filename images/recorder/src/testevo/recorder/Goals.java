package testevo.recorder;

import org.apache.maven.plugin.MojoExecution;
import org.apache.maven.project.MavenProject;
import testevo.json.JsonObject;

/** Says which goal something is about. */
final class Goals {
    private static final String COMPILER_PLUGIN = "org.apache.maven.plugins:maven-compiler-plugin";

    private Goals() {}

    /** Whether the goal compiles, by whatever plugin. */
    static boolean compiles(MojoExecution mojo) {
        return mojo.getGoal().equals("compile") || mojo.getGoal().equals("testCompile");
    }

    /** Whether the goal is one of Maven's own compiler plugin. */
    static boolean isCompiler(MojoExecution mojo) {
        return compiles(mojo) && COMPILER_PLUGIN.equals(mojo.getGroupId() + ":" + mojo.getArtifactId());
    }

    static String plugin(MojoExecution mojo) {
        return mojo.getGroupId() + ":" + mojo.getArtifactId() + ":" + mojo.getVersion();
    }

    static JsonObject record(String name, MavenProject project, MojoExecution mojo) {
        return new JsonObject()
                .put("event", name)
                .put("project", Projects.id(project))
                .put("plugin", plugin(mojo))
                .put("goal", mojo.getGoal())
                .put("execution", mojo.getExecutionId())
                .put("phase", mojo.getLifecyclePhase());
    }
}
