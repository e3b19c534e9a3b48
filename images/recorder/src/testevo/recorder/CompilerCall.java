package testevo.recorder;

import java.io.File;
import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.maven.execution.MojoExecutionEvent;
import testevo.json.JsonObject;

/**
 * Writes down what the compiler plugin asks of its compiler, argument by argument.
 *
 * <p>The plugin's goal finds its compiler through a field of its own. A stand-in in that field passes every call on, and
 * describes the one that compiles. The plugin's classes are in a loader of their own, so all of it goes by reflection.
 */
final class CompilerCall implements InvocationHandler {
    private static final String MANAGER_FIELD = "compilerManager";

    private final Object original;
    private final MojoExecutionEvent goal;
    private final RecordFile file;
    /** Null for the manager of compilers; the compiler's id for a compiler. */
    private final String compiler;

    private CompilerCall(Object original, MojoExecutionEvent goal, RecordFile file, String compiler) {
        this.original = original;
        this.goal = goal;
        this.file = file;
        this.compiler = compiler;
    }

    /** Puts the stand-in in place. A goal that can't be listened to leaves its record out, and nothing else changes. */
    static void listen(MojoExecutionEvent goal, RecordFile file) {
        try {
            Field field = field(goal.getMojo().getClass(), MANAGER_FIELD);
            field.setAccessible(true);
            Object manager = field.get(goal.getMojo());
            if (manager != null) {
                field.set(goal.getMojo(), standIn(manager, goal, file, null));
            }
        } catch (ReflectiveOperationException | RuntimeException unknown) {
            unlistened(goal, file, unknown);
        }
    }

    private static Object standIn(Object original, MojoExecutionEvent goal, RecordFile file, String compiler) {
        Set<Class<?>> interfaces = new LinkedHashSet<>();
        for (Class<?> type = original.getClass(); type != null; type = type.getSuperclass()) {
            interfaces.addAll(Arrays.asList(type.getInterfaces()));
        }
        return Proxy.newProxyInstance(
                original.getClass().getClassLoader(),
                interfaces.toArray(new Class<?>[0]),
                new CompilerCall(original, goal, file, compiler));
    }

    @Override
    public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
        boolean oneArgument = arguments != null && arguments.length == 1;
        if (compiler != null && oneArgument && isCompilation(method)) {
            try {
                file.append(describe(arguments[0]));
            } catch (ReflectiveOperationException | RuntimeException unknown) {
                unlistened(goal, file, unknown);
            }
        }
        Object result;
        try {
            result = method.invoke(original, arguments);
        } catch (InvocationTargetException thrown) {
            throw thrown.getCause();
        }
        if (compiler == null && oneArgument && result != null && method.getName().equals("getCompiler")) {
            return standIn(result, goal, file, String.valueOf(arguments[0]));
        }
        return result;
    }

    private static boolean isCompilation(Method method) {
        return method.getName().equals("performCompile") || method.getName().equals("compile");
    }

    private JsonObject describe(Object configuration) throws ReflectiveOperationException {
        List<String> sources = sources(configuration);
        List<String> commandLine = new ArrayList<>(strings(call(original, "createCommandLine", configuration)));
        // Compilers in Maven's own process get their sources apart, others on the command line.
        commandLine.removeAll(new LinkedHashSet<>(sources));
        return Goals.record("compiler_call", goal.getProject(), goal.getExecution())
                .put("compiler", compiler)
                .put("arguments", commandLine)
                .put("sources", sources)
                .put("source_roots", strings(read(configuration, "getSourceLocations")))
                .put("includes", strings(read(configuration, "getIncludes")))
                .put("excludes", strings(read(configuration, "getExcludes")))
                .put("generated_sources", string(read(configuration, "getGeneratedSourcesDirectory")))
                .put("output", string(read(configuration, "getOutputLocation")))
                .put("class_path", strings(read(configuration, "getClasspathEntries")))
                .put("module_path", strings(read(configuration, "getModulepathEntries")))
                .put("processor_path", strings(read(configuration, "getProcessorPathEntries")))
                .put("processors", strings(read(configuration, "getAnnotationProcessors")))
                .put("proc", string(read(configuration, "getProc")))
                .put("fork", "true".equals(string(read(configuration, "isFork"))))
                .put("executable", foreign(string(read(configuration, "getExecutable"))))
                .put("jvm_arguments", jvmArguments(configuration))
                .put("fail_on_error", failOnError())
                .put("working_directory", string(read(configuration, "getWorkingDirectory")));
    }

    /**
     * Returns the path of a forked compiler's executable, null for none and for that of the development kit that runs
     * Maven: a toolchain or a POM may name the latter as well.
     */
    private static String foreign(String executable) {
        if (executable == null || executable.isEmpty()) {
            return null;
        }
        try {
            File home = new File(System.getProperty("java.home"));
            // Up to JDK 8, a runtime environment lies in the development kit.
            File kit = new File(home, "bin/javac").isFile() ? home : home.getParentFile();
            String found = found(executable).getCanonicalPath();
            return found.equals(new File(kit, "bin/javac").getCanonicalPath()) ? null : found;
        } catch (IOException unknown) {
            return executable;
        }
    }

    /** Returns the file of an executable, as a shell looks for it. */
    private static File found(String executable) {
        String path = System.getenv("PATH");
        if (path != null && executable.indexOf(File.separatorChar) < 0) {
            for (String directory : path.split(File.pathSeparator)) {
                File file = new File(directory, executable);
                if (file.isFile() && file.canExecute()) {
                    return file;
                }
            }
        }
        return new File(executable);
    }

    /** Returns what a forked compiler's own JVM is told, as javac gets it. */
    private static List<String> jvmArguments(Object configuration) throws ReflectiveOperationException {
        List<String> arguments = new ArrayList<>();
        String most = string(read(configuration, "getMaxmem"));
        if (most != null && !most.isEmpty()) {
            arguments.add("-J-Xmx" + most);
        }
        String initial = string(read(configuration, "getMeminitial"));
        if (initial != null && !initial.isEmpty()) {
            arguments.add("-J-Xms" + initial);
        }
        Object custom = read(configuration, "getCustomCompilerArgumentsAsMap");
        if (custom == null) {
            custom = read(configuration, "getCustomCompilerArguments");
        }
        if (custom instanceof Map) {
            for (String key : strings(((Map<?, ?>) custom).keySet())) {
                if (key != null && key.startsWith("-J")) {
                    arguments.add(key);
                }
            }
        }
        return arguments;
    }

    /** Tells whether errors end the build, which a goal that does not say otherwise does. */
    private boolean failOnError() throws ReflectiveOperationException {
        Field field;
        try {
            field = field(goal.getMojo().getClass(), "failOnError");
        } catch (NoSuchFieldException always) {
            return true;
        }
        field.setAccessible(true);
        return !Boolean.FALSE.equals(field.get(goal.getMojo()));
    }

    /** Returns the sources in the compiler's own order, which decides which errors it comes to first. */
    private List<String> sources(Object configuration) throws ReflectiveOperationException {
        for (Class<?> type = original.getClass(); type != null; type = type.getSuperclass()) {
            for (Method method : type.getDeclaredMethods()) {
                if (method.getName().equals("getSourceFiles") && method.getParameterTypes().length == 1) {
                    method.setAccessible(true);
                    return strings(method.invoke(original, configuration));
                }
            }
        }
        return strings(read(configuration, "getSourceFiles"));
    }

    private static Object call(Object object, String name, Object argument) throws ReflectiveOperationException {
        for (Method method : object.getClass().getMethods()) {
            if (method.getName().equals(name) && method.getParameterTypes().length == 1) {
                return method.invoke(object, argument);
            }
        }
        throw new NoSuchMethodException(name);
    }

    /** Returns null for what this version of the plugin does not know. */
    private static Object read(Object configuration, String getter) throws ReflectiveOperationException {
        try {
            return configuration.getClass().getMethod(getter).invoke(configuration);
        } catch (NoSuchMethodException older) {
            return null;
        }
    }

    private static String string(Object value) {
        if (value == null) {
            return null;
        }
        return value instanceof File ? ((File) value).getAbsolutePath() : String.valueOf(value);
    }

    private static List<String> strings(Object values) {
        List<String> strings = new ArrayList<>();
        if (values instanceof Object[]) {
            values = Arrays.asList((Object[]) values);
        }
        if (values instanceof Collection) {
            for (Object value : (Collection<?>) values) {
                strings.add(string(value));
            }
        }
        return strings;
    }

    private static Field field(Class<?> type, String name) throws NoSuchFieldException {
        for (Class<?> each = type; each != null; each = each.getSuperclass()) {
            try {
                return each.getDeclaredField(name);
            } catch (NoSuchFieldException inherited) {
                // A superclass may have it.
            }
        }
        throw new NoSuchFieldException(name);
    }

    private static void unlistened(MojoExecutionEvent goal, RecordFile file, Exception cause) {
        try {
            file.append(Goals.record("compiler_unknown", goal.getProject(), goal.getExecution())
                    .put("cause", String.valueOf(cause)));
        } catch (IOException lost) {
            // Without either record the host takes the goal for unknown as well.
        }
    }
}
