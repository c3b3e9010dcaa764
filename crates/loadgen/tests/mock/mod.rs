//! A server just real enough to be measured: a bank in memory behind the client protocol.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use futures_util::{SinkExt, StreamExt};
use lightcone_types::{ConnectionId, Encode, Identity, Reader, Timestamp};
use lightcone_wire::rows::row_list;
use lightcone_wire::{server, ClientMessage, ClientPayload, Protocol, RowSize};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Bytes, Message};

const TIMESTAMP: Timestamp = Timestamp(1_700_000_000_000_000);
const ACCOUNT: RowSize = RowSize::Fixed(12);

#[derive(Default)]
struct Bank {
    balances: HashMap<u32, i64>,
    calls: u64,
    /// Most calls seen in one payload.
    burst_calls_max: usize,
}

/// A running mock; it ends with its runtime.
pub struct Mock {
    pub address: SocketAddr,
    bank: Arc<Mutex<Bank>>,
    _runtime: tokio::runtime::Runtime,
}

impl Mock {
    pub fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let bank = Arc::new(Mutex::new(Bank::default()));
        let shared = bank.clone();
        runtime.spawn(async move {
            let (changes, _) = broadcast::channel(1 << 14);
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, shared.clone(), changes.clone()));
            }
        });
        Self {
            address,
            bank,
            _runtime: runtime,
        }
    }

    pub fn url(&self) -> String {
        format!("ws://{}", self.address)
    }

    pub fn calls(&self) -> u64 {
        self.bank.lock().unwrap().calls
    }

    pub fn burst_calls_max(&self) -> usize {
        self.bank.lock().unwrap().burst_calls_max
    }
}

type Changes = broadcast::Sender<(u32, i64, i64)>;

// The signature of the callback is tungstenite's.
#[allow(clippy::result_large_err)]
async fn serve(stream: TcpStream, bank: Arc<Mutex<Bank>>, changes: Changes) {
    let mut database = String::new();
    let mut protocol = None;
    let accept = |request: &Request, mut response: Response| {
        let path = request.uri().path();
        database = path.split('/').nth(3).unwrap_or_default().to_owned();
        assert_eq!(path, format!("/v1/database/{database}/subscribe"));
        assert!(request.uri().query().unwrap().contains("compression=None"));
        if database == "missing" {
            let mut refusal = ErrorResponse::new(Some("`missing` not found".into()));
            *refusal.status_mut() = tokio_tungstenite::tungstenite::http::StatusCode::NOT_FOUND;
            return Err(refusal);
        }
        let offered = request.headers()["sec-websocket-protocol"]
            .to_str()
            .unwrap();
        protocol = Protocol::select([offered]);
        let token = protocol.unwrap().token().parse().unwrap();
        response
            .headers_mut()
            .insert("sec-websocket-protocol", token);
        Ok(response)
    };
    let Ok(mut socket) = tokio_tungstenite::accept_hdr_async(stream, accept).await else {
        return;
    };
    let protocol = protocol.unwrap();
    if database == "rejects" {
        return;
    }
    let mut out = vec![0];
    server::initial_connection(&mut out, Identity::ZERO, ConnectionId(1), "token");
    socket.send(Message::Binary(out.into())).await.unwrap();
    socket.send(Message::Ping(Bytes::new())).await.unwrap();
    let mut subscribed = HashSet::new();
    let mut changes_seen = changes.subscribe();
    loop {
        let payloads = tokio::select! {
            message = socket.next() => match message {
                Some(Ok(Message::Binary(payload))) => {
                    let is_query = payload[0] == 2;
                    if database == "closes" && !is_query && bank.lock().unwrap().calls > 500 {
                        let reason = "module exited".into();
                        let frame = CloseFrame { code: CloseCode::Away, reason };
                        let _ = socket.close(Some(frame)).await;
                        return;
                    }
                    let forgets = database == "forgets";
                    answers(protocol, &payload, &bank, &changes, &mut subscribed, forgets)
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                _ => return,
            },
            change = changes_seen.recv() => match change {
                Ok(change) if subscribed.contains(&change.0) => vec![update(change)],
                _ => continue,
            },
        };
        for payload in payloads {
            socket.feed(Message::Binary(payload.into())).await.unwrap();
        }
        if socket.flush().await.is_err() {
            return;
        }
    }
}

/// Payloads that answer a payload: all in one in version 3.
fn answers(
    protocol: Protocol,
    payload: &[u8],
    bank: &Mutex<Bank>,
    changes: &Changes,
    subscribed: &mut HashSet<u32>,
    forgets: bool,
) -> Vec<Vec<u8>> {
    let mut bank = bank.lock().unwrap();
    let mut payloads = vec![];
    let messages: Vec<_> = ClientPayload::new(protocol, payload).collect();
    bank.burst_calls_max = bank.burst_calls_max.max(messages.len());
    for message in messages {
        if protocol == Protocol::V2 || payloads.is_empty() {
            payloads.push(vec![0]);
        }
        let out = payloads.last_mut().unwrap();
        match message.unwrap() {
            ClientMessage::Subscribe {
                request_id,
                query_set_id,
                query_strings,
            } => {
                let id = query_strings[0].strip_prefix("SELECT * FROM accounts WHERE id = ");
                subscribed.insert(id.unwrap().parse().unwrap());
                server::subscribe_applied(out, request_id, query_set_id, 0);
            }
            ClientMessage::OneOffQuery { request_id, .. } => {
                let accounts = bank.balances.iter();
                let rows: Vec<Vec<u8>> = accounts.map(|(id, balance)| row(*id, *balance)).collect();
                server::one_off_query_ok(out, request_id, 1);
                "accounts".encode(out);
                row_list(out, ACCOUNT, rows.iter().map(Vec::as_slice)).unwrap();
            }
            ClientMessage::CallReducer {
                request_id,
                reducer,
                args,
            } => call(out, &mut bank, changes, request_id, reducer, args, forgets),
            other => panic!("unexpected {other:?}"),
        }
    }
    payloads
}

fn call(
    out: &mut Vec<u8>,
    bank: &mut Bank,
    changes: &Changes,
    request_id: u32,
    reducer: &str,
    args: &[u8],
    forgets: bool,
) {
    let mut args = Reader::new(args);
    match reducer {
        "seed" => {
            let (count, balance) = (args.read_u32().unwrap(), args.read_i64().unwrap());
            bank.balances = (0..count).map(|id| (id, balance)).collect();
            server::reducer_result_ok(out, request_id, TIMESTAMP, &[], (&[], 0));
        }
        "transfer" => {
            bank.calls += 1;
            let ends = [args.read_u32().unwrap(), args.read_u32().unwrap()];
            let amount = args.read_i64().unwrap();
            assert!(ends[0] != ends[1] && amount > 0);
            if bank.balances[&ends[0]] < amount {
                server::reducer_result_err(out, request_id, TIMESTAMP, "insufficient_funds");
                return;
            }
            let amount = if forgets { 0 } else { amount };
            for (id, change) in [(ends[0], -amount), (ends[1], amount)] {
                let balance = bank.balances.get_mut(&id).unwrap();
                let old = *balance;
                *balance += change;
                // There may be no receiver.
                let _ = changes.send((id, old, *balance));
            }
            // Servers may answer in either way.
            if request_id.is_multiple_of(3) {
                server::reducer_result_ok(out, request_id, TIMESTAMP, &[], (&[], 0));
            } else {
                server::reducer_result_ok_empty(out, request_id, TIMESTAMP);
            }
        }
        _ => {
            server::reducer_result_internal_error(out, request_id, TIMESTAMP, "no such reducer");
        }
    }
}

fn row(id: u32, balance: i64) -> Vec<u8> {
    [&id.to_le_bytes()[..], &balance.to_le_bytes()[..]].concat()
}

fn update((id, old, new): (u32, i64, i64)) -> Vec<u8> {
    let (old, new) = (row(id, old), row(id, new));
    let mut set = (id, 1_u32, "accounts", 1_u32).to_vec();
    server::persistent_rows(&mut set, ACCOUNT, [&new[..]], [&old[..]]).unwrap();
    let mut out = vec![0];
    server::transaction_update(&mut out, &set, 1);
    out
}
