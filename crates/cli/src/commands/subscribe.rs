//! `spacetime subscribe` (07 §5.6), over the protocol of chapter 05.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use lightcone_types::json::{bsatn_to_json_named, write_string};
use lightcone_types::{Encode, Identity, Reader};
use lightcone_wire::payload::{decode_body, decode_messages, Protocol};
use lightcone_wire::{ClientMessage, QuerySetUpdate, RowList, ServerMessage, TableUpdateRows};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use super::{Auth, Common, Context};
use crate::error::{Error, Result};
use crate::http::Client;
use crate::schema::Schema;
use crate::targets::{self, Rest};

#[derive(Debug, clap::Args)]
#[command(override_usage = "spacetime subscribe [OPTIONS] [DATABASE] <QUERY>...")]
pub struct Args {
    /// The database (may be left out in a project with one) and the queries
    #[arg(value_name = "ARGS")]
    args: Vec<String>,
    /// End after this many updates
    #[arg(short, long, value_name = "N")]
    num_updates: Option<u32>,
    /// End after this many seconds
    #[arg(short, long, value_name = "SECS")]
    timeout: Option<u32>,
    /// Print the rows that are there at the start, too
    #[arg(long)]
    print_initial_update: bool,
    /// Show changes only when they are on disk
    #[arg(long, value_name = "BOOL")]
    confirmed: Option<bool>,
    /// Send no credentials
    #[arg(long)]
    anonymous: bool,
    #[command(flatten)]
    common: Common,
}

/// A server that is there takes a connection much sooner.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(30);

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

pub async fn run(context: &mut Context, args: Args) -> Result<()> {
    let known = targets::known(args.common.no_config)?;
    let rest = Rest::Required {
        name: "QUERY",
        unknown_database_ok: false,
    };
    let (database, queries) =
        targets::resolve(&known, &args.args, rest, args.common.server.as_deref())?;
    let client = context
        .client(
            database.server.as_deref(),
            Auth::new(args.anonymous, args.common.yes),
        )
        .await?;
    let identity = client.database_identity(&database.name).await?;
    let schema = Schema::fetch(&client, &identity).await?;

    let mut watch = Watch {
        schema,
        print_initial: args.print_initial_update,
        received: 0,
        wanted: args.num_updates,
        is_applied: false,
    };
    let connecting = connect(&client, &identity, args.confirmed);
    let mut socket = tokio::time::timeout(CONNECT_TIME_MAX, connecting)
        .await
        .map_err(|_| {
            let text = format!(
                "the server at {} takes no WebSocket connection",
                client.base()
            );
            Error::coded("LC0602", text)
        })??;
    subscribe(&mut socket, &queries).await?;
    let watching = watch.run(&mut socket);
    let end = match args.timeout {
        None => watching.await,
        Some(seconds) => {
            match tokio::time::timeout(Duration::from_secs(seconds.into()), watching).await {
                Ok(end) => end,
                Err(_) => Ok(WatchEnd::Timeout(seconds)),
            }
        }
    }?;
    // The server notices a closed socket too; politeness must not delay the end.
    let _ = tokio::time::timeout(Duration::from_millis(500), socket.close(None)).await;
    match (end, args.num_updates) {
        (WatchEnd::Enough, _) => Ok(()),
        (WatchEnd::Closed | WatchEnd::Timeout(_), None) if !watch.is_applied => Err(Error::coded(
            "LC0865",
            format!(
                "the server at {} ended the connection, or let the time pass, before it had answered the subscription. \
                 `spacetime logs` may say why.",
                client.base()
            ),
        )),
        (WatchEnd::Timeout(_), None) => Ok(()),
        (WatchEnd::Closed, None) => {
            eprintln!("disconnected by server");
            Ok(())
        }
        (WatchEnd::Timeout(seconds), Some(wanted)) => Err(Error::plain(format!(
            "subscription timed out after {seconds}s after receiving {}/{wanted} updates",
            watch.received
        ))),
        (WatchEnd::Closed, Some(wanted)) => Err(Error::plain(format!(
            "subscription closed after receiving {}/{wanted} updates",
            watch.received
        ))),
    }
}

async fn connect(client: &Client, database: &Identity, confirmed: Option<bool>) -> Result<Socket> {
    let base = client.base();
    let base = base
        .strip_prefix("http")
        .map_or_else(|| base.to_owned(), |rest| format!("ws{rest}"));
    let confirmed = confirmed.map_or_else(String::new, |c| format!("&confirmed={c}"));
    let url = format!(
        "{base}/v1/database/{}/subscribe?compression=None{confirmed}",
        database.to_hex()
    );
    let failed = |e: tungstenite::Error| match e {
        tungstenite::Error::Http(response) => {
            let body = response
                .body()
                .as_deref()
                .map(String::from_utf8_lossy)
                .unwrap_or_default()
                .into_owned();
            crate::http::refusal(response.status(), &body)
        }
        other => Error::caused(
            "LC0602",
            format!("cannot open a WebSocket to {}", client.base()),
            other,
        ),
    };
    let mut request = url.into_client_request().map_err(failed)?;
    let headers = request.headers_mut();
    headers.insert(
        "Sec-WebSocket-Protocol",
        HeaderValue::from_static("v3.bsatn.spacetimedb"),
    );
    if let Some(token) = client.token() {
        let value = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|e| Error::caused("LC0606", "the stored token cannot be sent", e))?;
        headers.insert("Authorization", value);
    }
    let (socket, response) = tokio_tungstenite::connect_async(request)
        .await
        .map_err(failed)?;
    let chosen = response
        .headers()
        .get("Sec-WebSocket-Protocol")
        .and_then(|v| v.to_str().ok());
    if chosen != Some(Protocol::V3.token()) {
        return Err(Error::coded(
            "LC0623",
            format!(
                "the server does not speak the protocol {}; it is too old for this command",
                Protocol::V3.token()
            ),
        ));
    }
    Ok(socket)
}

async fn subscribe(socket: &mut Socket, queries: &[String]) -> Result<()> {
    let message = ClientMessage::Subscribe {
        request_id: 0,
        query_set_id: 0,
        query_strings: queries.iter().map(String::as_str).collect(),
    };
    socket
        .send(Message::Binary(message.to_vec().into()))
        .await
        .map_err(|e| Error::caused("LC0602", "the connection broke while subscribing", e))
}

/// Why watching ended without an error.
#[derive(Debug, PartialEq, Eq)]
enum WatchEnd {
    Enough,
    Closed,
    Timeout(u32),
}

struct Watch {
    schema: Schema,
    print_initial: bool,
    received: u32,
    wanted: Option<u32>,
    /// The server has taken the queries.
    is_applied: bool,
}

impl Watch {
    async fn run(&mut self, socket: &mut Socket) -> Result<WatchEnd> {
        while let Some(message) = socket.next().await {
            let payload = match message {
                Ok(Message::Binary(payload)) => payload,
                Ok(Message::Close(_)) => break,
                Ok(Message::Text(_)) => return Err(protocol_error("a text message")),
                Ok(_) => continue,
                Err(_) => break,
            };
            for message in messages(&payload)? {
                if self.take(message)? {
                    return Ok(WatchEnd::Enough);
                }
            }
        }
        Ok(WatchEnd::Closed)
    }

    /// Handles one message; true if no more are wanted.
    fn take(&mut self, message: ServerMessage) -> Result<bool> {
        match message {
            ServerMessage::SubscribeApplied { rows, .. } => {
                self.is_applied = true;
                if self.print_initial {
                    let mut update = Update::default();
                    for table in &rows.tables {
                        update.add(&self.schema, &table.table, Side::Inserts, &table.rows)?;
                    }
                    println!("{}", update.json());
                }
                // Only now is it known that the server takes the queries.
                Ok(self.wanted == Some(0))
            }
            ServerMessage::SubscriptionError { error, .. } => Err(Error::plain(format!(
                "encountered error in initial subscribe: {error}"
            ))),
            ServerMessage::TransactionUpdate { query_sets } => {
                println!("{}", self.update(&query_sets)?.json());
                self.received += 1;
                Ok(self.wanted.is_some_and(|wanted| self.received >= wanted))
            }
            _ => Ok(false),
        }
    }

    fn update(&self, query_sets: &[QuerySetUpdate]) -> Result<Update> {
        let mut update = Update::default();
        for table in query_sets.iter().flat_map(|set| &set.tables) {
            for rows in &table.rows {
                match rows {
                    TableUpdateRows::Persistent { inserts, deletes } => {
                        update.add(&self.schema, &table.table_name, Side::Inserts, inserts)?;
                        update.add(&self.schema, &table.table_name, Side::Deletes, deletes)?;
                    }
                    TableUpdateRows::Event { events } => {
                        update.add(&self.schema, &table.table_name, Side::Inserts, events)?;
                    }
                }
            }
        }
        Ok(update)
    }
}

fn protocol_error(what: impl std::fmt::Display) -> Error {
    Error::coded("LC0623", format!("the server broke the protocol: {what}"))
}

/// The messages of one frame: a tag that says "uncompressed", then the messages.
fn messages(payload: &[u8]) -> Result<Vec<ServerMessage>> {
    /// As much as the reference's command accepts.
    const MESSAGE_BYTES_MAX: usize = 64 << 20;
    let body = decode_body(payload, MESSAGE_BYTES_MAX).map_err(protocol_error)?;
    decode_messages(Protocol::V3, &body).map_err(protocol_error)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Deletes,
    Inserts,
}

/// One line of output: for every table the rows that went and came, as JSON texts.
#[derive(Default)]
struct Update {
    tables: BTreeMap<String, [Vec<String>; 2]>,
}

impl Update {
    fn add(&mut self, schema: &Schema, table: &str, side: Side, rows: &RowList) -> Result<()> {
        let shape = schema.rows(table).ok_or_else(|| {
            Error::coded(
                "LC0623",
                format!("the server sent rows of a table `{table}` that the module does not have"),
            )
        })?;
        let entry = self.tables.entry(table.to_owned()).or_default();
        for row in rows.iter() {
            let mut json = String::new();
            bsatn_to_json_named(
                &shape.typespace,
                &shape.row,
                &mut Reader::new(row),
                &mut json,
            )
            .map_err(protocol_error)?;
            entry[side as usize].push(json);
        }
        Ok(())
    }

    fn json(&self) -> String {
        let mut out = String::from("{");
        for (index, (table, [deletes, inserts])) in self.tables.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            write_string(table, &mut out);
            out.push_str(&format!(
                ":{{\"deletes\":[{}],\"inserts\":[{}]}}",
                deletes.join(","),
                inserts.join(",")
            ));
        }
        out.push('}');
        out
    }
}
