//! From names to addresses that may be reached.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::Semaphore;

use crate::client::Reach;
use crate::{address, AllowList, OutboundError};

/// Looks names up. It may block.
pub trait Lookup: Send + Sync {
    /// The addresses of a host.
    ///
    /// # Errors
    /// There are none, or nobody knows.
    fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// As the operating system looks names up.
#[derive(Clone, Copy, Debug)]
pub struct SystemLookup;

impl Lookup for SystemLookup {
    fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let found = (host, 0).to_socket_addrs()?;
        Ok(found.map(|address| address.ip()).collect())
    }
}

/// Which addresses a request may go to.
#[derive(Clone)]
pub(crate) struct Filter {
    pub reach: Reach,
    pub allow: Arc<AllowList>,
}

impl Filter {
    /// Whether the address, to which `host` leads or which it is, may be reached.
    pub fn lets_through(&self, host: &str, address: IpAddr) -> bool {
        self.reach == Reach::Any
            || address::is_public(address)
            || (self.reach == Reach::Listed && self.allow.has(host, address))
    }
}

/// Looks a name up for a connection and leaves out what is not to be reached. The connection goes to what is left.
pub(crate) struct Resolver {
    pub filter: Filter,
    pub lookup: Arc<dyn Lookup>,
    /// A look-up occupies a thread until the system gives up, which may be long after the request.
    pub lookups: Arc<Semaphore>,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let filter = self.filter.clone();
        let (lookup, lookups) = (self.lookup.clone(), self.lookups.clone());
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let permit = lookups.acquire_owned().await?;
            let asked = host.clone();
            let found = tokio::task::spawn_blocking(move || {
                let found = lookup.addresses(&asked);
                drop(permit);
                found
            });
            let found = found.await??;
            let reachable: Vec<SocketAddr> = found
                .into_iter()
                .filter(|address| filter.lets_through(&host, *address))
                .map(|address| SocketAddr::new(address, 0))
                .collect();
            if reachable.is_empty() {
                return Err(OutboundError::Refused { host }.into());
            }
            Ok(Box::new(reachable.into_iter()) as Addrs)
        })
    }
}
