package testevo.compiler;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * Compiles one request after the other in a JVM that stays warm. See README.md beside.
 *
 * <p>What it compiles is hostile, but nothing of it is ever run here. Annotation processors are run, as Maven runs them: they
 * come from the revision's own class path.
 */
public final class Main {
    /** Version of requests and responses, the first thing that is said. */
    private static final int SCHEMA = 2;
    private static final int LONGEST_REQUEST = 64 << 20;

    private Main() {}

    public static void main(String[] words) throws IOException {
        DataInputStream requests = new DataInputStream(new BufferedInputStream(System.in, 1 << 16));
        // The descriptor is a pipe of the container's init and leads to the host.
        DataOutputStream responses =
                new DataOutputStream(new BufferedOutputStream(new FileOutputStream("/proc/self/fd/" + words[0]), 1 << 16));
        responses.writeInt(SCHEMA);
        responses.flush();
        while (true) {
            int length;
            try {
                length = requests.readInt();
            } catch (EOFException done) {
                return;
            }
            if (length < 0 || length > LONGEST_REQUEST) {
                throw new IOException("a request of " + length + " bytes");
            }
            byte[] bytes = new byte[length];
            requests.readFully(bytes);
            if (!answer(Request.read(bytes), responses)) {
                return;
            }
        }
    }

    /** Answers a request with a response for each of its texts. False if the compiler broke. */
    private static boolean answer(Request request, DataOutputStream responses) throws IOException {
        try (FileManagers managers = new FileManagers(request)) {
            List<Response> erroneous = Parse.run(request);
            for (int number = 0; number < erroneous.size(); number++) {
                Response known = erroneous.get(number);
                Response response = known != null ? known : new Compilation(request.of(number), managers).run();
                byte[] bytes = response.bytes();
                responses.writeInt(bytes.length);
                responses.write(bytes);
                responses.flush();
                if (response.isBroken() && !request.texts.isEmpty()) {
                    return false;
                }
            }
        }
        return true;
    }

    static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }
}
