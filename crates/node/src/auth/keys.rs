//! The server's ES256 key pair and its PEM files (06 §3.6).

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey};
use p256::pkcs8::{
    DecodePrivateKey as _, DecodePublicKey as _, EncodePrivateKey as _, EncodePublicKey as _,
    LineEnding,
};

use super::claims::TokenError;
use crate::error::Error;
use crate::private_files;

/// Where the two PEM files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPaths {
    pub private: PathBuf,
    pub public: PathBuf,
}

impl KeyPaths {
    /// `id_ecdsa` and `id_ecdsa.pub` in a directory.
    pub fn in_directory(directory: &Path) -> KeyPaths {
        KeyPaths {
            private: directory.join("id_ecdsa"),
            public: directory.join("id_ecdsa.pub"),
        }
    }

    fn public_error<E: Display>(&self) -> impl FnOnce(E) -> Error + '_ {
        |error| Error::PublicKey {
            path: self.public.clone(),
            reason: error.to_string(),
        }
    }

    fn private_error<E: Display>(&self) -> impl FnOnce(E) -> Error + '_ {
        |error| Error::PrivateKey {
            path: self.private.clone(),
            reason: error.to_string(),
        }
    }
}

/// The key pair that signs and checks the server's own tokens.
pub struct KeyPair {
    encoding: EncodingKey,
    pub(super) decoding: DecodingKey,
    /// The bytes of the public key file.
    pub(super) public_pem: Vec<u8>,
}

impl KeyPair {
    /// Reads both files, or writes a fresh pair if neither exists.
    pub fn load_or_create(paths: &KeyPaths) -> Result<KeyPair, Error> {
        let missing = |path: &Path| matches!(path.try_exists(), Ok(false));
        if missing(&paths.private) && missing(&paths.public) {
            create(paths)?;
        }
        if !missing(&paths.private) {
            private_files::check_private_key(&paths.private)?;
        }
        let public_pem = fs::read_to_string(&paths.public).map_err(paths.public_error())?;
        let private_pem = fs::read_to_string(&paths.private).map_err(paths.private_error())?;
        let public = p256::PublicKey::from_public_key_pem(&public_pem);
        let private = p256::SecretKey::from_pkcs8_pem(&private_pem);
        let public = public.map_err(paths.public_error())?;
        if private.map_err(paths.private_error())?.public_key() != public {
            return Err(Error::KeyPairMismatch {
                public: paths.public.clone(),
                private: paths.private.clone(),
            });
        }
        let encoding = EncodingKey::from_ec_pem(private_pem.as_bytes());
        let decoding = DecodingKey::from_ec_pem(public_pem.as_bytes());
        Ok(KeyPair {
            encoding: encoding.map_err(paths.private_error())?,
            decoding: decoding.map_err(paths.public_error())?,
            public_pem: public_pem.into_bytes(),
        })
    }

    /// The signature over a text.
    pub(super) fn sign(&self, text: &[u8]) -> Result<String, TokenError> {
        let signature = jsonwebtoken::crypto::sign(text, &self.encoding, Algorithm::ES256);
        signature.map_err(|error| TokenError::Signing(error.to_string()))
    }
}

fn create(paths: &KeyPaths) -> Result<(), Error> {
    let private = loop {
        // All but a few of the 2^256 byte strings are a valid scalar.
        if let Ok(key) = p256::SecretKey::from_slice(&rand::random::<[u8; 32]>()) {
            break key;
        }
    };
    let private_pem = private.to_pkcs8_pem(LineEnding::LF);
    let private_pem = private_pem.map_err(paths.private_error())?;
    let public_pem = private.public_key().to_public_key_pem(LineEnding::LF);
    let public_pem = public_pem.map_err(paths.public_error())?;
    for path in [&paths.private, &paths.public] {
        let parent = path.parent();
        if let Some(parent) = parent.filter(|parent| !parent.as_os_str().is_empty()) {
            private_files::create_directory(parent)?;
        }
    }
    let secret = private_files::SECRET_MODE;
    for (path, pem, mode) in [
        (&paths.private, private_pem.as_bytes(), secret),
        (&paths.public, public_pem.as_bytes(), 0o644),
    ] {
        // No token is issued that a power failure could make invalid.
        let written = private_files::write_new(path, pem, mode);
        let written = written.and_then(|()| private_files::sync_name(path));
        written.map_err(Error::io("write", path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_created_once_and_read_again() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let paths = KeyPaths::in_directory(&dir.path().join("keys"));
        let first = KeyPair::load_or_create(&paths).expect("create");
        let private = fs::read_to_string(&paths.private).expect("private");
        assert!(private.starts_with("-----BEGIN PRIVATE KEY-----\n"));
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path| fs::metadata(path).expect("metadata").permissions().mode() & 0o777;
        assert_eq!(mode(&paths.private), 0o600);
        assert_eq!(mode(&dir.path().join("keys")), 0o700);
        assert!(first
            .public_pem
            .starts_with(b"-----BEGIN PUBLIC KEY-----\n"));
        let second = KeyPair::load_or_create(&paths).expect("load");
        assert_eq!(first.public_pem, second.public_pem);
    }

    #[test]
    fn half_a_pair_is_an_error() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let paths = KeyPaths::in_directory(dir.path());
        KeyPair::load_or_create(&paths).expect("create");
        fs::remove_file(&paths.public).expect("remove");
        let message = KeyPair::load_or_create(&paths)
            .err()
            .expect("no public key")
            .to_string();
        assert!(
            message.starts_with("Unable to read public key for JWT token verification"),
            "{message}"
        );
        fs::rename(&paths.private, &paths.public).expect("rename");
        let message = KeyPair::load_or_create(&paths)
            .err()
            .expect("no private key")
            .to_string();
        assert!(
            message.starts_with("Unable to read private key for JWT token signing"),
            "{message}"
        );
    }

    #[test]
    fn keys_of_different_pairs_are_refused() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let (a, b) = (
            KeyPaths::in_directory(&dir.path().join("a")),
            KeyPaths::in_directory(&dir.path().join("b")),
        );
        KeyPair::load_or_create(&a).expect("a");
        KeyPair::load_or_create(&b).expect("b");
        let mixed = KeyPaths {
            private: a.private,
            public: b.public,
        };
        assert!(matches!(
            KeyPair::load_or_create(&mixed),
            Err(Error::KeyPairMismatch { .. })
        ));
    }
}
