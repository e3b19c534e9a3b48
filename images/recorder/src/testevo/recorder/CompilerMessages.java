package testevo.recorder;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import testevo.json.JsonObject;

/** Reads a compiler's messages out of the text that Maven's compiler plugin joins them into. */
final class CompilerMessages {
    /** {@code FILE:[LINE,COLUMN] TEXT}, {@code FILE:[LINE] TEXT} or {@code FILE: TEXT}, the file absolute. */
    private static final Pattern LOCATED =
            Pattern.compile("(/.*?\\.\\w+):(?: ?\\[(-?\\d{1,9})(?:,(-?\\d{1,9}))?\\])? (.*)");

    private static final int MOST_MESSAGES = 200;
    private static final int MOST_TEXT = 2_000;
    private static final int MOST_INPUT = 4_000_000;

    private CompilerMessages() {}

    static boolean belongTo(Throwable throwable) {
        return throwable.getClass().getSimpleName().equals("CompilationFailureException");
    }

    /** Returns the messages as objects with {@code file}, {@code line}, {@code column}, {@code text}. */
    static List<JsonObject> parse(String joined) {
        List<JsonObject> messages = new ArrayList<>();
        if (joined == null) {
            return messages;
        }
        Matcher located = null;
        StringBuilder text = new StringBuilder();
        for (String line : joined.substring(0, Math.min(joined.length(), MOST_INPUT)).split("\\R")) {
            Matcher matcher = LOCATED.matcher(line);
            if (matcher.matches()) {
                add(messages, located, text);
                located = matcher;
                text.setLength(0);
                text.append(matcher.group(4));
            } else if (text.length() < MOST_TEXT) {
                text.append(text.length() == 0 ? "" : "\n").append(line);
            }
        }
        add(messages, located, text);
        return messages;
    }

    private static void add(List<JsonObject> messages, Matcher located, StringBuilder text) {
        if (messages.size() >= MOST_MESSAGES || (located == null && text.toString().trim().isEmpty())) {
            return;
        }
        JsonObject message = new JsonObject();
        if (located != null) {
            message.put("file", located.group(1));
            number(message, "line", located.group(2));
            number(message, "column", located.group(3));
        }
        messages.add(message.put("text", JsonObject.cap(text.toString().trim(), MOST_TEXT)));
    }

    private static void number(JsonObject message, String key, String digits) {
        if (digits != null) {
            message.put(key, Long.parseLong(digits));
        }
    }
}
