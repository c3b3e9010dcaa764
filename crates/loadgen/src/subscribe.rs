//! Requests of the client protocol outside the measured load: many small subscriptions, seeding,
//! reading all accounts; and the judgement of what was read.

use lightcone_types::{Encode, Reader};
use lightcone_wire::{ClientMessage, ReducerOutcome, ServerMessage};

use crate::client::{Client, Endpoint};
use crate::Error;

/// Queries subscribed at once, so that neither side has to buffer many.
const BATCH: usize = 256;
const READING: &str = "reading the accounts";

/// Subscribes to single accounts, each in a query set of its own.
pub fn subscribe_to_accounts(client: &mut Client, ids: &[u32]) -> Result<(), Error> {
    for batch in ids.chunks(BATCH) {
        let query = |id: &u32| format!("SELECT * FROM accounts WHERE id = {id}");
        let queries: Vec<String> = batch.iter().map(query).collect();
        let messages = queries.iter().zip(batch);
        let messages = messages.map(|(query, &id)| ClientMessage::Subscribe {
            request_id: client.request_id(),
            query_set_id: id,
            query_strings: vec![query],
        });
        let messages: Vec<_> = messages.collect();
        client.send(&messages)?;
        let mut waiting = batch.len();
        while waiting > 0 {
            match client.receive()? {
                ServerMessage::SubscribeApplied { .. } => waiting -= 1,
                ServerMessage::SubscriptionError { error, .. } => {
                    return Err(Error::request("subscribing", error));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Calls the reducer `seed`.
pub fn seed(endpoint: &Endpoint, accounts: u32, initial_balance: i64) -> Result<(), Error> {
    let mut client = Client::open(endpoint, 0)?;
    let request_id = client.request_id();
    let mut args = accounts.to_vec();
    initial_balance.encode(&mut args);
    client.send(&[ClientMessage::CallReducer {
        request_id,
        reducer: "seed",
        args: &args,
    }])?;
    let result = loop {
        if let ServerMessage::ReducerResult { result, .. } = client.receive()? {
            break result;
        }
    };
    client.close();
    let why = match result {
        ReducerOutcome::Ok { .. } | ReducerOutcome::OkEmpty => return Ok(()),
        ReducerOutcome::Err(bytes) => ReducerOutcome::error_text(&bytes),
        ReducerOutcome::InternalError(text) => text,
    };
    Err(Error::request("seeding", why))
}

/// What the accounts hold after a run.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Verification {
    /// The sum is right and something changed.
    pub ok: bool,
    /// Number of rows.
    pub accounts: u64,
    /// Sum of the balances.
    #[serde(serialize_with = "number_or_text")]
    pub total: i128,
    /// What the sum should be.
    #[serde(serialize_with = "number_or_text")]
    pub expected: i128,
    /// Accounts whose balance differs from the initial one.
    pub changed: u64,
}

/// JSON readers know 64 bits; a larger sum becomes a text.
fn number_or_text<S: serde::Serializer>(sum: &i128, serializer: S) -> Result<S::Ok, S::Error> {
    match i64::try_from(*sum) {
        Ok(number) => serializer.serialize_i64(number),
        Err(_) => serializer.serialize_str(&sum.to_string()),
    }
}

/// Reads all accounts, sorted by id.
pub fn read_accounts(endpoint: &Endpoint) -> Result<Vec<(u32, i64)>, Error> {
    let mut client = Client::open(endpoint, 0)?;
    let request_id = client.request_id();
    client.send(&[ClientMessage::OneOffQuery {
        request_id,
        query_string: "SELECT * FROM accounts",
    }])?;
    let rows = loop {
        if let ServerMessage::OneOffQueryResult { result, .. } = client.receive()? {
            break result.map_err(|error| Error::request(READING, error))?;
        }
    };
    client.close();
    let rows = rows.tables.iter().flat_map(|table| table.rows.iter());
    let mut accounts = rows.map(account).collect::<Result<Vec<_>, Error>>()?;
    accounts.sort_unstable();
    Ok(accounts)
}

fn account(row: &[u8]) -> Result<(u32, i64), Error> {
    let mut reader = Reader::new(row);
    let account = (reader.read_u32()?, reader.read_i64()?);
    if !reader.is_empty() {
        let detail = format!("a row has {} bytes instead of 12", row.len());
        return Err(Error::request(READING, detail));
    }
    Ok(account)
}

/// The balances of rows by id, which must be accounts 0 to `accounts` - 1.
pub fn balances_of(rows: &[(u32, i64)], accounts: u32) -> Result<Vec<i64>, Error> {
    let ids_fit = rows.iter().map(|(id, _)| *id).eq(0..accounts);
    if !ids_fit {
        let detail = format!(
            "the table does not hold accounts 0 to {}, but {} rows; seed it (--seed)",
            accounts - 1,
            rows.len()
        );
        return Err(Error::request(READING, detail));
    }
    Ok(rows.iter().map(|(_, balance)| *balance).collect())
}

impl Verification {
    /// Judges what was counted (spec 09 §5.8).
    pub fn new(accounts: u64, total: i128, changed: u64, initial_balance: i64) -> Self {
        let expected = i128::from(accounts) * i128::from(initial_balance);
        Self {
            ok: accounts > 0 && total == expected && changed > 0,
            accounts,
            total,
            expected,
            changed,
        }
    }

    /// Adds up all rows.
    pub fn of_rows(rows: &[(u32, i64)], initial_balance: i64) -> Self {
        let total = rows.iter().map(|(_, balance)| i128::from(*balance)).sum();
        let is_changed = |&&(_, balance): &&(u32, i64)| balance != initial_balance;
        let changed = rows.iter().filter(is_changed).count() as u64;
        Self::new(rows.len() as u64, total, changed, initial_balance)
    }
}
