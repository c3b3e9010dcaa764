//! Who the user is: the stored token, and how to get one (07 §4.2).

use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use base64::Engine;
use lightcone_types::Identity;

use crate::config::Config;
use crate::error::{Error, Result};
use crate::http::{self, Client};
use crate::prompt;

/// The identity in a token's claims. The signature is the server's business.
pub fn identity_of(token: &str) -> Result<Identity> {
    let bad = |why: &str| {
        Error::coded("LC0606", format!("the stored token is not usable: {why}. `spacetime logout` forgets it; then log in again."))
    };
    let payload = token
        .split('.')
        .nth(1)
        .ok_or_else(|| bad("it is not a JSON Web Token"))?;
    // Tokens are base64url; servers that the reference tools can log in to keep to the common part of both alphabets.
    let bytes = URL_SAFE_NO_PAD
        .decode(payload)
        .or_else(|_| STANDARD_NO_PAD.decode(payload))
        .map_err(|_| bad("its claims are not base64"))?;
    let claims: serde_json::Value =
        serde_json::from_slice(&bytes).map_err(|_| bad("its claims are not JSON"))?;
    let text = |key: &str| {
        let value = claims
            .get(key)
            .and_then(|v| v.as_str())
            .filter(|v| !v.is_empty() && v.len() <= 128);
        value.ok_or_else(|| {
            bad(&format!(
                "the claim `{key}` must be a text of 1 to 128 bytes"
            ))
        })
    };
    let identity = Identity::from_claims(text("iss")?, text("sub")?);
    if !claims.get("iat").is_some_and(|v| v.is_i64() || v.is_u64()) {
        return Err(bad("the claim `iat` must be an integer"));
    }
    match claims.get("hex_identity") {
        Some(hex) if hex.as_str() != Some(&identity.to_hex()) => {
            Err(bad("its claims contradict each other"))
        }
        _ => Ok(identity),
    }
}

/// Decodes one of several tokens for tests.
#[cfg(test)]
pub fn token_for_tests(subject: &str) -> String {
    let claims = format!(r#"{{"sub":"{subject}","iss":"localhost","iat":1}}"#);
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

/// The stored token, or a new one from the server at `url`.
pub async fn require(config: &mut Config, url: &str, missing: WhenMissing) -> Result<String> {
    if let Some(token) = config.token() {
        return Ok(token.to_owned());
    }
    let question = "You are not logged in. Would you like to log in with spacetimedb.com?";
    if missing == WhenMissing::Ask && prompt::confirm(question, false) {
        return crate::commands::login::web_login(
            config,
            crate::commands::login::DEFAULT_AUTH_HOST,
            true,
        )
        .await;
    }
    let token = direct_login(config, url).await?;
    println!("We have logged in directly to your target server.");
    println!("WARNING: This login will NOT work for any other servers.");
    println!("Logged in with identity {}", identity_of(&token)?.to_hex());
    Ok(token)
}

/// Asks the server for a new identity and keeps its token.
pub async fn direct_login(config: &mut Config, url: &str) -> Result<String> {
    let client = Client::new(url.to_owned(), None)?;
    let response = client.send(client.post("/v1/identity")).await?;
    let status = response.status();
    let text = http::json_text(response).await?;
    if !status.is_success() {
        return Err(http::refusal(status, &text));
    }
    let token = http::parse_json(&text)?
        .get("token")
        .and_then(|v| v.as_str())
        .map(str::to_owned)
        .ok_or_else(|| Error::coded("LC0616", "the server's new identity has no token"))?;
    config.set_token(Some(&token));
    config.save()?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identity_comes_from_the_claims() {
        let identity = identity_of(&token_for_tests("ann")).expect("a good token");
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
