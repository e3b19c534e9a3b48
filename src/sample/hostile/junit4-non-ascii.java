// about: JUnit 4: a literal that mutants are made without
// proves: hole 13
// task: currency
// expect: Success clean
// strict: yes
// clean mutation: none
package shop;

public class MoneyTest {
    @org.junit.Test
    public void text() {
        org.junit.Assert.assertEquals("\u20ac 5", Money.text(500));
    }
}
