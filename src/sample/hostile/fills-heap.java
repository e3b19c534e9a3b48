// about: it keeps more than the heap holds
// proves: R38
// task: rounding
// expect: ExecFail not_evaluated
// new: exec_fail(out_of_memory)
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() {
        java.util.List<byte[]> kept = new java.util.ArrayList<>();
        while (true) {
            kept.add(new byte[64 << 20]);
        }
    }
}
