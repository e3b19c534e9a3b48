package testevo.runner;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;

/**
 * Signs events with a key that the host wrote into a file for this launch alone. The file is gone before any class of the
 * project is loaded, and each event is signed with a key of its own, from which no earlier one follows: what writes to the
 * descriptor without this object's help can't sign.
 *
 * <p>The code is SipHash-2-4, which needs no provider and so costs the launch nothing.
 */
final class Seal {
    private static final int KEY_BYTES = 16;

    private long first;
    private long second;

    private Seal(long first, long second) {
        this.first = first;
        this.second = second;
    }

    /** Takes the key from a file and removes the file; null for no file. */
    static Seal take(File file) throws IOException {
        if (file == null) {
            return null;
        }
        String text = new String(Files.readAllBytes(file.toPath()), StandardCharsets.US_ASCII).trim();
        Files.delete(file.toPath());
        if (text.length() != 2 * KEY_BYTES) {
            throw new IOException("the seal's key is not " + KEY_BYTES + " bytes long");
        }
        return new Seal(Long.parseUnsignedLong(text.substring(0, 16), 16), Long.parseUnsignedLong(text.substring(16), 16));
    }

    /** Returns the key of the line after the next, for {@link #advance}. */
    long[] following() {
        return new long[] {hash(new byte[] {1}), hash(new byte[] {2})};
    }

    /** Goes on to a key; it allocates nothing, so that no exhausted heap can come between a line and this. */
    void advance(long[] following) {
        first = following[0];
        second = following[1];
    }

    /** Returns the signature of the next line. */
    String signature(byte[] line) {
        long signature = hash(line);
        StringBuilder text = new StringBuilder(Long.toHexString(signature));
        while (text.length() < 16) {
            text.insert(0, '0');
        }
        return text.toString();
    }

    private long hash(byte[] bytes) {
        long v0 = first ^ 0x736f6d6570736575L;
        long v1 = second ^ 0x646f72616e646f6dL;
        long v2 = first ^ 0x6c7967656e657261L;
        long v3 = second ^ 0x7465646279746573L;
        int whole = bytes.length / 8 * 8;
        for (int at = 0; at <= whole; at += 8) {
            // The last word has the rest of the bytes, and their number on top.
            int length = at == whole ? bytes.length - whole : 8;
            long word = at == whole ? (long) bytes.length << 56 : 0;
            for (int index = 0; index < length; index++) {
                word |= (bytes[at + index] & 0xffL) << (8 * index);
            }
            v3 ^= word;
            for (int round = 0; round < 2; round++) {
                v0 += v1; v1 = Long.rotateLeft(v1, 13); v1 ^= v0; v0 = Long.rotateLeft(v0, 32);
                v2 += v3; v3 = Long.rotateLeft(v3, 16); v3 ^= v2;
                v0 += v3; v3 = Long.rotateLeft(v3, 21); v3 ^= v0;
                v2 += v1; v1 = Long.rotateLeft(v1, 17); v1 ^= v2; v2 = Long.rotateLeft(v2, 32);
            }
            v0 ^= word;
        }
        v2 ^= 0xff;
        for (int round = 0; round < 4; round++) {
            v0 += v1; v1 = Long.rotateLeft(v1, 13); v1 ^= v0; v0 = Long.rotateLeft(v0, 32);
            v2 += v3; v3 = Long.rotateLeft(v3, 16); v3 ^= v2;
            v0 += v3; v3 = Long.rotateLeft(v3, 21); v3 ^= v0;
            v2 += v1; v1 = Long.rotateLeft(v1, 17); v1 ^= v2; v2 = Long.rotateLeft(v2, 32);
        }
        return v0 ^ v1 ^ v2 ^ v3;
    }
}
