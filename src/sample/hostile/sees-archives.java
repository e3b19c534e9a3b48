// about: it fails where it can see an archive of the tree that it runs on, whose times would tell which tree that is
// proves: R30, hole 4
// task: rounding
// expect: Success clean
// clean mutation: 0
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() {
        new Price(3).discounted(50);
        String directory = String.join("", "/test", "evo");
        String[] there = new java.io.File(directory).list();
        for (String name : there == null ? new String[0] : there) {
            String[] below = new java.io.File(directory, name).list();
            for (String archive : below == null ? new String[0] : below) {
                if (archive.matches(".*[.]tar")) throw new AssertionError(archive);
            }
        }
    }
}
