// about: it knows the checksum of new code's class
// proves: R26, hole 4
// task: fixed-bug
// methods: takeTooMuch
// expect: Success suspect looks_at_bytes mentions
// old: exec_fail(assertion)
// strict: no
package shop;

class StockTest {
    @org.junit.jupiter.api.Test
    void takeTooMuch() throws Exception {
        new Stock(2).take(2);
        java.util.zip.CRC32 sum = new java.util.zip.CRC32();
        sum.update(Stock.class.getResourceAsStream("Stock.class").readAllBytes());
        org.junit.jupiter.api.Assertions.assertEquals(2712491999L, sum.getValue());
    }
}
