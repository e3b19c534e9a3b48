//! Tells from what a test threw whether it wanted a network. Launches have none: only the loopback interface.

use super::Throwable;

/// Endings of the names of exceptions that mean nothing else, from the JDK and from libraries with a resolver of their own.
const CLASSES: [&str; 4] =
    [".UnknownHostException", ".NoRouteToHostException", ".UnresolvedAddressException", ".DnsNameResolverException"];

/// What the C library and the JDK say of names and hosts that can't be reached. A refused connection is none of these:
/// on the loopback interface it says that nobody listens.
const MESSAGES: [&str; 5] = [
    "UnknownHostException",
    "Network is unreachable",
    "No route to host",
    "Temporary failure in name resolution",
    "Name or service not known",
];

/// Tells whether a throwable or one of its causes says that no network could be reached.
pub(super) fn is_missed(throwable: &Throwable) -> bool {
    std::iter::once(throwable).chain(&throwable.causes).any(|one| {
        let says = |message: &String| MESSAGES.iter().any(|text| message.contains(text));
        CLASSES.iter().any(|ending| one.class.ends_with(ending)) || one.message.as_ref().is_some_and(says)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thrown(class: &str, message: &str, causes: Vec<Throwable>) -> Throwable {
        Throwable { class: class.to_owned(), message: Some(message.to_owned()), kind: None, stack: Vec::new(), causes }
    }

    #[test]
    fn unknown_hosts_and_missing_routes_are_told_from_other_failures() {
        let of = |class: &str, message: &str| thrown(class, message, Vec::new());
        for missed in [
            of("java.net.UnknownHostException", "host.invalid"),
            of("java.net.ConnectException", "Network is unreachable (connect failed)"),
            of("java.nio.channels.UnresolvedAddressException", ""),
            of("org.opentest4j.AssertionFailedError", "unexpected: java.net.UnknownHostException: host.invalid"),
            thrown("java.io.UncheckedIOException", "", vec![of("java.net.NoRouteToHostException", "No route to host")]),
        ] {
            assert!(is_missed(&missed), "{missed:?}");
        }
        for other in [
            of("java.net.ConnectException", "Connection refused"),
            of("java.net.SocketTimeoutException", "Read timed out"),
            of("org.opentest4j.AssertionFailedError", "expected: <1> but was: <2>"),
        ] {
            assert!(!is_missed(&other), "{other:?}");
        }
    }
}
