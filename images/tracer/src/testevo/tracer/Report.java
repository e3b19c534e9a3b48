package testevo.tracer;

import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;

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
            for (Map.Entry<String, Set<String>> test : Probe.callers().tests().entrySet()) {
                out.write("test\t" + test.getKey() + "\t" + joined(test.getValue()) + "\n");
            }
            List<Entries.Entry> all = entries.all();
            for (int number = 0; number < all.size(); number++) {
                if (Probe.entered(number)) {
                    out.write(line(all.get(number), joined(Probe.callers().of(number))));
                }
            }
            // A file without this line was cut off.
            out.write("end\n");
        } catch (IOException lost) {
            System.err.println("testevo tracer: " + lost.getMessage());
        }
    }

    private static String line(Entries.Entry entry, String callers) {
        return "entered\t" + entry.className + "\t" + entry.source + "\t" + entry.method + "\t" + entry.descriptor + "\t"
                + joined(entry.lines) + "\t" + callers + "\n";
    }

    private static String joined(Iterable<?> parts) {
        StringBuilder text = new StringBuilder();
        for (Object part : parts) {
            text.append(text.length() == 0 ? "" : ",").append(part);
        }
        return text.toString();
    }
}
