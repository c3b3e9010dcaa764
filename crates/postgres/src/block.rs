//! What a transaction block has changed so far, within bounds: a list of statements, to be run when it ends.

use std::sync::Arc;

use lightcone_database::{HeldMemory, Holder, Write, Written};

use super::failure::{of_statement, state, Failure};
use super::table::SmallTable;

/// Statements of a block that change rows, and questions behind the first of them. Each runs those before it again.
const STATEMENTS_MAX: usize = 256;
/// Bytes of their texts, and of the rows that they have given.
const BYTES_MAX: usize = 1 << 20;
/// What a value of a row takes besides its text.
const VALUE_BYTES: usize = 32;

/// What a block has done so far.
pub(super) struct Changes {
    statements: Vec<Write>,
    bytes: usize,
    /// As many as `bytes`, in the account of the client.
    memory: HeldMemory,
}

impl Changes {
    pub fn new(holder: &Holder) -> Changes {
        Changes {
            statements: Vec::new(),
            bytes: 0,
            memory: holder.memory(),
        }
    }

    pub fn statements(&self) -> &[Write] {
        &self.statements
    }

    pub fn is_empty(&self) -> bool {
        self.statements.is_empty()
    }

    /// Forgets all, and gives it.
    pub fn take(&mut self) -> Vec<Write> {
        self.bytes = 0;
        // Fewer are always taken.
        let _ = self.memory.set(0);
        std::mem::take(&mut self.statements)
    }

    /// Refuses a statement of so many bytes that would be too much.
    pub fn check(&self, more: usize) -> Result<(), Failure> {
        let message = if self.statements.len() >= STATEMENTS_MAX {
            format!("a transaction block has at most {STATEMENTS_MAX} statements from the first that changes rows on: commit more often, or change several rows with one statement")
        } else if self.bytes + more > BYTES_MAX {
            format!("the statements of a transaction block, and the rows that they gave, have more than {BYTES_MAX} bytes: commit more often")
        } else {
            return Ok(());
        };
        Err(Failure::new(state::LIMIT_REACHED, message))
    }

    /// Adds a statement of so many bytes, with what it has answered.
    pub fn add(
        &mut self,
        statement: Write,
        bytes: usize,
        written: &Arc<Written>,
    ) -> Result<(), Failure> {
        let values = written.rows.iter().map(|row| row.len() * VALUE_BYTES);
        let bytes = bytes + values.sum::<usize>() + SmallTable::texts_of(&written.rows);
        let bytes = bytes + written.generated_bytes();
        let statement = statement.answering(written.clone());
        self.check(bytes)?;
        self.memory.set(self.bytes + bytes).map_err(of_statement)?;
        self.bytes += bytes;
        self.statements.push(statement);
        Ok(())
    }
}
