//! Which of the logins is the one for a server: the one that the server's key has signed (06 §5.2).
//!
//! Logins are kept by address, and servers move: to another port, behind a proxy. A login that a server has issued is signed with its
//! key. So a server that proves at the address where it is asked that it has this key gets the login, wherever that was issued; and one
//! that proves another key at an address with a login does not get that login. Servers that prove nothing (the reference's, and older
//! ones) get what is kept for their address. Logins of other issuers say nothing about servers, and stay with their addresses.

use std::net::SocketAddr;
use std::time::Duration;

use lightcone_node::auth::proof::{
    knows_this_machine, loopback_parts, Claim, ProvenKey, ADDRESS_BYTES_MAX, NONCE_BYTES,
};
use lightcone_node::auth::LOCAL_ISSUER;
use serde::Deserialize;

use super::renewal::current;
use crate::address::{is_loopback, origin};
use crate::claims::{identity_of, issuer_of};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::http::{encode, short_body, Client};
use crate::output::remark;

/// A server answers at once, or proves nothing.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
const ANSWER_BYTES_MAX: usize = 16 << 10;

/// The login for the server of this client, if there is one. A login that is found under another address is from now on kept for this
/// one too, unless there is one: that is another server's, which may have moved as well, and no server could issue it again.
///
/// # Errors
/// As [`look`]; or a login that has ended cannot be renewed.
pub async fn find(config: &mut Config, client: &Client) -> Result<Option<String>> {
    let kept = current(config, client.base()).await?;
    let (token, from) = match look(config, client, kept).await? {
        Found::Moved { token, from } => (token, from),
        Found::Here(token) => return Ok(Some(token)),
        Found::Nothing => return Ok(None),
    };
    let here = origin(client.base());
    if config.token(&here).is_none() {
        config.update(|now| now.set_token(&here, &token)).await?;
    }
    let identity = identity_of(&token)?.to_hex();
    remark!("The server at {here} is the one of your login for {from}: it has proven its key. The login, of identity {identity}, is used here.");
    Ok(Some(token))
}

/// What there is for a server.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// The login that is kept for its address.
    Here(String),
    /// One that is kept for another address, and is this server's.
    Moved {
        token: String,
        from: String,
    },
    Nothing,
}

/// The login for the server of this client, where `kept` is the one for its address. Nothing is changed.
///
/// # Errors
/// The login for this address is another server's (LC0886), or the server's proof does not hold (LC0887).
pub async fn look(config: &Config, client: &Client, kept: Option<String>) -> Result<Found> {
    let here = origin(client.base());
    let by_address = |kept: Option<String>| kept.map_or(Found::Nothing, Found::Here);
    if kept.as_deref().is_some_and(|token| !is_of_a_server(token)) {
        return Ok(by_address(kept));
    }
    let mut others = others(config, &here);
    if kept.is_none() && others.is_empty() {
        return Ok(Found::Nothing);
    }
    let Some(key) = ask(client, &here).await? else {
        return Ok(by_address(kept));
    };
    if kept.as_deref().is_some_and(|token| key.has_signed(token)) {
        return Ok(by_address(kept));
    }
    others.retain(|(_, token)| key.has_signed(token));
    match (others.into_iter().next(), kept) {
        (Some((from, token)), _) => Ok(Found::Moved { token, from }),
        (None, Some(_)) => Err(another_server(&here)),
        (None, None) => Ok(Found::Nothing),
    }
}

/// Has a server issued this token itself?
fn is_of_a_server(token: &str) -> bool {
    issuer_of(token).as_deref() == Some(LOCAL_ISSUER)
}

/// Logins for other addresses that may be this server's, the newest first.
fn others(config: &Config, here: &str) -> Vec<(String, String)> {
    // Where loopback is not known to be this machine's, a tunnel may lead to another one.
    let may_follow = |from: &str| {
        from != here && (!is_loopback(here) || is_loopback(from) || knows_this_machine())
    };
    let logins = config.logins().into_iter().rev();
    logins
        .filter(|(from, token)| may_follow(from) && is_of_a_server(token))
        .collect()
}

fn another_server(here: &str) -> Error {
    coded!(
        "LC0886",
        "the server at {here} is not the one that your login for this address is from: it has another key. The login was not \
         sent. If the server that you mean has moved, name its address with --server. If this is the right one, with new keys \
         or begun anew, `spacetime logout --server {here}` forgets the login, and the next command gets a new one.",
    )
}

#[derive(Deserialize)]
struct Answer {
    public_key: String,
    signature: String,
}

/// The key that the server proves; none if it proves nothing.
async fn ask(client: &Client, here: &str) -> Result<Option<ProvenKey>> {
    if here.len() > ADDRESS_BYTES_MAX {
        return Ok(None);
    }
    let nonce: [u8; NONCE_BYTES] = rand::random();
    let digits: String = nonce.iter().map(|byte| format!("{byte:02x}")).collect();
    let address = encode(here);
    let path = format!("/v1/identity/key-proof?nonce={digits}&address={address}");
    let request = client.get(&path).timeout(ANSWER_TIME_MAX);
    // Who sends the next request says why a server cannot be reached.
    let Ok(response) = request.send().await else {
        return Ok(None);
    };
    let peer = response.remote_addr();
    let peer = peer.map(|peer| SocketAddr::new(peer.ip().to_canonical(), peer.port()));
    let Some(answer) = read(response).await else {
        return Ok(None);
    };
    let reached_at = match (loopback_parts(here), peer) {
        (None, _) => None,
        (Some(_), None) => return Ok(None),
        (Some(_), peer) => peer,
    };
    let claim = Claim {
        nonce: &nonce,
        address: here,
        reached_at,
    };
    match claim.verify(&answer.public_key, &answer.signature) {
        Some(key) => Ok(Some(key)),
        None => Err(coded!(
            "LC0887",
            "the server at {here} was asked to prove its key, and its proof does not hold. No login was sent. Something between \
             here and there may answer in its place; `spacetime server ping {here}` says whether it is there at all.",
        )),
    }
}

/// An answer that may be a proof.
async fn read(response: reqwest::Response) -> Option<Answer> {
    if response.status() != reqwest::StatusCode::OK {
        return None;
    }
    serde_json::from_slice(&short_body(response, ANSWER_BYTES_MAX).await?).ok()
}
