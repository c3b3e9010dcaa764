//! Proof that a server has the key that logins are signed with, at the address where it was asked for it (06 §5.2).
//!
//! A client that finds a server at an address which it does not know sends a nonce and the address that it dialed. The server signs
//! both, but only if that is an address of its own: otherwise a program that listens elsewhere could have its clients' questions
//! answered by the server, and be taken for it. Both sides of this are here.

use std::net::{IpAddr, SocketAddr};
use std::sync::LazyLock;

use jsonwebtoken::{Algorithm, DecodingKey};
use p256::pkcs8::{DecodePublicKey as _, EncodePublicKey as _, LineEnding};

use super::claims::TokenError;
use super::KeyPair;
use crate::hosts::is_localhost;

/// A random number that a client chooses for one proof.
pub const NONCE_BYTES: usize = 32;
/// Longer addresses are refused unread.
pub const ADDRESS_BYTES_MAX: usize = 300;
/// What no token's signed text begins with: that is base64url and a dot, all of it ASCII. So no proof is a token, and no token a proof.
const DOMAIN: &[u8] = b"\xfflightcone: this server has the key, version 1\0";

/// What every program on this machine can read, and no other: 127.0.0.1 is an address of every machine, and a proof of it is for this
/// one. It is signed and never sent. Empty where the system has no such thing.
static MACHINE: LazyLock<String> = LazyLock::new(|| {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.map(|id| id.trim().to_owned()).unwrap_or_default()
});

/// Is a proof of an address on loopback one of this machine?
pub fn knows_this_machine() -> bool {
    !MACHINE.is_empty()
}

/// What is proven: the signature is over all of it.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    pub nonce: &'a [u8; NONCE_BYTES],
    /// Scheme, host and port as the client dialed them, like `http://127.0.0.1:3000`; a port that is usual is left out.
    pub address: &'a str,
    /// Where the connection arrived, for addresses on loopback, which are those of one machine.
    pub reached_at: Option<SocketAddr>,
}

impl Claim<'_> {
    fn signed_text(&self) -> Vec<u8> {
        let reached_at = self.reached_at.map(|at| format!("{at} {}", *MACHINE));
        // The nonce has one length, and an address has no NUL.
        [
            DOMAIN,
            self.nonce,
            self.address.as_bytes(),
            b"\0",
            reached_at.unwrap_or_default().as_bytes(),
        ]
        .concat()
    }

    pub(super) fn sign(&self, keys: &KeyPair) -> Result<String, TokenError> {
        keys.sign(&self.signed_text())
    }

    /// The key that has made a signature over this, if it is the one that the server says.
    pub fn verify(&self, public_key_pem: &str, signature: &str) -> Option<ProvenKey> {
        let key = p256::PublicKey::from_public_key_pem(public_key_pem).ok()?;
        // What is compared and shown later is the key, and not a way to write it down.
        let pem = key.to_public_key_pem(LineEnding::LF).ok()?;
        let key = DecodingKey::from_ec_pem(pem.as_bytes()).ok()?;
        is_signed(&self.signed_text(), signature, &key).then_some(ProvenKey { key })
    }
}

/// The key of a server that has just proven to have it.
pub struct ProvenKey {
    key: DecodingKey,
}

impl ProvenKey {
    /// Has this key signed the token? Nothing else about the token is looked at.
    pub fn has_signed(&self, token: &str) -> bool {
        let Some((text, signature)) = token.rsplit_once('.') else {
            return false;
        };
        is_signed(text.as_bytes(), signature, &self.key)
    }
}

fn is_signed(text: &[u8], signature: &str, key: &DecodingKey) -> bool {
    jsonwebtoken::crypto::verify(signature, text, key, Algorithm::ES256).unwrap_or(false)
}

/// Where a request for a proof arrived: the server's end of its connection.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub local: SocketAddr,
    /// It comes from a program on this machine, and through no proxy that shows itself.
    pub is_local: bool,
}

impl Arrival {
    /// May the server say that it is the one at this address? `Some` has what it adds.
    ///
    /// On loopback it may where the connection arrived at that very address and port. Any other address can be many machines' (private
    /// networks, names), so that only the operator can say which are this server's.
    pub fn vouches_for(&self, address: &str, listed: &[String]) -> Option<Option<SocketAddr>> {
        if listed.iter().any(|own| own == address) {
            return Some(None);
        }
        let local = SocketAddr::new(self.local.ip().to_canonical(), self.local.port());
        let is_loopback = self.is_local && local.ip().is_loopback();
        (is_loopback && is_at(address, local)).then_some(Some(local))
    }
}

/// Does this address lead to that socket of the machine that dials it?
fn is_at(address: &str, socket: SocketAddr) -> bool {
    let Some((host, port)) = loopback_parts(address) else {
        return false;
    };
    port == socket.port() && host.is_none_or(|host| host == socket.ip())
}

/// Host and port of an address on loopback that is not encrypted; without the host it is a name like `localhost`, which may be any of
/// its addresses.
pub fn loopback_parts(address: &str) -> Option<(Option<IpAddr>, u16)> {
    let authority = address.strip_prefix("http://")?;
    let bare = authority.trim_start_matches('[').trim_end_matches(']');
    let socket = authority.parse::<SocketAddr>();
    if let Ok(socket) = socket.or_else(|_| bare.parse().map(|host| SocketAddr::new(host, 80))) {
        let is_loopback = socket.ip().is_loopback();
        return is_loopback.then_some((Some(socket.ip()), socket.port()));
    }
    let (name, port) = match authority.split_once(':') {
        Some((name, port)) => (name, port.parse().ok()?),
        None => (authority, 80),
    };
    is_localhost(name).then_some((None, port))
}

/// The nonce of a request: 64 hex digits.
pub fn parse_nonce(text: &str) -> Option<[u8; NONCE_BYTES]> {
    lightcone_types::hex_decode(text)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::KeyPaths;

    const NONCE: [u8; NONCE_BYTES] = [7; NONCE_BYTES];
    const ADDRESS: &str = "http://127.0.0.1:3000";

    fn keys() -> KeyPair {
        let directory = tempfile::tempdir().expect("a directory");
        KeyPair::load_or_create(&KeyPaths::in_directory(directory.path())).expect("keys")
    }

    fn pem(keys: &KeyPair) -> String {
        String::from_utf8(keys.public_pem.clone()).expect("text")
    }

    fn claim(address: &str) -> Claim<'_> {
        Claim {
            nonce: &NONCE,
            address,
            reached_at: Some(socket("127.0.0.1:3000")),
        }
    }

    fn socket(text: &str) -> SocketAddr {
        text.parse().expect("a socket address")
    }

    #[test]
    fn a_proof_is_for_one_key_nonce_and_address() {
        let (own, other) = (keys(), keys());
        let signature = claim(ADDRESS).sign(&own).expect("signed");
        let verify = |claim: Claim<'_>, keys| claim.verify(&pem(keys), &signature).is_some();
        assert!(verify(claim(ADDRESS), &own));
        assert!(!verify(claim(ADDRESS), &other));
        assert!(!verify(claim("http://127.0.0.1:3001"), &own));
        let nonce = &[8; NONCE_BYTES];
        assert!(!verify(
            Claim {
                nonce,
                ..claim(ADDRESS)
            },
            &own
        ));
        for reached_at in [None, Some(socket("127.0.0.1:3001"))] {
            let other = Claim {
                reached_at,
                ..claim(ADDRESS)
            };
            assert!(!verify(other, &own), "{reached_at:?}");
        }
    }

    /// What is signed for the one must not be good for the other.
    #[test]
    fn proofs_are_no_tokens_and_tokens_no_proofs() {
        let keys = keys();
        let proof = claim(ADDRESS);
        let signature = proof.sign(&keys).expect("signed");
        let key = proof.verify(&pem(&keys), &signature).expect("proven");
        let token = super::super::token::sign(r#"{"sub":"a","iss":"b","iat":1}"#, &keys);
        let token = token.expect("a token");
        assert!(key.has_signed(&token));
        let of_token = token.rsplit_once('.').expect("a signature").1;
        assert!(proof.verify(&pem(&keys), of_token).is_none());
        // No text that is taken apart as a token has the bytes of a proof.
        assert!(!DOMAIN[0].is_ascii());
        let (text, _) = token.rsplit_once('.').expect("a signature");
        assert!(!key.has_signed(&format!("{text}.{signature}")));
        assert!(!key.has_signed("nonsense") && !key.has_signed(""));
    }

    /// A program that hands the question on to the server must not get an answer that it can use.
    #[test]
    fn a_server_vouches_for_its_own_addresses_only() {
        let arrival = |local: &str, is_local| Arrival {
            local: socket(local),
            is_local,
        };
        let listed = ["https://db.example.com".to_owned()];
        let vouches = |arrival: Arrival, address: &str| arrival.vouches_for(address, &listed);
        let here = arrival("127.0.0.1:3000", true);
        for address in [ADDRESS, "http://localhost:3000", "http://db.localhost:3000"] {
            assert_eq!(
                vouches(here, address),
                Some(Some(socket("127.0.0.1:3000"))),
                "{address}"
            );
        }
        for address in [
            "http://127.0.0.1:3001",
            "http://127.0.0.2:3000",
            "http://[::1]:3000",
            "http://127.0.0.1",
            "https://127.0.0.1:3000",
            "https://localhost:3000",
            "http://localhost:3001",
            "http://localhost.evil.example:3000",
            "http://127.0.0.1:3000/",
            "http://user@127.0.0.1:3000",
            "http://evil.example:3000",
            "https://evil.example",
            "https://db.example.com.evil.example",
            "http://db.example.com",
            "127.0.0.1:3000",
            "",
        ] {
            assert_eq!(vouches(here, address), None, "{address}");
        }
        // Through a proxy, or from another machine, loopback is another machine's.
        assert_eq!(vouches(arrival("127.0.0.1:3000", false), ADDRESS), None);
        assert_eq!(
            vouches(arrival("10.0.0.1:3000", true), "http://10.0.0.1:3000"),
            None
        );
        let listed = vouches(arrival("10.0.0.1:3000", false), "https://db.example.com");
        assert_eq!(listed, Some(None), "the operator says so");
        let mapped = vouches(arrival("[::ffff:127.0.0.1]:3000", true), ADDRESS);
        assert_eq!(mapped, Some(Some(socket("127.0.0.1:3000"))));
        let six = vouches(arrival("[::1]:80", true), "http://[::1]");
        assert_eq!(six, Some(Some(socket("[::1]:80"))));
    }

    #[test]
    fn nonces_have_one_form() {
        assert_eq!(parse_nonce(&"07".repeat(32)), Some(NONCE));
        assert_eq!(parse_nonce(&"Ff".repeat(32)), Some([255; 32]));
        for text in [
            "",
            &"0".repeat(63),
            &"0".repeat(65),
            &"+7".repeat(32),
            &"é".repeat(32),
        ] {
            assert_eq!(parse_nonce(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "\\PC{0,80}") {
            let _ = (parse_nonce(&text), loopback_parts(&text));
            let _ = claim(ADDRESS).verify(&text, &text);
        }
    }
}
