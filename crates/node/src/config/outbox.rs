//! `[outbox]`: other servers with which databases of this one exchange messages of outbox tables.

use std::path::PathBuf;

use lightcone_outbound::Url;
use lightcone_types::Identity;
use serde::{Deserialize, Deserializer};

/// Other servers. Without any, only databases of this server exchange messages.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Outbox {
    pub peers: Vec<Peer>,
}

/// Another server.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Peer {
    /// Where messages to its databases are sent; without it none are.
    #[serde(default, deserialize_with = "url")]
    pub address: Option<Url>,
    /// Those of its databases that exchange messages with ours.
    #[serde(deserialize_with = "identities")]
    pub databases: Vec<Identity>,
    /// A file in PEM with the key that it signs with; without it none of its messages are taken.
    #[serde(default)]
    pub public_key: Option<PathBuf>,
}

impl Outbox {
    pub(super) fn check(&self) -> Result<(), String> {
        let is_http = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        let mut seen = std::collections::HashSet::new();
        for peer in &self.peers {
            if peer.address.as_ref().is_some_and(|url| !is_http(url)) {
                return Err("the address of one of outbox.peers is no URL that begins with http:// or https://".into());
            }
            if let Some(twice) = peer.databases.iter().find(|id| !seen.insert(**id)) {
                return Err(format!(
                    "outbox.peers names the database {twice} more than once"
                ));
            }
        }
        Ok(())
    }
}

fn url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Url>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let wrong = |error| serde::de::Error::custom(format!("outbox.peers: {text:?}: {error}"));
    Url::parse(&text).map(Some).map_err(wrong)
}

fn identities<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Identity>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let parsed = texts.iter().map(|text| {
        Identity::from_hex(text).map_err(|_| {
            let text = format!("outbox.peers: {text:?} is no identity of 64 hexadecimal digits");
            serde::de::Error::custom(text)
        })
    });
    parsed.collect()
}
