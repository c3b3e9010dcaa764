//! Questions in PostgreSQL's language (08 §19).

use std::sync::Arc;

use lightcone_query::postgresql::{Question, Token, Unread};

use super::super::cancelled::CancelOnDrop;
use super::super::catalogue::Catalogue;
use super::super::failure::{of_statement, state, Failure};
use super::super::program::Statement;
use super::super::rows::FoundRows;
use super::super::table::SmallTable;
use super::{Session, Stop};
use lightcone_database::{DatabaseHandle, HeldBytes, Holder, Reading, Write};

/// How far a question is when it was read.
enum Step {
    Done(Result<SmallTable, Failure>),
    /// Rows of the module are missing.
    Needs(Catalogue, String, Vec<Reading>),
    /// The writer answers it, which sees what the block has changed.
    InBlock(Arc<Statement>, usize),
}

impl Session {
    /// A question, read without what it needs to be run. It may have been refused already, in the ad hoc language.
    pub(super) async fn described_question(
        &mut self,
        text: String,
        refusal: Option<Failure>,
    ) -> Result<Question, Stop> {
        let (database, holder) = self.database().await?;
        let tables = self.catalogue(&database);
        let work = move || tables.read(&text, true);
        let read = self.beside(&database, &holder, work).await?;
        let read = read.map_err(|unread| of_unread(unread, refusal))?;
        Ok(read.statement)
    }

    /// Answers a question.
    pub(super) async fn question(
        &mut self,
        text: String,
        tokens: &[Token],
        refusal: Option<Failure>,
    ) -> Result<SmallTable, Stop> {
        let (database, holder) = self.database().await?;
        let tables = self.catalogue(&database);
        if let Some(answer) = tables.brief_answer(&text, tokens) {
            return Ok(answer);
        }
        let (guard, cancelled) = CancelOnDrop::new();
        let flag = cancelled.clone();
        let in_block = !self.block.is_empty();
        let work = move || -> Result<_, Unread> {
            let read = tables.read(&text, false)?;
            Ok(if read.readings.is_empty() {
                Step::Done(tables.answer(&read, &[], &flag))
            } else if in_block {
                let statement = Statement::new(tables, read);
                Step::InBlock(Arc::new(statement.map_err(Unread::Failed)?), text.len())
            } else {
                Step::Needs(tables, text, read.readings)
            })
        };
        let read = self.beside(&database, &holder, work).await?;
        let step = read.map_err(|unread| of_unread(unread, refusal))?;
        let answer = match step {
            Step::Done(answer) => answer,
            Step::InBlock(statement, bytes) => {
                let columns = statement.columns().unwrap_or_default();
                let write = Write::program(statement, bytes);
                let written = self.run_write(&database, write, bytes).await?;
                Ok(SmallTable {
                    columns,
                    rows: written.rows.clone(),
                })
            }
            Step::Needs(tables, text, readings) => {
                let rows = self.rows_of(&database, &holder, readings).await?;
                // What was read from the text may be large, so it is read again and not kept while the session waits.
                let work = move || {
                    let read = tables.read(&text, false);
                    let read = read.map_err(|unread| of_unread(unread, None))?;
                    tables.answer(&read, &rows, &cancelled)
                };
                self.beside(&database, &holder, work).await?
            }
        };
        drop(guard);
        Ok(answer?)
    }

    pub(super) fn catalogue(&self, database: &DatabaseHandle) -> Catalogue {
        let caller = &self.login.caller;
        let compiler = Some(database.compiler(caller));
        let names = self.login.names.clone();
        Catalogue::new(database.module_def(), caller.rights, names, compiler)
    }

    /// The rows of the module's tables that a question needs, all in one state.
    async fn rows_of(
        &mut self,
        database: &DatabaseHandle,
        holder: &Holder,
        readings: Vec<Reading>,
    ) -> Result<Vec<Vec<HeldBytes>>, Stop> {
        let caller = self.login.caller.clone();
        let rows = database.read_all(holder, caller, readings, || FoundRows);
        let rows = self.wanted(rows, true).await?;
        Ok(rows.map_err(of_statement)?)
    }

    /// Does what may take a moment beside this thread, where others would wait for it.
    pub(super) async fn beside<T: Send + 'static>(
        &mut self,
        database: &DatabaseHandle,
        holder: &Holder,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Stop> {
        let done = self.wanted(database.run_beside(holder, work), true).await?;
        let gone = |_| Failure::new(state::SHUTDOWN, "the database has ended");
        Ok(done.map_err(gone)?)
    }
}

/// What is no question of either language is refused in the words of the first that it was read in.
pub(super) fn of_unread(unread: Unread, refusal: Option<Failure>) -> Failure {
    match unread {
        Unread::Text(failure) => refusal.unwrap_or(failure),
        Unread::Failed(failure) => failure,
    }
}
