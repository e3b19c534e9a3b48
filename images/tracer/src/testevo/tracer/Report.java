package testevo.tracer;

import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.nio.charset.StandardCharsets;

/** Writes what was entered as the JVM ends. */
final class Report implements Runnable {
    private final String path;
    private final Entries entries;

    Report(String path, Entries entries) {
        this.path = path;
        this.entries = entries;
    }

    @Override
    public void run() {
        try (Writer out = new OutputStreamWriter(new FileOutputStream(path), StandardCharsets.UTF_8)) {
            for (String name : entries.untraced()) {
                out.write("untraced\t" + name + "\n");
            }
            for (Entries.Entry entry : entries.entered()) {
                out.write("entered\t" + entry.source + "\t" + entry.method + "\t" + joined(entry.lines) + "\n");
            }
            // A file without this line was cut off.
            out.write("end\n");
        } catch (IOException lost) {
            System.err.println("testevo tracer: " + lost.getMessage());
        }
    }

    private static String joined(Iterable<Integer> lines) {
        StringBuilder text = new StringBuilder();
        for (int line : lines) {
            text.append(text.length() == 0 ? "" : ",").append(line);
        }
        return text.toString();
    }
}
