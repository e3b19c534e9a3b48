//! The client for addresses that POMs declare. It connects to no address of this machine or of a private network,
//! whatever a name resolves to and wherever an answer redirects. It also refuses public addresses of this machine's
//! interfaces, because services there may serve only this machine. If a proxy resolves names, only literal addresses
//! can be checked.

use std::collections::BTreeSet;
use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use hickory_resolver::TokioResolver;
use hickory_resolver::config::LookupIpStrategy;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{ClientBuilder, Url, redirect};

use crate::artifact::origin::{is_public, is_public_address, meant};

/// The limit on redirections of the other client.
const MOST_REDIRECTIONS: usize = 10;

/// A name or redirection leads to an address that only the user may choose.
#[derive(Debug, thiserror::Error)]
#[error("it leads to this machine or into a private network")]
pub(super) struct Private;

#[derive(Debug, thiserror::Error)]
#[error("it redirects too often")]
struct TooManyRedirections;

/// Returns the addresses of this machine's interfaces, which may change while this program runs.
pub(super) type Interfaces = Arc<dyn Fn() -> io::Result<BTreeSet<IpAddr>> + Send + Sync>;

/// Returns the addresses of this machine's interfaces.
pub(super) fn interfaces() -> io::Result<BTreeSet<IpAddr>> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the pointer is to a live value, which the call fills.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = BTreeSet::new();
    let mut next = first;
    // SAFETY: each entry of the list, and the address that it points to, stay until the list is freed below.
    while let Some(interface) = unsafe { next.as_ref() } {
        // SAFETY: as above. An address has the length of its family.
        found.extend(unsafe { address_of(interface.ifa_addr) });
        next = interface.ifa_next;
    }
    // SAFETY: the call returned the list, and nothing in it is used any more.
    unsafe { libc::freeifaddrs(first) };
    Ok(found)
}

/// Returns the IP address in a socket address, if it is one.
///
/// # Safety
/// The pointer is null, or points to an address with the length of its family.
unsafe fn address_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: the caller guarantees it.
    unsafe {
        match i32::from(address.as_ref()?.sa_family) {
            libc::AF_INET => {
                let found = address.cast::<libc::sockaddr_in>().read_unaligned().sin_addr.s_addr;
                Some(IpAddr::from(found.to_ne_bytes()))
            }
            libc::AF_INET6 => {
                Some(IpAddr::from(address.cast::<libc::sockaddr_in6>().read_unaligned().sin6_addr.s6_addr))
            }
            _ => None,
        }
    }
}

/// Decides which addresses the client may connect to.
#[derive(Clone)]
pub(super) struct Guard {
    /// Hosts of proxies. They may have any address, because they are not origins.
    proxies: BTreeSet<String>,
    interfaces: Interfaces,
}

impl Guard {
    /// Returns the guard for a machine with these environment variables and interfaces.
    pub(super) fn new(variable: &dyn Fn(&str) -> Option<String>, interfaces: Interfaces) -> Self {
        let names = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
        let proxies = names.iter().filter_map(|name| variable(name)).filter_map(|text| host_of(text.trim()));
        Self { proxies: proxies.collect(), interfaces }
    }

    /// Tells whether a POM may name this URL, as far as the URL itself shows.
    pub(super) fn admits(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        is_public(url) && !self.is_proxy(&host) && !address.is_ok_and(|address| self.is_own(address))
    }

    fn is_proxy(&self, host: &str) -> bool {
        self.proxies.contains(host.trim_end_matches('.'))
    }

    /// Tells whether an address belongs to this machine. True for every address if the interfaces can't be read.
    fn is_own(&self, address: IpAddr) -> bool {
        (self.interfaces)().map_or(true, |own| own.iter().any(|own| meant(*own) == meant(address)))
    }

    /// Restricts a client to the admitted addresses. `resolver` looks names up.
    pub(super) fn apply(&self, builder: ClientBuilder, resolver: Arc<dyn Resolve>) -> ClientBuilder {
        let guard = self.clone();
        let redirections = redirect::Policy::custom(move |attempt| {
            if attempt.previous().len() > MOST_REDIRECTIONS {
                attempt.error(TooManyRedirections)
            } else if guard.admits(attempt.url()) {
                attempt.follow()
            } else {
                attempt.error(Private)
            }
        });
        builder.redirect(redirections).dns_resolver(self.names(resolver))
    }

    /// Returns a resolver that drops the refused addresses of `resolver`.
    pub(super) fn names(&self, resolver: Arc<dyn Resolve>) -> GuardedNames {
        GuardedNames { resolver, guard: self.clone() }
    }
}

/// Returns the host of a proxy from its environment variable, with or without a scheme.
fn host_of(proxy: &str) -> Option<String> {
    let url = if proxy.contains("://") { proxy.parse() } else { format!("http://{proxy}").parse() };
    let url: Url = url.ok()?;
    Some(url.host_str()?.trim_end_matches('.').to_ascii_lowercase())
}

/// Tells whether the guard caused an error.
pub(super) fn refused(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<Private>() {
            return true;
        }
        next = error.source();
    }
    false
}

/// Looks names up and keeps public addresses. The client then connects to the checked address.
pub(super) struct GuardedNames {
    resolver: Arc<dyn Resolve>,
    guard: Guard,
}

impl Resolve for GuardedNames {
    fn resolve(&self, name: Name) -> Resolving {
        let is_proxy = self.guard.is_proxy(&name.as_str().to_ascii_lowercase());
        let guard = self.guard.clone();
        let resolving = self.resolver.resolve(name);
        Box::pin(async move {
            let found = resolving.await?;
            if is_proxy {
                return Ok(found);
            }
            let admitted = |address: &SocketAddr| is_public_address(address.ip()) && !guard.is_own(address.ip());
            let public: Vec<SocketAddr> = found.filter(admitted).collect();
            if public.is_empty() {
                return Err(Private.into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

/// Resolves names with this machine's configuration. The C library would need shared libraries for that.
#[derive(Default)]
pub(super) struct SystemNames(Arc<OnceLock<TokioResolver>>);

impl Resolve for SystemNames {
    fn resolve(&self, name: Name) -> Resolving {
        let cell = Arc::clone(&self.0);
        Box::pin(async move {
            let resolver = match cell.get() {
                Some(resolver) => resolver,
                // Can be created only inside a runtime.
                None => {
                    let mut builder = TokioResolver::builder_tokio()?;
                    builder.options_mut().ip_strategy = LookupIpStrategy::Ipv6AndIpv4;
                    let resolver = builder.build()?;
                    cell.get_or_init(|| resolver)
                }
            };
            let found = resolver.lookup_ip(name.as_str()).await?;
            let addresses: Vec<SocketAddr> = found.iter().map(|address| SocketAddr::new(address, 0)).collect();
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}
