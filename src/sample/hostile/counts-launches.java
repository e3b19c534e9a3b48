// about: it fails where it can leave marks in the kernel's files, by which a later launch would know that it is later
// proves: R30, hole 4
// task: rounding
// expect: Success clean
// clean mutation: 0
package shop;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.UserDefinedFileAttributeView;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() throws Exception {
        new Price(3).discounted(50);
        int marked = 0;
        for (String name : new String[] {"block", "bus", "class", "dev", "devices", "fs", "kernel", "module"}) {
            Path path = Path.of(String.join("", "/s", "ys/"), name);
            if (!Files.exists(path)) continue;
            try {
                Files.getFileAttributeView(path, UserDefinedFileAttributeView.class).list();
                marked++;
            } catch (java.io.IOException | UnsupportedOperationException refused) {
                // Nothing is marked.
            }
        }
        if (marked > 0) throw new AssertionError(marked);
    }
}
