//! Which addresses a request may go to when its target was chosen by a module or a token.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Everything that is not of the public internet could be a machine that only this server reaches.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// All but the special-purpose networks of RFC 6890 and its successors.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = match a {
        // "This network", loopback, and multicast, reserved, broadcast.
        0 | 127 | 224.. => true,
        10 => true,
        // Shared by the clients of a provider.
        100 => (64..128).contains(&b),
        // Link-local: the metadata services of clouds.
        169 => b == 254,
        172 => (16..32).contains(&b),
        // Protocol assignments, documentation, AS112, AMT, the former 6to4 relays, private.
        192 => matches!(
            (b, c),
            (0, 0) | (0, 2) | (31, 196) | (52, 193) | (88, 99) | (168, _) | (175, 48)
        ),
        // Benchmarks, documentation.
        198 => matches!((b, c), (18 | 19, _) | (51, 100)),
        203 => (b, c) == (0, 113),
        _ => false,
    };
    !is_special
}

/// Only global unicast without addresses that carry another one inside: mapped and translated ones lie outside of it.
fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        // Protocol assignments (Teredo and others), documentation, 6to4, AS112.
        [0x2001, second, ..] if second < 0x200 || second == 0xdb8 => false,
        [0x2002, ..] => false,
        [0x2620, 0x4f, 0x8000, ..] => false,
        [0x3fff, second, ..] if second < 0x1000 => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn special_networks() {
        for text in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.31.196.1",
            "192.52.193.255",
            "192.88.99.1",
            "192.175.48.9",
            "192.168.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:1.1.1.1",
            "::ffff:127.0.0.1",
            "64:ff9b::808:808",
            "2620:4f:8000::1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(text.parse().expect(text)), "{text}");
        }
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "192.167.0.1",
            "198.17.0.1",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2a00:1450::1",
        ] {
            assert!(is_public(text.parse().expect(text)), "{text}");
        }
    }

    /// The networks of spec 03 §13.3, and those that it leaves out: multicast, site-local.
    const REFUSED: &[&str] = &[
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "::1/128",
        "::/128",
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "::ffff:0:0/96",
        "100::/64",
        "100:0:0:1::/64",
        "2001::/23",
        "2001:db8::/32",
        "2002::/16",
        "2620:4f:8000::/48",
        "3fff::/20",
        "5f00::/16",
        "fc00::/7",
        "fe80::/10",
        "fec0::/10",
        "ff00::/8",
    ];

    fn networks() -> Vec<ipnet::IpNet> {
        REFUSED
            .iter()
            .map(|text| text.parse().expect(text))
            .collect()
    }

    #[test]
    fn every_network_of_the_chapter_is_refused_from_its_first_to_its_last_address() {
        for network in networks() {
            assert!(!is_public(network.network()), "{network}");
            assert!(!is_public(network.broadcast()), "{network}");
        }
    }

    proptest! {
        #[test]
        fn ipv4_is_refused_in_these_networks_and_nowhere_else(bits: u32) {
            let address = IpAddr::from(Ipv4Addr::from_bits(bits));
            let is_refused = networks().iter().any(|network| network.contains(&address));
            prop_assert_eq!(is_public(address), !is_refused);
        }

        #[test]
        fn addresses_in_refused_networks_are_refused(pick in 0..REFUSED.len(), bits: u128) {
            let address = match networks()[pick] {
                ipnet::IpNet::V4(network) => {
                    let host = bits as u32 & u32::from(network.hostmask());
                    IpAddr::from(Ipv4Addr::from_bits(u32::from(network.network()) | host))
                }
                ipnet::IpNet::V6(network) => {
                    let host = bits & u128::from(network.hostmask());
                    IpAddr::from(Ipv6Addr::from_bits(u128::from(network.network()) | host))
                }
            };
            prop_assert!(!is_public(address), "{}", address);
        }

        #[test]
        fn only_global_unicast_of_ipv6_is_public(bits: u128) {
            let address = Ipv6Addr::from_bits(bits);
            let is_global_unicast = bits >> 125 == 1;
            prop_assert!(!is_public(address.into()) || is_global_unicast);
        }

        #[test]
        fn what_carries_another_address_is_refused(bits: u32) {
            let inner = Ipv4Addr::from_bits(bits);
            let translated = Ipv6Addr::from_bits((0x64_ff9b << 96) | u128::from(bits));
            prop_assert!(!is_public(inner.to_ipv6_mapped().into()));
            prop_assert!(!is_public(inner.to_ipv6_compatible().into()));
            prop_assert!(!is_public(translated.into()));
        }
    }
}
