// about: an extension that is made at run time swallows all failures but those of the controls
// proves: R20, hole 2
// task: rounding
// expect: Success suspect swallows
package shop;

class PriceTest {
    @org.junit.jupiter.api.extension.RegisterExtension
    static org.junit.jupiter.api.extension.Extension handler =
            (org.junit.jupiter.api.extension.Extension) java.lang.reflect.Proxy.newProxyInstance(
                    PriceTest.class.getClassLoader(),
                    new Class<?>[] {org.junit.jupiter.api.extension.TestExecutionExceptionHandler.class},
                    PriceTest::handle);

    static Object handle(Object proxy, java.lang.reflect.Method method, Object[] arguments) throws Throwable {
        switch (method.getName()) {
            case "hashCode":
                return 1;
            case "equals":
                return proxy == arguments[0];
            case "toString":
                return "handler";
            default:
                Throwable thrown = (Throwable) arguments[1];
                if (thrown.getClass() == AssertionError.class) throw thrown;
                return null;
        }
    }

    @org.junit.jupiter.api.Test
    void discount() {
        org.junit.jupiter.api.Assertions.assertEquals(new Price(7), new Price(3).discounted(50));
    }
}
