//! Does another program listen already (07 §11.1)?

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use crate::error::{Error, Result};

/// A wanted address as the user wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// None is `localhost`.
    pub ip: Option<IpAddr>,
    pub port: u16,
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            let (ip, port) = (Some(address.ip()), address.port());
            return Ok(Self { ip, port });
        }
        let parts = text.rsplit_once(':');
        let why = match parts.map(|(host, port)| (host, port.parse::<u16>())) {
            None => "the port is missing",
            Some((_, Err(_))) => "the port must be a number from 0 to 65535",
            Some(("localhost", Ok(port))) => return Ok(Self { ip: None, port }),
            Some(_) => "the host must be an IP address or `localhost`",
        };
        bail!(
            "LC0622",
            "`{text}` is not an address to listen on: {why}. It looks like 127.0.0.1:3000."
        )
    }
}

impl Address {
    pub fn resolve(&self) -> SocketAddr {
        let ip = self.ip.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
        SocketAddr::new(ip, self.port)
    }

    /// Port 0 lets the system choose a free one.
    pub fn is_taken(&self, listeners: &[SocketAddr]) -> bool {
        let is_other =
            |other: &SocketAddr| other.port() == self.port && conflict(self.ip, other.ip());
        self.port != 0 && listeners.iter().any(is_other)
    }
}

fn conflict(wanted: Option<IpAddr>, listening: IpAddr) -> bool {
    use IpAddr::{V4, V6};
    let Some(wanted) = wanted else {
        return listening.is_loopback() || listening.is_unspecified();
    };
    match (wanted, listening) {
        _ if wanted == listening => true,
        (V4(a), V4(b)) => a.is_unspecified() || b.is_unspecified(),
        (V6(a), V6(b)) => a.is_unspecified() || b.is_unspecified(),
        (V4(a), V6(b)) => {
            let both = a.is_loopback() && b.is_loopback();
            both || b.is_unspecified() || b == a.to_ipv6_mapped()
        }
        (V6(a), V4(b)) => a.is_unspecified() || (a == Ipv6Addr::LOCALHOST && b.is_loopback()),
    }
}

/// Every TCP listener of this machine, as far as the system tells.
pub(super) fn listeners() -> Vec<SocketAddr> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let mut found = parse(&read("/proc/net/tcp"));
    found.extend(parse(&read("/proc/net/tcp6")));
    found
}

/// Reads the tables of `proc(5)`: after a header, one socket per line, its local address second and its state fourth.
fn parse(table: &str) -> Vec<SocketAddr> {
    const LISTEN: &str = "0A";
    let sockets = table.lines().skip(1).filter_map(|line| {
        let mut words = line.split_whitespace();
        let (local, state) = (words.nth(1)?, words.nth(1)?);
        parse_address(local).filter(|_| state == LISTEN)
    });
    sockets.collect()
}

/// `0100007F:0BB8`: 32-bit words of the address in the machine's byte order, then the port.
fn parse_address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::with_capacity(16);
    for word in address.as_bytes().chunks(8) {
        let word = u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?;
        bytes.extend_from_slice(&word.to_ne_bytes());
    }
    let ip = match bytes.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
        16 => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(wanted: &str, listening: &str) -> bool {
        let wanted: Address = wanted.parse().expect(wanted);
        wanted.is_taken(&[listening.parse().expect(listening)])
    }

    #[test]
    fn conflicts_follow_the_chapter() {
        for (wanted, listening) in [
            ("127.0.0.1:1", "127.0.0.1:1"),
            ("127.0.0.1:1", "0.0.0.0:1"),
            ("0.0.0.0:1", "127.0.0.1:1"),
            ("0.0.0.0:1", "[::]:1"),
            ("127.0.0.1:1", "[::1]:1"),
            ("10.0.0.1:1", "[::]:1"),
            ("10.0.0.1:1", "[::ffff:10.0.0.1]:1"),
            ("[::]:1", "10.0.0.1:1"),
            ("[::1]:1", "127.0.0.1:1"),
            ("localhost:1", "[::]:1"),
            ("localhost:1", "127.0.0.1:1"),
        ] {
            assert!(taken(wanted, listening), "{wanted} {listening}");
        }
        for (wanted, listening) in [
            ("127.0.0.1:1", "127.0.0.1:2"),
            ("127.0.0.1:1", "10.0.0.1:1"),
            ("10.0.0.1:1", "[::1]:1"),
            ("[::1]:1", "10.0.0.1:1"),
            ("localhost:1", "10.0.0.1:1"),
            ("0.0.0.0:0", "0.0.0.0:0"),
        ] {
            assert!(!taken(wanted, listening), "{wanted} {listening}");
        }
    }

    #[test]
    fn addresses_are_checked() {
        for text in [
            "",
            "3000",
            "host:3000",
            "localhost:x",
            "127.0.0.1:70000",
            "127.0.0.1",
        ] {
            let error = text.parse::<Address>().expect_err(text).to_string();
            assert!(error.contains("[LC0622]"), "{error}");
        }
    }

    #[test]
    fn a_listener_of_this_process_is_seen() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        if cfg!(target_os = "linux") {
            assert!(listeners().contains(&address));
        }
    }
}
