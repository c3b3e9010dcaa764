//! Identities of callers: tokens, the server's key pair, and the issuers of others (06 §3).

mod claims;
mod issuer;
mod key_set;
mod keys;
mod known_tokens;
mod message_token;
mod oidc;
pub mod proof;
mod secrets_key;
mod token;

pub use claims::{Claims, TokenError};
pub(crate) use issuer::parse as parse_issuer;
pub use issuer::LOCAL_ISSUER;
pub use keys::{KeyPair, KeyPaths};
pub(crate) use secrets_key::secrets;
pub use token::{unverified_issuer, Caller};

use std::sync::Arc;

use jsonwebtoken::DecodingKey;
use lightcone_types::Identity;

use crate::config::Auth;
use crate::error::Error;
use oidc::OidcClient;

/// Mints and checks tokens.
pub struct Authority {
    keys: KeyPair,
    oidc: OidcClient,
    /// One of these must be in a foreign token, unless there are none.
    audiences: Vec<String>,
    known: known_tokens::KnownTokens,
}

impl Authority {
    pub fn new(keys: KeyPair, accepted: &Auth) -> Result<Authority, Error> {
        let authority = Authority {
            keys,
            oidc: OidcClient::new(accepted)?,
            audiences: accepted.audiences.clone(),
            known: known_tokens::KnownTokens::default(),
        };
        // The first signature gathers randomness for 20 ms: here, and not where clients wait. An error shows again at the first real signature.
        let _ = authority.mint_anonymous();
        Ok(authority)
    }

    /// The bytes of the public key file.
    pub fn public_key_pem(&self) -> &[u8] {
        &self.keys.public_pem
    }

    /// Signs that this server has its key ([`proof`]).
    pub fn prove(&self, claim: proof::Claim<'_>) -> Result<String, TokenError> {
        claim.sign(&self.keys)
    }

    /// A fresh identity with a token that never expires (06 §3.3).
    pub fn mint_anonymous(&self) -> Result<Caller, TokenError> {
        self.sign(anonymous_claims())
    }

    /// A token for the same identity that this server signed, and that lives for `lifetime_seconds`, but not longer than the
    /// one that the caller has shown (06 §5.2).
    pub fn mint_short_lived(
        &self,
        caller: &Caller,
        lifetime_seconds: i64,
    ) -> Result<Caller, TokenError> {
        self.sign(caller.claims.reissued(lifetime_seconds))
    }

    /// A token by which this server vouches for a database that sends a message to another one.
    pub fn message_token(
        &self,
        sender: &Identity,
        target: &Identity,
    ) -> Result<String, TokenError> {
        message_token::sign(sender, target, &self.keys)
    }

    /// The sender of a message to `target` that this server vouches for.
    pub fn message_sender(&self, token: &str, target: &Identity) -> Result<Identity, TokenError> {
        message_sender_of(token, target, &self.keys.decoding)
    }

    fn sign(&self, claims: Claims) -> Result<Caller, TokenError> {
        let payload = claims.to_json();
        let token = token::sign(&payload, &self.keys)?;
        let identity = claims.identity();
        Ok(Caller {
            identity,
            claims,
            token: token.into(),
            jwt_payload: payload.into(),
        })
    }

    /// Checks a token, in the order of 06 §3.4.
    pub async fn validate(&self, text: &str) -> Result<Caller, TokenError> {
        if let Some(caller) = self.known.get(text) {
            return Ok(caller);
        }
        let local_error = match token::verify(text, &self.keys.decoding) {
            Ok(caller) => {
                self.known.keep(&caller);
                return Ok(caller);
            }
            Err(error) => error,
        };
        let issuer = token::unverified_issuer(text)?;
        if issuer == LOCAL_ISSUER {
            return Err(local_error);
        }
        let key_set = self.oidc.keys_of(&issuer).await?;
        let caller = match token::verify_with_key_set(text, &key_set, &issuer) {
            // It may be newer than what we know.
            Err(TokenError::KeyNotFound) => {
                let newer = self.oidc.newer_keys_of(&issuer, &key_set).await;
                let newer = newer.ok_or(TokenError::KeyNotFound)?;
                token::verify_with_key_set(text, &newer, &issuer)?
            }
            verified => verified?,
        };
        caller.claims.check_foreign(&self.audiences)?;
        Ok(caller)
    }
}

fn anonymous_claims() -> Claims {
    let subject = uuid::Uuid::new_v4().hyphenated().to_string();
    Claims::local(LOCAL_ISSUER, subject)
}

/// A fresh identity, and the payload of a token for it that is given to no client (03 §11.6).
pub fn anonymous() -> (Identity, Arc<str>) {
    let claims = anonymous_claims();
    (claims.identity(), claims.to_json().into())
}

/// The sender that a token for messages names. Nothing is verified.
pub(crate) fn claimed_sender(token: &str) -> Option<Identity> {
    message_token::claimed_sender(token)
}

/// The sender of a message to `target` that the owner of a key vouches for.
pub(crate) fn message_sender_of(
    token: &str,
    target: &Identity,
    key: &DecodingKey,
) -> Result<Identity, TokenError> {
    message_token::sender(token, target, key)
}

/// Has a token ended that is valid until then, in seconds since 1970?
pub fn has_ended(expires_at: Option<i64>) -> bool {
    claims::check_expiry(expires_at).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authority() -> Authority {
        let directory = tempfile::tempdir().expect("a directory");
        let keys = KeyPair::load_or_create(&KeyPaths::in_directory(directory.path()));
        Authority::new(keys.expect("keys"), &Auth::default()).expect("an authority")
    }

    #[tokio::test]
    async fn known_tokens_are_those_that_were_verified_and_never_expire() {
        let authority = authority();
        let lasting = authority.mint_anonymous().expect("a token");
        assert!(authority.known.get(&lasting.token).is_none());
        for _ in 0..2 {
            let caller = authority.validate(&lasting.token).await.expect("valid");
            assert_eq!(caller.identity, lasting.identity);
            assert_eq!(caller.jwt_payload, lasting.jwt_payload);
        }
        assert!(authority.known.get(&lasting.token).is_some());

        let mut forged = lasting.token.to_string();
        let last = forged.pop().expect("a signature");
        forged.push(if last == 'A' { 'Q' } else { 'A' });
        assert!(authority.validate(&forged).await.is_err());
        assert!(authority.known.get(&forged).is_none());

        let short_lived = authority.mint_short_lived(&lasting, 60).expect("a token");
        assert!(authority.validate(&short_lived.token).await.is_ok());
        assert!(authority.known.get(&short_lived.token).is_none());

        for _ in 0..known_tokens::KNOWN_TOKENS_MAX {
            let caller = authority.mint_anonymous().expect("a token");
            authority.known.keep(&caller);
        }
        assert!(authority.known.get(&lasting.token).is_none());
        assert!(authority.validate(&lasting.token).await.is_ok());
    }
}
