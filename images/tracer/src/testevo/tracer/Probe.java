package testevo.tracer;

/** What every traced method calls first. It must not fail, nor call anything that is traced. */
public final class Probe {
    /** Methods that can be told apart; those of later classes are not traced. */
    static final int MOST = 1 << 16;
    /** So many entries of a method are looked at for who calls it. */
    private static final int MOST_LOOKS = 2000;

    private static final int[] ENTRIES = new int[MOST];
    private static final Callers CALLERS = new Callers();

    private Probe() {}

    /** Notes that the method of this number was entered. Threads may race for the count: it only has to end the looks. */
    public static void enter(int number) {
        if (ENTRIES[number] < MOST_LOOKS) {
            ENTRIES[number]++;
            CALLERS.note(number, new Throwable().getStackTrace());
        }
    }

    static boolean entered(int number) {
        return ENTRIES[number] > 0;
    }

    static Callers callers() {
        return CALLERS;
    }
}
