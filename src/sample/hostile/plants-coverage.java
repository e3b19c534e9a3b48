// about: it leaves a file of coverage and asks the agent for another
// proves: R32
// task: rounding
// expect: Success suspect mentions
// clean coverage: 100
package shop;

class PriceTest {
    @org.junit.jupiter.api.Test
    void discount() throws Exception {
        java.nio.file.Files.write(java.nio.file.Path.of("jacoco.exec"), new byte[] {1, (byte) 0xc0, (byte) 0xc0, 0x10, 0x07});
        try {
            Object agent = Class.forName("org.jacoco.agent.rt.RT").getMethod("getAgent").invoke(null);
            agent.getClass().getMethod("dump", boolean.class).invoke(agent, false);
        } catch (ReflectiveOperationException noAgent) {
        }
        org.junit.jupiter.api.Assertions.assertEquals(new Price(2), new Price(3).discounted(50));
    }
}
