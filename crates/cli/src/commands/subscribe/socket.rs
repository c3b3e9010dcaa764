//! The connection of a subscription: v3, and v1 where a server knows no v3 (07 §5.6).

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use lightcone_types::Identity;
use lightcone_wire::payload::Protocol;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use super::update::{protocol_error, Event};
use super::{v1, v3};
use crate::error::{Error, Result};
use crate::http::Client;
use crate::schema::Schema;

/// A server that is there takes a connection much sooner.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(30);
/// As much as the reference's command accepts.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    V3,
    V1,
}

impl Dialect {
    fn token(self) -> &'static str {
        match self {
            Self::V3 => Protocol::V3.token(),
            Self::V1 => "v1.json.spacetimedb",
        }
    }

    /// What the URL says of it; v1 knows no compression.
    fn query(self, confirmed: Option<bool>) -> String {
        let (begun, mark) = match self {
            Self::V3 => ("?compression=None", '&'),
            Self::V1 => ("", '?'),
        };
        let confirmed = confirmed.map(|confirmed| format!("{mark}confirmed={confirmed}"));
        begun.to_owned() + &confirmed.unwrap_or_default()
    }
}

/// An open connection.
pub struct Socket {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
    dialect: Dialect,
}

/// Why a connection did not come about.
enum Refusal {
    /// Another protocol would fare no better.
    Final(Error),
    /// The server may know an older one.
    Protocol(Error),
}

impl Socket {
    pub async fn open(
        client: &Client,
        database: &Identity,
        confirmed: Option<bool>,
    ) -> Result<Self> {
        let open = async |dialect: Dialect| -> Result<Self, Refusal> {
            let connecting = connect(dialect, client, database, confirmed);
            let stream = tokio::time::timeout(CONNECT_TIME_MAX, connecting).await;
            let base = client.base();
            let late = || {
                coded!(
                    "LC0602",
                    "the server at {base} takes no WebSocket connection"
                )
            };
            let stream = stream.unwrap_or_else(|_| Err(Refusal::Final(late())))?;
            Ok(Self { stream, dialect })
        };
        match open(Dialect::V3).await {
            Ok(socket) => Ok(socket),
            Err(Refusal::Final(error)) => Err(error),
            // What it says of the newer protocol is the better reason.
            Err(Refusal::Protocol(error)) => open(Dialect::V1).await.map_err(|_| error),
        }
    }

    pub async fn subscribe(&mut self, queries: &[String]) -> Result<()> {
        let message = match self.dialect {
            Dialect::V3 => Message::Binary(v3::subscribe(queries).into()),
            Dialect::V1 => Message::Text(v1::subscribe(queries).into()),
        };
        self.stream
            .send(message)
            .await
            .map_err(caused!("LC0602", "the connection broke while subscribing"))
    }

    /// What the next message tells; `None` when the connection has ended.
    pub async fn next(&mut self, schema: &Schema) -> Result<Option<Vec<Event>>> {
        while let Some(message) = self.stream.next().await {
            match (message, self.dialect) {
                (Ok(Message::Binary(payload)), Dialect::V3) => {
                    return v3::events(&payload, MESSAGE_BYTES_MAX, schema).map(Some)
                }
                (Ok(Message::Text(text)), Dialect::V1) => {
                    return Ok(Some(v1::event(&text, schema)?.into_iter().collect()))
                }
                (Ok(Message::Text(_)), _) => return Err(protocol_error("a text message")),
                (Ok(Message::Binary(_)), _) => return Err(protocol_error("a binary message")),
                (Ok(Message::Close(_)) | Err(_), _) => break,
                (Ok(_), _) => {}
            }
        }
        Ok(None)
    }

    pub async fn close(&mut self) -> Result<(), tungstenite::Error> {
        self.stream.close(None).await
    }
}

async fn connect(
    dialect: Dialect,
    client: &Client,
    database: &Identity,
    confirmed: Option<bool>,
) -> Result<WebSocketStream<MaybeTlsStream<TcpStream>>, Refusal> {
    // Every URL of a server that can be asked begins with `http`.
    let base = client.base().replacen("http", "ws", 1);
    let query = dialect.query(confirmed);
    let url = format!("{base}/v1/database/{database}/subscribe{query}");
    let refused = |error| refusal(error, client);
    let mut request = url.into_client_request().map_err(refused)?;
    let headers = request.headers_mut();
    let protocol = HeaderValue::from_static(dialect.token());
    headers.insert("Sec-WebSocket-Protocol", protocol);
    if let Some(token) = client.token() {
        let value = HeaderValue::from_str(&format!("Bearer {token}"));
        let value = value.map_err(caused!("LC0606", "the stored token cannot be sent"));
        headers.insert("Authorization", value.map_err(Refusal::Final)?);
    }
    let limits = WebSocketConfig::default()
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX));
    let (stream, response) =
        tokio_tungstenite::connect_async_with_config(request, Some(limits), false)
            .await
            .map_err(refused)?;
    let chosen = response.headers().get("Sec-WebSocket-Protocol");
    match chosen.and_then(|value| value.to_str().ok()) == Some(dialect.token()) {
        true => Ok(stream),
        false => Err(Refusal::Protocol(too_old())),
    }
}

fn too_old() -> Error {
    coded!(
        "LC0623",
        "the server does not speak the protocol {}; it is too old for this command, or not a server of this kind",
        Dialect::V3.token(),
    )
}

fn refusal(error: tungstenite::Error, client: &Client) -> Refusal {
    match error {
        tungstenite::Error::Http(response) => {
            let body = response.body().as_deref().map(String::from_utf8_lossy);
            let error = crate::http::refusal(response.status(), &body.unwrap_or_default());
            match response.status().as_u16() {
                401 | 403 | 404 => Refusal::Final(error),
                _ => Refusal::Protocol(error),
            }
        }
        tungstenite::Error::Protocol(_) => Refusal::Protocol(too_old()),
        other => {
            let text = format!("cannot open a WebSocket to {}", client.base());
            Refusal::Final(Error::caused("LC0602", text, other))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Dialect;

    #[test]
    fn parameters() {
        assert_eq!(Dialect::V3.query(None), "?compression=None");
        assert_eq!(
            Dialect::V3.query(Some(true)),
            "?compression=None&confirmed=true"
        );
        assert_eq!(Dialect::V1.query(None), "");
        assert_eq!(Dialect::V1.query(Some(false)), "?confirmed=false");
    }
}
