//! The integration tests, as one binary.
