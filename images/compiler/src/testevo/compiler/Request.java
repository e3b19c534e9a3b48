package testevo.compiler;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What is to be compiled. */
final class Request {
    /** Arguments as javac gets them, without sources. */
    final List<String> arguments;
    /** Where classes go. */
    final String output;
    /** Further directories that must exist, empty. */
    final List<String> directories;
    /** Files to be written first, by absolute path. */
    final Map<String, byte[]> files;
    /** Paths of the sources to compile, in order. */
    final List<String> sources;
    /** Path of the source that has each of the texts in turn; empty without texts. */
    final String varied;
    /** Its texts; empty for a request that is compiled once, as it is. */
    final List<byte[]> texts;

    private Request(DataInputStream input) throws IOException {
        arguments = texts(input);
        output = text(input);
        directories = texts(input);
        files = new LinkedHashMap<>();
        for (int count = input.readInt(); count > 0; count--) {
            String path = text(input);
            files.put(path, bytes(input));
        }
        sources = texts(input);
        varied = text(input);
        texts = new ArrayList<>();
        for (int count = input.readInt(); count > 0; count--) {
            texts.add(bytes(input));
        }
    }

    private Request(Request whole, byte[] text) {
        arguments = whole.arguments;
        output = whole.output;
        directories = whole.directories;
        files = new LinkedHashMap<>(whole.files);
        files.put(whole.varied, text);
        sources = whole.sources;
        varied = "";
        texts = Collections.emptyList();
    }

    /** Returns the request with one of its texts; itself without texts. */
    Request of(int number) {
        return texts.isEmpty() ? this : new Request(this, texts.get(number));
    }

    static Request read(byte[] bytes) throws IOException {
        return new Request(new DataInputStream(new ByteArrayInputStream(bytes)));
    }

    private static List<String> texts(DataInputStream input) throws IOException {
        List<String> texts = new ArrayList<>();
        for (int count = input.readInt(); count > 0; count--) {
            texts.add(text(input));
        }
        return texts;
    }

    private static String text(DataInputStream input) throws IOException {
        return Main.text(bytes(input));
    }

    private static byte[] bytes(DataInputStream input) throws IOException {
        byte[] bytes = new byte[input.readInt()];
        input.readFully(bytes);
        return bytes;
    }
}
