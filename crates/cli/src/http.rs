//! Requests to a server, and what the command line expects of the answers (07 §4.3).

use percent_encoding::{utf8_percent_encode, AsciiSet, NON_ALPHANUMERIC};
use reqwest::header::CONTENT_TYPE;
use reqwest::redirect::Policy;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::Value;

use lightcone_types::{error_code, Identity};

use crate::address::{is_loopback, origin};
use crate::error::{Error, Result};
use crate::progress::Progress;

/// One server, and who talks to it.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    token: Option<String>,
}

impl Client {
    /// `base` is the server's URL without a trailing slash.
    pub fn new(base: String, token: Option<String>) -> Result<Self> {
        let is_bound = token.is_some();
        Self::build(base, token, is_bound)
    }

    /// A client that gets a login before it sends anything else ([`Self::with_token`]).
    pub fn before_login(base: String) -> Result<Self> {
        Self::build(base, None, true)
    }

    pub fn with_token(self, token: String) -> Self {
        Self {
            token: Some(token),
            ..self
        }
    }

    /// One that is bound follows no redirect to another origin.
    fn build(base: String, token: Option<String>, is_bound: bool) -> Result<Self> {
        // An unusable URL is better explained here than by the code that sends the first request.
        let bad = match reqwest::Url::parse(&base) {
            Ok(url) if url.has_host() => None,
            Ok(_) => Some("it has no host".to_owned()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(why) = bad {
            bail!(
                "LC0627",
                "`{base}` is not the URL of a server: {why}. It looks like http://127.0.0.1:3000."
            );
        }
        let mut http = reqwest::Client::builder()
            .http1_only()
            .user_agent(concat!("spacetimedb-cli/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(std::time::Duration::from_secs(10))
            // A build may take minutes between two requests, and servers end connections that are idle.
            .pool_idle_timeout(std::time::Duration::from_secs(5));
        // A proxy for the network has no business in what stays on this machine.
        if is_loopback(&base) {
            http = http.no_proxy();
        }
        if is_bound {
            http = http.redirect(within(origin(&base)));
        }
        let http = http
            .build()
            .map_err(caused!("LC0602", "cannot set up an HTTP client"))?;
        Ok(Self { http, base, token })
    }

    pub fn base(&self) -> &str {
        &self.base
    }

    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// A request to a path that begins with `/`, with the credentials.
    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    pub fn get(&self, path: &str) -> RequestBuilder {
        self.request(Method::GET, path)
    }

    pub fn post(&self, path: &str) -> RequestBuilder {
        self.request(Method::POST, path)
    }

    pub fn put(&self, path: &str) -> RequestBuilder {
        self.request(Method::PUT, path)
    }

    pub fn patch(&self, path: &str) -> RequestBuilder {
        self.request(Method::PATCH, path)
    }

    pub fn delete(&self, path: &str) -> RequestBuilder {
        self.request(Method::DELETE, path)
    }

    /// Sends a request; a failure to reach the server says which one and what to try.
    pub async fn send(&self, request: RequestBuilder) -> Result<Response> {
        let _progress = Progress::start(format!("Waiting for {}", self.base));
        request.send().await.map_err(|e| self.unreachable(e))
    }

    /// The JSON of a successful answer; the body of any other is the error.
    pub async fn json(&self, request: RequestBuilder) -> Result<String> {
        success_json(self.send(request).await?).await
    }

    /// The same in `serde_json`'s form ([`parse_json`]).
    pub async fn value(&self, request: RequestBuilder) -> Result<Value> {
        parse_json(&self.json(request).await?)
    }

    /// The body of a successful answer; the body of any other is the error.
    pub async fn text(&self, request: RequestBuilder) -> Result<String> {
        success_text(self.send(request).await?).await
    }

    pub fn unreachable(&self, error: reqwest::Error) -> Error {
        let source = std::error::Error::source(&error);
        if let Some(Elsewhere(target)) = source.and_then(|e| e.downcast_ref()) {
            return coded!(
                "LC0862",
                "the server at {} sends you to {target}, which does not get the login for {0}. If that is where the server is, \
                 name it with --server {target}.",
                self.base,
            );
        }
        let advice = match is_local(&self.base) {
            true => "Is it running? `spacetime start` starts one.",
            false => "Is the address right? `spacetime server list` shows the saved servers.",
        };
        let what = match error.is_connect() || error.is_timeout() {
            true => "cannot reach",
            false => "the conversation broke with",
        };
        let text = format!("{what} the server at {}. {advice}", self.base);
        // The URL is in the message already.
        Error::caused("LC0602", text, error.without_url())
    }

    /// The identity that a database argument stands for.
    pub async fn database_identity(&self, name_or_identity: &str) -> Result<Identity> {
        if let Ok(identity) = Identity::parse_text(name_or_identity) {
            return Ok(identity);
        }
        let (base, name) = (&self.base, encode(name_or_identity));
        // Without the credentials.
        let request = self.http.get(format!("{base}/v1/database/{name}/identity"));
        let response = self.send(request).await?;
        if response.status() == StatusCode::NOT_FOUND {
            bail!(
                "LC0609",
                "failed to find database `{name_or_identity}`.\n`spacetime list` shows your databases on this server ({}).",
                self.base,
            );
        }
        let text = success_text(response).await?;
        let shown = shown(&text);
        Identity::from_hex(text.trim()).map_err(|_| {
            coded!(
                "LC0616",
                "the server answered `{shown}` where an identity belongs"
            )
        })
    }
}

/// A redirect to another origin, which is this one.
#[derive(Debug, thiserror::Error)]
#[error("redirected to {0}")]
struct Elsewhere(String);

/// Follows a server to its own pages only: a login is for one origin.
fn within(base: String) -> Policy {
    let usual = Policy::default();
    Policy::custom(move |attempt| match origin(attempt.url().as_str()) {
        target if target == base => usual.redirect(attempt),
        target => attempt.error(Elsewhere(target)),
    })
}

/// True for a server on this machine, as publish understands it.
pub fn is_local(base: &str) -> bool {
    let url = reqwest::Url::parse(base).ok();
    let host = url.as_ref().and_then(|url| url.host_str());
    matches!(host, Some("localhost" | "127.0.0.1"))
}

/// Percent-encodes everything but ASCII letters, digits, `_` and `-`.
pub fn encode(segment: &str) -> String {
    const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'_').remove(b'-');
    utf8_percent_encode(segment, ENCODED).to_string()
}

/// The body of a successful answer; the body of any other is the error.
pub async fn success_text(response: Response) -> Result<String> {
    let status = response.status();
    success(status, body_text(response).await?)
}

fn success(status: StatusCode, text: String) -> Result<String> {
    match status.is_success() {
        true => Ok(text),
        false => Err(refusal(status, &text)),
    }
}

pub async fn body_text(response: Response) -> Result<String> {
    let url = response.url().origin().ascii_serialization();
    let text = response.text().await.map_err(reqwest::Error::without_url);
    text.map_err(caused!(
        "LC0602",
        "the answer of the server at {url} broke off"
    ))
}

/// The body of an answer that must be JSON.
pub async fn json_text(response: Response) -> Result<String> {
    let status = response.status();
    let kind = response.headers().get(CONTENT_TYPE);
    let is_json = kind.is_some_and(|kind| kind == "application/json");
    let text = body_text(response).await?;
    if is_json {
        return Ok(text);
    }
    if status.is_success() {
        bail!("LC0616", "{status} was success but did not have content-type application/json. Is this a SpacetimeDB-compatible server?");
    }
    Err(refusal(status, &text))
}

/// The body of a successful answer, which is JSON; the body of any other is the error.
pub async fn success_json(response: Response) -> Result<String> {
    let status = response.status();
    success(status, json_text(response).await?)
}

/// The body of an answer, if it comes and is not longer than it should be.
pub async fn short_body(mut response: Response, bytes_max: usize) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await.ok()? {
        body.extend_from_slice(&part);
        if body.len() > bytes_max {
            return None;
        }
    }
    Some(body)
}

/// Parses the JSON of an answer into `serde_json`'s form: for small answers whose numbers are small.
pub fn parse_json(text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(caused!(
        "LC0616",
        "the server's answer is not JSON: `{}`",
        shown(text)
    ))
}

/// What a refusal means for the user.
pub fn refusal(status: StatusCode, body: &str) -> Error {
    let body = body.trim();
    match status {
        // Modules, locks and the server's configuration refuse too, and say why themselves.
        StatusCode::FORBIDDEN if body.is_empty() || body.contains("is not authorized") => coded!(
            "LC0615",
            "{}\n`spacetime login show` says who you are; `spacetime list` shows what is yours. A login is for one address: if \
             this server had another one before, `spacetime server list` may have it.",
            or_status(body, status),
        ),
        StatusCode::FORBIDDEN if error_code(body).is_none() => Error::coded("LC0615", body),
        StatusCode::UNAUTHORIZED => coded!(
            "LC0614",
            "{}\nThe server does not accept your login. `spacetime logout`, then try again, or log in with `spacetime login \
             --server-issued-login <server>`.",
            or_status(body, status),
        ),
        _ => Error::plain(or_status(body, status)),
    }
}

fn or_status(body: &str, status: StatusCode) -> String {
    match body {
        "" => format!("the server answered {status}"),
        body => body.to_owned(),
    }
}

/// Enough of a text to recognise it.
pub fn shown(text: &str) -> String {
    const CHARACTERS_MAX: usize = 200;
    match text.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded() {
        assert_eq!(encode("a-b_C9"), "a-b_C9");
        assert_eq!(encode("a/b é"), "a%2Fb%20%C3%A9");
    }

    #[test]
    fn who_is_refused_is_told_of_logins_only_if_it_is_about_rights() {
        let told = |body| refusal(StatusCode::FORBIDDEN, body).to_string();
        assert!(told("c2 is not authorized to perform action").contains("login show"));
        assert_eq!(told("Database is locked."), "Database is locked. [LC0615]");
        assert_eq!(told("not from here [LC0131]"), "not from here [LC0131]");
    }

    #[test]
    fn local_servers() {
        assert!(is_local("http://127.0.0.1:3000") && is_local("http://localhost"));
        assert!(!is_local("https://example.com") && !is_local("http://localhost.example.com"));
    }

    #[test]
    fn a_server_needs_a_usable_url() {
        for url in ["http://", "nonsense", "http:// x"] {
            let error = Client::new(url.into(), None).expect_err(url).to_string();
            assert!(error.contains("[LC0627]"), "{error}");
        }
    }
}
