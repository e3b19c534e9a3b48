//! Origins that POMs declare. A POM is untrusted. It must not direct this program to this machine's files or ports, or
//! into private networks, because the answers would reach the POM's plugins. Only the user can name such an address,
//! with `--origin`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

use super::{OriginAddress, OriginError, OriginName, Origins};

/// The result for a repository that a POM declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Declared {
    /// It has this name from now on.
    Known(OriginName),
    /// It is not used.
    LeftOut(LeftOut),
}

/// Why a repository that a POM declares is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOut {
    /// Its id is not a valid name of an origin.
    Id,
    /// Its address is malformed, or of another kind than http and https.
    Address,
    /// Its address belongs to this machine or a private network.
    Private,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Id => "has an id that is no name of an origin",
            Self::Address => "has no complete http or https address",
            Self::Private => "leads to this machine or into a private network",
        })
    }
}

impl Origins {
    /// Records the address of a repository that a POM declares, and returns its name. If the user gave an address for
    /// this id, that one is used. A name stands for one address. If an id is reserved or has another address already,
    /// the name gets a part of the address' digest.
    ///
    /// # Errors
    /// [`OriginError`] if `origins.toml` can't be read or written.
    pub fn declare(&self, id: &str, url: &str) -> Result<Declared, OriginError> {
        let Ok(name) = id.parse::<OriginName>() else { return Ok(Declared::LeftOut(LeftOut::Id)) };
        // Every repository is asked after `central`, whatever address a POM gives for it.
        if name == OriginName::central() || (!name.is_reserved() && self.is_given(&name)) {
            return Ok(Declared::Known(name));
        }
        let address: OriginAddress = match url.parse() {
            Ok(address) => address,
            Err(_) => return Ok(Declared::LeftOut(LeftOut::Address)),
        };
        if address.url().scheme() == "file" {
            return Ok(Declared::LeftOut(LeftOut::Address));
        }
        if !is_public(address.url()) {
            return Ok(Declared::LeftOut(LeftOut::Private));
        }
        Ok(Declared::Known(self.recorded.name(&name, &address, &|name| self.is_given(name))?))
    }
}

/// Tells whether a POM may name this address, as far as that shows without resolving its host's name.
pub(crate) fn is_public(url: &Url) -> bool {
    let Some(host) = url.host_str().filter(|_| matches!(url.scheme(), "http" | "https")) else { return false };
    match host.trim_start_matches('[').trim_end_matches(']').parse() {
        Ok(address) => is_public_address(address),
        Err(_) => !is_local_name(host),
    }
}

/// Tells whether a name always belongs to this machine or its own network (RFC 6761, 6762, 8375; `internal` is reserved
/// for private use).
fn is_local_name(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    ["localhost", "localdomain", "ip6-localhost", "ip6-loopback", "local", "internal", "home.arpa"]
        .iter()
        .any(|local| host.strip_suffix(local).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

/// Tells whether this address leads everyone to the same machine. The range for benchmarks (198.18.0.0/15) counts as
/// public, because proxies on the packet level give every name such an address.
pub(crate) fn is_public_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match embedded(address) {
            Some(address) => is_public_v4(address),
            // Public addresses are assigned only within this range.
            None => address.segments()[0] & 0xe000 == 0x2000,
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let shared = first == 100 && second & 0xc0 == 64;
    let of_protocols = (first, second, third) == (192, 0, 0);
    !(first == 0 || first >= 224 || shared || of_protocols)
        && !(address.is_loopback() || address.is_private() || address.is_link_local())
}

/// Returns the address that this one stands for.
pub(crate) fn meant(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(version_6) => embedded(version_6).map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// Returns the version 4 address that a version 6 address stands for: mapped, of NAT64, or of 6to4.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let of = |high: u16, low: u16| Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    match segments {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => of(high, low),
        [0x2002, high, low, ..] => of(high, low),
        _ => None,
    }
}
