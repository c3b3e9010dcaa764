//! Tokens by which a server vouches for a database that sends a message to another one (06 §5.24).

use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::Engine as _;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use lightcone_types::Identity;
use serde::Deserialize;
use serde_json::json;

use super::claims::{now_seconds, TokenError};
use super::keys::KeyPair;
use super::token;

/// No client has this issuer: its tokens have no subject.
const ISSUER: &str = "spacetimedb-idc-v1";
const LIFETIME_SECONDS: i64 = 60;
/// How far the clock of another server may be ahead.
const AHEAD_SECONDS_MAX: i64 = 60;

#[derive(Deserialize)]
struct MessageClaims {
    iss: String,
    aud: String,
    sender: String,
    iat: i64,
    exp: i64,
}

/// A token for messages of one database to another.
pub(super) fn sign(
    sender: &Identity,
    target: &Identity,
    keys: &KeyPair,
) -> Result<String, TokenError> {
    let now = now_seconds();
    let payload = json!({
        "iss": ISSUER,
        "aud": target.to_hex(),
        "sender": sender.to_hex(),
        "iat": now,
        "exp": now + LIFETIME_SECONDS,
    });
    token::sign(&payload.to_string(), keys)
}

/// The sender that a token for messages to `target` names, if it was signed with the key.
pub(super) fn sender(
    text: &str,
    target: &Identity,
    key: &DecodingKey,
) -> Result<Identity, TokenError> {
    token::header_of(text)?;
    let mut validation = Validation::new(Algorithm::ES256);
    validation.required_spec_claims.clear();
    (validation.validate_exp, validation.validate_aud) = (false, false);
    let data = jsonwebtoken::decode::<MessageClaims>(text, key, &validation);
    let claims = data.map_err(TokenError::invalid)?.claims;
    if claims.iss != ISSUER {
        return Err(TokenError::invalid("InvalidIssuer"));
    }
    if Identity::from_hex(&claims.aud).ok() != Some(*target) {
        return Err(TokenError::invalid("InvalidAudience"));
    }
    let now = now_seconds();
    let lifetime = claims.exp.saturating_sub(claims.iat);
    if claims.exp <= now || !(0..=LIFETIME_SECONDS).contains(&lifetime) {
        return Err(TokenError::invalid("ExpiredSignature"));
    }
    if claims.iat > now.saturating_add(AHEAD_SECONDS_MAX) {
        return Err(TokenError::invalid("ImmatureSignature"));
    }
    Identity::from_hex(&claims.sender).map_err(TokenError::invalid)
}

/// The sender that it names. Nothing is verified.
pub(super) fn claimed_sender(text: &str) -> Option<Identity> {
    let payload = text.split('.').nth(1)?;
    let json = URL_SAFE_NO_PAD.decode(payload).ok()?;
    let claims: MessageClaims = serde_json::from_slice(&json).ok()?;
    Identity::from_hex(&claims.sender).ok()
}

#[cfg(test)]
mod tests {
    use super::super::keys::KeyPaths;
    use super::*;

    fn keys() -> KeyPair {
        let directory = tempfile::tempdir().expect("a directory");
        KeyPair::load_or_create(&KeyPaths::in_directory(directory.path())).expect("keys")
    }

    #[test]
    fn a_token_is_for_one_target_and_one_minute() {
        let (keys, others) = (keys(), keys());
        let [a, b] = [1, 2].map(|byte| Identity::from_le_bytes([byte; 32]));
        let token = sign(&a, &b, &keys).expect("signed");
        assert_eq!(sender(&token, &b, &keys.decoding), Ok(a));
        assert!(
            sender(&token, &a, &keys.decoding).is_err(),
            "another target"
        );
        assert!(sender(&token, &b, &others.decoding).is_err(), "another key");
        let now = now_seconds();
        let with = |issuer: &str, from: i64, until: i64| {
            let payload = json!({
                "iss": issuer, "aud": b.to_hex(), "sender": a.to_hex(), "iat": from, "exp": until,
            });
            let token = token::sign(&payload.to_string(), &keys).expect("signed");
            sender(&token, &b, &keys.decoding).is_ok()
        };
        assert!(with(ISSUER, now - 30, now + 30));
        assert!(!with(ISSUER, now - 60, now), "no leeway");
        assert!(!with(ISSUER, now, now + 61), "too long");
        assert!(!with(ISSUER, now + 100, now + 160), "in the future");
        assert!(!with(ISSUER, now + 50, now + 20), "ends before it begins");
        assert!(!with("localhost", now, now + 60), "of a client");
    }

    #[test]
    fn no_client_is_let_in_with_it() {
        let keys = keys();
        let database = Identity::from_le_bytes([1; 32]);
        let text = sign(&database, &database, &keys).expect("signed");
        assert!(token::verify(&text, &keys.decoding).is_err());
        assert!(token::unverified_issuer(&text).is_err());
    }
}
