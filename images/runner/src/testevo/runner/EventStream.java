package testevo.runner;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import testevo.json.JsonObject;

/**
 * Writes events to the descriptor that the host reads, one line and one write each, signed where there is a seal.
 *
 * <p>Test code of the same JVM can write there too, and reach this object if it tries hard; the host does not believe events
 * alone.
 */
final class EventStream {
    /** Version of the events' format; stands in the first event. */
    static final int SCHEMA = 1;

    private final OutputStream output;
    private final Seal seal;
    private final long startNanos = System.nanoTime();

    private EventStream(OutputStream output, Seal seal) {
        this.output = output;
        this.seal = seal;
    }

    static EventStream open(int descriptor, Seal seal) throws IOException {
        try {
            return new EventStream(new FileOutputStream("/proc/self/fd/" + descriptor), seal);
        } catch (IOException notReopened) {
            // A pipe that was made by another user, or a socket, can be used but not opened anew.
            try {
                return new EventStream(new FileOutputStream(inherited(descriptor)), seal);
            } catch (ReflectiveOperationException | RuntimeException refused) {
                notReopened.addSuppressed(refused);
                throw notReopened;
            }
        }
    }

    /** Sends an event; false where nobody reads any more. */
    synchronized boolean send(JsonObject event) {
        event.put("ms", (System.nanoTime() - startNanos) / 1_000_000);
        try {
            String text = event.toString();
            if (seal == null) {
                output.write((text + "\n").getBytes(StandardCharsets.UTF_8));
            } else {
                long[] following = seal.following();
                String signature = seal.signature(text.getBytes(StandardCharsets.UTF_8));
                output.write((text + " " + signature + "\n").getBytes(StandardCharsets.UTF_8));
                seal.advance(following);
            }
            output.flush();
            return true;
        } catch (IOException closed) {
            return false;
        }
    }

    /** Java has no public way from a number to a descriptor; {@code Unsafe} needs no flags on any of the JDKs we run. */
    private static FileDescriptor inherited(int number) throws ReflectiveOperationException {
        FileDescriptor descriptor = new FileDescriptor();
        Class<?> unsafeClass = Class.forName("sun.misc.Unsafe");
        Field instance = unsafeClass.getDeclaredField("theUnsafe");
        instance.setAccessible(true);
        Object unsafe = instance.get(null);
        Field field = FileDescriptor.class.getDeclaredField("fd");
        Object offset = unsafeClass.getMethod("objectFieldOffset", Field.class).invoke(unsafe, field);
        unsafeClass
                .getMethod("putInt", Object.class, long.class, int.class)
                .invoke(unsafe, descriptor, offset, number);
        return descriptor;
    }
}
