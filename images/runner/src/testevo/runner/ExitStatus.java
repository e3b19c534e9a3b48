package testevo.runner;

/** What the process ends with. A test that ends the JVM itself can produce any of these; then the last event is missing. */
final class ExitStatus {
    /** At least one leaf ran and every one was successful. */
    static final int SUCCESSFUL = 0;
    /** A leaf or a container of the method failed, was aborted, skipped, or never ran. */
    static final int NOT_SUCCESSFUL = 1;
    /** The method was not discovered, or had no leaf. */
    static final int NO_LEAF = 2;
    static final int USAGE = 64;
    /** The class could not be loaded. */
    static final int CLASS_NOT_LOADED = 65;
    /** The platform itself failed. */
    static final int PLATFORM_FAILED = 70;
    /** The heap was exhausted, and the platform gave up. */
    static final int OUT_OF_MEMORY = 71;
    /** The events could not be opened or written. */
    static final int EVENTS_LOST = 74;

    private ExitStatus() {}
}
