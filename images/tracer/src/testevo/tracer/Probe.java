package testevo.tracer;

/** What every traced method calls first. It must not fail, nor call anything that is traced. */
public final class Probe {
    /** Methods that can be told apart; those of later classes are not traced. */
    static final int MOST = 1 << 16;
    /** So many entries of a method are looked at for who calls it. */
    private static final int MOST_LOOKS = 10000;

    private static final int[] LOOKS = new int[MOST];
    private static final Callers CALLERS = new Callers();

    private Probe() {}

    /** Notes that the method of this number was entered. It is small enough for a compiler to put it in the method's place. */
    public static void enter(int number) {
        if (LOOKS[number] < MOST_LOOKS) {
            look(number);
        }
    }

    /** Looks at who called the method. Threads may race for the count: it only has to end the looks. */
    private static void look(int number) {
        LOOKS[number]++;
        try {
            CALLERS.look(number);
        } catch (Throwable full) {
            // The stack or the heap is: nothing of that may reach the project.
            LOOKS[number] = MOST_LOOKS;
        }
    }

    static boolean entered(int number) {
        return LOOKS[number] > 0;
    }

    static Callers callers() {
        return CALLERS;
    }
}
