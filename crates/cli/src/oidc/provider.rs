//! A provider: what it says of itself, requests to it, and what its tokens must say.

use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::redirect::Policy;
use reqwest::{RequestBuilder, StatusCode, Url};
use serde_json::Value;

use crate::address::is_loopback;
use crate::claims::{claims_of, now_seconds};
use crate::error::{Error, Result};
use crate::http::encode;

/// For one request, from its beginning to the last byte of the answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const ANSWER_BYTES_MAX: usize = 256 * 1024;
/// Longer tokens are refused by servers.
const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// How far the clocks may differ.
const LEEWAY_SECONDS: i64 = 60;

/// Where to log in, and how.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The issuer's address.
    pub issuer: &'a str,
    /// The name under which the provider knows this program.
    pub client_id: &'a str,
    pub scope: &'a str,
    /// Where the browser comes back to; any port if there is none.
    pub callback_port: Option<u16>,
    /// The user has no browser here.
    pub device: bool,
    pub open_browser: bool,
}

pub(super) struct Provider {
    /// As it calls itself, which its tokens must do too.
    pub issuer: String,
    http: reqwest::Client,
    document: Value,
}

pub(super) enum Answer {
    Ok(Value),
    /// The `error` of OAuth 2.0, with its description.
    Refused(String, String),
}

impl Answer {
    pub fn accepted(self) -> Result<Value> {
        match self {
            Self::Ok(answer) => Ok(answer),
            Self::Refused(error, description) => Err(refused(format!("{error}: {description}"))),
        }
    }
}

impl Provider {
    /// Asks a provider about itself (OpenID Connect Discovery 1.0).
    pub async fn discover(address: &str) -> Result<Provider> {
        let base = address.trim_end_matches('/');
        check_address(base).map_err(|why| unusable(address, why))?;
        let mut http = reqwest::Client::builder()
            .http1_only()
            .user_agent(concat!("spacetimedb-cli/", env!("CARGO_PKG_VERSION")))
            .timeout(REQUEST_TIMEOUT)
            // A code or a token goes where the provider said, and nowhere else.
            .redirect(Policy::none());
        if is_loopback(base) {
            http = http.no_proxy();
        }
        let http = http
            .build()
            .map_err(caused!("LC0602", "cannot set up an HTTP client"))?;
        let request = http.get(format!("{base}/.well-known/openid-configuration"));
        let (status, text) = ask(request).await?;
        if status != StatusCode::OK {
            let why = format!("it has no OpenID Connect configuration ({status})");
            return Err(unusable(address, why));
        }
        let document: Value = serde_json::from_str(&text)
            .map_err(|_| unusable(address, "its OpenID Connect configuration is not JSON"))?;
        let issuer = document["issuer"].as_str().unwrap_or_default().to_owned();
        if issuer.trim_end_matches('/') != base {
            let why = format!("it says that it is {}", printable(&issuer));
            return Err(unusable(address, why));
        }
        Ok(Provider {
            issuer,
            http,
            document,
        })
    }

    /// Has it such an endpoint?
    pub fn has(&self, endpoint: &str) -> bool {
        self.document[endpoint].is_string()
    }

    /// The address of an endpoint, as secure as the provider's own.
    pub fn endpoint(&self, name: &str) -> Result<Url> {
        let checked = match self.document[name].as_str() {
            Some(text) => self
                .checked(text)
                .map_err(|why| format!("its `{name}`: {why}")),
            None => Err(format!("it has no `{name}`")),
        };
        checked.map_err(|why| unusable(&self.issuer, why))
    }

    /// Reads an address that the provider has named.
    pub fn checked(&self, text: &str) -> std::result::Result<Url, String> {
        let url = check_address(text)?;
        if is_loopback(url.as_str()) && !is_loopback(&self.issuer) {
            return Err("it leads to this machine".to_owned());
        }
        Ok(url)
    }

    /// Asks an endpoint (RFC 6749 §5).
    pub async fn post(&self, endpoint: &str, pairs: &[(&str, &str)]) -> Result<Answer> {
        let (status, text) = ask(self.form_request(endpoint, pairs)?).await?;
        let value: Value = serde_json::from_str(&text)
            .map_err(|_| refused(format!("{status}, and what it says is not JSON")))?;
        if status.is_success() {
            return Ok(Answer::Ok(value));
        }
        let word = |name: &str| printable(value[name].as_str().unwrap_or_default());
        Ok(Answer::Refused(word("error"), word("error_description")))
    }

    /// Tells an endpoint something that has no answer but yes or no.
    pub async fn tell(&self, endpoint: &str, pairs: &[(&str, &str)]) -> Result<()> {
        let (status, _) = ask(self.form_request(endpoint, pairs)?).await?;
        match status.is_success() {
            true => Ok(()),
            false => Err(refused(status)),
        }
    }

    fn form_request(&self, endpoint: &str, pairs: &[(&str, &str)]) -> Result<RequestBuilder> {
        Ok(self
            .http
            .post(self.endpoint(endpoint)?)
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(form(pairs)))
    }

    /// The ID token in the answer of the token endpoint.
    pub fn id_token(&self, answer: &Value) -> Result<String> {
        let Some(token) = answer["id_token"].as_str() else {
            let why = "its answer has no ID token; the scope must have the word `openid`";
            return Err(refused(why));
        };
        let is_token = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if token.len() > TOKEN_BYTES_MAX || !token.chars().all(is_token) {
            return Err(refused("its ID token is none that a server would take"));
        }
        Ok(token.to_owned())
    }

    /// The refresh token in the same answer, if there is one.
    pub fn refresh_token(&self, answer: &Value) -> Result<Option<String>> {
        let Some(token) = answer["refresh_token"].as_str() else {
            return Ok(None);
        };
        let is_token = |c: char| c == ' ' || c.is_ascii_graphic();
        if token.is_empty() || token.len() > TOKEN_BYTES_MAX || !token.chars().all(is_token) {
            return Err(refused("its refresh token is none"));
        }
        Ok(Some(token.to_owned()))
    }

    /// What an ID token must say to a program that has it from the provider itself (OpenID Connect Core 1.0 §3.1.3.7). Its
    /// signature is the server's business.
    pub fn check_token(&self, token: &str, client_id: &str, nonce: Option<&str>) -> Result<()> {
        let claims = claims_of(token).map_err(|_| refused("its ID token cannot be read"))?;
        let is_for_us = match &claims["aud"] {
            Value::String(audience) => audience == client_id,
            Value::Array(all) => all.iter().any(|audience| audience == client_id),
            _ => false,
        };
        let (ends, now) = (claims["exp"].as_i64(), now_seconds() as i64);
        let why = if claims["iss"] != *self.issuer {
            "its ID token is another issuer's"
        } else if !is_for_us {
            "its ID token is for another program"
        } else if nonce.is_some_and(|nonce| claims["nonce"] != *nonce) {
            "its ID token is not the answer to this login"
        } else if ends.is_none_or(|ends| ends < now - LEEWAY_SECONDS) {
            "its ID token has ended already"
        } else {
            return Ok(());
        };
        Err(refused(why))
    }
}

/// Codes and tokens are sent there: encrypted, or without leaving this machine.
fn check_address(text: &str) -> std::result::Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("it is not a URL: {error}"))?;
    let is_safe = url.scheme() == "https" || (url.scheme() == "http" && is_loopback(text));
    if !is_safe || !url.has_host() {
        return Err("it must begin with https:// (http:// only on this machine)".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it must have no user name and no password".to_owned());
    }
    Ok(url)
}

async fn ask(request: RequestBuilder) -> Result<(StatusCode, String)> {
    let broken = |error: reqwest::Error| {
        let text = "the conversation with the provider failed";
        Error::caused("LC0602", text, error.without_url())
    };
    let mut response = request.send().await.map_err(broken)?;
    let status = response.status();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        body.extend_from_slice(&chunk);
        if body.len() > ANSWER_BYTES_MAX {
            let why = format!("its answer has more than {ANSWER_BYTES_MAX} bytes");
            return Err(refused(why));
        }
    }
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

pub(super) fn refused(why: impl std::fmt::Display) -> Error {
    coded!("LC0872", "the provider did not log you in: {why}")
}

pub(super) fn unusable(issuer: &str, why: impl std::fmt::Display) -> Error {
    coded!("LC0871", "{issuer} cannot be used to log in: {why}")
}

fn form(pairs: &[(&str, &str)]) -> String {
    let pairs = pairs.iter();
    let pairs = pairs.map(|(name, value)| format!("{name}={}", encode(value)));
    pairs.collect::<Vec<_>>().join("&")
}

/// A provider's words for a terminal: none of them moves the cursor or takes the screen.
pub(super) fn printable(text: &str) -> String {
    const CHARACTERS_MAX: usize = 300;
    let shown: String = text.chars().take(CHARACTERS_MAX).collect();
    shown.replace(char::is_control, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use base64::Engine as _;
    use serde_json::json;

    fn provider() -> Provider {
        Provider {
            issuer: "https://auth.example".to_owned(),
            http: reqwest::Client::new(),
            document: json!({
                "token_endpoint": "https://tokens.example/t",
                "plain": "http://auth.example/t",
                "local": "https://127.0.0.1/t",
                "script": "javascript:alert(1)",
            }),
        }
    }

    #[test]
    fn endpoints_are_as_secure_as_the_provider() {
        let provider = provider();
        assert!(provider.endpoint("token_endpoint").is_ok());
        for name in ["plain", "local", "script", "nothing"] {
            let error = provider.endpoint(name).expect_err(name).to_string();
            assert!(
                error.contains(name) && error.contains("[LC0871]"),
                "{error}"
            );
        }
        for text in [
            "http://auth.example",
            "ftp://127.0.0.1",
            "https://a:b@auth.example",
            "x",
        ] {
            assert!(check_address(text).is_err(), "{text}");
        }
        assert!(check_address("http://localhost:1/x").is_ok());
    }

    #[test]
    fn a_token_must_be_ours() {
        let provider = provider();
        let good = json!({
            "iss": "https://auth.example", "aud": "cli", "nonce": "n", "exp": now_seconds() + 60, "sub": "ann",
        });
        let check = |claims: &Value| {
            let payload = URL_SAFE_NO_PAD.encode(claims.to_string());
            let token = format!("e30.{payload}.c2ln");
            provider.check_token(&token, "cli", Some("n"))
        };
        check(&good).expect("good");
        for (name, value) in [
            ("iss", json!("https://auth.example/")),
            ("aud", json!("other")),
            ("aud", json!(["other"])),
            ("aud", json!(null)),
            ("nonce", json!("m")),
            ("nonce", json!(null)),
            ("exp", json!(now_seconds() - 100)),
            ("exp", json!(null)),
        ] {
            let mut claims = good.clone();
            claims[name] = value;
            assert!(check(&claims).is_err(), "{claims}");
        }
        assert!(provider.check_token("x", "cli", None).is_err());
        let answer = json!({ "id_token": "a.b\r\nx: y.c" });
        assert!(provider.id_token(&answer).is_err());
        assert_eq!(provider.refresh_token(&answer).expect("none"), None);
        for wrong in ["", "a\nb", "é"] {
            let answer = json!({ "refresh_token": wrong });
            assert!(provider.refresh_token(&answer).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn forms_and_words() {
        assert_eq!(
            form(&[("a", "b c"), ("d", "é&=")]),
            "a=b%20c&d=%C3%A9%26%3D"
        );
        assert_eq!(printable("a\u{1b}[2Jb\n"), "a\u{fffd}[2Jb\u{fffd}");
    }
}
