package testevo.tracer;

import java.io.File;
import java.net.URL;
import java.security.CodeSource;
import java.security.ProtectionDomain;
import java.util.HashSet;
import java.util.Set;

/** The project's class directories: the first one on the class path has the tests, the others what they test. */
final class Directories {
    private static final String PROJECT = "/work/project/";

    private final String tests;
    private final Set<String> main;

    private Directories(String tests, Set<String> main) {
        this.tests = tests;
        this.main = main;
    }

    static Directories ofClassPath() {
        String tests = null;
        Set<String> main = new HashSet<String>();
        for (String element : System.getProperty("java.class.path").split(File.pathSeparator)) {
            String directory = directory(element);
            if (!directory.startsWith(PROJECT) || element.endsWith(".jar")) {
                continue;
            }
            if (tests == null) {
                tests = directory;
            } else if (!directory.endsWith("/test-classes/")) {
                // Tests of other modules, from which tests here may borrow, are neither.
                main.add(directory);
            }
        }
        return new Directories(tests, main);
    }

    private static String directory(String path) {
        return path.endsWith("/") ? path : path + "/";
    }

    boolean isTest(ProtectionDomain domain) {
        return tests != null && tests.equals(place(domain));
    }

    boolean isMain(ProtectionDomain domain) {
        return main.contains(place(domain));
    }

    private static String place(ProtectionDomain domain) {
        CodeSource source = domain == null ? null : domain.getCodeSource();
        URL location = source == null ? null : source.getLocation();
        return location == null || location.getPath() == null ? "" : directory(location.getPath());
    }
}
