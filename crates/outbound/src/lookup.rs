//! From names to addresses that may be reached.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::Semaphore;

use crate::client::Reach;
use crate::own::OwnAddresses;
use crate::{address, AllowList, OutboundError};

/// Names that are looked up at once for one that shares look-ups with others.
const SHARE_LOOKUPS_MAX: usize = 8;

tokio::task_local! {
    /// For whom a request is made, while it is.
    static SHARE: LookupShare;
}

/// The look-ups of one of many that make requests: a few whose names nobody answers for leave the others some.
#[derive(Clone, Debug)]
pub struct LookupShare(Arc<Semaphore>);

impl Default for LookupShare {
    fn default() -> LookupShare {
        LookupShare(Arc::new(Semaphore::new(SHARE_LOOKUPS_MAX)))
    }
}

impl LookupShare {
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
}

impl Filter {
    /// Whether the address, to which `host` leads or which it is, may be reached.
    pub fn lets_through(&self, host: &str, address: IpAddr) -> bool {
        self.reach == Reach::Any
            || (self.reach == Reach::Listed && self.allow.has(host, address))
            || (address::is_public(address) && !self.own.has(address))
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
        // The client connects within the request.
        let share = SHARE.try_with(Clone::clone).ok();
        Box::pin(async move {
            let host = name.as_str().to_owned();
            // First of one's own, so that who waits for it takes nothing from others.
            let of_share = match share {
                Some(LookupShare(share)) => Some(share.acquire_owned().await?),
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
