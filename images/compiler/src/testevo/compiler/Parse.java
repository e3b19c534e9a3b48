package testevo.compiler;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.InvocationTargetException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticListener;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.StandardJavaFileManager;

/**
 * Parses all texts of a request in one task, and finds those with syntax errors: most mutants have some.
 *
 * <p>A compilation begins with the same parse, and fails on its first error. So such a text needs no compilation of its own.
 * A text without a syntax error is compiled, whatever the parse found in others.
 */
final class Parse implements DiagnosticListener<JavaFileObject> {
    /** Beside the project, so that the texts are no sources of any compilation. */
    private static final Path TEXTS = Paths.get("/work/texts");

    private final Request request;
    /** The responses by the path of the parsed text. */
    private final Map<String, Response> responses = new LinkedHashMap<>();

    private Parse(Request request) {
        this.request = request;
    }

    /** Returns for each text the response with its syntax errors, and null where there are none; one null without texts. */
    static List<Response> run(Request request) throws IOException {
        if (request.texts.size() < 2 || compilesNothing(request)) {
            return Collections.nCopies(Math.max(request.texts.size(), 1), (Response) null);
        }
        Parse parse = new Parse(request);
        try {
            return parse.found();
        } catch (Throwable trouble) {
            // The compilation of the text that is at fault breaks, too. Without the parse it is known which one that is.
            Response broken = new Response();
            broken.broken(trouble.toString());
            return Collections.singletonList(broken);
        } finally {
            Compilation.clear(TEXTS);
            Compilation.clear(Compilation.PROJECT);
        }
    }

    private List<Response> found() throws Exception {
        Compilation.clear(Compilation.PROJECT);
        Compilation.createDirectories(request);
        // A compiler that runs processors holds errors of the parse back until these had their turn. It does not run them,
        // and makes none either, unless their names are arguments.
        List<String> arguments = new ArrayList<>(request.arguments);
        if (!arguments.contains("-processor")) {
            arguments.add("-proc:none");
        }
        // By default the compiler tells no more than a hundred errors, of all texts together.
        arguments.addAll(Arrays.asList("-Xmaxerrs", String.valueOf(Integer.MAX_VALUE)));
        String name = Paths.get(request.varied).getFileName().toString();
        for (int number = 0; number < request.texts.size(); number++) {
            Path path = TEXTS.resolve(String.valueOf(number)).resolve(name);
            Files.createDirectories(path.getParent());
            Files.write(path, request.texts.get(number));
            responses.put(path.toString(), new Response());
        }
        try (StandardJavaFileManager files = FileManagers.open(this)) {
            parse(FileManagers.COMPILER.getTask(
                    new PrintWriter(new StringWriter()),
                    files,
                    this,
                    arguments,
                    null,
                    files.getJavaFileObjectsFromStrings(responses.keySet())));
        }
        List<Response> found = new ArrayList<>();
        for (Response response : responses.values()) {
            response.ended(false);
            found.add(response.hasErrors() ? response : null);
        }
        return found;
    }

    /** JDK 8 has the type of tasks in a jar of its own, which is on no class path. */
    private static void parse(JavaCompiler.CompilationTask task) throws Exception {
        Class<?> type = task.getClass();
        while (!type.getName().equals("com.sun.source.util.JavacTask")) {
            type = type.getSuperclass();
        }
        try {
            type.getMethod("parse").invoke(task);
        } catch (InvocationTargetException trouble) {
            throw new Exception(trouble.getCause());
        }
    }

    @Override
    public void report(Diagnostic<? extends JavaFileObject> diagnostic) {
        Response response = responses.get(Response.path(diagnostic));
        if (response != null) {
            response.report(diagnostic, request.varied);
        }
    }

    private static boolean compilesNothing(Request request) {
        return request.arguments.contains("-proc:only");
    }
}
