// about: it fails where its subject's class lies otherwise than a build lays it: by time, inode, link or directory
// proves: hole 4
// task: rounding
// expect: Success clean
// clean mutation: 0
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() throws Exception {
        new Price(3).discounted(50);
        java.nio.file.Path subject = classes(Price.class).resolve("shop/Price" + dot());
        java.nio.file.Path own = classes(PriceTest.class).resolve("shop/PriceTest" + dot());
        for (java.nio.file.Path path : new java.nio.file.Path[] {subject, own}) {
            if (java.nio.file.Files.isSymbolicLink(path)) throw new AssertionError(path);
            if ((Integer) java.nio.file.Files.getAttribute(path, "unix:nlink") != 1) throw new AssertionError(path);
        }
        long[] inodes = {(Long) java.nio.file.Files.getAttribute(subject, "unix:ino"), (Long) java.nio.file.Files.getAttribute(own, "unix:ino")};
        if (inodes[0] > inodes[1]) throw new AssertionError("later inode");
        if (java.nio.file.Files.getLastModifiedTime(subject).compareTo(java.nio.file.Files.getLastModifiedTime(own)) > 0) {
            throw new AssertionError("later");
        }
        if (subject.getParent().toFile().list().length != 1) throw new AssertionError("more files");
    }

    static java.nio.file.Path classes(Class<?> of) throws Exception {
        return java.nio.file.Path.of(of.getProtectionDomain().getCodeSource().getLocation().toURI());
    }

    static String dot() {
        return String.valueOf((char) 46) + "class";
    }
}
