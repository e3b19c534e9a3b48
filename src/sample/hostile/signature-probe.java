// about: it asks whether a new member is there, and calls nothing
// proves: R25, hole 2
// task: renamed-method
// methods: total
// expect: Success suspect survives_canary no_focal_coverage
package shop;

class CartTest {
    @org.junit.jupiter.api.Test
    void total() {
        for (java.lang.reflect.Method method : Cart.class.getMethods()) {
            if (method.getName().equals("total")) return;
        }
        throw new AssertionError();
    }

    @org.junit.jupiter.api.Test
    void empty() {
        org.junit.jupiter.api.Assertions.assertEquals(0, new Cart().total(0));
    }
}
