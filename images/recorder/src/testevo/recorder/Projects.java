package testevo.recorder;

import java.util.ArrayList;
import java.util.List;
import org.apache.maven.artifact.DependencyResolutionRequiredException;
import org.apache.maven.model.Resource;
import org.apache.maven.project.MavenProject;
import testevo.json.JsonObject;

/** Says what Maven knows of a project. */
final class Projects {
    private Projects() {}

    static String id(MavenProject project) {
        return project == null ? null : project.getGroupId() + ":" + project.getArtifactId();
    }

    static JsonObject describe(MavenProject project) {
        return new JsonObject()
                .put("project", id(project))
                .put("version", project.getVersion())
                .put("packaging", project.getPackaging())
                .put("basedir", String.valueOf(project.getBasedir()))
                .put("pom", String.valueOf(project.getFile()))
                .put("output", project.getBuild().getOutputDirectory())
                .put("test_output", project.getBuild().getTestOutputDirectory())
                .put("source_roots", project.getCompileSourceRoots())
                .put("test_source_roots", project.getTestCompileSourceRoots())
                .put("resource_roots", directories(project.getResources()))
                .put("test_resource_roots", directories(project.getTestResources()));
    }

    /** Adds the class path that tests run with, and the source roots as plugins have extended them by now. */
    static JsonObject describeTestCompiled(JsonObject record, MavenProject project) {
        record.put("source_roots", project.getCompileSourceRoots());
        record.put("test_source_roots", project.getTestCompileSourceRoots());
        try {
            return record.put("elements", project.getTestClasspathElements());
        } catch (DependencyResolutionRequiredException unresolved) {
            return record.put("unresolved", String.valueOf(unresolved.getMessage()));
        }
    }

    private static List<String> directories(List<Resource> resources) {
        List<String> directories = new ArrayList<>();
        for (Resource resource : resources) {
            directories.add(resource.getDirectory());
        }
        return directories;
    }
}
