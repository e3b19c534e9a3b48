//! The client for addresses that POMs declare: it connects to no address of this machine or of a private network, whatever
//! a name resolves to and wherever an answer leads. Where the machine's proxy resolves names, only addresses that stand
//! there as such can be told.

use std::collections::BTreeSet;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use hickory_resolver::TokioResolver;
use hickory_resolver::config::LookupIpStrategy;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{ClientBuilder, Url, redirect};

use crate::artifact::origin::{is_public, is_public_address};

/// As many redirections as the other client follows.
const MOST_REDIRECTIONS: usize = 10;

/// A name or redirection that leads where a stranger may not send this program.
#[derive(Debug, thiserror::Error)]
#[error("it leads to this machine or into a private network")]
pub(super) struct Private;

#[derive(Debug, thiserror::Error)]
#[error("it redirects too often")]
struct TooManyRedirections;

/// What may be connected to.
#[derive(Clone)]
pub(super) struct Guard {
    /// Hosts of proxies. They may be anywhere, and are nobody's origin.
    proxies: BTreeSet<String>,
}

impl Guard {
    /// Returns the guard for a machine with these environment variables.
    pub(super) fn new(variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let names = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
        let proxies = names.iter().filter_map(|name| variable(name)).filter_map(|text| host_of(text.trim()));
        Self { proxies: proxies.collect() }
    }

    /// Tells whether a stranger may send this program there, as far as the address itself tells.
    pub(super) fn admits(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
        is_public(url) && !self.proxies.contains(host.trim_end_matches('.'))
    }

    /// Sets up a client that keeps to this. `resolver` looks names up.
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

    /// Returns names as `resolver` finds them, without addresses that a stranger may not name.
    pub(super) fn names(&self, resolver: Arc<dyn Resolve>) -> GuardedNames {
        GuardedNames { resolver, proxies: self.proxies.clone() }
    }
}

/// Returns a proxy's host, as the variables have it: with or without a scheme.
fn host_of(proxy: &str) -> Option<String> {
    let url = if proxy.contains("://") { proxy.parse() } else { format!("http://{proxy}").parse() };
    let url: Url = url.ok()?;
    Some(url.host_str()?.trim_end_matches('.').to_ascii_lowercase())
}

/// Tells whether an error comes from here.
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

/// Looks names up and keeps what is public. The connection goes to the address that was looked at.
pub(super) struct GuardedNames {
    resolver: Arc<dyn Resolve>,
    proxies: BTreeSet<String>,
}

impl Resolve for GuardedNames {
    fn resolve(&self, name: Name) -> Resolving {
        let is_proxy = self.proxies.contains(&name.as_str().trim_end_matches('.').to_ascii_lowercase());
        let resolving = self.resolver.resolve(name);
        Box::pin(async move {
            let found = resolving.await?;
            if is_proxy {
                return Ok(found);
            }
            let public: Vec<SocketAddr> = found.filter(|address| is_public_address(address.ip())).collect();
            if public.is_empty() {
                return Err(Private.into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

/// Names as this machine's configuration resolves them. The C library would need shared libraries for that.
#[derive(Default)]
pub(super) struct SystemNames(Arc<OnceLock<TokioResolver>>);

impl Resolve for SystemNames {
    fn resolve(&self, name: Name) -> Resolving {
        let cell = Arc::clone(&self.0);
        Box::pin(async move {
            let resolver = match cell.get() {
                Some(resolver) => resolver,
                // Only inside a runtime can it be made.
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
