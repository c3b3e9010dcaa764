//! HTTP requests that the server makes.
//!
//! Where they go was chosen by somebody else: an issuer that a token names. So the address is looked up once, checked, and
//! the connection goes to that very address; no redirect is followed, no proxy of the environment is asked, and time and
//! bytes are bounded.

mod address;

use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{redirect, Client, StatusCode, Url};
use tokio::sync::Semaphore;

use crate::error::Error;

/// For one request, from the look-up of the name to the last byte.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Names that are looked up at once.
const LOOKUPS_MAX: usize = 32;

/// Where a request may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// To addresses of the public internet.
    Public,
    /// Also to this machine and its networks: the operator has named the target.
    Any,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OutgoingError {
    #[error("{host} is not an address of the public internet")]
    NotPublic { host: String },
    #[error("{host} has no address of the public internet")]
    NoPublicAddress { host: String },
    #[error("the address has no host")]
    NoHost,
    #[error("the answer is {status}{hint}")]
    Status {
        status: StatusCode,
        hint: &'static str,
    },
    #[error("the answer has more than {bytes_max} bytes")]
    TooLarge { bytes_max: usize },
    #[error("{}", crate::http::error_chain(.0))]
    Http(#[from] reqwest::Error),
}

/// The client for all requests that go out.
pub(crate) struct OutgoingHttp {
    public: Client,
    any: Client,
}

impl OutgoingHttp {
    pub(crate) fn new() -> Result<OutgoingHttp, Error> {
        let client = |reach| {
            Client::builder()
                .timeout(REQUEST_TIMEOUT)
                .connect_timeout(CONNECT_TIMEOUT)
                .redirect(redirect::Policy::none())
                .no_proxy()
                // A kept connection would go on to an address that was checked long ago.
                .pool_max_idle_per_host(0)
                .dns_resolver(Resolver {
                    reach,
                    lookups: Arc::new(Semaphore::new(LOOKUPS_MAX)),
                })
                .user_agent(concat!("lightcone/", env!("CARGO_PKG_VERSION")))
                .build()
                .map_err(|error| Error::HttpClient(error.to_string()))
        };
        Ok(OutgoingHttp {
            public: client(Reach::Public)?,
            any: client(Reach::Any)?,
        })
    }

    /// The body of the answer 200.
    pub(crate) async fn get(
        &self,
        url: Url,
        reach: Reach,
        bytes_max: usize,
    ) -> Result<Vec<u8>, OutgoingError> {
        let client = match reach {
            Reach::Public => &self.public,
            Reach::Any => &self.any,
        };
        // Names are checked by the resolver, which addresses do not pass.
        if let Some(address) = literal_address(&url)? {
            if reach == Reach::Public && !address::is_public(address) {
                return Err(OutgoingError::NotPublic {
                    host: address.to_string(),
                });
            }
        }
        let response = client.get(url).send().await?;
        let status = response.status();
        if status != StatusCode::OK {
            let hint = match status.is_redirection() {
                true => "; redirects are not followed",
                false => "",
            };
            return Err(OutgoingError::Status { status, hint });
        }
        let mut body = Vec::new();
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk?;
            if body.len() + chunk.len() > bytes_max {
                return Err(OutgoingError::TooLarge { bytes_max });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}

/// The host of a URL, if it is an address.
pub(crate) fn literal_address(url: &Url) -> Result<Option<IpAddr>, OutgoingError> {
    let host = url.host_str().ok_or(OutgoingError::NoHost)?;
    Ok(host.trim_matches(['[', ']']).parse().ok())
}

/// Looks names up and leaves out what is not to be reached.
struct Resolver {
    reach: Reach,
    /// A look-up occupies a thread until the system gives up, which may be long after the request.
    lookups: Arc<Semaphore>,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (reach, lookups) = (self.reach, self.lookups.clone());
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let permit = lookups.acquire_owned().await?;
            let found = tokio::task::spawn_blocking(move || {
                let found = (name.as_str(), 0).to_socket_addrs();
                drop(permit);
                found
            });
            let addresses = reachable(found.await??, reach);
            if addresses.is_empty() {
                return Err(Box::new(OutgoingError::NoPublicAddress { host }).into());
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

fn reachable(found: impl Iterator<Item = SocketAddr>, reach: Reach) -> Vec<SocketAddr> {
    found
        .filter(|address| reach == Reach::Any || address::is_public(address.ip()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_of_a_name_are_left_out() {
        let found: Vec<SocketAddr> = ["127.0.0.1:0", "1.1.1.1:0", "[fe80::1]:0"]
            .iter()
            .map(|text| text.parse().expect("an address"))
            .collect();
        assert_eq!(reachable(found.iter().copied(), Reach::Public), [found[1]]);
        assert_eq!(reachable(found.iter().copied(), Reach::Any), found);
    }

    #[tokio::test]
    async fn a_name_of_this_machine_is_not_asked() {
        let http = OutgoingHttp::new().expect("a client");
        for host in [
            "localhost",
            "127.0.0.1",
            "2130706433",
            "0x7f.1",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "0",
        ] {
            // The port of nothing: a connection would fail with another error.
            let url = Url::parse(&format!("http://{host}:9/")).expect("a URL");
            let error = http
                .get(url, Reach::Public, 10)
                .await
                .expect_err(host)
                .to_string();
            assert!(error.contains("of the public internet"), "{host}: {error}");
        }
    }
}
