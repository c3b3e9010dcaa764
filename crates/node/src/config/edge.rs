//! Who reaches the server: networks, names, pages, metrics.

use std::net::IpAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use lightcone_limits::word::one_of;
use serde::{Deserialize, Deserializer};

use crate::hosts::{host_of, is_this_machine};

/// However few processors there are.
const NETWORK_THREADS_MIN: usize = 2;
/// Shorter secrets could be guessed.
const METRICS_TOKEN_BYTES_MIN: usize = 16;

/// The threads behind the sockets, and what stands before them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Network {
    /// `None`: half of the processors, at least two.
    pub threads: Option<std::num::NonZeroUsize>,
    /// Whose `x-forwarded-*` headers count.
    pub trusted_proxies: TrustedProxies,
    /// Host names under which a server on loopback answers, besides `localhost` and addresses.
    pub hosts: Vec<String>,
    /// Addresses at which clients reach the server, like `https://db.example.com`: there it proves its key.
    pub public_addresses: Vec<String>,
    /// Origins of pages that may manage the server, like `https://admin.example.com`.
    pub management_origins: Vec<String>,
}

impl Network {
    /// How many threads read and write sockets. The databases' own threads need the other processors: with as many
    /// threads as processors here, every message wakes more threads than it has work for. With one, a task that keeps it busy
    /// would delay all connections.
    pub fn threads(&self) -> usize {
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads
            .map_or_else(|| (processors() / 2).max(NETWORK_THREADS_MIN), usize::from)
    }

    pub(super) fn check(&self) -> Result<(), String> {
        for host in &self.hosts {
            if host.is_empty() || host.contains([':', '/', ' ']) {
                return Err(format!(
                    "network.hosts: {host:?} is not a host name; write it without scheme and port, like \"app.example.com\""
                ));
            }
        }
        for origin in &self.management_origins {
            let authority = origin.split_once("://").map(|(_, authority)| authority);
            if authority
                .is_none_or(|authority| authority.is_empty() || authority.contains(['/', ' ']))
            {
                return Err(format!(
                    "network.management-origins: {origin:?} is not an origin; write scheme, host and, if it is not the usual \
                     one, port, like \"https://admin.example.com\""
                ));
            }
        }
        for address in &self.public_addresses {
            check_public_address(address)?;
        }
        Ok(())
    }
}

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

/// All threads of the server.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Threads {
    pub scheduling: Scheduling,
}

/// Linux only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduling {
    /// A thread that is woken begins when the one on its processor has done its work.
    #[default]
    Batch,
    /// A thread that is woken may interrupt the one on its processor.
    Normal,
}

impl<'de> Deserialize<'de> for Scheduling {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let words = &[("batch", Scheduling::Batch), ("normal", Scheduling::Normal)];
        one_of(deserializer, words)
    }
}

/// Who may read the metrics besides programs on this machine.
#[derive(Clone, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Metrics {
    /// An address of their own, where all callers may read them.
    pub listen: Option<std::net::SocketAddr>,
    /// What a reader from elsewhere sends as `Authorization: Bearer`.
    pub token: Option<String>,
    /// Whether functions and tables of modules are shown by name, not only added up.
    pub names: bool,
    /// The same at `listen`, where all callers may read them.
    pub listen_names: bool,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            listen: None,
            token: None,
            names: true,
            listen_names: false,
        }
    }
}

impl Metrics {
    pub(super) fn check(&self) -> Result<(), String> {
        let token = self.token.as_ref();
        if token.is_some_and(|token| token.len() < METRICS_TOKEN_BYTES_MIN) {
            return Err(format!(
                "metrics.token is shorter than {METRICS_TOKEN_BYTES_MIN} characters; take a random one"
            ));
        }
        Ok(())
    }
}

// Its token must not reach a log.
impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics")
            .field("listen", &self.listen)
            .field("has_token", &self.token.is_some())
            .field("names", &self.names)
            .field("listen_names", &self.listen_names)
            .finish()
    }
}

/// PostgreSQL's protocol.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Postgres {
    /// Where it is spoken; nowhere without this or `--pg-port`.
    pub listen: Option<std::net::SocketAddr>,
    /// Files in PEM: the certificate with its chain, and its key. With both, clients may encrypt.
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
    /// Clients must encrypt.
    pub require_tls: bool,
}

impl Postgres {
    pub(super) fn check(&self) -> Result<(), String> {
        if self.certificate.is_some() != self.key.is_some() {
            return Err(
                "postgres.certificate and postgres.key go together: name both files".into(),
            );
        }
        if self.require_tls && self.certificate.is_none() {
            return Err(
                "postgres.require-tls needs a certificate: set postgres.certificate and postgres.key"
                    .into(),
            );
        }
        Ok(())
    }
}

/// The tools for assistants.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Mcp {
    pub writes: McpWrites,
}

/// Which assistants may change data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum McpWrites {
    Never,
    /// Those whose endpoint is asked with `?writes=true`.
    #[default]
    Asked,
    /// All but those whose endpoint is asked with `?writes=false`.
    Always,
}

impl<'de> Deserialize<'de> for McpWrites {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let words = &[
            ("never", McpWrites::Never),
            ("asked", McpWrites::Asked),
            ("always", McpWrites::Always),
        ];
        one_of(deserializer, words)
    }
}

/// Answers of modules' HTTP handlers.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Routes {
    /// Sent with every answer; empty: none.
    pub content_security_policy: String,
    /// Whether `x-content-type-options: nosniff` is sent.
    pub nosniff: bool,
}

impl Default for Routes {
    fn default() -> Self {
        Self {
            content_security_policy: "sandbox allow-scripts allow-forms allow-modals allow-popups \
                                      allow-popups-to-escape-sandbox allow-downloads"
                .into(),
            nosniff: true,
        }
    }
}

impl Routes {
    /// Whether a module's page has an origin of its own, and so cannot act as another page of this server.
    pub fn are_sandboxed(&self) -> bool {
        let mut policies = self.content_security_policy.split(',');
        policies.any(|policy| {
            let directives = policy.split(';').map(str::split_ascii_whitespace);
            // Browsers go by the first of that name.
            let first = directives
                .map(|words| words.collect::<Vec<_>>())
                .find(|words| {
                    words
                        .first()
                        .is_some_and(|name| name.eq_ignore_ascii_case("sandbox"))
                });
            let shares = |word: &&str| word.eq_ignore_ascii_case("allow-same-origin");
            first.is_some_and(|words| !words.iter().any(shares))
        })
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let policy = &self.content_security_policy;
        if http::HeaderValue::from_str(policy).is_err() {
            return Err(format!(
                "routes.content-security-policy: {policy:?} cannot be sent in a header"
            ));
        }
        Ok(())
    }
}

/// The page for people at `/dashboard`.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Dashboard {
    /// Nothing said: it is served where [`Routes::are_sandboxed`].
    pub enabled: Option<bool>,
}

/// A client compares it with what it has dialed, so it has one form.
fn check_public_address(address: &str) -> Result<(), String> {
    let wrong = |why: &str| {
        Err(format!(
            "network.public-addresses: {address:?} {why}; write scheme, host in lower case and, if it is not the usual one, port, like \
             \"https://db.example.com\""
        ))
    };
    let (scheme, authority) = address.split_once("://").unwrap_or_default();
    let usual_port = match scheme {
        "https" => ":443",
        "http" => ":80",
        _ => return wrong("is not the address of a server"),
    };
    let is_odd = |c: char| c.is_ascii_uppercase() || c.is_whitespace() || "/?#@\\".contains(c);
    if authority.is_empty() || authority.contains(is_odd) || !authority.is_ascii() {
        return wrong("is not the address of a server");
    }
    if authority.ends_with(usual_port) {
        return wrong("has the port that is usual");
    }
    if is_this_machine(host_of(authority)) {
        return wrong("is an address of every machine, and can be proven by none from afar");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_modules_are_sandboxed_or_not() {
        assert!(Routes::default().are_sandboxed());
        for (policy, expected) in [
            ("", false),
            ("default-src 'self'", false),
            ("default-src 'self'; Sandbox allow-scripts", true),
            ("sandbox allow-same-origin", false),
            ("sandbox ALLOW-Same-Origin; sandbox", false),
            ("default-src 'self', sandbox", true),
        ] {
            let routes = Routes {
                content_security_policy: policy.into(),
                ..Routes::default()
            };
            assert_eq!(routes.are_sandboxed(), expected, "{policy}");
        }
    }

    #[test]
    fn there_are_two_network_threads_at_least() {
        assert!(Network::default().threads() >= 2);
        let one = Network {
            threads: std::num::NonZeroUsize::new(1),
            ..Network::default()
        };
        assert_eq!(one.threads(), 1, "whatever the machine says");
    }
}
