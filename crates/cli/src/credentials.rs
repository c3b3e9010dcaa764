//! Who the user is: the stored token, and how to get one (07 §4.2).

mod proof;
mod renewal;

pub use proof::{find, look, Found};
pub use renewal::current;

use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use base64::Engine;
use lightcone_types::Identity;

use crate::commands::login;
use crate::config::{is_loopback, origin, Config, ACCOUNT_HOST};
use crate::error::{Error, Result};
use crate::http::{self, Client};
use crate::output::{remark, Stream};
use crate::prompt;

/// The claims of a token. The signature is the server's business.
fn claims_of(token: &str) -> Result<serde_json::Value> {
    let payload = token
        .split('.')
        .nth(1)
        .ok_or_else(|| unusable("it is not a JSON Web Token"))?;
    // Tokens are base64url; servers that the reference tools can log in to keep to the common part of both alphabets.
    let bytes = URL_SAFE_NO_PAD
        .decode(payload)
        .or_else(|_| STANDARD_NO_PAD.decode(payload))
        .map_err(|_| unusable("its claims are not base64"))?;
    serde_json::from_slice(&bytes).map_err(|_| unusable("its claims are not JSON"))
}

fn unusable(why: &str) -> Error {
    Error::coded(
        "LC0606",
        format!("the stored token is not usable: {why}. `spacetime logout` forgets it; then log in again."),
    )
}

/// Who issued a token, as far as it says so.
pub fn issuer_of(token: &str) -> Option<String> {
    Some(claims_of(token).ok()?.get("iss")?.as_str()?.to_owned())
}

/// The identity in a token's claims.
pub fn identity_of(token: &str) -> Result<Identity> {
    let claims = claims_of(token)?;
    let text = |key: &str| {
        let value = claims
            .get(key)
            .and_then(|v| v.as_str())
            .filter(|v| !v.is_empty() && v.len() <= 128);
        value.ok_or_else(|| {
            unusable(&format!(
                "the claim `{key}` must be a text of 1 to 128 bytes"
            ))
        })
    };
    let identity = Identity::from_claims(text("iss")?, text("sub")?);
    if !claims.get("iat").is_some_and(|v| v.is_i64() || v.is_u64()) {
        return Err(unusable("the claim `iat` must be an integer"));
    }
    match claims.get("hex_identity") {
        Some(hex) if hex.as_str() != Some(&identity.to_hex()) => {
            Err(unusable("its claims contradict each other"))
        }
        _ => Ok(identity),
    }
}

/// When a token ends, in seconds since 1970, if it says so.
pub fn end_of(token: &str) -> Option<u64> {
    claims_of(token).ok()?.get("exp")?.as_u64()
}

/// When a token was made, likewise.
fn beginning_of(token: &str) -> Option<u64> {
    claims_of(token).ok()?.get("iat")?.as_u64()
}

/// A token that nobody has signed.
#[cfg(test)]
pub fn token_for_tests(issuer: &str, subject: &str) -> String {
    let claims = format!(r#"{{"sub":"{subject}","iss":"{issuer}","iat":1}}"#);
    format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims))
}

/// How to get a token when there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenMissing {
    /// Offer the web login first.
    Ask,
    /// Do not ask anything: log in with the target server.
    Direct,
}

const LOGIN_QUESTION: &str =
    "You are not logged in. Would you like to log in with spacetimedb.com?";

/// Asks whether the user wants to log in with the account web site.
pub fn wants_web_login() -> bool {
    prompt::confirm(LOGIN_QUESTION, false)
}

/// The token for the server of this client, or a new one from it.
pub async fn require(config: &mut Config, client: &Client, missing: WhenMissing) -> Result<String> {
    if let Some(token) = find(config, client).await? {
        return Ok(token);
    }
    let url = client.base();
    // A server on this machine knows nobody from that site, and asks nothing for an identity of its own.
    if missing == WhenMissing::Ask && !is_loopback(url) && wants_web_login() {
        return login::web_login(config, Some(url), ACCOUNT_HOST, true, Stream::Remark).await;
    }
    let token = direct_login(url).await?;
    let identity = identity_of(&token)?;
    config.update(|now| now.set_token(url, &token)).await?;
    remark!("We have logged in directly to your target server.");
    remark!("WARNING: This login will NOT work for any other servers.");
    remark!("Logged in with identity {}", identity.to_hex());
    hint_at_other_names(config, url);
    Ok(token)
}

/// `localhost` and `127.0.0.1` are two servers here; whoever mixes them up should hear why he is a stranger.
fn hint_at_other_names(config: &Config, url: &str) {
    let port = |url: &str| reqwest::Url::parse(url).ok()?.port_or_known_default();
    let mut logins = config.logins().into_iter().map(|(origin, _)| origin);
    let other = logins.find(|other| {
        is_loopback(url) && is_loopback(other) && *other != origin(url) && port(other) == port(url)
    });
    if let Some(other) = other {
        remark!("note: you have a login for {other} too, which is not sent to {url}. Name the server the same way each time.");
    }
}

/// Asks the server for a new identity, and gives its token.
pub async fn direct_login(url: &str) -> Result<String> {
    let client = Client::new(url.to_owned(), None)?;
    let response = client.send(client.post("/v1/identity")).await?;
    let status = response.status();
    let text = http::json_text(response).await?;
    if !status.is_success() {
        return Err(http::refusal(status, &text));
    }
    http::parse_json(&text)?
        .get("token")
        .and_then(|v| v.as_str())
        .map(str::to_owned)
        .ok_or_else(|| Error::coded("LC0616", "the server's new identity has no token"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identity_comes_from_the_claims() {
        let identity = identity_of(&token_for_tests("localhost", "ann")).expect("a good token");
        assert_eq!(identity, Identity::from_claims("localhost", "ann"));
    }

    #[test]
    fn bad_tokens_say_why() {
        let encoded = |claims: &str| format!("e30.{}.x", URL_SAFE_NO_PAD.encode(claims));
        for (token, why) in [
            ("nonsense".to_owned(), "not a JSON Web Token"),
            ("a.!!.b".to_owned(), "not base64"),
            (encoded("{"), "not JSON"),
            (encoded(r#"{"iss":"x","iat":1}"#), "`sub`"),
            (encoded(r#"{"iss":"x","sub":"y","iat":1.5}"#), "`iat`"),
            (
                encoded(r#"{"iss":"x","sub":"y","iat":1,"hex_identity":"00"}"#),
                "contradict",
            ),
        ] {
            let error = identity_of(&token).expect_err(&token).to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
