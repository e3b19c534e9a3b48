// about: constants that double until no memory holds them
// proves: R40, hole 10
// task: rounding
// expect: CmplFail not_evaluated
// new: compile_fail(resource)
package shop;

class PriceTest {
    static final String B = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    static final String C = B + B + B + B + B + B + B + B;
    static final String D = C + C + C + C + C + C + C + C;
    static final String E = D + D + D + D + D + D + D + D;
    static final String F = E + E + E + E + E + E + E + E;
    static final String G = F + F + F + F + F + F + F + F;
    static final String H = G + G + G + G + G + G + G + G;
    static final String I = H + H + H + H + H + H + H + H;

    @org.junit.jupiter.api.Test
    void discount() {
        org.junit.jupiter.api.Assertions.assertEquals(new Price(2), new Price(3).discounted(50));
    }
}
