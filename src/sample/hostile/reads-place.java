// about: it fails where a path, an argument, a variable or a name says which code it is
// proves: R30, hole 4
// task: fixed-bug
// methods: takeTooMuch
// expect: Redundant clean
// old: pass
// strict: no
package shop;

class StockTest {
    @org.junit.jupiter.api.Test
    void takeTooMuch() throws Exception {
        Stock stock = new Stock(2);
        stock.take(2);
        org.junit.jupiter.api.Assertions.assertEquals(0, stock.left());
        StringBuilder told = new StringBuilder(java.net.InetAddress.getLocalHost().getHostName());
        told.append(System.getProperties()).append(System.getenv());
        told.append(Stock.class.getProtectionDomain().getCodeSource().getLocation());
        for (String word : new String[] {"old", "rev1", "before", "_no"}) {
            if (java.util.regex.Pattern.compile("(?i)(^|[^a-z])" + word + "([^a-z]|$)").matcher(told).find()) throw new AssertionError(word);
        }
    }
}
