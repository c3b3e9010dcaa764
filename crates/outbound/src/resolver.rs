//! Names are looked up for a connection, within bounds, and only addresses that may be reached are left.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::Semaphore;

use crate::filter::Filter;
use crate::{Lookup, OutboundError};

/// Names that are looked up at once for one owner.
const SHARE_LOOKUPS_MAX: usize = 8;

tokio::task_local! {
    /// The share that the current request belongs to.
    static SHARE: RequestShare;
    /// The port that it goes to.
    static PORT: u16;
}

/// One owner's part of all requests and look-ups: an owner whose requests wait without an answer leaves room for the others.
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

    /// Whether there is another clone of it.
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

/// Makes a request to a port: the addresses found for it are checked with this port.
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
            // First the share's own permit: a request that waits for it takes nothing from others.
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
