//! Running a statement: what is answered here, and what the database answers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use lightcone_types::ProductType;

use super::super::catalogue::{self, CancelOnDrop, Catalogue};
use super::super::commands::{self, Answer, Block};
use super::super::copy::{Copy, CopyRows};
use super::super::failure::{state, Failure};
use super::super::login::no_such_database;
use super::super::messages::WireError;
use super::super::prepared::{Pending, Piece};
use super::super::rows::{DataRows, Shape};
use super::super::table::{self, SmallTable};
use super::super::tags::{counts, tag_of, verb_of, Tags};
use super::super::tokens::{is_empty, tokens};
use super::super::values::Format;
use super::results::Outcome;
use super::{Session, Stop, Transaction};
use crate::collaborators;
use crate::database::{DatabaseHandle, Holder, SqlOutcome, QUERY_BYTES_MAX};
use crate::databases::OpenError;
use crate::permissions;

/// At most so many characters of a text that is too long come back with its refusal.
const SHOWN_CHARS_MAX: usize = 120;

impl Session {
    /// A message with a statement that is run at once.
    pub(super) async fn simple_query(&mut self, text: String) -> Result<(), Stop> {
        check_length(&text)?;
        self.check_token()?;
        if is_empty(&text) {
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

    /// The open database, and whom its rows are held for. What the client may do there is looked up anew.
    pub(super) async fn database(&mut self) -> Result<(DatabaseHandle, Holder), Failure> {
        let record = self.state.record(&self.login.database);
        let record = record.map_err(|_| no_such_database(&self.login.asker.database))?;
        let identity = self.login.caller.identity;
        self.login.caller.rights = permissions::rights(&self.state.control, &record, &identity);
        let running = self.state.databases.get(&record).await;
        let handle = match running {
            Ok(running) => running.handle,
            Err(OpenError::Gone) => return Err(no_such_database(&self.login.asker.database)),
            Err(OpenError::Failed(reason)) => return Err(Failure::new(state::INTERNAL, reason)),
        };
        Ok((handle, self.holder.clone()))
    }

    /// The answer to a statement that does not go to the database. With `is_described` only what it is made of counts.
    pub(super) async fn answered_here(
        &mut self,
        text: &str,
        is_described: bool,
    ) -> Result<Option<Answer>, Stop> {
        check_length(text)?;
        let Some(tokens) = tokens(text) else {
            return Ok(None);
        };
        if collaborators::is_asked(text) {
            return Ok(Some(Answer::Rows(self.collaborators()?)));
        }
        if let Some(answer) = commands::answer(&tokens, &self.login.asker) {
            return Ok(Some(answer?));
        }
        if !catalogue::is_asked(&tokens) {
            return Ok(None);
        }
        let (database, holder) = self.database().await?;
        let (rights, asker) = (self.login.caller.rights, self.login.asker.clone());
        let tables = Catalogue::new(database.module_def(), rights, asker);
        if tables.is_of_module(&tokens) {
            return Ok(None);
        }
        // It may take a moment: it does not run on this thread, where others would wait for it.
        let text = text.to_owned();
        let (guard, cancelled) = CancelOnDrop::new();
        let work = move || tables.answer(&text, is_described, &cancelled);
        let answer = database.run_beside(&holder, work);
        let answer = tokio::select! {
            answer = answer => answer,
            // A client that goes away ends its question.
            () = self.wire.gone() => return Err(WireError::Stalled.into()),
            () = self.cancel.asked() => return Err(Failure::cancelled().into()),
        };
        drop(guard);
        let gone = |_| Failure::new(state::SHUTDOWN, "the database has ended");
        Ok(Some(Answer::Rows(answer.map_err(gone)??)))
    }

    fn collaborators(&self) -> Result<SmallTable, Failure> {
        let record = self.state.record(&self.login.database);
        let record = record.map_err(|_| no_such_database(&self.login.asker.database))?;
        let identity = self.login.caller.identity;
        let rows =
            collaborators::rows(&self.state.control, &record, &identity).ok_or_else(|| {
                let message = collaborators::refusal(&record, &identity);
                Failure::new(state::INSUFFICIENT_PRIVILEGE, message)
            })?;
        let columns = collaborators::COLUMNS.map(|(name, ty)| (name.to_owned(), ty));
        let cell = |value: &String| table::Cell::Value(table::text(value));
        let rows = rows.iter().map(|row| row.iter().map(cell).collect());
        Ok(SmallTable {
            columns: columns.to_vec(),
            rows: rows.collect(),
        })
    }

    /// Runs a statement.
    pub(super) async fn statement(
        &mut self,
        text: String,
        formats: Vec<Format>,
        tags: Tags,
    ) -> Result<Outcome, Stop> {
        self.check_token()?;
        self.cancel.begin();
        let copy = Copy::read(&text)?;
        let (text, lines) = match copy {
            Some(copy) => (copy.query, Some(copy.lines)),
            None => (text, None),
        };
        let answer = self.answered_here(&text, false).await?;
        if self.transaction == Transaction::Failed
            && !matches!(answer, Some(Answer::Block(Block::Commit | Block::Rollback)))
        {
            let message =
                "current transaction is aborted, commands ignored until end of transaction block";
            return Err(Failure::new(state::FAILED_TRANSACTION, message).into());
        }
        match (answer, lines) {
            (Some(Answer::Rows(table)), Some(lines)) => Ok(self.lines_of_table(&table, lines)?),
            (Some(_), Some(_)) => Err(Failure::unsupported("COPY takes a query").into()),
            (Some(answer), None) => Ok(self.answer(answer, &formats)?),
            (None, Some(lines)) => self.copy(text, lines).await,
            (None, None) => self.ask_database(text, formats, tags).await,
        }
    }

    fn answer(&mut self, answer: Answer, formats: &[Format]) -> Result<Outcome, Failure> {
        Ok(match answer {
            Answer::Done(tag) => Outcome::done(tag),
            Answer::Block(block) => Outcome::done(self.block(block)),
            Answer::ApplicationName(name) => {
                self.wire.parameter("application_name", &name);
                self.login.asker.application_name = name;
                Outcome::done("SET")
            }
            Answer::Deallocate(Some(name)) => {
                self.store.close_statement(&name);
                Outcome::done("DEALLOCATE")
            }
            Answer::Deallocate(None) => {
                self.store.close_all();
                Outcome::done("DISCARD ALL")
            }
            Answer::Rows(table) => self.of_table(&table, formats)?,
        })
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
        let count = Arc::new(AtomicU64::new(0));
        let encoder = DataRows::new(Shape::Fields(formats), count.clone());
        let outcome = self.run_in_database(text, verb, encoder).await?;
        let returns_rows = !outcome.columns.elements.is_empty();
        let tag = match (returns_rows, tags) {
            (true, _) => format!("SELECT {}", count.load(Ordering::Relaxed)),
            (false, Tags::Counts) => counts(outcome.stats, outcome.duration_us),
            (false, Tags::Drivers) => tag_of(verb, outcome.stats),
        };
        let pieces = pieces_of(outcome.rows);
        Ok(Outcome {
            columns: returns_rows.then_some(outcome.columns),
            pending: Pending::new(pieces, tag),
        })
    }

    /// Runs a query whose rows become lines.
    async fn copy(&mut self, text: String, lines: CopyRows) -> Result<Outcome, Stop> {
        let count = Arc::new(AtomicU64::new(0));
        let head = lines.clone();
        let encoder = DataRows::new(Shape::Lines(lines), count.clone());
        let outcome = self.run_in_database(text, "SELECT", encoder).await?;
        let columns: ProductType = outcome.columns;
        let mut pieces = pieces_of(outcome.rows);
        pieces.push_front(Box::new(head.header(&columns)));
        let tag = format!("COPY {}", count.load(Ordering::Relaxed));
        Ok(Outcome {
            columns: None,
            pending: Pending::new(pieces, tag).copied(columns.elements.len()),
        })
    }

    async fn run_in_database(
        &mut self,
        text: String,
        verb: &str,
        encoder: DataRows,
    ) -> Result<SqlOutcome, Stop> {
        let is_read = verb == "SELECT" || verb == "SHOW";
        if self.transaction == Transaction::Open && !is_read {
            let message = "a transaction block can only read: each statement that writes is a transaction of its own; send it without BEGIN, or in autocommit mode";
            return Err(Failure::new(state::READ_ONLY_TRANSACTION, message).into());
        }
        let (database, holder) = self.database().await?;
        let run = database.sql_for(&holder, self.login.caller.clone(), text, true, encoder);
        let run = tokio::time::timeout(self.state.config.limits.request_timeout, run);
        let outcome = tokio::select! {
            outcome = run => outcome,
            // A client that goes away ends its query.
            () = self.wire.gone() => return Err(WireError::Stalled.into()),
            // What changes rows is with the writer, and happens.
            () = self.cancel.asked(), if is_read => return Err(Failure::cancelled().into()),
        };
        let outcome = outcome.map_err(|_| {
            let text = "the query did not end within limits.request-timeout [LC0112]";
            Failure::new(state::QUERY_CANCELED, text)
        })?;
        Ok(outcome.map_err(Failure::of_statement)?)
    }
}

fn pieces_of(rows: Vec<crate::database::HeldBytes>) -> std::collections::VecDeque<Piece> {
    rows.into_iter()
        .map(|piece| Box::new(piece) as Piece)
        .collect()
}

/// Before anything here reads a text: our language refuses longer ones, in the same words.
fn check_length(text: &str) -> Result<(), Failure> {
    match text.len() > QUERY_BYTES_MAX {
        true => Err(too_long(text)),
        false => Ok(()),
    }
}

pub(super) fn too_long(text: &str) -> Failure {
    let prefix = text.chars().take(SHOWN_CHARS_MAX).collect();
    let error = lightcone_query::SqlError::TooLong { prefix };
    Failure::of_statement(crate::database::SqlError::Query(error.to_string()))
}
