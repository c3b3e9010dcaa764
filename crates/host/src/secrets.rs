//! Secret variables of the environment: their values are kept sealed with a key of the server. docs/design/secrets.md is the plan.

use std::fmt;
use std::sync::OnceLock;

use aws_lc_rs::aead::{Aad, Nonce, RandomizedNonceKey, AES_256_GCM};
use base64::prelude::{Engine as _, BASE64_STANDARD};
use lightcone_schema::{is_sealed, SEALED_PREFIX};
use lightcone_types::Identity;
use parking_lot::Mutex;

/// Bytes of the key.
pub const SECRETS_KEY_BYTES: usize = 32;

/// Gives the key, or why there is none; it makes a key if there is none and it is told to.
pub type SecretsKeySource =
    Box<dyn Fn(bool) -> Result<[u8; SECRETS_KEY_BYTES], String> + Send + Sync>;

/// What is sealed has a multiple of so many bytes, so that it hardly tells how long the value is.
const PADDED_BYTES: usize = 64;
/// Those of the algorithm.
const NONCE_BYTES: usize = 12;

/// Seals values, and opens them. The key is asked for when it is needed first.
pub struct Secrets {
    source: SecretsKeySource,
    key: OnceLock<RandomizedNonceKey>,
    /// Held while the key is asked for.
    asking: Mutex<()>,
}

/// Why a secret cannot be sealed or opened. The text has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the secret variable `{name}` of the environment cannot be {done}: {reason} [LC0260]")]
pub struct SecretError {
    name: String,
    done: &'static str,
    reason: String,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")
    }
}

impl Secrets {
    pub fn new(source: SecretsKeySource) -> Secrets {
        Secrets {
            source,
            key: OnceLock::new(),
            asking: Mutex::new(()),
        }
    }

    /// With a key that ends with the process.
    pub fn in_memory() -> Secrets {
        Secrets::new(Box::new(|_| {
            let mut key = [0; SECRETS_KEY_BYTES];
            match aws_lc_rs::rand::fill(&mut key) {
                Ok(()) => Ok(key),
                Err(_) => Err("there are no random numbers".to_owned()),
            }
        }))
    }

    /// The value of a variable of a database as it is kept. Each time it is another text.
    ///
    /// # Errors
    /// There is no key, and none can be made.
    pub fn seal(
        &self,
        database: &Identity,
        name: &str,
        value: &str,
    ) -> Result<String, SecretError> {
        let failed = |reason: String| SecretError {
            name: name.to_owned(),
            done: "sealed",
            reason,
        };
        let key = self.key(true).map_err(failed)?;
        let mut sealed = (value.len() as u32).to_le_bytes().to_vec();
        sealed.extend_from_slice(value.as_bytes());
        sealed.resize(sealed.len().next_multiple_of(PADDED_BYTES), 0);
        let nonce = key.seal_in_place_append_tag(Aad::from(context(database, name)), &mut sealed);
        let nonce = nonce.map_err(|_| failed("it is too long".to_owned()))?;
        sealed.extend_from_slice(nonce.as_ref());
        Ok(format!("{SEALED_PREFIX}{}", BASE64_STANDARD.encode(sealed)))
    }

    /// The value of a variable of a database, from what is kept.
    ///
    /// # Errors
    /// There is no key, or it is not the one that the value was sealed with for this variable.
    pub fn open(
        &self,
        database: &Identity,
        name: &str,
        kept: String,
    ) -> Result<String, SecretError> {
        let failed = |reason: String| SecretError {
            name: name.to_owned(),
            done: "opened",
            reason,
        };
        if !is_sealed(&kept) {
            return Ok(kept);
        }
        let key = self.key(false).map_err(failed)?;
        let opened = opened(key, &context(database, name), &kept[SEALED_PREFIX.len()..]);
        opened.ok_or_else(|| {
            failed("the key in secrets.key is not the one that it was sealed with, or it is of another database; put the right key in its place and start the server anew, or set the variable again".to_owned())
        })
    }

    fn key(&self, may_create: bool) -> Result<&RandomizedNonceKey, String> {
        if let Some(key) = self.key.get() {
            return Ok(key);
        }
        let _turn = self.asking.lock();
        if let Some(key) = self.key.get() {
            return Ok(key);
        }
        let key = RandomizedNonceKey::new(&AES_256_GCM, &(self.source)(may_create)?);
        let key = key.map_err(|_| "the key cannot be used".to_owned())?;
        Ok(self.key.get_or_init(|| key))
    }
}

/// What a sealed value is bound to: moved to another variable or database it does not open.
fn context(database: &Identity, name: &str) -> Vec<u8> {
    [&database.to_le_bytes()[..], name.as_bytes()].concat()
}

fn opened(key: &RandomizedNonceKey, context: &[u8], text: &str) -> Option<String> {
    let mut sealed = BASE64_STANDARD.decode(text).ok()?;
    let nonce = sealed.split_off(sealed.len().checked_sub(NONCE_BYTES)?);
    let nonce = Nonce::try_assume_unique_for_key(&nonce).ok()?;
    let plain = key.open_in_place(nonce, Aad::from(context), &mut sealed);
    let (length, value) = plain.ok()?.split_first_chunk::<4>()?;
    let value = value.get(..u32::from_le_bytes(*length) as usize)?;
    String::from_utf8(value.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATABASE: Identity = Identity::ZERO;

    #[test]
    fn what_is_sealed_is_opened_where_it_was_sealed_for() {
        let secrets = Secrets::in_memory();
        for value in ["", "s3cret", &"é".repeat(4096)] {
            let sealed = secrets.seal(&DATABASE, "KEY", value).expect("sealed");
            assert!(is_sealed(&sealed) && !sealed.contains("s3cret"));
            let opened = secrets.open(&DATABASE, "KEY", sealed.clone());
            assert_eq!(opened.as_deref(), Ok(value));
            let again = secrets.seal(&DATABASE, "KEY", value).expect("sealed");
            assert_ne!(sealed, again, "no nonce is used twice");
            let other = Identity::from_le_bytes([1; 32]);
            for error in [
                secrets.open(&other, "KEY", sealed.clone()),
                secrets.open(&DATABASE, "OTHER", sealed.clone()),
                secrets.open(&DATABASE, "KEY", sealed[..sealed.len() - 4].to_owned()),
                secrets.open(&DATABASE, "KEY", SEALED_PREFIX.to_owned()),
                Secrets::in_memory().open(&DATABASE, "KEY", sealed.clone()),
            ] {
                let text = error
                    .expect_err("another key, or another place")
                    .to_string();
                assert!(
                    text.contains("secrets.key") && text.contains("LC0260"),
                    "{text}"
                );
                assert!(!text.contains("s3cret"), "{text}");
            }
        }
        let plain = secrets.open(&DATABASE, "KEY", "plain".to_owned());
        assert_eq!(plain.as_deref(), Ok("plain"));
    }

    #[test]
    fn lengths_are_told_in_steps() {
        let secrets = Secrets::in_memory();
        let length = |value: &str| secrets.seal(&DATABASE, "K", value).expect("sealed").len();
        assert_eq!(length(""), length(&"x".repeat(60)));
        assert!(length("") < length(&"x".repeat(61)));
    }

    #[test]
    fn a_key_that_is_not_there_is_asked_for_again() {
        let asked = std::sync::Arc::new(Mutex::new(Vec::new()));
        let seen = asked.clone();
        let secrets = Secrets::new(Box::new(move |may_create| {
            seen.lock().push(may_create);
            match may_create {
                true => Ok([7; SECRETS_KEY_BYTES]),
                false => Err("secrets.key is not there".to_owned()),
            }
        }));
        let kept = format!("{SEALED_PREFIX}AAAA");
        for _ in 0..2 {
            let opened = secrets.open(&DATABASE, "KEY", kept.clone());
            let text = opened.expect_err("no key");
            assert!(text.to_string().contains("secrets.key is not there"));
        }
        let sealed = secrets.seal(&DATABASE, "KEY", "x").expect("a new key");
        assert_eq!(secrets.open(&DATABASE, "KEY", sealed).as_deref(), Ok("x"));
        assert_eq!(*asked.lock(), [false, false, true]);
    }
}
