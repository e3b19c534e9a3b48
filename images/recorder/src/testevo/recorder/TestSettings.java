package testevo.recorder;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.maven.execution.MavenSession;
import org.apache.maven.model.Plugin;
import org.apache.maven.model.PluginExecution;
import org.apache.maven.plugin.MojoExecution;
import org.apache.maven.plugin.PluginParameterExpressionEvaluator;
import org.apache.maven.project.MavenProject;
import org.codehaus.plexus.component.configurator.expression.ExpressionEvaluationException;
import org.codehaus.plexus.util.xml.Xpp3Dom;
import testevo.json.JsonObject;

/**
 * Says with what settings Surefire would start a project's tests, as far as they reach the tests' JVM.
 *
 * <p>The goal itself is not run: its configuration is read from the effective model and evaluated as Maven does.
 */
final class TestSettings {
    private static final String GROUP = "org.apache.maven.plugins";
    private static final String ARTIFACT = "maven-surefire-plugin";
    private static final String GOAL = "test";
    private static final String DEFAULT_EXECUTION = "default-test";
    /** Properties that are replaced only when the tests start: other plugins may set them until then. */
    private static final Pattern LATE = Pattern.compile("@\\{([^}]*)\\}");

    private final MavenProject project;
    private final PluginParameterExpressionEvaluator evaluator;
    private final Xpp3Dom configuration;
    private final MavenSession session;

    private TestSettings(MavenProject project, MavenSession session, MojoExecution running, Xpp3Dom configuration) {
        this.project = project;
        this.session = session;
        this.evaluator = new PluginParameterExpressionEvaluator(session, running);
        this.configuration = configuration;
    }

    /** Returns a record for each of the project's executions of the goal. */
    static List<JsonObject> describe(MavenProject project, MavenSession session, MojoExecution running) {
        List<JsonObject> records = new ArrayList<>();
        Plugin plugin = project.getPlugin(GROUP + ":" + ARTIFACT);
        if (plugin == null) {
            return records;
        }
        for (PluginExecution execution : plugin.getExecutions()) {
            if (execution.getGoals().contains(GOAL)) {
                Xpp3Dom configuration = project.getGoalConfiguration(GROUP, ARTIFACT, execution.getId(), GOAL);
                TestSettings settings = new TestSettings(project, session, running, configuration);
                records.add(settings.record(plugin, execution));
            }
        }
        return records;
    }

    private JsonObject record(Plugin plugin, PluginExecution execution) {
        JsonObject record = new JsonObject()
                .put("event", "test_settings")
                .put("project", Projects.id(project))
                .put("plugin", GROUP + ":" + ARTIFACT + ":" + plugin.getVersion())
                .put("execution", execution.getId())
                .put("default", execution.getId().equals(DEFAULT_EXECUTION))
                .put("phase", execution.getPhase());
        List<String> failures = new ArrayList<>();
        record.put("arg_line", late(text("argLine", "${argLine}", failures)));
        record.put("system_properties", systemProperties(failures));
        record.put("environment", entries("environmentVariables", failures));
        record.put("working_directory", text("workingDirectory", null, failures));
        record.put("use_module_path", text("useModulePath", "${surefire.useModulePath}", failures));
        record.put("enable_assertions", text("enableAssertions", "${enableAssertions}", failures));
        return record.put("failures", failures);
    }

    /** Surefire's old setting first: the new one overrides it. */
    private JsonObject systemProperties(List<String> failures) {
        Properties merged = new Properties();
        Xpp3Dom old = child("systemProperties");
        if (old != null) {
            for (Xpp3Dom property : old.getChildren("property")) {
                put(merged, value(property.getChild("name"), failures), value(property.getChild("value"), failures));
            }
        }
        Xpp3Dom variables = child("systemPropertyVariables");
        if (variables != null) {
            for (Xpp3Dom variable : variables.getChildren()) {
                put(merged, variable.getName(), value(variable, failures));
            }
        }
        JsonObject object = new JsonObject();
        for (Map.Entry<Object, Object> entry : new java.util.TreeMap<>(merged).entrySet()) {
            object.put((String) entry.getKey(), (String) entry.getValue());
        }
        return object;
    }

    private static void put(Properties properties, String name, String value) {
        if (name != null && !name.isEmpty()) {
            properties.setProperty(name, value == null ? "" : value);
        }
    }

    private JsonObject entries(String name, List<String> failures) {
        JsonObject object = new JsonObject();
        Xpp3Dom map = child(name);
        if (map != null) {
            java.util.TreeMap<String, String> sorted = new java.util.TreeMap<>();
            for (Xpp3Dom entry : map.getChildren()) {
                String value = value(entry, failures);
                sorted.put(entry.getName(), value == null ? "" : value);
            }
            for (Map.Entry<String, String> entry : sorted.entrySet()) {
                object.put(entry.getKey(), entry.getValue());
            }
        }
        return object;
    }

    private Xpp3Dom child(String name) {
        return configuration == null ? null : configuration.getChild(name);
    }

    private String text(String name, String otherwise, List<String> failures) {
        Xpp3Dom child = child(name);
        String value = child == null ? null : value(child, failures);
        return value == null && otherwise != null ? evaluate(otherwise, failures) : value;
    }

    private String value(Xpp3Dom element, List<String> failures) {
        return element == null || element.getValue() == null ? null : evaluate(element.getValue(), failures);
    }

    private String evaluate(String expression, List<String> failures) {
        try {
            Object value = evaluator.evaluate(expression);
            return value == null ? null : String.valueOf(value);
        } catch (ExpressionEvaluationException | RuntimeException unknown) {
            failures.add(JsonObject.cap(expression + ": " + unknown.getMessage(), 500));
            return null;
        }
    }

    private String late(String line) {
        if (line == null) {
            return null;
        }
        Matcher matcher = LATE.matcher(line);
        StringBuffer replaced = new StringBuffer();
        while (matcher.find()) {
            String value = property(matcher.group(1));
            matcher.appendReplacement(replaced, Matcher.quoteReplacement(value == null ? matcher.group() : value));
        }
        return matcher.appendTail(replaced).toString();
    }

    private String property(String name) {
        String value = session.getUserProperties().getProperty(name);
        if (value == null) {
            value = project.getProperties().getProperty(name);
        }
        return value == null ? session.getSystemProperties().getProperty(name) : value;
    }
}
