//! A client that was let in: simple queries, and the extended protocol (06 §6).

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use lightcone_types::{AlgebraicType, ProductType};
use tokio::time::Instant;

use super::catalogue;
use super::commands::{self, Answer, Block};
use super::failure::{state, Failure};
use super::login::{no_such_database, Login};
use super::messages::{Body, Message, Wire, WireError};
use super::parameters::literal;
use super::prepared::{Pending, Piece, Portal, Prepared, Progress, Store, SUSPENDED_TIME_MAX};
use super::rows::DataRows;
use super::table::SmallTable;
use super::types::parameter_oid;
use super::values::Format;
use super::words::{self, pieces};
use crate::database::{DatabaseHandle, HeldBytes, ParameterText, SqlStats, QUERY_BYTES_MAX};
use crate::databases::OpenError;
use crate::state::ServerState;

/// At most so many characters of a text that is too long come back with its refusal.
const SHOWN_CHARS_MAX: usize = 120;

/// A session that says nothing for so long ends, and gives its place to another.
const SESSION_IDLE_MAX: Duration = Duration::from_secs(8 * 60 * 60);

/// Where a session is between `BEGIN` and `COMMIT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transaction {
    None,
    Open,
    /// A statement has failed; all others are refused until it ends.
    Failed,
}

pub(super) struct Session {
    wire: Wire,
    state: Arc<ServerState>,
    login: Login,
    transaction: Transaction,
    store: Store,
    /// Something has failed: messages are passed over until the client synchronises.
    skipping: bool,
}

/// What comes next.
enum Heard {
    /// None: the client has gone.
    Message(Option<Message>),
    /// The session ends, for this reason.
    End(Failure),
}

/// What came of a statement.
struct Outcome {
    /// None if it gives no rows.
    columns: Option<ProductType>,
    pending: Pending,
}

/// Why a message was not carried out.
enum Stop {
    Failure(Failure),
    Wire(WireError),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failure(failure)
    }
}

impl From<WireError> for Stop {
    fn from(error: WireError) -> Stop {
        Stop::Wire(error)
    }
}

/// How the tags of statements that change rows are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tags {
    /// As the reference writes them (08 §19).
    Counts,
    /// As PostgreSQL does, where the reference answers nothing.
    Drivers,
}

impl Session {
    pub fn new(wire: Wire, state: Arc<ServerState>, login: Login) -> Session {
        Session {
            wire,
            state,
            login,
            transaction: Transaction::None,
            store: Store::default(),
            skipping: false,
        }
    }

    /// Serves the client until it leaves, or `stopping` completes while it has nothing to do.
    pub async fn run(&mut self, stopping: impl Future<Output = ()>) -> Result<(), WireError> {
        tokio::pin!(stopping);
        self.ready().await?;
        loop {
            let message = match self.hear(stopping.as_mut()).await? {
                Heard::Message(message) => message,
                Heard::End(failure) => {
                    self.wire.failure(&failure, true);
                    return self.wire.flush().await;
                }
            };
            let Some(message) = message else {
                return Ok(());
            };
            if message.kind == b'X' {
                return Ok(());
            }
            if self.skipping && !matches!(message.kind, b'S' | b'Q') {
                continue;
            }
            match self.message(&message).await {
                Ok(()) => {}
                Err(Stop::Wire(WireError::Protocol(text))) => {
                    let failure = Failure::new(state::PROTOCOL_VIOLATION, text);
                    self.wire.failure(&failure, true);
                    return self.wire.flush().await;
                }
                Err(Stop::Wire(error)) => return Err(error),
                Err(Stop::Failure(failure)) => {
                    if self.failed(&failure, message.kind).await? {
                        return Ok(());
                    }
                }
            }
            // A client that never synchronises gets its answers too, and has to take them.
            self.wire.flush_if_long().await?;
        }
    }

    /// Waits for a message, as long as the session may wait, and frees what waits too long for the client.
    async fn hear(
        &mut self,
        mut stopping: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Heard, WireError> {
        let end = |state, text| Ok(Heard::End(Failure::new(state, text)));
        let idle = tokio::time::sleep(SESSION_IDLE_MAX);
        let read = self.wire.read();
        tokio::pin!(idle, read);
        loop {
            let next = self.store.free_stale(Instant::now());
            let stale = async {
                match next {
                    Some(next) => tokio::time::sleep_until(next).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                message = &mut read => return Ok(Heard::Message(message?)),
                () = stopping.as_mut() => return end(state::SHUTDOWN, "the server stops"),
                () = &mut idle => {
                    return end(state::IDLE_TOO_LONG, "the session has said nothing for 8 hours");
                }
                () = self.store.cut() => return Err(WireError::Cut),
                () = stale => {}
            }
        }
    }

    /// Tells of a failure. True if the session ends with it.
    async fn failed(&mut self, failure: &Failure, kind: u8) -> Result<bool, WireError> {
        if self.transaction == Transaction::Open {
            self.transaction = Transaction::Failed;
        }
        let is_fatal = failure.state == state::NO_SUCH_DATABASE;
        self.wire.failure(failure, is_fatal);
        match kind {
            b'Q' => self.ready().await?,
            _ => self.skipping = true,
        }
        if is_fatal {
            self.wire.flush().await?;
        }
        Ok(is_fatal)
    }

    async fn ready(&mut self) -> Result<(), WireError> {
        self.wire.ready(match self.transaction {
            Transaction::None => b'I',
            Transaction::Open => b'T',
            Transaction::Failed => b'E',
        });
        self.wire.flush().await
    }

    async fn message(&mut self, message: &Message) -> Result<(), Stop> {
        let mut body = Body(&message.body);
        match message.kind {
            b'Q' => {
                self.skipping = false;
                let text = body.text()?.to_owned();
                self.simple_query(text).await
            }
            b'P' => self.parse(&mut body).await,
            b'B' => self.bind(&mut body),
            b'D' => self.describe(&mut body),
            b'E' => self.execute(&mut body).await,
            b'C' => {
                match body.u8()? {
                    b'S' => self.store.close_statement(body.text()?),
                    _ => self.store.close_portal(body.text()?),
                }
                self.wire.empty(b'3');
                Ok(())
            }
            b'S' => {
                self.skipping = false;
                if self.transaction == Transaction::None {
                    self.store.close_portals();
                }
                Ok(self.ready().await?)
            }
            b'H' => Ok(self.wire.flush().await?),
            // What is left of a COPY that was refused.
            b'd' | b'c' | b'f' => Ok(()),
            b'F' => Err(Failure::unsupported("function calls are not supported").into()),
            kind => {
                Err(WireError::Protocol(format!("invalid frontend message type {kind}")).into())
            }
        }
    }

    async fn simple_query(&mut self, text: String) -> Result<(), Stop> {
        check_length(&text)?;
        if words::pieces(&text).is_some_and(|pieces| pieces.is_empty()) {
            self.wire.empty(b'I');
            return Ok(self.ready().await?);
        }
        let mut outcome = self.statement(text, Vec::new(), Tags::Counts).await?;
        if let Some(columns) = &outcome.columns {
            self.wire.row_description(columns, &[]);
        }
        self.send(&mut outcome.pending, 0).await?;
        Ok(self.ready().await?)
    }

    async fn parse(&mut self, body: &mut Body<'_>) -> Result<(), Stop> {
        let name = body.text()?.to_owned();
        let text = body.text()?.to_owned();
        let given = (0..body.u16()?)
            .map(|_| body.u32())
            .collect::<Result<Vec<_>, _>>()?;
        let prepared = self.prepare(text, &given).await?;
        self.store.put_statement(&name, prepared)?;
        self.wire.empty(b'1');
        Ok(())
    }

    async fn prepare(&mut self, text: String, given: &[u32]) -> Result<Prepared, Stop> {
        let refused = |error: lightcone_query::SqlError| {
            Failure::of_statement(crate::database::SqlError::Query(error.to_string()))
        };
        let text = Arc::new(ParameterText::read(text).map_err(refused)?);
        let empty = vec!["''".to_owned(); text.count()];
        let shape = text.with_literals_within(&empty, QUERY_BYTES_MAX);
        let shape = shape.ok_or_else(|| too_long(text.text()))?;
        let is_empty = words::pieces(&shape).is_some_and(|pieces| pieces.is_empty());
        let (types, columns) = match self.answered_here(&shape).await? {
            _ if is_empty => (Vec::new(), None),
            Some(answer) => {
                let columns = match &answer {
                    Answer::Rows(table) => Some(table.column_types()),
                    _ => None,
                };
                (vec![AlgebraicType::String; text.count()], columns)
            }
            None => {
                let identity = self.login.caller.identity;
                let described = self
                    .database()
                    .await?
                    .describe(identity, text.clone())
                    .await;
                let described = described.map_err(Failure::of_statement)?;
                (described.parameters, described.columns)
            }
        };
        let oids = types
            .iter()
            .enumerate()
            .map(|(nth, ty)| match given.get(nth) {
                None | Some(0) => parameter_oid(ty),
                Some(&oid) => oid,
            });
        Ok(Prepared {
            oids: oids.collect(),
            types,
            columns,
            text,
        })
    }

    fn bind(&mut self, body: &mut Body<'_>) -> Result<(), Stop> {
        let portal = body.text()?.to_owned();
        let prepared = self.store.statement(body.text()?)?;
        let formats = read_formats(body)?;
        let count = usize::from(body.u16()?);
        if count != prepared.types.len() {
            let message = format!(
                "bind message supplies {count} parameters, but the prepared statement requires {}",
                prepared.types.len()
            );
            return Err(Failure::new(state::PROTOCOL_VIOLATION, message).into());
        }
        let mut literals = Vec::with_capacity(count);
        for (nth, ty) in prepared.types.iter().enumerate() {
            let value = match body.u32()? {
                u32::MAX => None,
                length => Some(body.bytes(length as usize)?),
            };
            if value.is_some_and(|value| value.len() > QUERY_BYTES_MAX) {
                return Err(too_long_with_parameters().into());
            }
            literals.push(literal(
                ty,
                prepared.oids[nth],
                format_of(&formats, nth),
                value,
            )?);
        }
        let listed = read_formats(body)?;
        let columns = prepared
            .columns
            .as_ref()
            .map_or(0, |columns| columns.elements.len());
        let formats = (0..columns).map(|nth| format_of(&listed, nth)).collect();
        let text = prepared
            .text
            .with_literals_within(&literals, QUERY_BYTES_MAX);
        let text = text.ok_or_else(too_long_with_parameters)?;
        let bound = Portal {
            prepared,
            text,
            formats,
            progress: Progress::New,
        };
        self.store.put_portal(&portal, bound)?;
        self.wire.empty(b'2');
        Ok(())
    }

    fn describe(&mut self, body: &mut Body<'_>) -> Result<(), Stop> {
        let kind = body.u8()?;
        let name = body.text()?;
        let (prepared, formats) = match kind {
            b'S' => {
                let prepared = self.store.statement(name)?;
                self.wire.parameter_description(&prepared.oids);
                (prepared, Vec::new())
            }
            _ => {
                let portal = self.store.portal(name)?;
                (portal.prepared.clone(), portal.formats.clone())
            }
        };
        match &prepared.columns {
            Some(columns) => self.wire.row_description(columns, &formats),
            None => self.wire.empty(b'n'),
        }
        Ok(())
    }

    async fn execute(&mut self, body: &mut Body<'_>) -> Result<(), Stop> {
        let name = body.text()?;
        let rows_max = u64::from(body.u32()?);
        let portal = self.store.portal(name)?;
        // Whatever comes of it, a statement runs once.
        let mut pending = match std::mem::replace(&mut portal.progress, Progress::Done) {
            Progress::Suspended(pending, _) => pending,
            Progress::Stale => {
                portal.progress = Progress::Stale;
                return Err(too_late(name).into());
            }
            Progress::Done if portal.prepared.columns.is_none() => {
                let message = format!("portal \"{name}\" cannot be run");
                return Err(Failure::new(state::NOT_IN_PREREQUISITE_STATE, message).into());
            }
            Progress::Done => {
                self.wire.complete("SELECT 0");
                return Ok(());
            }
            Progress::New => {
                let (text, formats) = (portal.text.clone(), portal.formats.clone());
                if words::pieces(&text).is_some_and(|pieces| pieces.is_empty()) {
                    portal.progress = Progress::New;
                    self.wire.empty(b'I');
                    return Ok(());
                }
                self.statement(text, formats, Tags::Drivers).await?.pending
            }
        };
        if self.send(&mut pending, rows_max).await? {
            // The statement may have been one that forgets them.
            if let Ok(portal) = self.store.portal(name) {
                portal.progress = Progress::Suspended(pending, Instant::now());
            }
            self.wire.empty(b's');
        }
        Ok(())
    }

    /// Sends rows, at most so many if it is not 0, until their memory is needed for others. True: there are more.
    async fn send(&mut self, pending: &mut Pending, rows_max: u64) -> Result<bool, WireError> {
        let Some(holder) = pending.holder.clone() else {
            return self.send_rows(pending, rows_max).await;
        };
        tokio::select! {
            sent = self.send_rows(pending, rows_max) => sent,
            () = holder.left() => Err(WireError::Cut),
        }
    }

    async fn send_rows(&mut self, pending: &mut Pending, rows_max: u64) -> Result<bool, WireError> {
        let mut rows = 0;
        while let Some(piece) = pending.pieces.front() {
            let messages = (**piece).as_ref();
            if rows_max == 0 {
                self.wire.write(&messages[pending.sent..]).await?;
            } else {
                let mut end = pending.sent;
                while end < messages.len() && rows < rows_max {
                    end += 1 + length_at(&messages[end + 1..]);
                    rows += 1;
                }
                self.wire.write(&messages[pending.sent..end]).await?;
                pending.sent = end;
                if end < messages.len() {
                    return Ok(true);
                }
            }
            pending.sent = 0;
            pending.pieces.pop_front();
        }
        self.wire.complete(&pending.tag);
        Ok(false)
    }

    /// The open database.
    async fn database(&self) -> Result<DatabaseHandle, Failure> {
        let record = self.state.record(&self.login.database);
        let record = record.map_err(|_| no_such_database(&self.login.asker.database))?;
        let running = self.state.databases.get(&record).await;
        match running {
            Ok(running) => Ok(running.handle),
            Err(OpenError::Gone) => Err(no_such_database(&self.login.asker.database)),
            Err(OpenError::Failed(reason)) => Err(Failure::new(state::INTERNAL, reason)),
        }
    }

    /// The answer to what the database is not asked about.
    async fn answered_here(&self, text: &str) -> Result<Option<Answer>, Failure> {
        check_length(text)?;
        let Some(pieces) = pieces(text) else {
            return Ok(None);
        };
        if let Some(answer) = commands::answer(&pieces, &self.login.asker) {
            return answer.map(Some);
        }
        if !catalogue::is_asked(&pieces) {
            return Ok(None);
        }
        let database = self.database().await?;
        let owner = self
            .state
            .record(&self.login.database)
            .map(|record| record.owner);
        let is_owner = owner.is_ok_and(|owner| owner == self.login.caller.identity);
        let module = database.module_def();
        let tables = catalogue::Catalogue::new(&module, is_owner, &self.login.asker);
        tables
            .answer(text, &pieces)
            .map(|table| Some(Answer::Rows(table)))
    }

    /// Runs a statement.
    async fn statement(
        &mut self,
        text: String,
        formats: Vec<Format>,
        tags: Tags,
    ) -> Result<Outcome, Stop> {
        let answer = self.answered_here(&text).await?;
        if self.transaction == Transaction::Failed
            && !matches!(answer, Some(Answer::Block(Block::Commit | Block::Rollback)))
        {
            let message =
                "current transaction is aborted, commands ignored until end of transaction block";
            return Err(Failure::new(state::FAILED_TRANSACTION, message).into());
        }
        match answer {
            Some(answer) => Ok(self.answer(answer, &formats)),
            None => self.ask_database(text, formats, tags).await,
        }
    }

    fn answer(&mut self, answer: Answer, formats: &[Format]) -> Outcome {
        let done = |tag: &str| Outcome {
            columns: None,
            pending: Pending::new(VecDeque::new(), tag.to_owned()),
        };
        match answer {
            Answer::Done(tag) => done(tag),
            Answer::Block(block) => done(self.block(block)),
            Answer::ApplicationName(name) => {
                self.wire.parameter("application_name", &name);
                self.login.asker.application_name = name;
                done("SET")
            }
            Answer::Deallocate(Some(name)) => {
                self.store.close_statement(&name);
                done("DEALLOCATE")
            }
            Answer::Deallocate(None) => {
                self.store.close_all();
                done("DISCARD ALL")
            }
            Answer::Rows(table) => of_table(&table, formats),
        }
    }

    fn block(&mut self, block: Block) -> &'static str {
        let was = self.transaction;
        self.transaction = match block {
            Block::Begin => Transaction::Open,
            Block::Commit | Block::Rollback => Transaction::None,
        };
        match block {
            Block::Begin => "BEGIN",
            Block::Commit if was != Transaction::Failed => "COMMIT",
            Block::Commit | Block::Rollback => "ROLLBACK",
        }
    }

    async fn ask_database(
        &mut self,
        text: String,
        formats: Vec<Format>,
        tags: Tags,
    ) -> Result<Outcome, Stop> {
        let verb = verb_of(&text);
        if self.transaction == Transaction::Open && verb != "SELECT" && verb != "SHOW" {
            let message = "a transaction block can only read: each statement that writes is a transaction of its own; send it without BEGIN, or in autocommit mode";
            return Err(Failure::new(state::READ_ONLY_TRANSACTION, message).into());
        }
        let database = self.database().await?;
        let count = Arc::new(AtomicU64::new(0));
        let encoder = DataRows::new(formats, count.clone());
        let run = database.sql(self.login.caller.clone(), text, true, encoder);
        let run = tokio::time::timeout(self.state.config.limits.request_timeout, run);
        let outcome = tokio::select! {
            outcome = run => outcome,
            // A client that goes away ends its query.
            () = self.wire.gone() => return Err(WireError::Stalled.into()),
        };
        let outcome = outcome.map_err(|_| {
            let text = "the query did not end within limits.request-timeout [LC0112]";
            Failure::new("57014", text)
        })?;
        let outcome = outcome.map_err(Failure::of_statement)?;
        let returns_rows = !outcome.columns.elements.is_empty();
        let tag = match (returns_rows, tags) {
            (true, _) => format!("SELECT {}", count.load(Ordering::Relaxed)),
            (false, Tags::Counts) => counts(outcome.stats, outcome.duration_us),
            (false, Tags::Drivers) => tag_of(verb, outcome.stats),
        };
        let holder = outcome.rows.first().and_then(HeldBytes::holder);
        let pieces = outcome
            .rows
            .into_iter()
            .map(|piece| Box::new(piece) as Piece);
        Ok(Outcome {
            columns: returns_rows.then_some(outcome.columns),
            pending: Pending {
                holder,
                ..Pending::new(pieces.collect(), tag)
            },
        })
    }
}

/// Before anything here reads a text: our language refuses longer ones, in the same words.
fn check_length(text: &str) -> Result<(), Failure> {
    match text.len() > QUERY_BYTES_MAX {
        true => Err(too_long(text)),
        false => Ok(()),
    }
}

fn too_long(text: &str) -> Failure {
    let prefix = text.chars().take(SHOWN_CHARS_MAX).collect();
    let error = lightcone_query::SqlError::TooLong { prefix };
    Failure::of_statement(crate::database::SqlError::Query(error.to_string()))
}

fn too_late(portal: &str) -> Failure {
    let minutes = SUSPENDED_TIME_MAX.as_secs() / 60;
    let message = format!(
        "portal \"{portal}\" has no rows left, as none was fetched for {minutes} minutes: run the statement again"
    );
    Failure::new(state::NO_SUCH_CURSOR, message)
}

fn too_long_with_parameters() -> Failure {
    let message =
        format!("the statement has more than {QUERY_BYTES_MAX} bytes with its parameters");
    Failure::new(state::LIMIT_REACHED, message)
}

fn of_table(table: &SmallTable, formats: &[Format]) -> Outcome {
    let rows: Piece = Box::new(table.messages(formats));
    Outcome {
        columns: Some(table.column_types()),
        pending: Pending::new([rows].into(), format!("SELECT {}", table.rows.len())),
    }
}

/// The length that stands before the rest of a message of ours.
fn length_at(message: &[u8]) -> usize {
    let length = message.first_chunk::<4>();
    length.map_or(0, |length| u32::from_be_bytes(*length) as usize)
}

fn read_formats(body: &mut Body<'_>) -> Result<Vec<Format>, WireError> {
    let count = body.u16()?;
    let read = |_| match body.u16()? {
        0 => Ok(Format::Text),
        1 => Ok(Format::Binary),
        code => Err(WireError::Protocol(format!(
            "unsupported format code: {code}"
        ))),
    };
    (0..count).map(read).collect()
}

/// One format is that of all, none is text.
fn format_of(listed: &[Format], nth: usize) -> Format {
    match listed {
        [all] => *all,
        listed => listed.get(nth).copied().unwrap_or_default(),
    }
}

fn verb_of(text: &str) -> &'static str {
    let pieces = pieces(text).unwrap_or_default();
    let verbs = ["INSERT", "UPDATE", "DELETE", "SET", "SHOW"];
    let is_first = |verb: &&str| {
        pieces
            .first()
            .is_some_and(|p| p.is_word(&verb.to_lowercase()))
    };
    verbs.into_iter().find(is_first).unwrap_or("SELECT")
}

/// `inserted: 1, server: 271.00µs`, without counts of zero.
fn counts(stats: SqlStats, duration_us: u64) -> String {
    let counts = [
        ("inserted", stats.rows_inserted),
        ("deleted", stats.rows_deleted),
        ("updated", stats.rows_updated),
    ];
    let mut parts: Vec<String> = Vec::new();
    for (name, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        parts.push(format!("{name}: {count}"));
    }
    let duration = Duration::from_micros(duration_us);
    parts.push(format!("server: {duration:.2?}"));
    parts.join(", ")
}

fn tag_of(verb: &str, stats: SqlStats) -> String {
    match verb {
        "INSERT" => format!("INSERT 0 {}", stats.rows_inserted),
        "UPDATE" => format!("UPDATE {}", stats.rows_updated),
        "DELETE" => format!("DELETE {}", stats.rows_deleted),
        verb => verb.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_the_chapter() {
        let stats = SqlStats {
            rows_updated: 1,
            ..SqlStats::default()
        };
        assert_eq!(counts(stats, 160), "updated: 1, server: 160.00µs");
        assert_eq!(counts(SqlStats::default(), 75), "server: 75.00µs");
        assert_eq!(counts(SqlStats::default(), 1000), "server: 1.00ms");
        assert_eq!(tag_of(verb_of(" insert into t"), stats), "INSERT 0 0");
        assert_eq!(verb_of("select 1"), "SELECT");
    }
}
