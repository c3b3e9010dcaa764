//! Signing and verifying one token.

use std::sync::Arc;

use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::Engine as _;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation};
use lightcone_types::Identity;

use super::claims::{check_expiry, Claims, RawClaims, TokenError, UnverifiedClaims};
use super::key_set::KeySet;
use super::keys::KeyPair;

/// Longer tokens are refused unread.
const TOKEN_BYTES_MAX: usize = 16 * 1024;
const HEADER: &str = r#"{"typ":"JWT","alg":"ES256"}"#;

/// A caller whose token was checked or just minted.
#[derive(Clone)]
pub struct Caller {
    pub identity: Identity,
    pub claims: Claims,
    /// The token as presented.
    pub token: Arc<str>,
    /// The decoded text of the token's payload, byte for byte: what a module sees as its caller's JWT.
    pub jwt_payload: Arc<str>,
}

// Tokens must not reach a log.
impl std::fmt::Debug for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Caller")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

/// The payload text is signed as it is, so that its bytes are known.
pub(super) fn sign(payload: &str, keys: &KeyPair) -> Result<String, TokenError> {
    let [header, payload] = [HEADER, payload].map(|part| URL_SAFE_NO_PAD.encode(part));
    let message = format!("{header}.{payload}");
    let signature = keys.sign(message.as_bytes())?;
    Ok(format!("{message}.{signature}"))
}

/// Verifies with the server's own key, whatever the issuer (06 §3.4 step 1).
pub(super) fn verify(token: &str, key: &DecodingKey) -> Result<Caller, TokenError> {
    let header = header_of(token)?;
    verify_with_key(token, &header, key, Algorithm::ES256)
}

/// Verifies with an issuer's published keys (06 §3.4 step 3).
pub(super) fn verify_with_key_set(
    token: &str,
    keys: &KeySet,
    issuer: &str,
) -> Result<Caller, TokenError> {
    let header = header_of(token)?;
    if !matches!(header.alg, Algorithm::ES256 | Algorithm::RS256) {
        return Err(TokenError::invalid("InvalidAlgorithm"));
    }
    let candidates = keys.candidates(header.kid.as_deref(), header.alg);
    let mut last_error = TokenError::invalid("InvalidSignature");
    for (key, algorithm) in candidates.ok_or(TokenError::KeyNotFound)? {
        match verify_with_key(token, &header, key, algorithm) {
            Ok(caller) if caller.claims.issuer == issuer => return Ok(caller),
            Ok(_) => return Err(TokenError::invalid("InvalidIssuer")),
            Err(error) => last_error = error,
        }
    }
    Err(last_error)
}

/// The issuer that an unverified token names; its expiry is looked at already (06 §3.4 step 2).
pub fn unverified_issuer(token: &str) -> Result<String, TokenError> {
    header_of(token)?;
    let claims: UnverifiedClaims =
        jsonwebtoken::dangerous::insecure_decode_claims(token).map_err(TokenError::invalid)?;
    check_expiry(claims.exp)?;
    Ok(claims.iss)
}

pub(super) fn header_of(token: &str) -> Result<Header, TokenError> {
    if token.len() > TOKEN_BYTES_MAX {
        return Err(TokenError::invalid("InvalidToken"));
    }
    let header = jsonwebtoken::decode_header(token).map_err(TokenError::invalid)?;
    // What must be understood and is not (RFC 7515 §4.1.11).
    if header.crit.is_some() {
        return Err(TokenError::invalid("InvalidToken"));
    }
    Ok(header)
}

fn verify_with_key(
    token: &str,
    header: &Header,
    key: &DecodingKey,
    algorithm: Algorithm,
) -> Result<Caller, TokenError> {
    // A listed algorithm that does not fit the key is a signature that does not fit (06 §3.4, HS256).
    let listed = [Algorithm::ES256, Algorithm::RS256, Algorithm::HS256];
    if header.alg != algorithm && listed.contains(&header.alg) {
        return Err(TokenError::invalid("InvalidSignature"));
    }
    // Only the signature is checked here; the claims have rules of their own.
    let mut validation = Validation::new(algorithm);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_nbf = false;
    validation.validate_aud = false;
    let data = jsonwebtoken::decode::<RawClaims>(token, key, &validation);
    let data = data.map_err(|error| match error.kind() {
        ErrorKind::Base64(_) => TokenError::invalid("InvalidSignature"),
        _ => TokenError::invalid(error),
    })?;
    let claims = data.claims.check()?;
    let payload = token.split('.').nth(1);
    let payload = payload.ok_or_else(|| TokenError::invalid("InvalidToken"))?;
    let payload = URL_SAFE_NO_PAD.decode(payload);
    let payload = String::from_utf8(payload.map_err(TokenError::invalid)?);
    let payload = payload.map_err(TokenError::invalid)?;
    Ok(Caller {
        identity: claims.identity(),
        claims,
        token: token.into(),
        jwt_payload: payload.into(),
    })
}
