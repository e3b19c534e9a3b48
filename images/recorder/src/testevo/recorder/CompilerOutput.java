package testevo.recorder;

import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/**
 * Listens to standard error while a compiler runs in Maven's own process.
 *
 * <p>A compiler that crashes or runs out of memory says so there and nowhere else: to its caller it is "an unknown
 * compilation problem". So do compilers other than the plugin's own (Error Prone's) with every error that they find. What
 * is listened to passes on unchanged.
 */
final class CompilerOutput {
    private static final int MOST_BYTES = 64_000;

    private final PrintStream original = System.err;
    private final PrintStream listening;
    private final ByteArrayOutputStream heard = new ByteArrayOutputStream();

    private CompilerOutput() {
        listening = new PrintStream(new Listener(), true);
    }

    static CompilerOutput listen() {
        CompilerOutput output = new CompilerOutput();
        System.setErr(output.listening);
        return output;
    }

    /** Stops listening and returns the beginning of what was heard. */
    String end() {
        // Whoever replaced the stream in between keeps it.
        if (System.err == listening) {
            System.setErr(original);
        }
        synchronized (heard) {
            return new String(heard.toByteArray(), StandardCharsets.UTF_8).trim();
        }
    }

    private final class Listener extends OutputStream {
        @Override
        public void write(int value) {
            write(new byte[] {(byte) value}, 0, 1);
        }

        @Override
        public void write(byte[] bytes, int offset, int length) {
            original.write(bytes, offset, length);
            synchronized (heard) {
                heard.write(bytes, offset, Math.max(0, Math.min(length, MOST_BYTES - heard.size())));
            }
        }

        @Override
        public void flush() {
            original.flush();
        }
    }
}
