//! The claims of a token (06 §3.3, §3.4).

use lightcone_types::Identity;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Why a presented token is refused. The texts are the response bodies of 06 §3.1 and §3.4.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error("Invalid token: {0}")]
    Invalid(String),
    #[error("Issuer empty")]
    IssuerEmpty,
    #[error("Subject empty")]
    SubjectEmpty,
    #[error("Issuer too long: {0}")]
    IssuerTooLong(String),
    #[error("Subject too long: {0}")]
    SubjectTooLong(String),
    #[error("Identity mismatch: token says {claimed}, its issuer and subject give {computed}")]
    IdentityMismatch { claimed: String, computed: Identity },
    #[error("Specified key ID not found in JWKs")]
    KeyNotFound,
    #[error("Error fetching public key for issuer {0}")]
    IssuerKey(String),
    #[error(
        "Error fetching public key for issuer {0}: this server does not accept its tokens; auth.foreign-issuers in config.toml \
         lists the issuers that it accepts [LC0135]"
    )]
    IssuerNotAccepted(String),
    #[error("Signing failed: {0}")]
    Signing(String),
}

impl TokenError {
    pub(super) fn invalid(error: impl std::fmt::Display) -> TokenError {
        TokenError::Invalid(error.to_string())
    }
}

/// How far a clock may be off, in seconds.
const LEEWAY_SECONDS: i64 = 60;
const ISSUER_AND_SUBJECT_BYTES_MAX: usize = 128;

/// Checked claims.
#[derive(Clone, Debug)]
pub struct Claims {
    pub issuer: String,
    pub subject: String,
    pub audience: Vec<String>,
    pub issued_at: i64,
    pub expires_at: Option<i64>,
    /// Everything else, kept for re-signing; sorted by name when written.
    pub extra: Map<String, Value>,
}

/// Claims as they stand in a token.
#[derive(Deserialize)]
pub(super) struct RawClaims {
    sub: String,
    iss: String,
    iat: i64,
    #[serde(default)]
    exp: Option<i64>,
    #[serde(default)]
    aud: Option<Audience>,
    #[serde(default)]
    hex_identity: Option<String>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

/// The part of the claims that is looked at before the signature can be checked.
#[derive(Deserialize)]
pub(super) struct UnverifiedClaims {
    #[serde(rename = "sub")]
    _sub: String,
    pub iss: String,
    #[serde(default)]
    pub exp: Option<i64>,
}

pub(super) fn now_seconds() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seconds = since.map_or(0, |since| since.as_secs());
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

/// A token that is not valid before some time (RFC 7519 §4.1.5), which may have a fraction.
fn check_not_before(extra: &Map<String, Value>) -> Result<(), TokenError> {
    let Some(value) = extra.get("nbf").filter(|value| !value.is_null()) else {
        return Ok(());
    };
    let no_number = || TokenError::invalid("JSON error: `nbf` is not a number");
    let at = value.as_f64().ok_or_else(no_number)?;
    if at > now_seconds().saturating_add(LEEWAY_SECONDS) as f64 {
        return Err(TokenError::invalid("ImmatureSignature"));
    }
    Ok(())
}

pub(super) fn check_expiry(expires_at: Option<i64>) -> Result<(), TokenError> {
    match expires_at {
        Some(at) if at < now_seconds().saturating_sub(LEEWAY_SECONDS) => {
            Err(TokenError::invalid("ExpiredSignature"))
        }
        _ => Ok(()),
    }
}

impl RawClaims {
    pub(super) fn check(self) -> Result<Claims, TokenError> {
        check_expiry(self.exp)?;
        check_not_before(&self.extra)?;
        if self.iss.is_empty() {
            return Err(TokenError::IssuerEmpty);
        }
        if self.sub.is_empty() {
            return Err(TokenError::SubjectEmpty);
        }
        if self.iss.len() > ISSUER_AND_SUBJECT_BYTES_MAX {
            return Err(TokenError::IssuerTooLong(self.iss));
        }
        if self.sub.len() > ISSUER_AND_SUBJECT_BYTES_MAX {
            return Err(TokenError::SubjectTooLong(self.sub));
        }
        let computed = Identity::from_claims(&self.iss, &self.sub);
        if let Some(claimed) = self.hex_identity {
            if Identity::from_hex(&claimed).ok() != Some(computed) {
                return Err(TokenError::IdentityMismatch { claimed, computed });
            }
        }
        Ok(Claims {
            issuer: self.iss,
            subject: self.sub,
            audience: match self.aud {
                None => Vec::new(),
                Some(Audience::One(one)) => vec![one],
                Some(Audience::Many(many)) => many,
            },
            issued_at: self.iat,
            expires_at: self.exp,
            extra: self.extra,
        })
    }
}

impl Claims {
    pub(super) fn local(issuer: &str, subject: String) -> Claims {
        Claims {
            issuer: issuer.to_owned(),
            subject,
            audience: vec!["spacetimedb".to_owned()],
            issued_at: now_seconds(),
            expires_at: None,
            extra: Map::new(),
        }
    }

    pub(super) fn reissued(&self, lifetime_seconds: i64) -> Claims {
        let now = now_seconds();
        let expires_at = now + lifetime_seconds;
        Claims {
            issued_at: now,
            expires_at: Some(self.expires_at.map_or(expires_at, |at| at.min(expires_at))),
            ..self.clone()
        }
    }

    /// What is asked of tokens that another issuer signed: one of the audiences, if there are any, and that it was not issued
    /// in the future. (Of our own tokens the latter is not asked: when our clock was set back they are still ours.)
    pub(super) fn check_foreign(&self, audiences: &[String]) -> Result<(), TokenError> {
        if self.issued_at > now_seconds().saturating_add(LEEWAY_SECONDS) {
            return Err(TokenError::invalid("ImmatureSignature"));
        }
        if !audiences.is_empty() && !self.audience.iter().any(|each| audiences.contains(each)) {
            return Err(TokenError::invalid("InvalidAudience"));
        }
        Ok(())
    }

    pub fn identity(&self) -> Identity {
        Identity::from_claims(&self.issuer, &self.subject)
    }

    /// The payload of a token, members in the order of 06 §3.3.
    pub(super) fn to_json(&self) -> String {
        let mut extra = self.extra.clone();
        extra.sort_keys();
        let own: [(&str, Value); 6] = [
            ("hex_identity", self.identity().to_hex().into()),
            ("sub", self.subject.clone().into()),
            ("iss", self.issuer.clone().into()),
            ("aud", self.audience.clone().into()),
            ("iat", self.issued_at.into()),
            ("exp", self.expires_at.into()),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value));
        let members: Map<String, Value> = own.into_iter().chain(extra).collect();
        Value::Object(members).to_string()
    }
}
