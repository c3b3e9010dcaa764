//! Which address a request is from, with or without proxies in between.
//!
//! Any client can write `x-forwarded-for` into a request. It counts only on connections of a proxy that the operator has named
//! (`network.trusted-proxies`), and there from the right: each proxy appends the address that it has seen itself.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, HeaderName};

use lightcone_node::config::TrustedProxies;
use lightcone_node::hosts::host_of;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Headers by which a proxy gives itself away.
const PROXY_HEADERS: [&str; 6] = [
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
];

/// Where a TCP connection comes from and where it arrived. Every request carries it as an extension.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionAddresses {
    /// The other end.
    pub(crate) peer: IpAddr,
    /// This end of the connection.
    pub(crate) local: SocketAddr,
    /// Only programs on this machine reach the listener.
    pub(crate) on_loopback: bool,
}

/// Who sent a request, as far as its connection tells. An extension of every request, made by `http::access`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    /// For bounds per client see [`counted_as`](lightcone_node::network::counted_as).
    pub address: IpAddr,
    /// A program on this machine, and no page of a foreign name in its browser.
    pub is_local: bool,
}

impl ConnectionAddresses {
    pub fn new(peer: IpAddr, local: SocketAddr, on_loopback: bool) -> ConnectionAddresses {
        ConnectionAddresses {
            peer: peer.to_canonical(),
            local,
            on_loopback,
        }
    }

    /// The address of the client that sent a request.
    pub(crate) fn client(&self, headers: &HeaderMap, trusted: &TrustedProxies) -> IpAddr {
        if !trusted.contains(self.peer) {
            return self.peer;
        }
        let lines = headers.get_all(FORWARDED_FOR).iter().rev();
        let lines = lines.map(|value| value.to_str().unwrap_or("?"));
        let mut nearest = self.peer;
        for text in lines.flat_map(|line| line.rsplit(',')) {
            // What cannot be read ends the chain: nothing vouches for what stands before it.
            let Some(address) = parse_address(text.trim()) else {
                return nearest;
            };
            nearest = address;
            if !trusted.contains(address) {
                return nearest;
            }
        }
        nearest
    }

    /// Is the client a program on this machine? A request that came through a proxy is not, unless a trusted one says so.
    pub(crate) fn is_local(&self, headers: &HeaderMap, trusted: &TrustedProxies) -> bool {
        if trusted.contains(self.peer) {
            return headers.contains_key(FORWARDED_FOR)
                && self.client(headers, trusted).is_loopback();
        }
        self.peer.is_loopback() && !PROXY_HEADERS.iter().any(|name| headers.contains_key(*name))
    }
}

/// An address, also `1.2.3.4:5`, `[::1]` and `[::1]:5`.
fn parse_address(text: &str) -> Option<IpAddr> {
    let address = host_of(text).parse::<IpAddr>().ok()?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn trusted(texts: &[&str]) -> TrustedProxies {
        #[derive(Deserialize)]
        struct Key {
            key: TrustedProxies,
        }
        toml::from_str::<Key>(&format!("key = {texts:?}"))
            .expect("proxies")
            .key
    }

    fn from(peer: &str) -> ConnectionAddresses {
        ConnectionAddresses::new(ip(peer), ([127, 0, 0, 1], 3000).into(), true)
    }

    fn forwarded(lines: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(FORWARDED_FOR, line.parse().expect("a header"));
        }
        headers
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        let proxies = trusted(&["127.0.0.1", "10.0.0.0/8", "::1"]);
        for (peer, lines, client) in [
            ("9.9.9.9", &["1.1.1.1"][..], "9.9.9.9"),
            ("127.0.0.1", &["1.1.1.1"], "1.1.1.1"),
            // What the client wrote itself stands on the left.
            ("127.0.0.1", &["127.0.0.1, 1.1.1.1"], "1.1.1.1"),
            ("127.0.0.1", &["127.0.0.1", "1.1.1.1, 10.1.2.3"], "1.1.1.1"),
            ("127.0.0.1", &["1.1.1.1, nonsense, 10.1.2.3"], "10.1.2.3"),
            ("127.0.0.1", &["1.1.1.1, nonsense"], "127.0.0.1"),
            ("::1", &["[2001:db8::1]:77"], "2001:db8::1"),
            ("::ffff:127.0.0.1", &["1.1.1.1:80"], "1.1.1.1"),
            ("127.0.0.1", &["::ffff:1.1.1.1"], "1.1.1.1"),
            ("127.0.0.1", &[], "127.0.0.1"),
            ("127.0.0.1", &[""], "127.0.0.1"),
        ] {
            let found = from(peer).client(&forwarded(lines), &proxies);
            assert_eq!(found, ip(client), "{peer} {lines:?}");
        }
        let none = TrustedProxies::default();
        let found = from("127.0.0.1").client(&forwarded(&["1.1.1.1"]), &none);
        assert_eq!(found, ip("127.0.0.1"));
    }

    #[test]
    fn local_clients() {
        let (no_proxies, proxies) = (TrustedProxies::default(), trusted(&["127.0.0.1"]));
        let none = HeaderMap::new();
        assert!(from("127.0.0.1").is_local(&none, &no_proxies));
        assert!(from("::ffff:127.0.0.1").is_local(&none, &no_proxies));
        assert!(!from("192.168.1.1").is_local(&none, &no_proxies));
        // The client came through a proxy that the operator has not named.
        assert!(!from("127.0.0.1").is_local(&forwarded(&["127.0.0.1"]), &no_proxies));
        // A trusted proxy that does not say who asks.
        assert!(!from("127.0.0.1").is_local(&none, &proxies));
        assert!(from("127.0.0.1").is_local(&forwarded(&["127.0.0.1"]), &proxies));
        assert!(!from("127.0.0.1").is_local(&forwarded(&["127.0.0.1, 1.1.1.1"]), &proxies));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "\\PC{0,40}") {
            let _ = parse_address(&text);
        }
    }
}
