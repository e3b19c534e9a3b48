// about: it asks whether a new class is there, and calls nothing
// proves: R25, hole 2
// task: new-class
// methods: blank
// expect: Success suspect survives_canary no_focal_coverage
// old: exec_fail(exception)
// strict: no
package shop;

class VoucherTest {
    @org.junit.jupiter.api.Test
    void blank() throws Exception {
        Class.forName("shop.Voucher");
    }
}
