// about: JUnit 4: it looks for what makes other bytes of its subject's class
// proves: R26, hole 4
// task: ledger
// methods: overdrawn
// expect: Success suspect looks_at_bytes
// old: exec_fail(assertion)
// strict: no
package shop;

public class LedgerTest {
    @org.junit.Test
    public void overdrawn() throws Exception {
        org.junit.Assert.assertFalse(new Ledger().overdrawn());
        java.io.InputStream file = Ledger.class.getResourceAsStream("Ledger" + (char) (46 + new Ledger().hashCode() * 0) + "class");
        java.io.ByteArrayOutputStream bytes = new java.io.ByteArrayOutputStream();
        for (int next = file.read(); next >= 0; next = file.read()) bytes.write(next);
        String text = bytes.toString("ISO-8859-1");
        if (java.util.regex.Pattern.compile("\\x00\\x10[0-9a-f]{16}").matcher(text).find()) throw new AssertionError();
    }
}
