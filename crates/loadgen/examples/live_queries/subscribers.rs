//! Very many clients that only listen: a socket for each, one thread that reads them all.

use std::io::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::time::Duration;

use lightcone_loadgen::client::{Client, Endpoint};
use lightcone_loadgen::incoming::{Io, Progress};
use lightcone_loadgen::websocket::WebSocket;
use lightcone_types::Identity;
use lightcone_wire::{
    payload, ClientMessage, Protocol, QuerySetUpdate, ServerMessage, TableUpdateRows,
};
use mio::{Events, Interest, Poll, Token};

use crate::Result;

const BODY_BYTES_MAX: usize = 1 << 30;
/// Nothing comes for so long: all has come.
const SILENCE: Duration = Duration::from_millis(500);

pub struct Subscribers {
    clients: Vec<Client>,
    pub identities: Vec<Identity>,
}

impl Subscribers {
    pub fn open(endpoint: &Endpoint, count: u32) -> Result<Subscribers> {
        let mut clients = Vec::new();
        let mut identities = Vec::new();
        for number in 0..count {
            let client = Client::open(endpoint, number.into())?;
            identities.push(client.identity());
            clients.push(client);
        }
        Ok(Subscribers {
            clients,
            identities,
        })
    }

    /// One after the other, each to its query. Gives how many first rows all have got.
    pub fn subscribe(&mut self, query: impl Fn(u32) -> String) -> Result<usize> {
        let mut first_rows = 0;
        for (number, client) in (0..).zip(&mut self.clients) {
            client.send(&[ClientMessage::Subscribe {
                request_id: 1,
                query_set_id: 1,
                query_strings: vec![&query(number)],
            }])?;
            match client.receive()? {
                ServerMessage::SubscribeApplied { rows, .. } => {
                    let counts = rows.tables.iter().map(|table| table.rows.len());
                    first_rows += counts.sum::<usize>();
                }
                other => return Err(format!("not subscribed: {other:?}").into()),
            }
        }
        Ok(first_rows)
    }

    /// Counts what comes from now on.
    pub fn receive(self) -> Receiving {
        let rows = Arc::new(AtomicU32::new(0));
        let counted = rows.clone();
        std::thread::spawn(move || {
            if let Err(error) = receive_all(self.clients, &counted) {
                eprintln!("Error: {error}");
                std::process::exit(1);
            }
        });
        Receiving {
            rows,
            identities: self.identities,
        }
    }
}

pub struct Receiving {
    rows: Arc<AtomicU32>,
    pub identities: Vec<Identity>,
}

impl Receiving {
    /// Rows that came and went, once no more come.
    pub fn rows_after_silence(&self) -> u32 {
        let mut rows = self.rows.load(Ordering::Relaxed);
        loop {
            std::thread::sleep(SILENCE);
            let now = self.rows.load(Ordering::Relaxed);
            if now == rows {
                return rows;
            }
            rows = now;
        }
    }
}

fn receive_all(clients: Vec<Client>, rows: &AtomicU32) -> Result<()> {
    let mut poll = Poll::new()?;
    let mut sockets: Vec<(mio::net::TcpStream, WebSocket)> = Vec::new();
    for client in clients {
        let (stream, websocket) = client.into_event_loop()?;
        let mut stream = mio::net::TcpStream::from_std(stream);
        let token = Token(sockets.len());
        poll.registry()
            .register(&mut stream, token, Interest::READABLE)?;
        sockets.push((stream, websocket));
    }
    let mut events = Events::with_capacity(1024);
    let (mut buffer, mut pongs) = (Vec::new(), Vec::new());
    loop {
        poll.poll(&mut events, None)?;
        for event in &events {
            let (stream, websocket) = &mut sockets[event.token().0];
            loop {
                let io = Io {
                    stream,
                    buffer: &mut buffer,
                    out: &mut pongs,
                };
                let progress = websocket.read(io, |bytes| {
                    let body = payload::decode_body(bytes, BODY_BYTES_MAX)?;
                    for message in payload::decode_messages(Protocol::V3, &body)? {
                        rows.fetch_add(rows_of(&message), Ordering::Relaxed);
                    }
                    Ok(())
                })?;
                stream.write_all(&pongs)?;
                pongs.clear();
                match progress {
                    Progress::More => {}
                    Progress::Drained => break,
                    Progress::End => return Err("a subscriber lost its connection".into()),
                }
            }
        }
    }
}

fn rows_of(message: &ServerMessage) -> u32 {
    let ServerMessage::TransactionUpdate { query_sets } = message else {
        return 0;
    };
    let tables = query_sets
        .iter()
        .flat_map(|set: &QuerySetUpdate| &set.tables);
    let changed = tables.flat_map(|table| &table.rows).map(|rows| match rows {
        TableUpdateRows::Persistent { inserts, deletes } => inserts.len() + deletes.len(),
        TableUpdateRows::Event { events } => events.len(),
    });
    changed.sum::<usize>() as u32
}
