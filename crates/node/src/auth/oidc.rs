//! Public keys of foreign token issuers, found by OpenID Connect discovery (06 §3.4).
//!
//! Requests go only to issuers that the operator has named, to each one at a time: an unchecked token chooses among them, and
//! nothing else.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lightcone_outbound::{Outbound, OutboundOptions, Reach, Url};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::claims::TokenError;
use super::issuer;
use super::key_set::KeySet;
use crate::config::Auth;
use crate::error::Error;

const REFRESH_AFTER: Duration = Duration::from_secs(300);
const EXPIRE_AFTER: Duration = Duration::from_secs(7200);
/// A failed fetch is not repeated sooner.
const RETRY_AFTER: Duration = Duration::from_secs(30);
/// For both requests to an issuer together.
const FETCH_TIMEOUT: Duration = Duration::from_secs(8);
const RESPONSE_BYTES_MAX: usize = 256 * 1024;
/// A token may name a key that its issuer has made since its keys were fetched: they are fetched again, but not sooner after the
/// last time.
const REFRESH_FOR_NEW_KEY_AFTER: Duration = Duration::from_secs(10);
/// What the log repeats of why something failed: the words may be a stranger's.
const REASON_CHARS_MAX: usize = 300;

/// Fetches and remembers key sets.
pub struct OidcClient {
    http: Arc<Outbound>,
    /// Those of the configuration.
    listed: HashMap<String, Arc<Issuer>>,
    /// From files that the configuration names: no request goes to their issuers.
    pinned: HashMap<String, Arc<KeySet>>,
}

/// What is known of one issuer.
struct Issuer {
    url: Url,
    keys: Mutex<Keys>,
    /// One request at a time; all others wait for what it finds.
    turn: Arc<Semaphore>,
}

#[derive(Default)]
struct Keys {
    set: Option<(Arc<KeySet>, Instant)>,
    failed_at: Option<Instant>,
}

#[derive(serde::Deserialize)]
struct Discovery {
    #[serde(default)]
    issuer: Option<String>,
    jwks_uri: String,
}

impl OidcClient {
    /// The issuers were checked when the configuration was read.
    pub fn new(auth: &Auth) -> Result<OidcClient, Error> {
        let listed = auth.foreign_issuers.listed().iter().filter_map(|text| {
            let url = issuer::parse(text).ok()?;
            Some((text.clone(), Issuer::new(url)))
        });
        let files = auth.keys.iter();
        let keys = files.map(|(name, path)| Ok((name.clone(), pinned(name, path)?)));
        let http = Outbound::new(OutboundOptions::current());
        Ok(OidcClient {
            listed: listed.collect(),
            pinned: keys.collect::<Result<_, Error>>()?,
            http: Arc::new(http.map_err(|error| Error::HttpClient(error.to_string()))?),
        })
    }

    /// The keys of an issuer that a token names.
    pub(super) async fn keys_of(&self, name: &str) -> Result<Arc<KeySet>, TokenError> {
        if let Some(pinned) = self.pinned.get(name) {
            return Ok(pinned.clone());
        }
        let listed = self.listed.get(name);
        let issuer = listed.ok_or_else(|| TokenError::IssuerNotAccepted(name.to_owned()))?;
        let no_keys = || TokenError::IssuerKey(name.to_owned());
        if let Some(known) = self.remembered(issuer) {
            return known.ok_or_else(no_keys);
        }
        // Never closed.
        let _turn = issuer.turn.acquire().await.map_err(|_| no_keys())?;
        // The request before this one may have found them.
        if let Some(known) = self.remembered(issuer) {
            return known.ok_or_else(no_keys);
        }
        issuer.fetch(&self.http).await.ok_or_else(no_keys)
    }

    /// The keys of an issuer again, when a token names one that is not among `known`. None: there are no newer ones.
    pub(super) async fn newer_keys_of(
        &self,
        name: &str,
        known: &Arc<KeySet>,
    ) -> Option<Arc<KeySet>> {
        let issuer = self.listed.get(name)?;
        let _turn = issuer.turn.acquire().await.ok()?;
        let (newest, failed_at) = {
            let keys = issuer.keys.lock();
            (keys.set.clone(), keys.failed_at)
        };
        let (newest, fetched_at) = newest?;
        if !Arc::ptr_eq(&newest, known) {
            return Some(newest);
        }
        let asked_at = failed_at.map_or(fetched_at, |at| at.max(fetched_at));
        if asked_at.elapsed() < REFRESH_FOR_NEW_KEY_AFTER {
            return None;
        }
        issuer.fetch(&self.http).await
    }

    /// `Some(None)`: failed a moment ago. Starts a refresh in the background when the keys are old.
    fn remembered(&self, issuer: &Arc<Issuer>) -> Option<Option<Arc<KeySet>>> {
        let keys = issuer.keys.lock();
        let failed = keys.failed_at.is_some_and(|at| at.elapsed() < RETRY_AFTER);
        let is_usable = |(_, fetched_at): &&(_, Instant)| fetched_at.elapsed() < EXPIRE_AFTER;
        let Some((set, fetched_at)) = keys.set.as_ref().filter(is_usable) else {
            return failed.then_some(None);
        };
        let is_old = fetched_at.elapsed() >= REFRESH_AFTER;
        if is_old && !failed {
            if let Ok(turn) = issuer.turn.clone().try_acquire_owned() {
                let (http, issuer) = (self.http.clone(), issuer.clone());
                tokio::spawn(async move {
                    issuer.fetch(&http).await;
                    drop(turn);
                });
            }
        }
        Some(Some(set.clone()))
    }
}

async fn get(http: &Outbound, url: Url, reach: Reach) -> Result<Vec<u8>, String> {
    let shown = url.to_string();
    let body = http.get(url, reach, RESPONSE_BYTES_MAX).await;
    body.map_err(|error| format!("{shown}: {error}"))
}

/// The keys in a file of the configuration.
fn pinned(name: &str, path: &Path) -> Result<Arc<KeySet>, Error> {
    let wrong = |reason: String| Error::IssuerKeys {
        issuer: name.to_owned(),
        path: path.to_owned(),
        reason,
    };
    let file = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    Ok(Arc::new(KeySet::pinned(&file).map_err(wrong)?))
}

fn shown(reason: &str) -> String {
    let reason: String = reason.chars().take(REASON_CHARS_MAX).collect();
    reason.escape_debug().to_string()
}

impl Issuer {
    fn new(url: Url) -> Arc<Issuer> {
        Arc::new(Issuer {
            url,
            keys: Mutex::default(),
            turn: Arc::new(Semaphore::new(1)),
        })
    }

    /// Asks the issuer, and remembers what came of it. The caller has its turn.
    async fn fetch(&self, http: &Outbound) -> Option<Arc<KeySet>> {
        let found = tokio::time::timeout(FETCH_TIMEOUT, self.discover(http)).await;
        let found = found.unwrap_or_else(|_| Err("it does not answer in time".into()));
        let mut keys = self.keys.lock();
        match found {
            Ok(set) => {
                let set = Arc::new(set);
                keys.set = Some((set.clone(), Instant::now()));
                keys.failed_at = None;
                Some(set)
            }
            Err(reason) => {
                let (issuer, reason) = (self.url.as_str(), shown(&reason));
                tracing::warn!(issuer, reason, "cannot get the keys of a token issuer");
                keys.failed_at = Some(Instant::now());
                None
            }
        }
    }

    async fn discover(&self, http: &Outbound) -> Result<KeySet, String> {
        let base = self.url.as_str().trim_end_matches('/');
        let address = format!("{base}/.well-known/openid-configuration");
        let url = Url::parse(&address).map_err(|error| error.to_string())?;
        let discovery = get(http, url, Reach::Any).await?;
        let discovery: Discovery =
            serde_json::from_slice(&discovery).map_err(|error| error.to_string())?;
        // An issuer that names another one is not used for that one's keys (OpenID Connect Discovery §4.3).
        let says = discovery.issuer.as_deref();
        if says.is_some_and(|says| says.trim_end_matches('/') != base) {
            return Err("its configuration is that of another issuer".into());
        }
        let (url, reach) = self.keys_address(&discovery.jwks_uri)?;
        KeySet::published(&get(http, url, reach).await?)
    }

    /// Where the keys are, and how far the request for them may go: what the operator has allowed is the issuer's host, and no
    /// other one that it points to.
    fn keys_address(&self, text: &str) -> Result<(Url, Reach), String> {
        let url = Url::parse(text).map_err(|error| format!("jwks_uri is not a URL: {error}"))?;
        let is_same_host = url.host_str() == self.url.host_str();
        let is_same_scheme = is_same_host && url.scheme() == self.url.scheme();
        if url.scheme() != "https" && !is_same_scheme {
            return Err("jwks_uri does not begin with https://".into());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("jwks_uri has a user name or password".into());
        }
        let reach = match is_same_host {
            true => Reach::Any,
            false => Reach::Public,
        };
        Ok((url, reach))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_keys_may_lie() {
        let listed = |text| Issuer::new(issuer::parse(text).expect(text));
        let local = listed("http://127.0.0.1:8080/a");
        let reach =
            |issuer: &Issuer, text: &str| issuer.keys_address(text).ok().map(|(_, reach)| reach);
        assert_eq!(
            reach(&local, "http://127.0.0.1:9090/keys"),
            Some(Reach::Any)
        );
        assert_eq!(
            reach(&local, "https://keys.example/keys?a=b"),
            Some(Reach::Public)
        );
        assert_eq!(reach(&local, "http://127.0.0.2/keys"), None);
        assert_eq!(reach(&local, "http://169.254.169.254/keys"), None);
        assert_eq!(reach(&local, "file:///etc/passwd"), None);
        assert_eq!(reach(&local, "https://a:b@127.0.0.1/keys"), None);
        let remote = listed("https://auth.example.com");
        assert_eq!(
            reach(&remote, "https://auth.example.com/keys"),
            Some(Reach::Any)
        );
        assert_eq!(reach(&remote, "http://auth.example.com/keys"), None);
        assert_eq!(
            reach(&remote, "https://127.0.0.1/keys"),
            Some(Reach::Public)
        );
    }
}
