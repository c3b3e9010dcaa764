//! Public keys of an issuer, and which of them may have signed a token.
//!
//! A key says by its type which algorithm it is for: RSA is RS256, P-256 is ES256. What a token's header says only chooses among
//! these, so no header makes a public key a secret, or a signature optional.

use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::Engine as _;
use jsonwebtoken::jwk::{
    AlgorithmParameters, EllipticCurve, Jwk, JwkSet, KeyAlgorithm, KeyOperations, PublicKeyUse,
};
use jsonwebtoken::{Algorithm, DecodingKey};
use p256::pkcs8::der::asn1::UintRef;
use p256::pkcs8::der::{self, Decode as _, Reader as _, SliceReader};
use p256::pkcs8::DecodePublicKey as _;

/// Most keys of one issuer.
pub(super) const KEYS_MAX: usize = 256;
/// So many keys are tried for a token that names none.
pub(super) const KEYS_TRIED_MAX: usize = 16;
/// Shorter moduli can be factored; longer ones, and large exponents, only cost time.
const RSA_BITS_MIN: usize = 2048;
const RSA_BITS_MAX: usize = 8192;
const RSA_EXPONENT_BYTES_MAX: usize = 4;

/// Keys that signatures can be checked with.
pub(super) struct KeySet {
    keys: Vec<Key>,
}

struct Key {
    id: Option<String>,
    algorithm: Algorithm,
    key: DecodingKey,
}

impl KeySet {
    /// What an issuer has published. Keys of other kinds are left out; that a key has no id makes the set unusable (06 §3.4).
    ///
    /// # Errors
    /// It is no key set, or none of its keys can be used.
    pub fn published(json: &[u8]) -> Result<KeySet, String> {
        let set: JwkSet = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        if set.keys.iter().any(|key| key.common.key_id.is_none()) {
            return Err("a key has no kid".into());
        }
        KeySet::of(&set)
    }

    /// A file of the operator: a key set, or one public key in PEM.
    ///
    /// # Errors
    /// It is neither, or none of its keys can be used.
    pub fn pinned(file: &[u8]) -> Result<KeySet, String> {
        let text = std::str::from_utf8(file).map_err(|error| error.to_string())?;
        if text.contains("PRIVATE KEY") {
            return Err("it has a private key, which only the issuer may have".into());
        }
        if !text.trim_start().starts_with("-----BEGIN") {
            let set: JwkSet = serde_json::from_str(text).map_err(|error| error.to_string())?;
            return KeySet::of(&set);
        }
        let (algorithm, key) = match p256::PublicKey::from_public_key_pem(text) {
            Ok(_) => (Algorithm::ES256, DecodingKey::from_ec_pem(file)),
            Err(_) => (Algorithm::RS256, DecodingKey::from_rsa_pem(file)),
        };
        let key = key.map_err(|_| "it is neither a P-256 nor an RSA public key".to_owned())?;
        if algorithm == Algorithm::RS256 {
            let der = key.try_get_as_bytes().map_err(|error| error.to_string())?;
            check_bits(modulus_bits_of_der(der).ok_or("its modulus cannot be read")?)?;
        }
        let id = None;
        let keys = vec![Key { id, algorithm, key }];
        Ok(KeySet { keys })
    }

    fn of(set: &JwkSet) -> Result<KeySet, String> {
        if set.keys.len() > KEYS_MAX {
            return Err(format!("more than {KEYS_MAX} keys"));
        }
        let mut why = "it has no keys".to_owned();
        let mut keys = Vec::new();
        for jwk in &set.keys {
            match usable(jwk) {
                Ok(key) => keys.push(key),
                Err(reason) => why = reason,
            }
        }
        match keys.is_empty() {
            true => Err(format!("none of its keys can be used: {why}")),
            false => Ok(KeySet { keys }),
        }
    }

    /// The keys that may have signed a token, which may name one. None: it names one that is not there.
    pub fn candidates<'k>(
        &'k self,
        id: Option<&'k str>,
        algorithm: Algorithm,
    ) -> Option<impl Iterator<Item = (&'k DecodingKey, Algorithm)>> {
        let is_named = move |key: &&Key| match (id, key.id.as_deref()) {
            (Some(id), Some(known)) => id == known,
            // A key of the operator's file without an id is good for any.
            (Some(_), None) => true,
            (None, _) => key.algorithm == algorithm,
        };
        let mut keys = self.keys.iter().filter(is_named).peekable();
        if id.is_some() {
            keys.peek()?;
        }
        let keys = keys.take(KEYS_TRIED_MAX);
        Some(keys.map(|key| (&key.key, key.algorithm)))
    }
}

fn usable(jwk: &Jwk) -> Result<Key, String> {
    let common = &jwk.common;
    let (of, all) = (&common.public_key_use, &common.key_operations);
    let is_of_signatures = of.as_ref().is_none_or(|of| *of == PublicKeyUse::Signature);
    let verifies = |all: &Vec<_>| all.contains(&KeyOperations::Verify);
    let is_for_signatures = is_of_signatures && all.as_ref().is_none_or(verifies);
    if !is_for_signatures {
        return Err("they are not for signatures".into());
    }
    let (algorithm, named) = match &jwk.algorithm {
        AlgorithmParameters::RSA(rsa) => {
            check_bits(bits_of(&decoded(&rsa.n)?))?;
            let exponent = decoded(&rsa.e)?;
            let is_odd = exponent.last().is_some_and(|last| last % 2 == 1);
            if exponent.len() > RSA_EXPONENT_BYTES_MAX || !is_odd {
                return Err("an RSA key has a strange exponent".into());
            }
            (Algorithm::RS256, KeyAlgorithm::RS256)
        }
        AlgorithmParameters::EllipticCurve(ec) if ec.curve == EllipticCurve::P256 => {
            (Algorithm::ES256, KeyAlgorithm::ES256)
        }
        _ => return Err("they are neither for RS256 nor for ES256".into()),
    };
    if common.key_algorithm.is_some_and(|other| other != named) {
        return Err("they are neither for RS256 nor for ES256".into());
    }
    Ok(Key {
        id: common.key_id.clone(),
        algorithm,
        key: DecodingKey::from_jwk(jwk).map_err(|error| error.to_string())?,
    })
}

fn decoded(text: &str) -> Result<Vec<u8>, String> {
    let bytes = URL_SAFE_NO_PAD.decode(text);
    bytes.map_err(|_| "an RSA key is not base64url".to_owned())
}

fn bits_of(bytes: &[u8]) -> usize {
    let first = bytes.iter().position(|byte| *byte != 0);
    first.map_or(0, |first| {
        (bytes.len() - first) * 8 - bytes[first].leading_zeros() as usize
    })
}

fn check_bits(bits: usize) -> Result<(), String> {
    match bits {
        RSA_BITS_MIN..=RSA_BITS_MAX => Ok(()),
        bits => Err(format!(
            "an RSA key has {bits} bits; {RSA_BITS_MIN} to {RSA_BITS_MAX} are accepted"
        )),
    }
}

/// Of an `RSAPublicKey`: a sequence of modulus and exponent.
fn modulus_bits_of_der(der: &[u8]) -> Option<usize> {
    let parts = |parts: &mut SliceReader<'_>| {
        let modulus = UintRef::decode(parts)?;
        UintRef::decode(parts)?;
        Ok::<_, der::Error>(bits_of(modulus.as_bytes()))
    };
    SliceReader::new(der).ok()?.sequence(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rsa(bits: usize) -> serde_json::Value {
        let mut modulus = vec![0xff; bits / 8];
        modulus[0] = 0x80;
        json!({ "kty": "RSA", "kid": "r", "n": URL_SAFE_NO_PAD.encode(modulus), "e": "AQAB" })
    }

    fn ec() -> serde_json::Value {
        json!({ "kty": "EC", "crv": "P-256", "kid": "e",
            "x": URL_SAFE_NO_PAD.encode([1; 32]), "y": URL_SAFE_NO_PAD.encode([2; 32]) })
    }

    fn with(mut key: serde_json::Value, name: &str, value: serde_json::Value) -> serde_json::Value {
        key[name] = value;
        key
    }

    fn published(keys: &[serde_json::Value]) -> Result<KeySet, String> {
        KeySet::published(json!({ "keys": keys }).to_string().as_bytes())
    }

    #[test]
    fn keys_that_may_be_used() {
        for key in [
            rsa(2048),
            rsa(4096),
            ec(),
            with(rsa(2048), "alg", json!("RS256")),
            with(ec(), "use", json!("sig")),
            with(ec(), "key_ops", json!(["verify"])),
        ] {
            let set = published(std::slice::from_ref(&key));
            assert_eq!(set.map(|set| set.keys.len()), Ok(1), "{key}");
        }
        for key in [
            rsa(1024),
            rsa(2040),
            rsa(16384),
            with(rsa(2048), "alg", json!("RS512")),
            with(rsa(2048), "alg", json!("PS256")),
            with(rsa(2048), "use", json!("enc")),
            with(rsa(2048), "key_ops", json!(["encrypt"])),
            with(rsa(2048), "e", json!("AA")),
            with(rsa(2048), "e", json!("AQAAAAAB")),
            with(ec(), "alg", json!("HS256")),
            with(ec(), "crv", json!("P-384")),
            json!({ "kty": "oct", "kid": "o", "k": "c2VjcmV0", "alg": "HS256" }),
            json!({ "kty": "OKP", "kid": "o", "crv": "Ed25519", "x": URL_SAFE_NO_PAD.encode([1; 32]) }),
        ] {
            assert!(published(std::slice::from_ref(&key)).is_err(), "{key}");
            // It does not spoil the others.
            let set = published(&[key.clone(), with(ec(), "kid", json!("other"))]);
            assert_eq!(set.map(|set| set.keys.len()), Ok(1), "{key}");
        }
        assert!(published(&[json!({ "kty": "EC", "crv": "P-256", "x": "", "y": "" })]).is_err());
        let many = vec![ec(); KEYS_MAX + 1];
        assert!(published(&many).is_err());
    }

    #[test]
    fn the_key_decides_about_the_algorithm() {
        let set = published(&[ec(), rsa(2048)]).expect("keys");
        let found = |id, algorithm| {
            let keys = set.candidates(id, algorithm)?;
            Some(keys.map(|(_, algorithm)| algorithm).collect::<Vec<_>>())
        };
        assert_eq!(found(None, Algorithm::RS256), Some(vec![Algorithm::RS256]));
        // Whatever the token says: checking it against the key is what comes next.
        assert_eq!(
            found(Some("e"), Algorithm::RS256),
            Some(vec![Algorithm::ES256])
        );
        assert_eq!(found(Some("x"), Algorithm::ES256), None);
        // Two keys with one id: both are tried.
        let twins = published(&[ec(), with(rsa(2048), "kid", json!("e"))]).expect("keys");
        let keys = twins.candidates(Some("e"), Algorithm::ES256);
        assert_eq!(keys.expect("keys").count(), 2);
    }

    #[test]
    fn files_of_the_operator() {
        let pem = "-----BEGIN PUBLIC KEY-----\n\
            MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEEVs/o5+uQbTjL3chynL4wXgUg2R9\n\
            q9UU8I5mEovUf86QZ7kOBIjJwqnzD1omageEHWwHdBO6B+dFabmdT9POxg==\n\
            -----END PUBLIC KEY-----\n";
        let set = KeySet::pinned(pem.as_bytes()).expect("a key");
        let keys = set.candidates(Some("any"), Algorithm::ES256);
        assert_eq!(keys.expect("keys").count(), 1);
        let mut without_id = ec();
        without_id.as_object_mut().expect("object").remove("kid");
        let json = json!({ "keys": [without_id] }).to_string();
        assert!(KeySet::pinned(json.as_bytes()).is_ok());
        for wrong in [
            "",
            "{}",
            "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----",
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
        ] {
            assert!(KeySet::pinned(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(0u8.., 0..300)) {
            let _ = KeySet::published(&bytes);
            let _ = KeySet::pinned(&bytes);
            let _ = modulus_bits_of_der(&bytes);
        }

        #[test]
        fn a_modulus_in_der_has_its_bits(length in 1_usize..2000, first in 1_u8..0x80) {
            let mut integer = vec![0xff; length];
            integer[0] = first;
            let part = |tag: u8, contents: &[u8]| {
                let mut part = vec![tag];
                match contents.len() {
                    short @ 0..=0x7f => part.push(short as u8),
                    long @ 0x80..=0xff => part.extend([0x81, long as u8]),
                    long => {
                        part.push(0x82);
                        part.extend((long as u16).to_be_bytes());
                    }
                }
                part.extend_from_slice(contents);
                part
            };
            let der = part(0x30, &[part(0x02, &integer), part(0x02, &[3])].concat());
            let expected = length * 8 - first.leading_zeros() as usize;
            proptest::prop_assert_eq!(modulus_bits_of_der(&der), Some(expected));
        }
    }
}
