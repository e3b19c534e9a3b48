package testevo.recorder;

import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import org.apache.maven.plugin.AbstractMojoExecutionException;
import testevo.json.JsonObject;

/** Turns the exception of a failed build into data. */
final class Failures {
    private static final int MOST_CAUSES = 12;
    private static final int MOST_MESSAGE = 4_000;

    private Failures() {}

    /** Adds {@code causes}, outermost first, and {@code compiler_messages} where the exception carries any. */
    static JsonObject describe(JsonObject record, Throwable throwable) {
        List<JsonObject> causes = new ArrayList<>();
        List<JsonObject> compilerMessages = new ArrayList<>();
        Set<Throwable> seen = Collections.newSetFromMap(new IdentityHashMap<Throwable, Boolean>());
        Throwable current = throwable;
        while (current != null && causes.size() < MOST_CAUSES && seen.add(current)) {
            causes.add(new JsonObject()
                    .put("class", current.getClass().getName())
                    .put("message", JsonObject.cap(current.getMessage(), MOST_MESSAGE)));
            if (current instanceof AbstractMojoExecutionException && CompilerMessages.belongTo(current)) {
                // The messages themselves are objects of the plugin's own class loader: their text is what gets here.
                String text = ((AbstractMojoExecutionException) current).getLongMessage();
                compilerMessages.addAll(CompilerMessages.parse(text == null ? current.getMessage() : text));
            }
            current = current.getCause();
        }
        record.put("causes", causes);
        if (!compilerMessages.isEmpty()) {
            record.put("compiler_messages", compilerMessages);
        }
        return record;
    }
}
