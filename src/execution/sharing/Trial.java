import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/** Compiled once, so that a compiler loads what most sources need of it: types, lambdas, texts, switches, handlers. */
public class Trial<T extends Comparable<T>> {
    enum Kind { FEW, MANY }

    interface Counts {
        int of(int number);
    }

    private final Map<String, Integer> counted = new HashMap<>();

    @Deprecated
    public String describe(List<? extends T> list) {
        for (T one : list) {
            counted.merge(one.toString(), 1, (left, right) -> left + right);
        }
        Counts doubled = number -> number * 2;
        Function<String, String> trimmed = String::trim;
        switch (counted.size() > 2 ? Kind.MANY : Kind.FEW) {
            case MANY:
                return "many: " + counted + doubled.of(counted.size());
            default:
        }
        try {
            Runnable clears = new Runnable() {
                @Override
                public void run() {
                    counted.clear();
                }
            };
            return new ArrayList<>(counted.keySet()).stream().map(trimmed).reduce("", String::concat) + clears;
        } catch (IllegalStateException | IllegalArgumentException error) {
            throw new RuntimeException("failed", error);
        } finally {
            counted.clear();
        }
    }
}
