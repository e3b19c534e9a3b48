package testevo.json;

import java.util.List;

/** Writes one JSON object into a string; knows only what events need. Not a parser, not a general library. */
public final class JsonObject {
    private final StringBuilder text = new StringBuilder("{");

    public JsonObject put(String key, String value) {
        key(key);
        if (value == null) {
            text.append("null");
        } else {
            quote(value);
        }
        return this;
    }

    public JsonObject put(String key, long value) {
        key(key);
        text.append(value);
        return this;
    }

    public JsonObject put(String key, boolean value) {
        key(key);
        text.append(value);
        return this;
    }

    public JsonObject put(String key, JsonObject value) {
        key(key);
        text.append(value == null ? "null" : value.toString());
        return this;
    }

    /** Adds an array; its items are strings or {@link JsonObject}s. */
    public JsonObject put(String key, List<?> items) {
        key(key);
        text.append('[');
        String separator = "";
        for (Object item : items) {
            text.append(separator);
            separator = ",";
            if (item instanceof JsonObject) {
                text.append(item);
            } else {
                quote(String.valueOf(item));
            }
        }
        text.append(']');
        return this;
    }

    @Override
    public String toString() {
        return text + "}";
    }

    /** Shortens a text to so many characters; the end says how many were left out. */
    public static String cap(String value, int most) {
        if (value == null || value.length() <= most) {
            return value;
        }
        int end = Character.isHighSurrogate(value.charAt(most - 1)) ? most - 1 : most;
        return value.substring(0, end) + "… (" + (value.length() - end) + " more characters)";
    }

    private void key(String key) {
        if (text.length() > 1) {
            text.append(',');
        }
        quote(key);
        text.append(':');
    }

    private void quote(String value) {
        text.append('"');
        for (int index = 0; index < value.length(); index++) {
            char c = value.charAt(index);
            switch (c) {
                case '"':
                    text.append("\\\"");
                    break;
                case '\\':
                    text.append("\\\\");
                    break;
                case '\n':
                    text.append("\\n");
                    break;
                case '\t':
                    text.append("\\t");
                    break;
                default:
                    if (c < 0x20 || c == 0x7f) {
                        escape(c);
                    } else if (!Character.isSurrogate(c)) {
                        text.append(c);
                    } else if (isPair(value, index)) {
                        text.append(c).append(value.charAt(++index));
                    } else {
                        // A lone surrogate has no UTF-8 form, and readers refuse it escaped as well.
                        text.append('\ufffd');
                    }
            }
        }
        text.append('"');
    }

    private static boolean isPair(String value, int index) {
        return index + 1 < value.length() && Character.isSurrogatePair(value.charAt(index), value.charAt(index + 1));
    }

    private void escape(char c) {
        text.append("\\u");
        for (int shift = 12; shift >= 0; shift -= 4) {
            text.append(Character.forDigit((c >> shift) & 0xf, 16));
        }
    }
}
