//! Statements that change rows, alone and in transaction blocks (08 §19).
//!
//! A block is a list. Each statement of it is run by the writer behind those before it, answers, and is undone; `COMMIT` runs all of
//! them once more, and keeps what they do if they answer as they did.

use std::sync::Arc;

use lightcone_database::{DatabaseHandle, SqlError, Write, Written};
use lightcone_query::postgresql::Format;
use lightcone_types::{AlgebraicType, ProductType};

use super::super::failure::{of_statement, Failure};
use super::super::messages::WireError;
use super::super::program::Statement;
use super::super::table::{column_types, SmallTable};
use super::super::tags::{tag_of, verb_of};
use super::question::of_unread;
use super::results::Outcome;
use super::{Session, Stop, Transaction};

/// Is it the verb of a statement of PostgreSQL's language that changes rows?
pub(super) fn changes_rows(verb: &str) -> bool {
    matches!(verb, "INSERT" | "UPDATE" | "DELETE")
}

impl Session {
    /// Runs a statement of a block that changes rows.
    pub(super) async fn write_in_block(
        &mut self,
        text: String,
        formats: &[Format],
    ) -> Result<Outcome, Stop> {
        let (database, holder) = self.database().await?;
        let caller = &self.login.caller;
        let write = database.compile_write(&holder, caller, text.clone());
        match write.await {
            Ok(write) => {
                let written = self.run_write(&database, write, text.len()).await?;
                Ok(Outcome::done(tag_of(verb_of(&text), written.stats)))
            }
            Err(error @ SqlError::NotCompiled(_)) if changes_rows(verb_of(&text)) => {
                self.write(text, formats, of_statement(error)).await
            }
            Err(error) => Err(of_statement(error).into()),
        }
    }

    /// Runs a statement that changes rows, and was refused in the ad hoc language.
    pub(super) async fn write(
        &mut self,
        text: String,
        formats: &[Format],
        refusal: Failure,
    ) -> Result<Outcome, Stop> {
        let (database, holder) = self.database().await?;
        let tables = self.catalogue(&database);
        let (verb, bytes) = (verb_of(&text), text.len());
        let work = move || match tables.read_write(&text, false) {
            Ok(read) => Statement::new(tables, read),
            Err(unread) => Err(of_unread(unread, Some(refusal))),
        };
        let statement = self.beside(&database, &holder, work).await??;
        let columns = statement.columns();
        // Before it runs: what is kept must not be answered with an error.
        let width = columns.as_ref().map_or(0, Vec::len);
        if !formats.is_empty() && formats.len() != width {
            return Err(Failure::unsupported("cached plan must not change result type").into());
        }
        let write = Write::program(Arc::new(statement), bytes);
        let written = self.run_write(&database, write, bytes).await?;
        let tag = tag_of(verb, written.stats);
        let Some(columns) = columns else {
            return Ok(Outcome::done(tag));
        };
        let table = SmallTable {
            columns,
            rows: written.rows.clone(),
        };
        let outcome = self.of_table(&table, formats, None);
        let mut outcome = match outcome {
            // It is kept, and must not be answered with an error: the connection ends, and what became of it is not said.
            Err(_) if self.transaction == Transaction::None => return Err(WireError::Cut.into()),
            outcome => outcome?,
        };
        outcome.pending.tag = tag;
        Ok(outcome)
    }

    /// Types of the parameters of such a statement, and its columns if it gives rows.
    pub(super) async fn described_write(
        &mut self,
        text: String,
        parameters: usize,
        refusal: Failure,
    ) -> Result<(Vec<AlgebraicType>, Option<ProductType>), Stop> {
        let (database, holder) = self.database().await?;
        let tables = self.catalogue(&database);
        let work = move || tables.read_write(&text, true);
        let read = self.beside(&database, &holder, work).await?;
        let read = read.map_err(|unread| of_unread(unread, Some(refusal)))?;
        let write = read.statement;
        let columns = write.columns().map(|columns| column_types(&columns));
        Ok((write.question.parameters(parameters), columns))
    }

    /// Runs a statement of so many bytes: as a transaction of its own, or as the next of the block.
    pub(super) async fn run_write(
        &mut self,
        database: &DatabaseHandle,
        write: Write,
        bytes: usize,
    ) -> Result<Arc<Written>, Stop> {
        let is_block = self.transaction == Transaction::Open;
        let mut statements = Vec::new();
        if is_block {
            self.block.check(bytes)?;
            statements.extend_from_slice(self.block.statements());
        }
        statements.push(write.clone());
        let written = self.run_writes(database, statements, !is_block).await?;
        if !is_block {
            // It is kept: a wish to cancel it came too late.
            self.cancel.begin();
        }
        if is_block {
            self.block.add(write, bytes, &written)?;
        }
        Ok(written)
    }

    async fn run_writes(
        &mut self,
        database: &DatabaseHandle,
        statements: Vec<Write>,
        is_kept: bool,
    ) -> Result<Arc<Written>, Stop> {
        let caller = self.login.caller.clone();
        let run = database.write(caller, statements, is_kept, true);
        // What is not kept can be given up.
        let written = self.wanted(run, !is_kept).await?;
        Ok(written.map_err(of_statement)?)
    }

    /// Ends a block, and keeps what it has done.
    pub(super) async fn commit(&mut self) -> Result<Outcome, Stop> {
        let was = std::mem::replace(&mut self.transaction, Transaction::None);
        let statements = self.block.take();
        if was == Transaction::Failed {
            return Ok(Outcome::done("ROLLBACK"));
        }
        if !statements.is_empty() {
            let (database, _) = self.database().await?;
            self.run_writes(&database, statements, true).await?;
        }
        Ok(Outcome::done("COMMIT"))
    }
}
