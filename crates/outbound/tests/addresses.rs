//! Whatever names lead to, whatever they led to before, and however an address is written: no connection goes to an address that is
//! not allowed.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ipnet::IpNet;
use lightcone_accounts::{Account, Kind};
use lightcone_outbound::{
    AllowList, Bounds, Lookup, Outbound, OutboundError, OutboundOptions, Reach, Request,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::SeedableRng as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

const BOUNDS: Bounds = Bounds {
    timeout: Duration::from_secs(10),
    request_bytes_max: 10_000,
    response_bytes_max: 10_000,
};

fn config(cases: u32) -> Config {
    let asked = std::env::var("PROPTEST_CASES").ok();
    Config {
        cases: asked.and_then(|n| n.parse().ok()).unwrap_or(cases),
        failure_persistence: None,
        ..Config::default()
    }
}

fn get(url: String) -> Request {
    Request {
        method: "GET".to_owned(),
        url,
        headers: Vec::new(),
        body: Default::default(),
        account: Account::root(Kind::Instance, usize::MAX),
    }
}

// ---- Names whose addresses change ---------------------------------------------------------------------------------------

/// All of this machine; a connection to one that is not allowed would be seen.
const ADDRESSES: [&str; 10] = [
    "127.0.0.1",
    "127.0.0.2",
    "127.0.0.3",
    "127.9.9.9",
    "127.255.255.254",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:127.0.0.2",
    "::ffff:127.0.0.9",
    "0.0.0.0",
];

/// Answers every look-up with other addresses.
struct Changing(Mutex<StdRng>);

impl Lookup for Changing {
    fn addresses(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        let mut rng = self.0.lock().expect("no panic");
        let count = rng.random_range(0..5);
        let picked = (0..count).map(|_| *ADDRESSES.choose(&mut *rng).expect("there are some"));
        Ok(picked.map(|text| text.parse().expect(text)).collect())
    }
}

/// A server at all addresses of this machine, which answers or sends its visitors elsewhere, at random.
struct Everywhere {
    port: u16,
    /// Where connections have arrived.
    reached: Arc<Mutex<Vec<IpAddr>>>,
}

impl Everywhere {
    async fn start(seed: u64) -> Everywhere {
        let all = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
        let listener = TcpListener::bind(all).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let everywhere = Everywhere {
            port,
            reached: Arc::default(),
        };
        everywhere.serve(listener, seed);
        // A machine may have no IPv6.
        let all = SocketAddr::new(Ipv6Addr::LOCALHOST.into(), port);
        if let Ok(listener) = TcpListener::bind(all).await {
            everywhere.serve(listener, seed + 1);
        }
        everywhere
    }

    fn serve(&self, listener: TcpListener, seed: u64) {
        let (reached, port) = (self.reached.clone(), self.port);
        let mut rng = StdRng::seed_from_u64(seed);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let at = stream.local_addr().expect("it is connected").ip();
                reached.lock().expect("no panic").push(at);
                let text = match rng.random_bool(0.6) {
                    true => {
                        let status = [301, 302, 303, 307, 308].choose(&mut rng).expect("five");
                        let location = target(&mut rng, port);
                        format!("HTTP/1.1 {status} Moved\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n")
                    }
                    false => "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned(),
                };
                tokio::spawn(async move {
                    let _ = stream.read(&mut [0; 4096]).await;
                    let _ = stream.write_all(text.as_bytes()).await;
                });
            }
        });
    }
}

/// A URL: a name, or an address as it may be written.
fn target(rng: &mut StdRng, port: u16) -> String {
    const NAMES: [&str; 4] = ["a.test", "b.test", "localhost", "listed.test"];
    let host = match rng.random_bool(0.7) {
        true => (*NAMES.choose(rng).expect("there are some")).to_owned(),
        false => {
            let text = ADDRESSES.choose(rng).expect("there are some");
            written(text.parse().expect(text), rng.random())
        }
    };
    format!("http://{host}:{port}/")
}

/// The host of a URL, in one of the ways in which the address can be written.
fn written(address: IpAddr, how: u8) -> String {
    match address {
        IpAddr::V4(address) => {
            let ([a, b, c, d], bits) = (address.octets(), address.to_bits());
            match how % 9 {
                0 => address.to_string(),
                1 => bits.to_string(),
                2 => format!("0x{bits:x}"),
                3 => format!("0{bits:o}"),
                4 => format!("0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}"),
                5 => format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
                6 => format!("{a}.{}", bits & 0xff_ffff),
                7 => format!("{a}.{b}.{}", bits & 0xffff),
                _ => format!("{a}.0{b:o}.0x{c:x}.{d}."),
            }
        }
        IpAddr::V6(address) => {
            let segments = address.segments();
            let [high, low] = [segments[6], segments[7]].map(|segment| segment.to_be_bytes());
            let all = segments.map(|segment| format!("{segment:04X}")).join(":");
            match how % 4 {
                0 => format!("[{address}]"),
                1 => format!("[{all}]"),
                2 => format!(
                    "[{}:{}.{}.{}.{}]",
                    segments[..6]
                        .iter()
                        .map(|segment| format!("{segment:x}"))
                        .collect::<Vec<_>>()
                        .join(":"),
                    high[0],
                    high[1],
                    low[0],
                    low[1]
                ),
                // With a scope, which URLs do not have.
                _ => format!("[{address}%25lo]"),
            }
        }
    }
}

#[test]
fn connections_go_to_nothing_but_what_is_allowed() {
    let allowed = prop::collection::btree_set(0..ADDRESSES.len(), 0..5);
    let arrived = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(config(24));
    let ran = runner.run(&(any::<u64>(), allowed), |(seed, allowed)| {
        let allowed: BTreeSet<&str> = allowed.into_iter().map(|at| ADDRESSES[at]).collect();
        let runtime = Runtime::new().expect("a runtime");
        let reached = runtime.block_on(ask_for_many(seed, &allowed));
        for address in &reached {
            let is_allowed = names_of(*address).any(|name| allowed.contains(&*name));
            prop_assert!(is_allowed, "{} of {:?}", address, allowed);
        }
        arrived.set(arrived.get() + reached.len());
        Ok(())
    });
    ran.unwrap_or_else(|error| panic!("{error}"));
    assert!(arrived.get() > 0, "nothing was tried at all");
}

/// Where connections arrive when these addresses are allowed.
async fn ask_for_many(seed: u64, allowed: &BTreeSet<&str>) -> Vec<IpAddr> {
    let server = Everywhere::start(seed).await;
    let options = OutboundOptions {
        allow: AllowList::parse(allowed.iter().copied()).expect("a list"),
        lookup: Arc::new(Changing(Mutex::new(StdRng::seed_from_u64(seed)))),
        ..OutboundOptions::current()
    };
    let outbound = Arc::new(Outbound::new(options).expect("a client"));
    let mut rng = StdRng::seed_from_u64(seed);
    for _ in 0..30 {
        let url = target(&mut rng, server.port);
        let _ = outbound.request(get(url.clone()), BOUNDS).await;
        // What modules may reach is nothing to others.
        if let Ok(url) = url.parse() {
            let public = outbound.get(url, Reach::Public, 100).await;
            assert!(public.is_err());
        }
    }
    let reached = server.reached.lock().expect("no panic");
    reached.clone()
}

/// What a connection can have been asked for that has arrived here.
fn names_of(address: IpAddr) -> impl Iterator<Item = String> {
    let other = match address {
        IpAddr::V4(address) => Some(address.to_ipv6_mapped().to_string()),
        IpAddr::V6(_) => None,
    };
    let is_first = address == IpAddr::from(Ipv4Addr::LOCALHOST);
    let unspecified = is_first.then(|| Ipv4Addr::UNSPECIFIED.to_string());
    [Some(address.to_string()), other, unspecified]
        .into_iter()
        .flatten()
}

// ---- Addresses as they are written --------------------------------------------------------------------------------------

/// Networks that are unassigned, one's own, or that carry another address.
const REFUSED: &[&str] = &[
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "::/96",
    "::ffff:0:0/96",
    "64:ff9b::/96",
    "64:ff9b:1::/48",
    "100::/64",
    "2001::/32",
    "2002::/16",
    "2001:db8::/32",
    "fc00::/7",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
];

fn address() -> impl Strategy<Value = IpAddr> {
    let of_network = |(pick, bits): (usize, u128)| {
        let network: IpNet = REFUSED[pick].parse().expect("a network");
        match network {
            IpNet::V4(network) => {
                let host = bits as u32 & u32::from(network.hostmask());
                IpAddr::from(Ipv4Addr::from_bits(u32::from(network.network()) | host))
            }
            IpNet::V6(network) => {
                let host = bits & u128::from(network.hostmask());
                IpAddr::from(Ipv6Addr::from_bits(u128::from(network.network()) | host))
            }
        }
    };
    (0..REFUSED.len(), any::<u128>()).prop_map(of_network)
}

/// Fails on every look-up: addresses are no names.
struct NoLookup;

impl Lookup for NoLookup {
    fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        Err(io::Error::other(format!("{host} was looked up")))
    }
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn private_addresses_are_refused_however_they_are_written(address in address(), how: u8) {
        let host = written(address, how);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let options = OutboundOptions {
                lookup: Arc::new(NoLookup),
                ..OutboundOptions::current()
            };
            let outbound = Arc::new(Outbound::new(options).expect("a client"));
            let refused = outbound.request(get(format!("http://{host}/")), BOUNDS).await;
            assert!(
                matches!(refused, Err(OutboundError::Refused { .. } | OutboundError::Url { .. })),
                "{host}: {refused:?}"
            );
            assert!(host.contains('%') || matches!(refused, Err(OutboundError::Refused { .. })), "{host}: {refused:?}");
        });
    }
}
