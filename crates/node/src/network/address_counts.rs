//! How many connections each address has.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;

/// Counts connections by address. This machine is not counted: a client there is not kept out by this, and a
/// proxy in front of the server, or a benchmark, has all its connections from one address.
pub struct AddressCounts {
    max: usize,
    counts: Mutex<HashMap<IpAddr, usize>>,
}

/// One connection; given back when dropped.
pub struct Counted {
    counts: Arc<AddressCounts>,
    address: Option<IpAddr>,
}

impl AddressCounts {
    pub fn new(max: usize) -> Arc<AddressCounts> {
        Arc::new(AddressCounts {
            max,
            counts: Mutex::default(),
        })
    }

    /// None if the address has as many as it may have. `is_trusted`: a proxy, behind which are many.
    pub fn enter(self: &Arc<Self>, peer: IpAddr, is_trusted: bool) -> Option<Counted> {
        let address = counted_as(peer).filter(|_| !is_trusted);
        if let Some(address) = address {
            let mut counts = self.counts.lock();
            let count = counts.entry(address).or_default();
            if *count >= self.max {
                return None;
            }
            *count += 1;
        }
        Some(Counted {
            counts: self.clone(),
            address,
        })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let Some(address) = self.address else { return };
        let mut counts = self.counts.counts.lock();
        if let Some(count) = counts.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&address);
            }
        }
    }
}

/// What is counted as one client where something is bounded per address: an IPv6 client has a whole /64 network.
fn bounded_as(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        address => address,
    }
}

/// The same, and none for this machine.
pub fn counted_as(address: IpAddr) -> Option<IpAddr> {
    Some(bounded_as(address)).filter(|_| !address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn an_ipv6_network_is_one_client() {
        assert_eq!(bounded_as(ip("2001:db8:1:2:3:4:5:6")), ip("2001:db8:1:2::"));
        assert_eq!(bounded_as(ip("::ffff:1.2.3.4")), ip("1.2.3.4"));
    }

    #[test]
    fn an_address_has_so_many_and_others_are_free() {
        let counts = AddressCounts::new(2);
        let enter = |text| counts.enter(ip(text), false);
        let first = enter("10.0.0.1").expect("room");
        let _second = enter("::ffff:10.0.0.1").expect("room");
        assert!(enter("10.0.0.1").is_none());
        assert!(enter("10.0.0.2").is_some());
        drop(first);
        assert!(enter("10.0.0.1").is_some(), "and is given back at once");
        assert_eq!(counts.counts.lock().len(), 1);
    }

    #[test]
    fn networks_this_machine_and_proxies() {
        let counts = AddressCounts::new(1);
        let _one = counts.enter(ip("2001:db8::1"), false).expect("room");
        assert!(counts.enter(ip("2001:db8::2"), false).is_none());
        assert!(counts.enter(ip("2001:db8:0:1::2"), false).is_some());
        let local: Vec<_> = (0..5000)
            .map(|_| counts.enter(ip("127.0.0.1"), false))
            .collect();
        assert!(local.iter().all(Option::is_some));
        let proxied: Vec<_> = (0..5000)
            .map(|_| counts.enter(ip("10.0.0.1"), true))
            .collect();
        assert!(proxied.iter().all(Option::is_some));
    }
}
