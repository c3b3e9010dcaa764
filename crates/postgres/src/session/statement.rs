//! Running a statement: what is answered here, and what the database answers.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use lightcone_control::DatabaseRecord;
use lightcone_database::{DatabaseHandle, Holder, SqlError, QUERY_BYTES_MAX};
use lightcone_node::collaborators;
use lightcone_node::databases::OpenError;
use lightcone_query::postgresql::{first_word, is_empty, statements, tokens, Cell, Format, Token};

use super::super::catalogue::{is_question, may_be_ad_hoc};
use super::super::commands::{self, Answer, Block};
use super::super::copy::{Copy, CopyRows};
use super::super::failure::{of_statement, state, Failure};
use super::super::login::no_such_database;
use super::super::messages::WireError;
use super::super::prepared::Piece;
use super::super::rows::{DataRows, Shape};
use super::super::table::{self, SmallTable};
use super::super::tags::{counts, tag_of, verb_of, Tags};
use super::results::Outcome;
use super::writes::changes_rows;
use super::{Session, Stop, Transaction};

/// Words that statements begin with which are answered here by their first words: what stands behind a semicolon must not be lost.
const OF_SESSION: [&str; 10] = [
    "begin",
    "start",
    "commit",
    "end",
    "rollback",
    "abort",
    "set",
    "reset",
    "discard",
    "deallocate",
];

impl Session {
    /// A message with a statement that is run at once, or with several of which the first begins a transaction block.
    pub(super) async fn simple_query(&mut self, text: String) -> Result<(), Stop> {
        check_length(&text)?;
        self.check_token()?;
        if is_empty(&text) {
            self.wire.empty(b'I');
            return Ok(self.ready().await?);
        }
        // Of others, one that has several statements is refused where it is read.
        let is_of_session = first_word(&text).is_some_and(|word| OF_SESSION.contains(&&*word));
        let several = if is_of_session {
            statements(&text)
        } else {
            None
        };
        for statement in several.unwrap_or_else(|| vec![&text]) {
            let statement = statement.to_owned();
            let mut outcome = self.statement(statement, Vec::new(), Tags::Counts).await?;
            if let Some(columns) = &outcome.columns {
                self.wire.row_description(columns, &[]);
            }
            self.send(&mut outcome.pending, 0).await?;
        }
        Ok(self.ready().await?)
    }

    /// The open database, and whom its rows are held for. What the client may do there is looked up anew.
    pub(super) async fn database(&mut self) -> Result<(DatabaseHandle, Holder), Failure> {
        let record = self.record()?;
        let identity = self.login.caller.identity;
        self.login.caller.rights = self.node.rights(&record, &identity);
        match self.node.databases.get(&record).await {
            Ok(running) => Ok((running.handle, self.holder.clone())),
            Err(OpenError::Gone) => Err(no_such_database(&self.login.names.database)),
            Err(OpenError::Failed(reason)) => Err(Failure::new(state::INTERNAL, reason)),
        }
    }

    fn record(&self) -> Result<DatabaseRecord, Failure> {
        let record = self.node.record(&self.login.database);
        record.map_err(|_| no_such_database(&self.login.names.database))
    }

    /// The answer to a statement about the session.
    pub(super) fn answered_here(
        &self,
        text: &str,
        tokens: &[Token],
    ) -> Result<Option<Answer>, Failure> {
        if collaborators::is_asked(text) {
            return Ok(Some(Answer::Rows(self.collaborators()?)));
        }
        commands::answer(tokens, &self.login.names).transpose()
    }

    fn collaborators(&self) -> Result<SmallTable, Failure> {
        let record = self.record()?;
        let identity = self.login.caller.identity;
        let rows = collaborators::rows(&self.node, &record, &identity).ok_or_else(|| {
            let message = collaborators::refusal(&record, &identity);
            Failure::new(state::INSUFFICIENT_PRIVILEGE, message)
        })?;
        let columns = collaborators::COLUMNS.map(|(name, ty)| (name.to_owned(), ty));
        let cell = |value: &String| Cell::Value(table::text(value));
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
        check_length(&text)?;
        let tokens = tokens(&text).unwrap_or_default();
        let answer = self.answered_here(&text, &tokens)?;
        if self.transaction == Transaction::Failed
            && !matches!(answer, Some(Answer::Block(Block::Commit | Block::Rollback)))
        {
            let message =
                "current transaction is aborted, commands ignored until end of transaction block";
            return Err(Failure::new(state::FAILED_TRANSACTION, message).into());
        }
        match answer {
            Some(Answer::Block(Block::Commit)) if lines.is_none() => self.commit().await,
            Some(answer) => Ok(self.answer(answer, &formats, lines)?),
            None => self.ask(text, &tokens, formats, tags, lines).await,
        }
    }

    /// Asks the database, in the ad hoc language if that has the statement, or else in PostgreSQL's.
    async fn ask(
        &mut self,
        text: String,
        tokens: &[Token],
        formats: Vec<Format>,
        tags: Tags,
        lines: Option<CopyRows>,
    ) -> Result<Outcome, Stop> {
        let verb = if lines.is_some() {
            "SELECT"
        } else {
            verb_of(&text)
        };
        if self.transaction == Transaction::Open && (changes_rows(verb) || verb == "SET") {
            if self.only_reads {
                let message = format!("cannot execute {verb} in a read-only transaction");
                return Err(Failure::new(state::READ_ONLY_TRANSACTION, message).into());
            }
            return self.write_in_block(text, &formats).await;
        }
        let is_question = is_question(tokens);
        let mut refusal = None;
        // What a block has changed, only the writer sees.
        if !is_question || may_be_ad_hoc(tokens) && self.block.is_empty() {
            let (text, formats) = (text.clone(), formats.clone());
            match self
                .ask_database(text, formats, tags, lines.clone())
                .await?
            {
                Ok(outcome) => return Ok(outcome),
                Err(failure) => refusal = Some(failure),
            }
        }
        match refusal {
            Some(refusal) if changes_rows(verb) => {
                return self.write(text, &formats, refusal).await;
            }
            Some(refusal) if !is_question => return Err(refusal.into()),
            _ => {}
        }
        let table = self.question(text, tokens, refusal).await?;
        Ok(self.of_table(&table, &formats, lines)?)
    }

    fn answer(
        &mut self,
        answer: Answer,
        formats: &[Format],
        lines: Option<CopyRows>,
    ) -> Result<Outcome, Failure> {
        let tag = match answer {
            Answer::Rows(table) => return self.of_table(&table, formats, lines),
            _ if lines.is_some() => return Err(Failure::unsupported("COPY takes a query")),
            Answer::Done(tag) => tag,
            Answer::Block(block) => self.block(block),
            Answer::ApplicationName(name) => {
                self.wire.parameter("application_name", &name);
                self.login.names.application_name = name;
                "SET"
            }
            Answer::Deallocate(Some(name)) => {
                self.store.close_statement(&name);
                "DEALLOCATE"
            }
            Answer::Deallocate(None) => {
                self.store.close_all();
                "DISCARD ALL"
            }
        };
        Ok(Outcome::done(tag))
    }

    fn block(&mut self, block: Block) -> &'static str {
        self.only_reads = block == (Block::Begin { reads: true });
        self.transaction = match block {
            Block::Begin { .. } => Transaction::Open,
            Block::Commit | Block::Rollback => Transaction::None,
        };
        match block {
            Block::Begin { .. } => "BEGIN",
            Block::Commit | Block::Rollback => {
                self.block.take();
                "ROLLBACK"
            }
        }
    }

    /// Runs a statement of the ad hoc language, or a query whose rows become lines. A refusal: it is none, and nothing was run.
    async fn ask_database(
        &mut self,
        text: String,
        formats: Vec<Format>,
        tags: Tags,
        lines: Option<CopyRows>,
    ) -> Result<Result<Outcome, Failure>, Stop> {
        let verb = match &lines {
            Some(_) => "SELECT",
            None => verb_of(&text),
        };
        let is_read = verb == "SELECT" || verb == "SHOW";
        let shape = match lines.clone() {
            Some(lines) => Shape::Lines(lines),
            None => Shape::Fields(formats),
        };
        let count = Arc::new(AtomicU64::new(0));
        let encoder = DataRows::new(shape, count.clone());
        let (database, holder) = self.database().await?;
        // What a block changes goes by its list.
        let only_reads = self.transaction != Transaction::None;
        let how = (true, only_reads);
        let run = database.sql_for(&holder, self.login.caller.clone(), text, how, encoder);
        let outcome = match self.wanted(run, is_read).await? {
            Ok(outcome) => outcome,
            Err(error @ SqlError::NotCompiled(_)) => return Ok(Err(of_statement(error))),
            Err(error) => return Err(of_statement(error).into()),
        };
        let (columns, count) = (outcome.columns, count.load(Ordering::Relaxed));
        let pieces = outcome.rows.into_iter();
        let mut pieces: VecDeque<_> = pieces.map(|piece| Box::new(piece) as Piece).collect();
        let is_copy = lines.is_some();
        if let Some(lines) = lines {
            pieces.push_front(Box::new(lines.header(&columns)));
        } else if columns.elements.is_empty() {
            let tag = match tags {
                Tags::Counts => counts(outcome.stats, outcome.duration_us),
                Tags::Drivers => tag_of(verb, outcome.stats),
            };
            return Ok(Ok(Outcome::done(tag)));
        }
        Ok(Ok(Outcome::of(columns, pieces, count, is_copy)))
    }

    /// Waits for work as long as the client wants its result.
    pub(super) async fn wanted<T>(
        &mut self,
        work: impl Future<Output = T>,
        may_be_cancelled: bool,
    ) -> Result<T, Stop> {
        let work = tokio::time::timeout(self.node.config.limits.request_timeout, work);
        let done = tokio::select! {
            done = work => done,
            // A client that goes away ends its query.
            () = self.wire.gone() => return Err(WireError::Stalled.into()),
            // What changes rows is with the writer, and happens.
            () = self.cancel.asked(), if may_be_cancelled => {
                return Err(Failure::cancelled().into());
            }
        };
        Ok(done.map_err(|_| {
            let text = "the query did not end within limits.request-timeout [LC0112]";
            Failure::new(state::QUERY_CANCELED, text)
        })?)
    }
}

/// Before anything here reads a text: our language refuses longer ones, in the same words.
pub(super) fn check_length(text: &str) -> Result<(), Failure> {
    match text.len() > QUERY_BYTES_MAX {
        true => Err(too_long(text)),
        false => Ok(()),
    }
}

pub(super) fn too_long(text: &str) -> Failure {
    let error = lightcone_query::SqlError::too_long(text);
    of_statement(lightcone_database::SqlError::Query(error.to_string()))
}
