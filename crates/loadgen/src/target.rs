//! The systems that can be driven, and what is done with each before and after a run: connecting,
//! seeding, reading the balances.

use std::net::TcpStream;

use serde_json::{json, Value};

use crate::address::{connect, for_event_loop, Address};
use crate::client::{Client, Endpoint};
use crate::dialect::batched::Batched;
use crate::dialect::http::{Http, RequestTemplate};
use crate::dialect::module::{CallTemplate, Module};
use crate::dialect::postgres::{Postgres, PostgresTransfer};
use crate::dialect::Dialect;
use crate::handshake::Handshake;
use crate::http::post;
use crate::options::TargetKind;
use crate::postgres::{Database, PostgresClient};
use crate::subscribe::{self, Verification};
use crate::websocket::WebSocket;
use crate::{Error, Options};

const READING: &str = "reading the accounts";
/// Balances per answer of the RPC method `balances`.
const BALANCES_PER_REQUEST: usize = 20_000;

/// A connection that an event loop can take over.
pub type Opened = (TcpStream, Box<dyn Dialect>);

/// A system to drive.
#[derive(Debug)]
pub struct Target {
    system: System,
    amount: i64,
    initial_balance: i64,
}

#[derive(Debug)]
enum System {
    /// The client protocol over WebSocket.
    Module {
        endpoint: Endpoint,
        template: CallTemplate,
    },
    /// Reducer calls over HTTP; everything else over WebSocket.
    ReducerHttp {
        endpoint: Endpoint,
        template: RequestTemplate,
    },
    /// A server with `POST /rpc`.
    Rpc(Address),
    /// The same, driven over its WebSocket.
    Batched(Address),
    Convex(Address),
    Postgres {
        database: Database,
        transfer: PostgresTransfer,
    },
}

impl Target {
    /// The target that the options name. For reducer calls over HTTP this asks the server for a token
    /// if there is none: else every call would be a new identity.
    pub fn new(options: &Options) -> Result<Self, Error> {
        let address = || Address::parse(&options.url);
        let endpoint = || {
            Endpoint::new(
                &options.url,
                &options.database,
                options.protocol.into(),
                options.confirmed,
                options.token.as_deref(),
            )
        };
        let (reducer, amount) = (options.reducer.as_str(), options.amount);
        let system = match options.target {
            TargetKind::Websocket => System::Module {
                endpoint: endpoint()?,
                template: CallTemplate::new(reducer, amount),
            },
            TargetKind::SpacetimeHttp => {
                let mut endpoint = endpoint()?;
                let token = match endpoint.token.take() {
                    Some(token) => token,
                    None => new_token(&endpoint.address)?,
                };
                let (address, database) = (&endpoint.address, &endpoint.database);
                let template = RequestTemplate::reducer(address, database, reducer, &token, amount);
                endpoint.token = Some(token);
                System::ReducerHttp { endpoint, template }
            }
            TargetKind::Rpc => System::Rpc(address()?),
            TargetKind::Batched => System::Batched(address()?),
            TargetKind::Convex => System::Convex(address()?),
            TargetKind::Postgres => System::Postgres {
                database: Database::parse(&options.url)?,
                transfer: options.postgres_transfer,
            },
        };
        Ok(Self {
            system,
            amount,
            initial_balance: options.initial_balance,
        })
    }

    /// The endpoint of the client protocol, for subscriptions.
    pub fn endpoint(&self) -> Result<&Endpoint, Error> {
        match &self.system {
            System::Module { endpoint, .. } | System::ReducerHttp { endpoint, .. } => Ok(endpoint),
            _ => Err(Error::Options(
                "--subscribe-each needs --target websocket or spacetime-http".into(),
            )),
        }
    }

    /// Sockets that one connection of the options has, each with one call under way: over HTTP a
    /// request waits for the answer to the one before.
    pub fn has_socket_per_call(&self) -> bool {
        matches!(
            self.system,
            System::ReducerHttp { .. } | System::Rpc(_) | System::Convex(_)
        )
    }

    /// What is spoken and with whom.
    pub fn describe(&self) -> String {
        match &self.system {
            System::Module { endpoint, .. } => {
                format!("{} to {}", endpoint.protocol.name(), endpoint.address.host)
            }
            System::ReducerHttp { endpoint, .. } => {
                format!("reducer calls over HTTP to {}", endpoint.address.host)
            }
            System::Rpc(address) => format!("HTTP RPC to {}", address.host),
            System::Batched(address) => format!("batched frames to {}", address.host),
            System::Convex(address) => format!("Convex mutations to {}", address.host),
            System::Postgres { database, transfer } => {
                let how = match transfer {
                    PostgresTransfer::Function => "a function per transfer",
                    PostgresTransfer::Statements => "five statements per transfer",
                };
                format!("PostgreSQL, {how}, to {}", database.host)
            }
        }
    }

    /// Opens a connection; `number` tells connections apart.
    pub fn open(&self, number: u64) -> Result<Opened, Error> {
        match &self.system {
            System::Module { endpoint, template } => {
                let (stream, state) = Client::open(endpoint, number)?.into_event_loop()?;
                let dialect = Module::new(state, template.clone(), endpoint.protocol);
                Ok((stream, Box::new(dialect)))
            }
            System::ReducerHttp { endpoint, template } => {
                http_connection(&endpoint.address, template.clone())
            }
            System::Rpc(address) => {
                http_connection(address, RequestTemplate::rpc(address, self.amount))
            }
            System::Convex(address) => {
                http_connection(address, RequestTemplate::convex(address, self.amount))
            }
            System::Batched(address) => {
                let mut stream = connect(&address.host)?;
                let early = Handshake {
                    address,
                    path: "/rpc-ws",
                    protocol: None,
                    token: None,
                    what: "path /rpc-ws",
                }
                .shake(&mut stream)?;
                if !early.is_empty() {
                    return Err(Error::Protocol("it spoke before it was asked".into()));
                }
                let dialect = Batched::new(WebSocket::new(number), self.amount);
                Ok((for_event_loop(stream)?, Box::new(dialect)))
            }
            System::Postgres { database, transfer } => {
                let mut client = PostgresClient::open(database)?;
                client.prepare(transfer.prepared())?;
                let dialect = Postgres::new(*transfer, self.amount);
                Ok((client.into_event_loop()?, Box::new(dialect)))
            }
        }
    }

    /// Opens a connection that subscribes to single accounts.
    pub fn open_subscriber(&self, number: u64, ids: &[u32]) -> Result<Opened, Error> {
        let endpoint = self.endpoint()?;
        let mut client = Client::open(endpoint, number)?;
        subscribe::subscribe_to_accounts(&mut client, ids)?;
        let (stream, state) = client.into_event_loop()?;
        // It never calls.
        let dialect = Module::new(state, CallTemplate::new("", 0), endpoint.protocol);
        Ok((stream, Box::new(dialect)))
    }

    /// Makes the accounts anew, and what the transfers need besides.
    pub fn seed(&self, accounts: u32) -> Result<(), Error> {
        let balance = self.initial_balance;
        match &self.system {
            System::Module { endpoint, .. } | System::ReducerHttp { endpoint, .. } => {
                subscribe::seed(endpoint, accounts, balance)
            }
            System::Rpc(address) | System::Batched(address) => {
                let args = json!({ "accounts": accounts, "initialBalance": balance });
                rpc(address, "seed", args).map(|_| ())
            }
            System::Convex(_) => Err(not_for_convex("seeding")),
            System::Postgres { database, .. } => {
                let mut client = PostgresClient::open(database)?;
                let text = format!(
                    "CREATE TABLE IF NOT EXISTS accounts \
                       (id integer PRIMARY KEY, balance bigint NOT NULL); \
                     TRUNCATE accounts; \
                     INSERT INTO accounts (id, balance) \
                       SELECT id, {balance} FROM generate_series(0, {accounts} - 1) AS ids (id);"
                );
                client.query("seeding", &text).map(|_| ())
            }
        }
    }

    /// What has to be there before connections open: the function of `--postgres-transfer function`.
    pub fn prepare(&self) -> Result<(), Error> {
        match &self.system {
            System::Postgres {
                database,
                transfer: PostgresTransfer::Function,
            } => PostgresClient::open(database)?
                .query("creating the function transfer", CREATE_FUNCTION)
                .map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Reads the balances of accounts 0 to `accounts` - 1; there must be no others.
    pub fn read_balances(&self, accounts: u32) -> Result<Vec<i64>, Error> {
        match &self.system {
            System::Module { endpoint, .. } | System::ReducerHttp { endpoint, .. } => {
                subscribe::balances_of(&subscribe::read_accounts(endpoint)?, accounts)
            }
            System::Rpc(address) | System::Batched(address) => {
                let balances = rpc_balances(address)?;
                let rows: Vec<(u32, i64)> = (0..).zip(balances).collect();
                subscribe::balances_of(&rows, accounts)
            }
            System::Convex(_) => Err(not_for_convex(READING)),
            System::Postgres { database, .. } => {
                subscribe::balances_of(&postgres_accounts(database)?, accounts)
            }
        }
    }

    /// Adds up all balances (spec 09 §5.8).
    pub fn verify(&self) -> Result<Verification, Error> {
        let balance = self.initial_balance;
        match &self.system {
            System::Module { endpoint, .. } | System::ReducerHttp { endpoint, .. } => {
                let rows = subscribe::read_accounts(endpoint)?;
                Ok(Verification::of_rows(&rows, balance))
            }
            System::Rpc(address) | System::Batched(address) => {
                let result = rpc(address, "verify", json!({}))?;
                let number = |name: &str| result[name].as_str()?.parse::<i128>().ok();
                let numbers = || Some((number("accounts")?, number("total")?, number("changed")?));
                let Some((accounts, total, changed)) = numbers() else {
                    let detail =
                        format!("it answered {result}; start it with SEED_INITIAL_BALANCE");
                    return Err(Error::request("the verification", detail));
                };
                let (accounts, changed) = (accounts as u64, changed as u64);
                Ok(Verification::new(accounts, total, changed, balance))
            }
            System::Convex(_) => Err(not_for_convex("the verification")),
            System::Postgres { database, .. } => {
                let rows = postgres_accounts(database)?;
                Ok(Verification::of_rows(&rows, balance))
            }
        }
    }
}

/// The options refuse what leads here.
fn not_for_convex(what: &str) -> Error {
    Error::request(what, "the benchmark suite does it (bench/)")
}

fn http_connection(address: &Address, template: RequestTemplate) -> Result<Opened, Error> {
    let stream = for_event_loop(connect(&address.host)?)?;
    Ok((stream, Box::new(Http::new(template))))
}

fn new_token(address: &Address) -> Result<String, Error> {
    let response = post(address, "/v1/identity", "")?;
    let answer: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    match answer["token"].as_str() {
        Some(token) if response.is_success() => Ok(token.to_owned()),
        _ => Err(Error::request("asking for an identity", response.shown())),
    }
}

/// Calls a method of an RPC server and returns its result (spec 09 §9).
fn rpc(address: &Address, name: &str, args: Value) -> Result<Value, Error> {
    let body = json!({ "name": name, "args": args }).to_string();
    let response = post(address, "/rpc", &body)?;
    match serde_json::from_slice::<Value>(&response.body) {
        Ok(answer) if response.is_success() && answer["ok"] != false => {
            Ok(answer["result"].clone())
        }
        _ => {
            let what = format!("the method {name}");
            Err(Error::request(&what, response.shown()))
        }
    }
}

fn rpc_balances(address: &Address) -> Result<Vec<i64>, Error> {
    let mut balances = Vec::new();
    loop {
        let args = json!({ "from": balances.len(), "count": BALANCES_PER_REQUEST });
        let page = rpc(address, "balances", args)?;
        let page = page.as_array().map(Vec::as_slice).unwrap_or_default();
        for balance in page {
            let number = balance.as_str().and_then(|text| text.parse().ok());
            balances.push(number.ok_or_else(|| Error::request(READING, format!("{balance}")))?);
        }
        if page.len() < BALANCES_PER_REQUEST {
            return Ok(balances);
        }
    }
}

fn postgres_accounts(database: &Database) -> Result<Vec<(u32, i64)>, Error> {
    let text = "SELECT id, balance FROM accounts ORDER BY id";
    let rows = PostgresClient::open(database)?.query(READING, text)?;
    rows.iter()
        .map(|row| match row.as_slice() {
            [id, balance] => id.parse().ok().zip(balance.parse().ok()),
            _ => None,
        })
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| Error::request(READING, "a row is not an id and a balance"))
}

/// One round trip for a transfer: 0 done, 1 without funds, 2 nothing to do (spec 09 §13).
const CREATE_FUNCTION: &str = "
CREATE OR REPLACE FUNCTION transfer(amount bigint, from_id int, to_id int) RETURNS smallint
LANGUAGE plpgsql AS $$
DECLARE
  source_balance bigint;
  target_balance bigint;
  account record;
BEGIN
  IF amount <= 0 OR from_id = to_id THEN
    RETURN 2;
  END IF;
  -- Both locks in the order of the ids, so that two transfers never wait for each other.
  FOR account IN
    SELECT a.id, a.balance FROM accounts a WHERE a.id IN (from_id, to_id) ORDER BY a.id FOR UPDATE
  LOOP
    IF account.id = from_id THEN
      source_balance := account.balance;
    ELSE
      target_balance := account.balance;
    END IF;
  END LOOP;
  IF source_balance IS NULL OR target_balance IS NULL THEN
    RAISE EXCEPTION 'account_missing';
  END IF;
  IF source_balance < amount THEN
    RETURN 1;
  END IF;
  UPDATE accounts SET balance = source_balance - amount WHERE id = from_id;
  UPDATE accounts SET balance = target_balance + amount WHERE id = to_id;
  RETURN 0;
END;
$$";
