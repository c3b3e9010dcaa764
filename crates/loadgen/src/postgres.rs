//! A blocking connection to PostgreSQL: logging in, and the statements before and after a run.

use std::io::{Read, Write};
use std::net::TcpStream;

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256, SCRAM_SHA_256};
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;

use crate::address::{connect, for_event_loop, with_port};
use crate::dialect::postgres::{error_of, next_message, value_of_row};
use crate::Error;

const PORT: u16 = 5432;

/// Where a database is and who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Database {
    /// `host:port`
    pub host: String,
    user: String,
    password: String,
    name: String,
    /// Settings of the session, e.g. `-c default_transaction_isolation=serializable`.
    options: Option<String>,
}

impl Database {
    /// Of a URL `postgres://[user[:password]@]host[:port][/database][?options=…]`.
    pub fn parse(url: &str) -> Result<Self, Error> {
        let refuse = |why: &str| {
            Err(Error::Options(format!(
                "--url {why}; write postgres://user:password@host:port/database"
            )))
        };
        let Some(("postgres" | "postgresql", rest)) = url.split_once("://") else {
            return refuse("is not a PostgreSQL URL");
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, name) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let Some(decoded) = [user, password, name].into_iter().map(decode).collect() else {
            return refuse("has a broken %");
        };
        let decoded: Vec<String> = decoded;
        let [user, password, name] = decoded.try_into().expect("three of three");
        if host.is_empty() {
            return refuse("names no host");
        }
        let mut options = None;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("options", value)) => options = decode(&value.replace('+', " ")),
                Some(("sslmode", "disable" | "prefer" | "allow") | ("application_name", _)) => {}
                Some(("sslmode", _)) => return refuse("asks for TLS, which is not supported"),
                _ => return refuse("has a parameter besides options and sslmode"),
            }
        }
        let user = match user.is_empty() {
            true => "postgres".to_owned(),
            false => user,
        };
        Ok(Self {
            host: with_port(host, PORT),
            name: match name.is_empty() {
                true => user.clone(),
                false => name,
            },
            user,
            password,
            options,
        })
    }
}

/// A text in which `%` and two digits stand for a byte.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [char::from(rest.next()?), char::from(rest.next()?)];
        let value = digits.map(|digit| digit.to_digit(16));
        bytes.push((value[0]? * 16 + value[1]?) as u8);
    }
    String::from_utf8(bytes).ok()
}

const LOGIN: &str = "logging in to the database";

/// A connection whose statements wait.
#[derive(Debug)]
pub struct PostgresClient {
    stream: TcpStream,
    input: BytesMut,
    output: BytesMut,
}

impl PostgresClient {
    /// Connects and logs in.
    pub fn open(database: &Database) -> Result<Self, Error> {
        let mut client = Self {
            stream: connect(&database.host)?,
            input: BytesMut::new(),
            output: BytesMut::new(),
        };
        let mut parameters = vec![
            ("user", database.user.as_str()),
            ("database", database.name.as_str()),
            ("application_name", "lightcone-loadgen"),
            ("client_encoding", "UTF8"),
        ];
        if let Some(options) = &database.options {
            parameters.push(("options", options));
        }
        client.write(|out| frontend::startup_message(parameters, out))?;
        client.log_in(database)?;
        Ok(client)
    }

    fn log_in(&mut self, database: &Database) -> Result<(), Error> {
        let (user, password) = (database.user.as_bytes(), database.password.as_bytes());
        let mut scram = ScramSha256::new(password, ChannelBinding::unsupported());
        let login = |error: std::io::Error| Error::request(LOGIN, error.to_string());
        loop {
            match self.receive(LOGIN)? {
                Message::AuthenticationCleartextPassword => {
                    self.write(|out| frontend::password_message(password, out))?;
                }
                Message::AuthenticationMd5Password(body) => {
                    let hash = md5_hash(user, password, body.salt());
                    self.write(|out| frontend::password_message(hash.as_bytes(), out))?;
                }
                Message::AuthenticationSasl(body) => {
                    let offered: Vec<&str> = body.mechanisms().collect().map_err(login)?;
                    if !offered.contains(&SCRAM_SHA_256) {
                        return Err(Error::request(LOGIN, format!("it offers only {offered:?}")));
                    }
                    let first = scram.message().to_vec();
                    self.write(|out| frontend::sasl_initial_response(SCRAM_SHA_256, &first, out))?;
                }
                Message::AuthenticationSaslContinue(body) => {
                    scram.update(body.data()).map_err(login)?;
                    let proof = scram.message().to_vec();
                    self.write(|out| frontend::sasl_response(&proof, out))?;
                }
                Message::AuthenticationSaslFinal(body) => {
                    scram.finish(body.data()).map_err(login)?;
                }
                Message::ReadyForQuery(_) => return Ok(()),
                Message::AuthenticationOk
                | Message::ParameterStatus(_)
                | Message::BackendKeyData(_)
                | Message::NoticeResponse(_) => {}
                _ => {
                    let detail = "it asks for a login that is not supported";
                    return Err(Error::request(LOGIN, detail));
                }
            }
        }
    }

    /// Runs statements; the rows of the last one, each value as text.
    pub fn query(&mut self, what: &str, text: &str) -> Result<Vec<Vec<String>>, Error> {
        self.write(|out| frontend::query(text, out))?;
        let (mut rows, mut columns) = (Vec::new(), 0);
        loop {
            match self.receive(what)? {
                Message::RowDescription(body) => {
                    rows.clear();
                    columns = body.fields().count().unwrap_or(0);
                }
                Message::DataRow(row) => {
                    let value = |number| value_of_row(row.buffer(), number).unwrap_or_default();
                    let text = |number| String::from_utf8_lossy(value(number)).into_owned();
                    rows.push((0..columns).map(text).collect());
                }
                Message::ReadyForQuery(_) => return Ok(rows),
                _ => {}
            }
        }
    }

    /// Prepares statements, by name and text.
    pub fn prepare(&mut self, statements: &[(&str, &str)]) -> Result<(), Error> {
        for (name, text) in statements {
            self.write(|out| {
                frontend::parse(name, text, [], out)?;
                frontend::sync(out);
                Ok(())
            })?;
            let what = format!("preparing {text}");
            while !matches!(self.receive(&what)?, Message::ReadyForQuery(_)) {}
        }
        Ok(())
    }

    fn write(
        &mut self,
        write: impl FnOnce(&mut BytesMut) -> std::io::Result<()>,
    ) -> Result<(), Error> {
        write(&mut self.output).map_err(Error::io("writing a message"))?;
        let sent = self.stream.write_all(&self.output);
        self.output.clear();
        sent.map_err(Error::io("sending"))
    }

    /// The next message; an error of the database ends it.
    fn receive(&mut self, what: &str) -> Result<Message, Error> {
        loop {
            match next_message(&mut self.input)? {
                Some(Message::ErrorResponse(body)) => {
                    let (code, text) = error_of(&body);
                    return Err(Error::request(what, format!("{code} {text}")));
                }
                Some(message) => return Ok(message),
                None => {}
            }
            let mut chunk = [0; 16 * 1024];
            let read = self
                .stream
                .read(&mut chunk)
                .map_err(Error::io("waiting for the database"))?;
            if read == 0 {
                return Err(Error::Closed(Some("instead of answering".into())));
            }
            self.input.extend_from_slice(&chunk[..read]);
        }
    }

    /// The socket, non-blocking, for an event loop.
    pub fn into_event_loop(self) -> Result<TcpStream, Error> {
        for_event_loop(self.stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let parsed = Database::parse(
            "postgres://me:p%40ss@db:6543/bench?options=-c+default_transaction_isolation%3Dserializable",
        );
        let expected = Database {
            host: "db:6543".into(),
            user: "me".into(),
            password: "p@ss".into(),
            name: "bench".into(),
            options: Some("-c default_transaction_isolation=serializable".into()),
        };
        assert_eq!(parsed.unwrap(), expected);
        let short = Database::parse("postgresql://h").unwrap();
        assert_eq!(
            (
                short.host.as_str(),
                short.user.as_str(),
                short.name.as_str()
            ),
            ("h:5432", "postgres", "postgres")
        );
        for (url, text) in [
            ("http://h", "is not a PostgreSQL URL"),
            ("postgres://", "names no host"),
            ("postgres://a%zz@h", "has a broken %"),
            ("postgres://h/d?sslmode=require", "asks for TLS"),
            ("postgres://h/d?x=1", "has a parameter besides"),
        ] {
            let error = Database::parse(url).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
