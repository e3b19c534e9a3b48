package testevo.compiler;

import java.io.Closeable;
import java.io.IOException;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.HashSet;
import java.util.Locale;
import java.util.Set;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticListener;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/**
 * The file managers of one request. The texts of a request share one, which opens and lists each jar once.
 *
 * <p>A request never gets another request's manager, because a manager keeps the directories of its first arguments. A
 * manager also remembers which paths do not exist. So the texts share none if the arguments name a path of the project that
 * is not made before each compilation: what processors make there could come and go.
 */
final class FileManagers implements Closeable, DiagnosticListener<JavaFileObject> {
    static final JavaCompiler COMPILER = ToolProvider.getSystemJavaCompiler();

    private final boolean sharing;
    private StandardJavaFileManager shared;
    private Response current;

    FileManagers(Request request) {
        sharing = request.texts.size() > 1 && namesOnlyDirectoriesThatAreMade(request);
    }

    /** A file manager on loan. Closing returns it. */
    static final class Lent implements Closeable {
        final StandardJavaFileManager files;
        private final boolean own;

        private Lent(StandardJavaFileManager files, boolean own) {
            this.files = files;
            this.own = own;
        }

        @Override
        public void close() throws IOException {
            if (own) {
                files.close();
            }
        }
    }

    /** Returns a manager that reports to a response. */
    Lent lend(Response response) throws IOException {
        if (!sharing) {
            return new Lent(open(response), true);
        }
        current = response;
        if (shared == null) {
            shared = open(this);
        }
        // Without the contents of the text before, which had the same path.
        shared.flush();
        return new Lent(shared, false);
    }

    /** Without a charset, or the manager would not heed the request's -encoding. */
    static StandardJavaFileManager open(DiagnosticListener<JavaFileObject> listener) {
        return COMPILER.getStandardFileManager(listener, Locale.US, null);
    }

    @Override
    public void report(Diagnostic<? extends JavaFileObject> diagnostic) {
        current.report(diagnostic);
    }

    @Override
    public void close() throws IOException {
        if (shared != null) {
            shared.close();
        }
    }

    private static boolean namesOnlyDirectoriesThatAreMade(Request request) {
        Set<Path> made = new HashSet<>();
        made.add(Paths.get(request.output));
        for (String directory : request.directories) {
            made.add(Paths.get(directory));
        }
        for (String argument : request.arguments) {
            for (String word : argument.split("[:=,]")) {
                if (word.startsWith(Compilation.PROJECT + "/") && !made.contains(Paths.get(word))) {
                    return false;
                }
            }
        }
        return true;
    }
}
