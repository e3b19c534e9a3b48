//! Reads credentials in netrc form, as in apt's `auth.conf` and pip's `.netrc`.

use super::OriginAddress;

/// Returns the address with its login from the text. The machine may be a host, a host with a port, or one with the
/// start of a path; apt's form may name a scheme too.
pub(super) fn with_login(address: OriginAddress, text: &str) -> OriginAddress {
    let (mut machine, mut login) = (None, None);
    let mut words = text.lines().map(|line| line.split('#').next().unwrap_or("")).flat_map(str::split_whitespace);
    while let Some(word) = words.next() {
        match word {
            "machine" => (machine, login) = (words.next(), None),
            "default" => (machine, login) = (Some(""), None),
            "login" => login = words.next(),
            "password" => {
                if let (Some(machine), Some(login), Some(password)) = (machine, login, words.next())
                    && is_meant(&address, machine)
                {
                    return address.with_credentials(login, password);
                }
            }
            _ => {}
        }
    }
    address
}

fn is_meant(address: &OriginAddress, machine: &str) -> bool {
    let url = address.url();
    let wanted = match machine.split_once("://") {
        Some((scheme, rest)) if scheme == url.scheme() => rest,
        // As in apt, credentials without a scheme apply only to encrypted connections.
        None if url.scheme() == "https" => machine,
        _ => return false,
    };
    let (place, path) = wanted.split_at(wanted.find('/').unwrap_or(wanted.len()));
    let (host, port) = place.split_once(':').map_or((place, None), |(host, port)| (host, port.parse().ok()));
    (machine.is_empty() || url.host_str() == Some(host))
        && port.is_none_or(|port: u16| url.port_or_known_default() == Some(port))
        && url.path().starts_with(path)
}
