package testevo.runner;

import org.junit.After;
import org.junit.Before;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A test of our own on every engine, which does a little of what most tests do. Launching it tells which classes a class archive
 * should hold; it has no part in any verdict.
 */
public class Trial {
    @Before
    @BeforeEach
    public void before() {}

    @After
    @AfterEach
    public void after() {}

    @org.junit.Test
    @Test
    public void launches() {
        Assertions.assertThrows(AssertionError.class, () -> Assertions.assertEquals("expected", "actual"));
        Assertions.assertThrows(AssertionError.class, () -> org.junit.Assert.assertEquals("expected", "actual"));
        Assertions.assertTrue(true);
        org.junit.Assert.assertNotNull(this);
    }

    @ParameterizedTest
    @ValueSource(strings = "one")
    void launches(String value) {
        Assertions.assertEquals("one", value);
    }
}
