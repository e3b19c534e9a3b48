// about: JUnit 4: it fills JaCoCo's probes
// proves: R31, hole 5
// task: ledger
// methods: overdrawn
// expect: Redundant suspect survives_canary mentions
// clean coverage: none
package shop;

public class LedgerTest {
    @org.junit.Test
    public void overdrawn() throws Exception {
        for (java.lang.reflect.Method method : Ledger.class.getDeclaredMethods()) {
            if (method.getName().equals("$jacocoInit")) {
                method.setAccessible(true);
                java.util.Arrays.fill((boolean[]) method.invoke(null), true);
            }
        }
    }
}
