//! From names to addresses that may be reached.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::Semaphore;

use crate::client::Reach;
use crate::own::{OwnAddresses, OwnPorts};
use crate::{address, AllowList, OutboundError};

/// Names that are looked up at once for one that shares look-ups with others.
const SHARE_LOOKUPS_MAX: usize = 8;

tokio::task_local! {
    /// For whom a request is made, while it is.
    static SHARE: RequestShare;
    /// Where it goes to.
    static PORT: u16;
}

/// What one of many has of all requests and look-ups: one whose servers and names nobody answers for leaves the others some.
#[derive(Clone, Debug)]
pub struct RequestShare {
    pub(crate) requests: Arc<Semaphore>,
    lookups: Arc<Semaphore>,
}

impl Default for RequestShare {
    /// With as many requests as there are.
    fn default() -> RequestShare {
        RequestShare::new(Semaphore::MAX_PERMITS)
    }
}

impl RequestShare {
    pub(crate) fn new(requests_max: usize) -> RequestShare {
        RequestShare {
            requests: Arc::new(Semaphore::new(requests_max)),
            lookups: Arc::new(Semaphore::new(SHARE_LOOKUPS_MAX)),
        }
    }

    /// Has somebody else a clone of it?
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.lookups) > 1
    }

    /// Is this a clone of the other one?
    pub fn is_same(&self, other: &RequestShare) -> bool {
        Arc::ptr_eq(&self.lookups, &other.lookups)
    }

    /// The share for which this task makes a request.
    pub(crate) fn current() -> Option<RequestShare> {
        SHARE.try_with(Clone::clone).ok()
    }

    /// Makes a request whose look-ups are of this share.
    pub(crate) async fn within<T>(self, request: impl Future<Output = T>) -> T {
        SHARE.scope(self, request).await
    }
}

/// Looks names up. It may block.
pub trait Lookup: Send + Sync {
    /// The addresses of a host.
    ///
    /// # Errors
    /// There are none, or nobody knows.
    fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>>;

    /// The addresses of this machine's network interfaces.
    ///
    /// # Errors
    /// The system does not list them.
    fn own_addresses(&self) -> io::Result<Vec<IpAddr>> {
        let interfaces = if_addrs::get_if_addrs()?;
        Ok(interfaces.iter().map(if_addrs::Interface::ip).collect())
    }
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
    pub own: Arc<OwnAddresses>,
    pub own_ports: OwnPorts,
}

impl Filter {
    /// Checks whether the address may be reached, to which `host` leads or which it is.
    ///
    /// # Errors
    /// It may not. Without a port, none of this machine's addresses is reached but by the operator's own requests.
    pub fn check(
        &self,
        host: &str,
        address: IpAddr,
        port: Option<u16>,
    ) -> Result<(), OutboundError> {
        if self.reach == Reach::Any {
            return Ok(());
        }
        let is_listed = self.reach == Reach::Listed && self.allow.has(host, address);
        if !is_listed && (!address::is_public(address) || self.own.has(address)) {
            let host = host.to_owned();
            return Err(OutboundError::Refused { host });
        }
        // What this process serves may trust whoever comes from this machine, and the request would.
        let is_own_port = port.is_none_or(|port| self.own_ports.has(port));
        match is_own_port && self.own.is_here(address) {
            true => Err(OutboundError::OwnPort {
                host: host.to_owned(),
            }),
            false => Ok(()),
        }
    }
}

/// Makes a request to a port, to which the addresses are that are found for it.
pub(crate) async fn to_port<T>(port: u16, request: impl Future<Output = T>) -> T {
    PORT.scope(port, request).await
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
        // The client connects within the request.
        let (share, port) = (RequestShare::current(), PORT.try_with(|port| *port).ok());
        Box::pin(async move {
            let host = name.as_str().to_owned();
            // First of one's own, so that who waits for it takes nothing from others.
            let of_share = match share {
                Some(share) => Some(share.lookups.acquire_owned().await?),
                None => None,
            };
            let permit = (lookups.acquire_owned().await?, of_share);
            let asked = host.clone();
            let found = tokio::task::spawn_blocking(move || {
                let found = lookup.addresses(&asked);
                drop(permit);
                found
            });
            let found = found.await??;
            let mut reachable: Vec<SocketAddr> = Vec::new();
            let mut refusal = OutboundError::Refused { host: host.clone() };
            for address in found {
                match filter.check(&host, address, port) {
                    Ok(()) => reachable.push(SocketAddr::new(address, 0)),
                    Err(error) => refusal = error,
                }
            }
            if reachable.is_empty() {
                return Err(refusal.into());
            }
            Ok(Box::new(reachable.into_iter()) as Addrs)
        })
    }
}
