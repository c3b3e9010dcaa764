//! Other servers, whose databases exchange messages of outbox tables with those of this one.

use std::time::Duration;

use jsonwebtoken::DecodingKey;
use lightcone_database::{Carried, Message, MessageAnswer, MessageResult, ResultStatus};
use lightcone_outbound::{error_chain, Outbound, OutboundOptions, Url};
use lightcone_types::Identity;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::auth::Authority;
use crate::config::Outbox;
use crate::error::Error;

/// Longer answers than any of ours are not read.
const ANSWER_BYTES_MAX: usize = 128 << 10;
/// Messages under way to one server. Each has a socket.
const UNDER_WAY_MAX: usize = 64;

/// The listed servers.
pub struct Peers {
    peers: Vec<Peer>,
    /// None without any.
    outbound: Option<Outbound>,
}

struct Peer {
    address: Option<Url>,
    databases: Vec<Identity>,
    key: Option<DecodingKey>,
    under_way: Semaphore,
}

impl Peers {
    /// Reads their keys.
    pub fn open(config: &Outbox) -> Result<Peers, Error> {
        let peers = config.peers.iter().map(|peer| {
            let key = peer.public_key.as_ref().map(|path| {
                let pem = std::fs::read(path).map_err(Error::io("read", path))?;
                DecodingKey::from_ec_pem(&pem).map_err(|error| Error::PublicKey {
                    path: path.clone(),
                    reason: error.to_string(),
                })
            });
            Ok(Peer {
                address: peer.address.clone(),
                databases: peer.databases.clone(),
                key: key.transpose()?,
                under_way: Semaphore::new(UNDER_WAY_MAX),
            })
        });
        let peers: Vec<Peer> = peers.collect::<Result<_, Error>>()?;
        let sends = peers.iter().any(|peer| peer.address.is_some());
        let outbound = sends.then(|| Outbound::new(OutboundOptions::current()));
        let failed =
            |error: lightcone_outbound::OutboundError| Error::HttpClient(error.to_string());
        Ok(Peers {
            peers,
            outbound: outbound.transpose().map_err(failed)?,
        })
    }

    /// The keys that may vouch for a database, which is one of another server.
    pub fn keys(&self) -> impl Iterator<Item = (&DecodingKey, &[Identity])> {
        let with_keys = self.peers.iter();
        with_keys.filter_map(|peer| Some((peer.key.as_ref()?, &peer.databases[..])))
    }

    /// Sends a message to the server that has its target.
    pub async fn carry(
        &self,
        message: Message,
        authority: &Authority,
        time_max: Duration,
    ) -> Carried {
        let mut peers = self.peers.iter();
        let peer = peers.find(|peer| peer.databases.contains(&message.target));
        let address = peer.and_then(|peer| Some((peer, peer.address.as_ref()?)));
        let (Some(outbound), Some((peer, address))) = (&self.outbound, address) else {
            return Carried::lost(format!(
                "there is no database {} on this server, and no server of outbox.peers in config.toml has it [LC0742]",
                message.target
            ));
        };
        let Some(url) = url(address, &message) else {
            return Carried::lost("the address of its server takes no path");
        };
        let Ok(Ok(_place)) = timeout(time_max, peer.under_way.acquire()).await else {
            return Carried::lost("too many messages to its server are under way");
        };
        let token = match authority.message_token(&message.sender, &message.target) {
            Ok(token) => token,
            Err(error) => return Carried::lost(error.to_string()),
        };
        let headers = [
            ("authorization".to_owned(), format!("Bearer {token}")),
            (
                "content-type".to_owned(),
                "application/octet-stream".to_owned(),
            ),
        ];
        let asked =
            outbound.post_for_answer(&url, &headers, message.args, time_max, ANSWER_BYTES_MAX);
        match asked.await {
            Ok((status, body)) => Carried {
                answer: answer(status, body),
                is_settled: false,
            },
            Err(error) => {
                // Addresses are the operator's affair, and not the module's.
                tracing::debug!(error = error_chain(&error), "a peer was not reached");
                Carried::lost("its server cannot be reached")
            }
        }
    }
}

fn url(address: &Url, message: &Message) -> Option<Url> {
    let mut url = address.clone();
    let (target, reducer) = (message.target.to_hex(), &*message.reducer);
    let path = ["v1", "database", &target, "call-from-database", reducer];
    url.path_segments_mut().ok()?.pop_if_empty().extend(path);
    url.query_pairs_mut()
        .append_pair("stream_id", &message.stream.to_string())
        .append_pair("seq", &message.seq.to_string())
        .append_pair("ack_prefix", &message.ack_prefix.to_string())
        .append_pair("signature_hash", &message.signature_hash.to_hex());
    Some(url)
}

fn answer(status: u16, body: Vec<u8>) -> Result<MessageAnswer, String> {
    let done = |status, payload| Ok(MessageAnswer::Done(MessageResult { status, payload }));
    match status {
        200 => done(ResultStatus::Ok, body),
        422 => done(ResultStatus::Error, body),
        402 => done(ResultStatus::OutOfEnergy, body),
        208 => Ok(MessageAnswer::Acknowledged),
        _ => {
            let text = String::from_utf8_lossy(&body);
            match expected(status, &text) {
                Some(expected) => Ok(MessageAnswer::OutOfOrder { expected }),
                None => Err(format!("HTTP {status}: {text}")),
            }
        }
    }
}

/// The number in [`MessageAnswer::out_of_order_text`].
fn expected(status: u16, text: &str) -> Option<u64> {
    let rest = text.split_once("expected seq ")?.1;
    let number = rest.split_once(',')?.0;
    number.parse().ok().filter(|_| status == 409)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lightcone_types::Hash;

    #[test]
    fn a_message_is_one_request() {
        let message = Message {
            sender: Identity::ZERO,
            target: Identity::from_le_bytes([1; 32]),
            stream: 7,
            seq: 3,
            ack_prefix: 2,
            reducer: "child.receive".to_owned(),
            signature_hash: Hash([2; 32]),
            args: Vec::new(),
        };
        for address in ["http://a.example:3000", "http://a.example:3000/"] {
            let url = url(&Url::parse(address).expect("a URL"), &message).expect("a path");
            let (one, two) = ("01".repeat(32), "02".repeat(32));
            assert_eq!(
                url.as_str(),
                format!(
                    "http://a.example:3000/v1/database/{one}/call-from-database/child.receive\
                     ?stream_id=7&seq=3&ack_prefix=2&signature_hash={two}"
                )
            );
        }
    }

    #[test]
    fn answers_are_read() {
        let text = MessageAnswer::out_of_order_text(5, 7).into_bytes();
        let out_of_order = Ok(MessageAnswer::OutOfOrder { expected: 5 });
        assert_eq!(answer(409, text.clone()), out_of_order);
        assert!(answer(500, text).is_err());
        assert_eq!(answer(208, Vec::new()), Ok(MessageAnswer::Acknowledged));
        let error = answer(503, b"busy".to_vec());
        assert_eq!(error, Err("HTTP 503: busy".to_owned()));
    }
}
