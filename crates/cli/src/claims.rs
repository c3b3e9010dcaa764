//! What a token says of itself. Its signature is the server's business.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use base64::Engine;
use lightcone_types::Identity;

use crate::error::{Error, Result};

/// What stands in a token.
pub fn claims_of(token: &str) -> Result<serde_json::Value> {
    let payload = token.split('.').nth(1);
    let payload = payload.ok_or_else(|| unusable("it is not a JSON Web Token"))?;
    // Tokens are base64url; servers that the reference tools can log in to keep to the common part of both alphabets.
    let bytes = URL_SAFE_NO_PAD
        .decode(payload)
        .or_else(|_| STANDARD_NO_PAD.decode(payload))
        .map_err(|_| unusable("its claims are not base64"))?;
    serde_json::from_slice(&bytes).map_err(|_| unusable("its claims are not JSON"))
}

fn unusable(why: &str) -> Error {
    coded!(
        "LC0606",
        "the stored token is not usable: {why}. `spacetime logout` forgets it; then log in again."
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
        let value = claims[key].as_str();
        let value = value.filter(|v| !v.is_empty() && v.len() <= 128);
        let why = || format!("the claim `{key}` must be a text of 1 to 128 bytes");
        value.ok_or_else(|| unusable(&why()))
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
pub fn beginning_of(token: &str) -> Option<u64> {
    claims_of(token).ok()?.get("iat")?.as_u64()
}

/// Now, as tokens tell the time.
pub fn now_seconds() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identity_comes_from_the_claims() {
        let claims = URL_SAFE_NO_PAD.encode(r#"{"sub":"ann","iss":"localhost","iat":1}"#);
        let identity = identity_of(&format!("e30.{claims}.c2ln")).expect("a good token");
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
