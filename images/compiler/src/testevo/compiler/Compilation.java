package testevo.compiler;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;

/** One request, compiled in directories of its own that are gone before the next. */
final class Compilation {
    static final Path PROJECT = Paths.get("/work/project");
    private static final long MOST_OUTPUT = 32L << 20;

    private final Request request;
    private final FileManagers managers;
    private final Response response = new Response();

    Compilation(Request request, FileManagers managers) {
        this.request = request;
        this.managers = managers;
    }

    Response run() throws IOException {
        clear(PROJECT);
        try {
            createDirectories(request);
            for (Map.Entry<String, byte[]> file : request.files.entrySet()) {
                Path path = Paths.get(file.getKey());
                Files.createDirectories(path.getParent());
                Files.write(path, file.getValue());
            }
            compile();
            if (response.isCompiled()) {
                collect();
            }
        } catch (Throwable trouble) {
            // An exhausted heap or stack as well: whoever asked decides what it means, and this JVM is ended.
            response.broken(trouble.toString());
        } finally {
            clear(PROJECT);
        }
        return response;
    }

    private void compile() throws IOException {
        StringWriter said = new StringWriter();
        try (FileManagers.Lent lent = managers.lend(response)) {
            StandardJavaFileManager files = lent.files;
            JavaCompiler.CompilationTask task = FileManagers.COMPILER.getTask(
                    new PrintWriter(said),
                    files,
                    response,
                    request.arguments,
                    null,
                    files.getJavaFileObjectsFromStrings(request.sources));
            boolean successful = task.call();
            if (!successful && crashed(said.toString())) {
                response.broken(said.toString());
            } else {
                response.ended(successful);
            }
        }
    }

    /** Tells a compiler that broke from one that found errors: from JDK 9 on, frames begin with their module. */
    private static boolean crashed(String said) {
        for (String line : said.split("\\R")) {
            if (line.startsWith("\tat ") && line.contains("com.sun.tools.javac.")
                    || line.startsWith("The system is out of resources")) {
                return true;
            }
        }
        return false;
    }

    private void collect() throws IOException {
        Path output = Paths.get(request.output);
        Set<Path> seen = new TreeSet<>();
        collect(output, seen);
        for (String directory : request.directories) {
            collect(Paths.get(directory), seen);
        }
        long size = 0;
        for (Path file : seen) {
            size += Files.size(file);
            if (size > MOST_OUTPUT) {
                throw new IOException("more than " + MOST_OUTPUT + " bytes came out");
            }
            byte[] content = Files.readAllBytes(file);
            if (file.startsWith(output) && file.toString().endsWith(".class")) {
                response.output(output.relativize(file).toString(), content);
            } else {
                response.generated(file.toString(), content);
            }
        }
    }

    /** Adds the files below a directory that the request did not bring. */
    private void collect(Path directory, final Set<Path> seen) throws IOException {
        Files.walkFileTree(directory, new SimpleFileVisitor<Path>() {
            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
                if (!request.files.containsKey(file.toString())) {
                    seen.add(file);
                }
                return FileVisitResult.CONTINUE;
            }
        });
    }

    /** Makes the directories that javac must find. */
    static void createDirectories(Request request) throws IOException {
        Files.createDirectories(Paths.get(request.output));
        for (String directory : request.directories) {
            Files.createDirectories(Paths.get(directory));
        }
    }

    static void clear(Path directory) throws IOException {
        if (!Files.exists(directory)) {
            return;
        }
        Files.walkFileTree(directory, new SimpleFileVisitor<Path>() {
            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) throws IOException {
                Files.delete(file);
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult postVisitDirectory(Path each, IOException failed) throws IOException {
                if (failed != null) {
                    throw failed;
                }
                Files.delete(each);
                return FileVisitResult.CONTINUE;
            }
        });
    }
}
