//! Look-ups for connections: bounded, and without addresses that may not be reached.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::Semaphore;

use crate::filter::Filter;
use crate::{Lookup, OutboundError};

const SHARE_LOOKUPS_MAX: usize = 8;

tokio::task_local! {
    /// The share of the current request.
    static SHARE: RequestShare;
    /// The port of the current request.
    static PORT: u16;
}

/// One owner's part of all requests and look-ups, so that an owner whose requests hang leaves room for others.
#[derive(Clone, Debug)]
pub struct RequestShare {
    pub(crate) requests: Arc<Semaphore>,
    lookups: Arc<Semaphore>,
}

impl Default for RequestShare {
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

    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.lookups) > 1
    }

    pub fn is_same(&self, other: &RequestShare) -> bool {
        Arc::ptr_eq(&self.lookups, &other.lookups)
    }

    /// The share of the request that this task makes.
    pub(crate) fn current() -> Option<RequestShare> {
        SHARE.try_with(Clone::clone).ok()
    }

    pub(crate) async fn within<T>(self, request: impl Future<Output = T>) -> T {
        SHARE.scope(self, request).await
    }
}

/// Runs a request; the addresses found for it are checked with this port.
pub(crate) async fn to_port<T>(port: u16, request: impl Future<Output = T>) -> T {
    PORT.scope(port, request).await
}

/// Looks up a name for a connection and leaves out addresses that may not be reached.
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
        let (share, port) = (RequestShare::current(), PORT.try_with(|port| *port).ok());
        Box::pin(async move {
            let host = name.as_str().to_owned();
            // The permit of the share comes first: a request that waits for it takes nothing from others.
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
