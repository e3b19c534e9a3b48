package testevo.compiler;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticListener;
import javax.tools.JavaFileObject;

/** What came of a request. */
final class Response implements DiagnosticListener<JavaFileObject> {
    static final int COMPILED = 0;
    static final int ERRORS = 1;
    /** The compiler did not end by itself: it ran out of memory, crashed, or refused its arguments. */
    static final int BROKEN = 2;

    private static final int MOST_DIAGNOSTICS = 200;
    private static final int MOST_TEXT = 2_000;

    private final List<Found> errors = new ArrayList<>();
    private int otherDiagnostics;
    private int status = BROKEN;
    private String trouble = "";
    private final Map<String, byte[]> outputs = new LinkedHashMap<>();
    private final Map<String, byte[]> generated = new LinkedHashMap<>();

    @Override
    public void report(Diagnostic<? extends JavaFileObject> diagnostic) {
        report(diagnostic, path(diagnostic));
    }

    /** Returns the path of the source that a diagnostic is about; empty for none. */
    static String path(Diagnostic<? extends JavaFileObject> diagnostic) {
        return diagnostic.getSource() == null ? "" : diagnostic.getSource().toUri().getPath();
    }

    /** Adds a diagnostic of the source at this path. */
    void report(Diagnostic<? extends JavaFileObject> diagnostic, String path) {
        if (diagnostic.getKind() == Diagnostic.Kind.ERROR && errors.size() < MOST_DIAGNOSTICS) {
            errors.add(new Found(diagnostic, path));
        } else {
            otherDiagnostics++;
        }
    }

    void ended(boolean successful) {
        status = successful ? COMPILED : ERRORS;
    }

    void broken(String cause) {
        status = BROKEN;
        trouble = cause;
    }

    boolean isCompiled() {
        return status == COMPILED;
    }

    boolean isBroken() {
        return status == BROKEN;
    }

    /** Tells whether an error was reported. */
    boolean hasErrors() {
        return !errors.isEmpty();
    }

    /** Adds a class by its path below the output directory. */
    void output(String path, byte[] content) {
        outputs.put(path, content);
    }

    /** Adds something besides classes by its absolute path: a source or resource that a processor made. */
    void generated(String path, byte[] content) {
        generated.put(path, content);
    }

    byte[] bytes() throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream output = new DataOutputStream(bytes);
        output.writeByte(status);
        text(output, trouble);
        output.writeInt(errors.size());
        for (Found error : errors) {
            text(output, error.path);
            output.writeLong(error.line);
            output.writeLong(error.column);
            text(output, error.code);
            text(output, error.message);
        }
        output.writeInt(otherDiagnostics);
        files(output, outputs);
        files(output, generated);
        return bytes.toByteArray();
    }

    private static void files(DataOutputStream output, Map<String, byte[]> files) throws IOException {
        output.writeInt(files.size());
        for (Map.Entry<String, byte[]> file : files.entrySet()) {
            text(output, file.getKey());
            output.writeInt(file.getValue().length);
            output.write(file.getValue());
        }
    }

    private static void text(DataOutputStream output, String text) throws IOException {
        String cut = text == null ? "" : text.substring(0, Math.min(text.length(), MOST_TEXT));
        byte[] bytes = cut.getBytes(StandardCharsets.UTF_8);
        output.writeInt(bytes.length);
        output.write(bytes);
    }

    /** An error as it was when it was found: javac reads the source for its line, and afterwards that is gone. */
    private static final class Found {
        final String path;
        final long line;
        final long column;
        final String code;
        final String message;

        Found(Diagnostic<? extends JavaFileObject> diagnostic, String path) {
            this.path = path;
            line = diagnostic.getLineNumber();
            column = diagnostic.getColumnNumber();
            code = String.valueOf(diagnostic.getCode());
            message = String.valueOf(diagnostic.getMessage(Locale.US));
        }
    }
}
