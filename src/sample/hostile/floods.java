// about: two gigabytes on standard output
// proves: R38, hole 10
// task: rounding
// expect: ExecFail not_evaluated
// new: exec_fail(assertion)
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() {
        byte[] bytes = new byte[1 << 20];
        java.util.Arrays.fill(bytes, (byte) 97);
        for (int count = 0; count < 2048; count++) {
            System.out.write(bytes, 0, bytes.length);
        }
        throw new AssertionError();
    }
}
