//! Statements that the writer runs as one transaction, and what they answer.

use std::sync::Arc;

use lightcone_query::postgresql::{Cell, Failure, Store};
use lightcone_query::{Query, WritePlan};
use lightcone_schema::TableSchema;
use lightcone_types::{Identity, ProductType};

/// A query that is read as a part of a question.
#[derive(Clone)]
pub struct Reading {
    pub(crate) query: Arc<Query>,
    pub(crate) sender: Identity,
}

impl Reading {
    pub fn text(&self) -> &str {
        &self.query.text
    }

    pub fn columns(&self) -> ProductType {
        self.query.output_type()
    }

    /// Rows of views are made before they are read, which no transaction does.
    pub fn reads_views(&self) -> bool {
        self.query.read_tables().any(|table| table.view.is_some())
    }
}

/// What a statement changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SqlStats {
    pub rows_inserted: u64,
    pub rows_deleted: u64,
    pub rows_updated: u64,
}

/// A statement of PostgreSQL's language that the writer runs in a transaction.
pub trait Program: Send + Sync {
    /// The table whose rows it changes. None: it changes nothing.
    fn table(&self) -> Option<&Arc<TableSchema>>;

    /// What it reads.
    fn readings(&self) -> &[Reading];

    /// The reading, by its place, whose rows are changed.
    fn target(&self) -> Option<usize>;

    /// Runs it with the rows of what it reads, a byte before each. `look` ends what takes too long.
    ///
    /// # Errors
    /// It cannot be done, or `look` or the store says so: nothing of it is kept.
    fn run(
        &self,
        rows: &[Vec<u8>],
        look: &(dyn Fn() -> Result<(), Failure> + Sync),
        store: &mut dyn Store,
    ) -> Result<Written, Failure>;
}

/// What a statement has answered.
#[derive(Clone, Debug, Default)]
pub struct Written {
    pub stats: SqlStats,
    pub rows: Vec<Vec<Cell>>,
    /// What sequences gave for rows, by their numbers in the statement.
    pub(crate) generated: Vec<(usize, Vec<u8>)>,
}

/// A number that a sequence gave, with its place and its own memory.
const GENERATED_BYTES: usize = 64;

impl Written {
    pub fn new(stats: SqlStats, rows: Vec<Vec<Cell>>) -> Written {
        Written {
            stats,
            rows,
            generated: Vec::new(),
        }
    }

    /// What it keeps besides its rows.
    pub fn generated_bytes(&self) -> usize {
        self.generated.len() * GENERATED_BYTES
    }

    /// Is it the same to who has asked?
    pub(crate) fn is_same(&self, other: &Written) -> bool {
        self.stats == other.stats && self.rows == other.rows
    }
}

/// A statement of a transaction.
#[derive(Clone)]
pub struct Write {
    pub(crate) change: Change,
    /// What it has answered already, in a run that was undone.
    pub(crate) answered: Option<Arc<Written>>,
    /// Of its text.
    pub(crate) bytes: usize,
}

#[derive(Clone)]
pub(crate) enum Change {
    /// Of the ad hoc language.
    Plan(Arc<WritePlan>),
    Program(Arc<dyn Program>),
}

impl Change {
    /// The table whose rows it changes. None: it changes nothing.
    pub fn table(&self) -> Option<&Arc<TableSchema>> {
        match self {
            Change::Plan(plan) => Some(&plan.table),
            Change::Program(program) => program.table(),
        }
    }

    /// The tables that it reads, apart from that one.
    pub fn read_tables(&self) -> impl Iterator<Item = &Arc<TableSchema>> {
        let readings = match self {
            // They are looked at when it runs.
            Change::Plan(_) => &[],
            Change::Program(program) => program.readings(),
        };
        readings.iter().flat_map(|of| of.query.read_tables())
    }
}

impl Write {
    pub(crate) fn plan(plan: Arc<WritePlan>, bytes: usize) -> Write {
        Write {
            change: Change::Plan(plan),
            answered: None,
            bytes,
        }
    }

    /// A program that was made of a text of so many bytes.
    pub fn program(program: Arc<dyn Program>, bytes: usize) -> Write {
        Write {
            change: Change::Program(program),
            answered: None,
            bytes,
        }
    }

    /// The same, which has to answer so when it is run again.
    pub fn answering(self, answered: Arc<Written>) -> Write {
        Write {
            answered: Some(answered),
            ..self
        }
    }
}
