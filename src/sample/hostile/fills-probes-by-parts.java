// about: it fills JaCoCo's probes by a name that it puts together
// proves: R31, hole 5
// task: rounding
// expect: Success suspect survives_canary
// clean coverage: none
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() throws Exception {
        String agent = "$j" + String.valueOf((char) 97) + "coco";
        for (java.lang.reflect.Method method : Price.class.getDeclaredMethods()) {
            if (method.getName().equals(agent + "Init")) {
                method.setAccessible(true);
                Object lookup = java.lang.invoke.MethodHandles.lookup();
                java.util.Arrays.fill((boolean[]) method.invoke(null, lookup, agent + "Data", boolean[].class), true);
            }
        }
    }
}
