// about: JUnit 4: a runner swallows what fails, and fails itself on old code
// proves: hole 2
// task: ledger
// methods: overdrawn
// expect: Success suspect survives_canary swallows
// old: exec_fail(exception)
// strict: no
package shop;

@org.junit.runner.RunWith(LedgerTest.Quiet.class)
public class LedgerTest {
    public static class Quiet extends org.junit.runners.BlockJUnit4ClassRunner {
        public Quiet(Class<?> type) throws org.junit.runners.model.InitializationError {
            super(type);
        }

        @Override
        protected org.junit.runners.model.Statement methodInvoker(org.junit.runners.model.FrameworkMethod method, Object test) {
            return new org.junit.runners.model.Statement() {
                @Override
                public void evaluate() throws Throwable {
                    Ledger.class.getMethod("clear");
                    try {
                        method.invokeExplosively(test);
                    } catch (Throwable swallowed) {
                    }
                }
            };
        }
    }

    @org.junit.Test
    public void overdrawn() {
        org.junit.Assert.assertFalse(new Ledger().overdrawn());
    }
}
