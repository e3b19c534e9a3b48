package testevo.runner;

import java.io.File;

/** The command line. */
final class Arguments {
    static final String USAGE =
            "usage: Main --class BINARY_NAME --method NAME --events-fd N [--seal FILE] [--xml DIRECTORY]";

    final String className;
    final String methodName;
    final int eventsDescriptor;
    /** Where the key of the events' seal is; null for events without. */
    final File seal;
    /** Null where no report is wanted. */
    final File reportDirectory;

    private Arguments(String className, String methodName, int eventsDescriptor, File seal, File reportDirectory) {
        this.className = className;
        this.methodName = methodName;
        this.eventsDescriptor = eventsDescriptor;
        this.seal = seal;
        this.reportDirectory = reportDirectory;
    }

    /** Throws {@link IllegalArgumentException} with a sentence for the caller. */
    static Arguments parse(String[] words) {
        String className = null;
        String methodName = null;
        int eventsDescriptor = -1;
        File seal = null;
        File reportDirectory = null;
        for (int index = 0; index < words.length; index += 2) {
            if (index + 1 == words.length) {
                throw new IllegalArgumentException(words[index] + " needs a value");
            }
            String value = words[index + 1];
            switch (words[index]) {
                case "--class":
                    className = value;
                    break;
                case "--method":
                    methodName = value;
                    break;
                case "--events-fd":
                    eventsDescriptor = Integer.parseInt(value);
                    break;
                case "--seal":
                    seal = new File(value);
                    break;
                case "--xml":
                    reportDirectory = new File(value);
                    break;
                default:
                    throw new IllegalArgumentException("unknown option " + words[index]);
            }
        }
        if (className == null || methodName == null || eventsDescriptor < 0) {
            throw new IllegalArgumentException("--class, --method and --events-fd are needed");
        }
        return new Arguments(className, methodName, eventsDescriptor, seal, reportDirectory);
    }
}
