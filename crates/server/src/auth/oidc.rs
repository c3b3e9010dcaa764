//! Public keys of foreign token issuers, found by OpenID Connect discovery (06 §3.4).
//!
//! The issuer's address comes out of an unverified token, so everything here is bounded: time, bytes, redirects,
//! parallel requests, and the number of issuers remembered.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use jsonwebtoken::jwk::JwkSet;
use tokio::sync::Semaphore;

use crate::error::Error;

const REFRESH_AFTER: Duration = Duration::from_secs(300);
const EXPIRE_AFTER: Duration = Duration::from_secs(7200);
/// A failed fetch is not repeated sooner.
const RETRY_AFTER: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const RESPONSE_BYTES_MAX: usize = 1024 * 1024;
const KEYS_MAX: usize = 256;
const ISSUERS_MAX: usize = 1024;
const PARALLEL_FETCHES_MAX: usize = 16;

/// Fetches and remembers key sets.
#[derive(Clone)]
pub struct OidcClient {
    inner: Arc<Inner>,
}

struct Inner {
    http: reqwest::Client,
    fetches: Semaphore,
    issuers: Mutex<HashMap<String, Entry>>,
}

#[derive(Clone)]
struct Entry {
    /// `None` after a failure.
    keys: Option<Arc<JwkSet>>,
    fetched_at: Instant,
    refreshing: bool,
}

#[derive(serde::Deserialize)]
struct Discovery {
    jwks_uri: String,
}

impl OidcClient {
    pub fn new() -> Result<OidcClient, Error> {
        let http = reqwest::Client::builder()
            .timeout(REQUEST_TIMEOUT)
            .connect_timeout(REQUEST_TIMEOUT)
            .redirect(reqwest::redirect::Policy::limited(3))
            .pool_max_idle_per_host(1)
            .user_agent(concat!("lightcone/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| Error::HttpClient(error.to_string()))?;
        Ok(OidcClient {
            inner: Arc::new(Inner {
                http,
                fetches: Semaphore::new(PARALLEL_FETCHES_MAX),
                issuers: Mutex::new(HashMap::new()),
            }),
        })
    }

    /// The keys of an issuer, or `None` when they cannot be had.
    pub(super) async fn keys_of(&self, issuer: &str) -> Option<Arc<JwkSet>> {
        if let Some(known) = self.remembered(issuer) {
            return known;
        }
        let keys = self.inner.fetch(issuer).await;
        self.inner.remember(issuer, keys.clone());
        keys
    }

    /// `Some(None)`: failed a moment ago. Starts a refresh in the background when the keys are old.
    fn remembered(&self, issuer: &str) -> Option<Option<Arc<JwkSet>>> {
        let mut issuers = self.inner.lock();
        let entry = issuers.get_mut(issuer)?;
        let age = entry.fetched_at.elapsed();
        let Some(keys) = entry.keys.clone() else {
            return (age < RETRY_AFTER).then_some(None);
        };
        if age >= EXPIRE_AFTER {
            return None;
        }
        if age >= REFRESH_AFTER && !entry.refreshing {
            entry.refreshing = true;
            let (inner, issuer) = (self.inner.clone(), issuer.to_owned());
            tokio::spawn(async move {
                match inner.fetch(&issuer).await {
                    Some(keys) => inner.remember(&issuer, Some(keys)),
                    None => {
                        if let Some(entry) = inner.lock().get_mut(&issuer) {
                            entry.refreshing = false;
                        }
                    }
                }
            });
        }
        Some(Some(keys))
    }
}

impl Inner {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Entry>> {
        self.issuers
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn remember(&self, issuer: &str, keys: Option<Arc<JwkSet>>) {
        let mut issuers = self.lock();
        if issuers.len() >= ISSUERS_MAX && !issuers.contains_key(issuer) {
            issuers.retain(|_, entry| {
                entry.keys.is_some() && entry.fetched_at.elapsed() < EXPIRE_AFTER
            });
            if issuers.len() >= ISSUERS_MAX {
                issuers.clear();
            }
        }
        issuers.insert(
            issuer.to_owned(),
            Entry {
                keys,
                fetched_at: Instant::now(),
                refreshing: false,
            },
        );
    }

    async fn fetch(&self, issuer: &str) -> Option<Arc<JwkSet>> {
        let _permit = self.fetches.acquire().await.ok()?;
        let found = tokio::time::timeout(2 * REQUEST_TIMEOUT, self.discover(issuer)).await;
        match found {
            Ok(Ok(keys)) => Some(Arc::new(keys)),
            Ok(Err(reason)) => {
                tracing::warn!(issuer, reason, "cannot get the keys of a token issuer");
                None
            }
            Err(_) => {
                tracing::warn!(issuer, "timeout while getting the keys of a token issuer");
                None
            }
        }
    }

    async fn discover(&self, issuer: &str) -> Result<JwkSet, String> {
        let base = issuer.trim_end_matches('/');
        if !(base.starts_with("https://") || base.starts_with("http://")) {
            return Err("the issuer is not an http or https address".into());
        }
        let discovery = self
            .get(&format!("{base}/.well-known/openid-configuration"))
            .await?;
        let discovery: Discovery =
            serde_json::from_slice(&discovery).map_err(|error| error.to_string())?;
        let key_set = self.get(&discovery.jwks_uri).await?;
        let key_set: JwkSet =
            serde_json::from_slice(&key_set).map_err(|error| error.to_string())?;
        if key_set.keys.len() > KEYS_MAX {
            return Err(format!("more than {KEYS_MAX} keys"));
        }
        if key_set.keys.iter().any(|key| key.common.key_id.is_none()) {
            return Err("a key has no kid".into());
        }
        Ok(key_set)
    }

    async fn get(&self, url: &str) -> Result<Vec<u8>, String> {
        let response = self
            .http
            .get(url)
            .send()
            .await
            .map_err(|error| error.to_string())?;
        let response = response
            .error_for_status()
            .map_err(|error| error.to_string())?;
        let mut body = Vec::new();
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| error.to_string())?;
            if body.len() + chunk.len() > RESPONSE_BYTES_MAX {
                return Err(format!("more than {RESPONSE_BYTES_MAX} bytes"));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}
