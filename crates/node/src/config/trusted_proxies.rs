//! `network.trusted-proxies`.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Deserializer};

/// Addresses and networks (`10.0.0.0/8`) of proxies whose `x-forwarded-*` headers count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }
}

impl<'de> Deserialize<'de> for TrustedProxies {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        let network = |text: &String| {
            let address = text.parse::<IpAddr>().map(IpNet::from);
            address.or_else(|_| text.parse::<IpNet>()).map_err(|_| {
                serde::de::Error::custom(format!(
                    "network.trusted-proxies: {text:?} is neither an address (\"127.0.0.1\") nor a network (\"10.0.0.0/8\")"
                ))
            })
        };
        let networks: Result<_, _> = texts.iter().map(network).collect();
        networks.map(TrustedProxies)
    }
}
