package testevo.recorder;

import java.io.Closeable;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import testevo.json.JsonObject;

/** The file that records go to, one line and one write each; builds may run modules in parallel. */
final class RecordFile implements Closeable {
    /** Version of the records' format; stands in the first record. */
    static final int SCHEMA = 2;

    private static volatile RecordFile current;

    private final OutputStream output;
    private final long startNanos = System.nanoTime();

    private RecordFile(String path) throws IOException {
        output = new FileOutputStream(path, true);
    }

    /** Opens the session's file. Maven makes its components itself, so this is how all of them find it. */
    static RecordFile open(String path) throws IOException {
        current = new RecordFile(path);
        return current;
    }

    /** Returns the session's file, null where nothing is to be recorded. */
    static RecordFile current() {
        return current;
    }

    synchronized void append(JsonObject record) throws IOException {
        record.put("ms", (System.nanoTime() - startNanos) / 1_000_000);
        output.write((record + "\n").getBytes(StandardCharsets.UTF_8));
    }

    @Override
    public void close() throws IOException {
        current = null;
        output.close();
    }
}
