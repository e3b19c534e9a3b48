package testevo.tracer;

/** What every traced method calls first. It stays trivial: it must neither fail nor call anything that is traced. */
public final class Probe {
    /** Methods that can be told apart; those of later classes are not traced. */
    static final int MOST = 1 << 16;

    private static final boolean[] ENTERED = new boolean[MOST];

    private Probe() {}

    /** Notes that the method of this number was entered. */
    public static void enter(int number) {
        ENTERED[number] = true;
    }

    static boolean entered(int number) {
        return ENTERED[number];
    }
}
