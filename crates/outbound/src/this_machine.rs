//! The addresses of this machine. What listens on them may trust requests from here, also where they are public.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};

use crate::Lookup;

/// Interfaces come and go: they are listed again after this time.
const LISTED_FOR: Duration = Duration::from_secs(10);

pub(crate) struct OwnAddresses {
    lookup: Arc<dyn Lookup>,
    listed: Mutex<Option<(Instant, Vec<IpAddr>)>>,
}

/// The ports on which this process listens.
#[derive(Clone, Debug, Default)]
pub struct OwnPorts(Arc<RwLock<Vec<u16>>>);

impl OwnPorts {
    /// Modules' requests do not reach this port of this machine from now on.
    pub fn add(&self, port: u16) {
        self.0.write().push(port);
    }

    pub(crate) fn has(&self, port: u16) -> bool {
        self.0.read().contains(&port)
    }
}

impl OwnAddresses {
    pub fn new(lookup: Arc<dyn Lookup>) -> Arc<OwnAddresses> {
        Arc::new(OwnAddresses {
            lookup,
            listed: Mutex::default(),
        })
    }

    /// Whether this is an address of this machine.
    pub fn is_here(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_loopback() || address.is_unspecified() || self.has(address)
    }

    /// Whether an interface has it. False also if the system does not list them.
    pub fn has(&self, address: IpAddr) -> bool {
        let mut listed = self.listed.lock();
        let is_fresh = |(since, _): &(Instant, _)| since.elapsed() < LISTED_FOR;
        if !listed.as_ref().is_some_and(is_fresh) {
            let before = listed.take().map(|(_, addresses)| addresses);
            let now = self.lookup.own_addresses().ok().or(before);
            *listed = Some((Instant::now(), now.unwrap_or_default()));
        }
        let (_, own) = listed.as_ref().expect("it was just listed");
        own.contains(&address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Lists one address, and fails from the second time on.
    #[derive(Default)]
    struct Once(AtomicUsize);

    impl Lookup for Once {
        fn addresses(&self, _: &str) -> io::Result<Vec<IpAddr>> {
            Ok(Vec::new())
        }

        fn own_addresses(&self) -> io::Result<Vec<IpAddr>> {
            match self.0.fetch_add(1, Ordering::Relaxed) {
                0 => Ok(vec!["1.1.1.1".parse().expect("an address")]),
                _ => Err(io::Error::other("no list")),
            }
        }
    }

    #[test]
    fn what_was_listed_is_kept_when_there_is_no_list() {
        let lookup = Arc::new(Once::default());
        let own = OwnAddresses::new(lookup.clone());
        let has = |text: &str| own.has(text.parse().expect("an address"));
        assert!(has("1.1.1.1") && !has("1.0.0.1"));
        assert_eq!(
            lookup.0.load(Ordering::Relaxed),
            1,
            "it is not listed each time"
        );
        let mut listed = own.listed.lock();
        listed.as_mut().expect("listed").0 = Instant::now() - 2 * LISTED_FOR;
        drop(listed);
        assert!(has("1.1.1.1"));
        assert_eq!(lookup.0.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn the_system_lists_the_loopback() {
        let own = crate::SystemLookup.own_addresses().expect("a list");
        assert!(own.iter().any(IpAddr::is_loopback), "{own:?}");
    }
}
