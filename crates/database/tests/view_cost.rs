//! What a change costs that concerns one of very many views. Prints figures; run it in release when views change:
//! `cargo test --release -p lightcone-database -p lightcone-host-js --features lightcone-host-js/v8 --test view_cost -- --ignored --nocapture`.

use std::time::Instant;

use crate::common::{bundle, module, options, Client};
use lightcone_database::{DatabaseHandle, HostKind, ShutdownReason};
use lightcone_host_js::JsEngineOptions;
use lightcone_types::{Encode, Identity};
use lightcone_wire::{ClientMessage, ServerMessage};

const SUBSCRIBERS: u32 = 10_000;
const CALLS: u32 = 20_000;
/// Calls that are under way at a time.
const WINDOW: u32 = 500;

fn identity(number: u32) -> Identity {
    let mut bytes = [0; 32];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    Identity::from_le_bytes(bytes)
}

/// Microseconds for one call of `put`, of many that follow each other.
async fn call_us(database: &DatabaseHandle, caller: &mut Client, round: u32) -> f64 {
    let started = Instant::now();
    let (mut sent, mut done) = (0, 0);
    while done < CALLS {
        let mut payloads = Vec::new();
        while sent < CALLS && sent - done < WINDOW {
            let owner = 1 + (sent * 7919) % SUBSCRIBERS;
            let mut args = owner.to_vec();
            identity(owner).encode(&mut args);
            (1_u32, sent + round * CALLS, "text").encode_all(&mut args);
            payloads.push(args);
            sent += 1;
        }
        let calls = payloads.iter().map(|args| ClientMessage::CallReducer {
            request_id: 1,
            reducer: "put",
            args,
        });
        let calls: Vec<_> = calls.collect();
        if !calls.is_empty() {
            caller.send(&calls).await;
        }
        loop {
            let message = caller.next().await;
            assert!(matches!(message, ServerMessage::ReducerResult { .. }));
            done += 1;
            if sent - done <= WINDOW / 2 || done == CALLS {
                break;
            }
        }
    }
    let _ = database;
    started.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS)
}

trait EncodeAll {
    fn encode_all(&self, out: &mut Vec<u8>);
}

impl EncodeAll for (u32, u32, &str) {
    fn encode_all(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
        self.1.encode(out);
        self.2.encode(out);
    }
}

async fn one_of_ten_thousand(kind: HostKind, view: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = options(directory.path());
    let engine = lightcone_host_js::engine(JsEngineOptions::default());
    options.engines.js = Some(engine.expect("the engine starts"));
    options.in_memory = true;
    let program = match kind {
        HostKind::Wasm => module("views"),
        HostKind::Js => bundle("views").into_bytes().into(),
    };
    let created =
        tokio::task::spawn_blocking(move || DatabaseHandle::create(options, program, kind));
    let database = created.await.expect("no panic").expect("created");
    let mut caller = Client::connect(&database, identity(0), 1_000_000).await;
    call_us(&database, &mut caller, 0).await;
    let without = call_us(&database, &mut caller, 1).await;
    let mut subscribers = Vec::new();
    let text = format!("SELECT * FROM {view}");
    let started = Instant::now();
    for number in 1..=SUBSCRIBERS {
        let mut client = Client::connect(&database, identity(number), number.into()).await;
        let message = ClientMessage::Subscribe {
            request_id: 1,
            query_set_id: 1,
            query_strings: vec![&text],
        };
        client.send(&[message]).await;
        assert!(matches!(
            client.next().await,
            ServerMessage::SubscribeApplied { .. }
        ));
        subscribers.push(client);
    }
    let subscribing = started.elapsed().as_secs_f64() * 1e6 / f64::from(SUBSCRIBERS);
    let with = call_us(&database, &mut caller, 2).await;
    println!("{kind:?} {view}: a call takes {without:.1} us, {with:.1} us with {SUBSCRIBERS} subscribers; subscribing took {subscribing:.1} us");
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "prints figures"]
async fn a_change_that_concerns_one_of_ten_thousand() {
    for kind in [HostKind::Wasm, HostKind::Js] {
        for view in ["my_messages", "my_query"] {
            one_of_ten_thousand(kind, view).await;
        }
    }
}
