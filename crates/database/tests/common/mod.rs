//! A database in a temporary directory, running a real module, and a client that speaks the protocol's messages.
#![allow(dead_code, reason = "each test uses its part of this")]

pub mod other_machine;
pub mod publishing;
pub mod requests;
pub mod tables;
pub mod watcher;
pub mod windows;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lightcone_database::{
    Caller, Commons, ConnectRequest, Connection, DatabaseHandle, DatabaseOptions, Engines,
    EnvironmentChange, HostKind, Limits, Machine, Outgoing, Protocol, RemovedVariables, Rights,
    Secrets, SECRETS_KEY_BYTES,
};
use lightcone_host_js::JsEngineOptions;
use lightcone_host_wasm::{WasmEngine, WasmEngineOptions};
use lightcone_types::{ConnectionId, Encode, Identity};
use lightcone_wire::{ClientMessage, ServerMessage};

/// The module `name`, built by `make modules`.
pub fn module(name: &str) -> Arc<[u8]> {
    let directory = std::env::var_os("LIGHTCONE_MODULES_WASM_DIR").map_or_else(
        || {
            let home = std::env::var_os("HOME").expect("HOME is set");
            PathBuf::from(home).join(".cache/lightcone/wasm")
        },
        PathBuf::from,
    );
    let path = directory.join(format!("{name}.wasm"));
    let bytes = std::fs::read(&path);
    bytes
        .unwrap_or_else(|error| {
            panic!(
                "{}: {error}; build the modules first: make modules",
                path.display()
            )
        })
        .into()
}

/// The JavaScript module `name`, bundled by `scripts/js-modules.sh`.
pub fn bundle(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let status = Command::new(root.join("scripts/js-modules.sh"))
        .status()
        .expect("scripts/js-modules.sh runs");
    assert!(status.success(), "scripts/js-modules.sh: {status}");
    let directory = std::env::var_os("LIGHTCONE_JS_DIR").map_or_else(
        || Path::new(&std::env::var_os("HOME").expect("HOME is set")).join(".cache/lightcone/js"),
        Into::into,
    );
    let path = directory.join(format!("{name}.js"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub const OWNER: Identity = Identity::from_le_bytes([7; 32]);
pub const STRANGER: Identity = Identity::from_le_bytes([9; 32]);

pub fn options(directory: &std::path::Path) -> DatabaseOptions {
    DatabaseOptions {
        directory: directory.to_owned(),
        identity: Identity::from_le_bytes([1; 32]),
        owner: OWNER,
        in_memory: false,
        limits: Limits::default(),
        engines: Engines {
            wasm: Arc::new(
                WasmEngine::new(WasmEngineOptions::default()).expect("the engine starts"),
            ),
            js: None,
        },
        commons: Commons::new(Machine::current(), 1 << 30, 2),
        storage: lightcone_database::disk(),
        loads: Arc::default(),
        disk: Arc::default(),
        test_clock: None,
    }
}

/// Secrets that every process opens which has the same number.
pub fn secrets(key: u8) -> Arc<Secrets> {
    Arc::new(Secrets::new(Box::new(
        move |_| Ok([key; SECRETS_KEY_BYTES]),
    )))
}

/// Creates a database on a thread that may block.
pub async fn create(options: DatabaseOptions, module_name: &str) -> DatabaseHandle {
    let program = module(module_name);
    let created = tokio::task::spawn_blocking(move || {
        DatabaseHandle::create(options, program, HostKind::Wasm)
    })
    .await;
    created.expect("no panic").expect("the module is valid")
}

/// Creates a database whose module has all that came after 2.10, in Rust or in TypeScript.
pub async fn create_latest(mut options: DatabaseOptions, kind: HostKind) -> DatabaseHandle {
    let program: Arc<[u8]> = match kind {
        HostKind::Wasm => module("latest"),
        HostKind::Js => bundle("latest-lightcone").into_bytes().into(),
    };
    let engine = || lightcone_host_js::engine(JsEngineOptions::default());
    let engine = || engine().expect("the engine starts");
    options.engines.js.get_or_insert_with(engine);
    // The one in TypeScript must have it.
    let variables = BTreeMap::from([("API_KEY".to_owned(), "key".to_owned())]);
    let variables = EnvironmentChange::new(variables, RemovedVariables::None).expect("a change");
    let create = move || DatabaseHandle::create_with(options, program, kind, variables);
    let created = tokio::task::spawn_blocking(create).await;
    let created = created.expect("no panic");
    created.unwrap_or_else(|error| panic!("{error}"))
}

pub async fn open(options: DatabaseOptions) -> DatabaseHandle {
    let opened = tokio::task::spawn_blocking(move || DatabaseHandle::open(options)).await;
    opened.expect("no panic").expect("the database opens")
}

pub fn caller(identity: Identity) -> Caller {
    Caller {
        identity,
        rights: Rights::default(),
        jwt_payload: "{}".into(),
    }
}

/// A connection whose messages are decoded.
pub struct Client {
    pub connection: Connection,
    pending: std::collections::VecDeque<ServerMessage>,
}

impl Client {
    pub async fn connect(database: &DatabaseHandle, identity: Identity, id: u128) -> Client {
        Client::connect_with(database, identity, id, true).await
    }

    pub async fn connect_with(
        database: &DatabaseHandle,
        identity: Identity,
        id: u128,
        confirmed: bool,
    ) -> Client {
        let request = ConnectRequest {
            identity,
            rights: Rights::default(),
            connection_id: ConnectionId(id),
            session_id: None,
            session_grace: Duration::ZERO,
            jwt_payload: "{}".into(),
            confirmed,
            protocol: Protocol::V3,
            token: "token".into(),
        };
        let connection = database.connect(request).await.expect("accepted");
        let mut client = Client {
            connection,
            pending: Default::default(),
        };
        assert!(matches!(
            client.next().await,
            ServerMessage::InitialConnection { .. }
        ));
        client
    }

    /// Sends messages in one payload.
    pub async fn send(&self, messages: &[ClientMessage<'_>]) {
        let mut payload = Vec::new();
        messages
            .iter()
            .for_each(|message| message.encode(&mut payload));
        self.connection
            .sender
            .submit(Bytes::from(payload))
            .await
            .expect("the payload is well formed");
    }

    pub async fn next(&mut self) -> ServerMessage {
        while self.pending.is_empty() {
            let next = tokio::time::timeout(
                std::time::Duration::from_secs(30),
                self.connection.outgoing.recv(),
            );
            match next
                .await
                .expect("an answer in time")
                .expect("the connection lives")
            {
                Outgoing::Messages(batch) => {
                    let mut start = 0;
                    for &end in &batch.ends {
                        let message = &batch.bytes[start..end];
                        let decoded =
                            lightcone_wire::payload::decode_messages(Protocol::V2, message);
                        self.pending
                            .extend(decoded.expect("the server's messages decode"));
                        start = end;
                    }
                }
                Outgoing::Close { code, reason } => panic!("closed with {code} {reason}"),
            }
        }
        self.pending.pop_front().expect("not empty")
    }
}
