//! Migrating rows one by one (02 §14.9): which ones are next, and what the running module's transactions mean for those that are done.
//!
//! Who calls it has the transaction: the writer, behind the running module, and a rehearsal on a copy.
//!
//! - There are no links from old rows to new ones: they would cost more memory than many a row. A function may only insert, so what it
//!   made of a row is learnt by calling it again with inserts that delete. Only values of counters, and how often a row was made, are noted.
//! - The rows that are done are a set of hashes, not a place in an order: tables need no key, and rows may come, go and move.
//! - A failure ends the backfill, never the transaction that it met: what was done for that transaction is undone to a point.

mod functions;

use std::time::{Duration, Instant};

use lightcone_engine::{BackfillRecord, BackfillTable, Datastore, OldRows};
use lightcone_schema::MigrationPlan;
use lightcone_table::RowId;
use lightcone_types::TableId;
use rustc_hash::FxHashMap;

use self::functions::{too_long, RowFunctions};
use crate::environment::Environment;
use crate::module::Program;
use crate::options::DatabaseOptions;

pub(crate) use self::functions::Failure;

/// Old rows that are copied at a time before their functions are called: so many, or so many bytes.
const PART_ROWS_MAX: usize = 256;
const PART_BYTES_MAX: usize = 256 << 10;

/// Rows that move at the wrong moment are missed by one pass, hardly by several.
const PASSES_IN_VAIN_MAX: usize = 4;
/// What one call in a batch may take at least, by the clock: a machine that stands still for a moment ends no backfill.
const BATCH_CALL_TIME: Duration = Duration::from_secs(1);

/// A backfill of a database that was opened.
pub(crate) struct Resumed {
    pub program: Program,
    pub record: BackfillRecord,
}

/// Rows of several tables.
#[derive(Default)]
struct Changed {
    /// For each row, which of the tables it is of.
    tables: Vec<usize>,
    rows: OldRows,
}

impl Changed {
    fn clear(&mut self) {
        self.tables.clear();
        // One huge transaction must not pin its memory for ever.
        self.tables.shrink_to(1 << 16);
        self.rows.clear();
    }

    fn push(&mut self, table: usize, row: Option<&[u8]>) {
        if let Some(row) = row {
            self.tables.push(table);
            self.rows.push(row);
        }
    }

    /// Each row, with its table.
    fn iter(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let tables = self.tables.iter().enumerate();
        tables.map(|(number, table)| (*table, self.rows.get(number)))
    }
}

/// The tables whose rows are migrated, and how far that is.
pub(crate) struct Backfill {
    tables: Vec<BackfillTable>,
    /// Where they are there.
    positions: FxHashMap<TableId, usize>,
    functions: RowFunctions,
    /// The table that is looked at, and behind which of its rows to go on.
    position: usize,
    after: Option<RowId>,
    /// Rows that were copied, and how many of them were seen to. Some may be gone when a batch finds them here.
    part: OldRows,
    seen: usize,
    /// There are none behind them.
    is_at_end: bool,
    /// Some row was not done when it was looked at in this pass.
    has_made: bool,
    /// How many passes one after the other have found all rows done, and fewer notes than rows.
    passes_in_vain: usize,
    /// Rows that a transaction took away, and that it brought.
    gone: Changed,
    come: Changed,
    /// For what one transaction has them do.
    transaction_time_max: Duration,
}

impl Backfill {
    /// For the tables that a database has for it. The functions run in an instance of their own, on this thread.
    ///
    /// # Errors
    /// The tables are not those of the plan, or there is no instance.
    pub fn new(
        datastore: &Datastore,
        options: &DatabaseOptions,
        (program, plan): (&Program, &MigrationPlan),
        started_us: i64,
        console: std::sync::Arc<dyn lightcone_host::ConsoleSink>,
    ) -> Result<Backfill, Failure> {
        let tables = datastore.backfill_tables(&program.def, plan);
        let tables = tables.map_err(Failure::other)?;
        let functions = RowFunctions::new(options, program, &tables, console, started_us)?;
        let positions = tables.iter().enumerate();
        let positions = positions.map(|(position, table)| (table.table, position));
        Ok(Backfill {
            positions: positions.collect(),
            tables,
            functions,
            position: 0,
            after: None,
            part: OldRows::default(),
            seen: 0,
            is_at_end: false,
            has_made: false,
            passes_in_vain: 0,
            gone: Default::default(),
            come: Default::default(),
            transaction_time_max: options.limits.backfill_transaction_time_max,
        })
    }

    /// What ends a call from outside.
    pub fn interrupt(&mut self) -> Option<std::sync::Arc<lightcone_host::Interrupt>> {
        self.functions.interrupt()
    }

    /// The name of the table that is looked at.
    pub fn table<'d>(&self, datastore: &'d Datastore) -> Option<&'d str> {
        let table = self.tables.get(self.position).or(self.tables.last())?;
        Some(datastore.schema(table.table)?.name.as_str())
    }

    /// Migrates some rows in the open transaction, until about `until`. True: all are done.
    ///
    /// # Errors
    /// A row cannot be migrated. The transaction is only good for a rollback then.
    pub fn batch(
        &mut self,
        datastore: &mut Datastore,
        environment: &dyn Environment,
        until: Instant,
    ) -> Result<bool, Failure> {
        let call_time = self.transaction_time_max.max(BATCH_CALL_TIME);
        self.functions.limit(call_time);
        let mut before = environment.instant();
        // What was copied for an earlier batch may have gone since.
        let mut is_stale = true;
        while self.position < self.tables.len() {
            let table = &self.tables[self.position];
            while self.seen < self.part.len() {
                let row = self.part.get(self.seen);
                let is_gone = is_stale && !datastore.has_old_row(table, row);
                if !is_gone && !datastore.is_backfilled(table, row) {
                    self.functions.make(datastore, table, row)?;
                    self.has_made = true;
                }
                self.seen += 1;
                let now = environment.instant();
                time_left(now - before, call_time)?;
                if now >= until {
                    return Ok(false);
                }
                before = now;
            }
            if self.is_at_end {
                (self.position, self.after, self.is_at_end) = (self.position + 1, None, false);
                self.part.clear();
                self.seen = 0;
                continue;
            }
            is_stale = false;
            let bounds = (PART_ROWS_MAX, PART_BYTES_MAX);
            datastore.old_rows(table, self.after, bounds, &mut self.part);
            (self.seen, self.after) = (0, self.part.last);
            self.is_at_end = self.after.is_none();
        }
        self.end_pass(datastore)
    }

    /// All rows were looked at. True: all are done.
    fn end_pass(&mut self, datastore: &Datastore) -> Result<bool, Failure> {
        self.position = 0;
        let mut is_done = true;
        for table in &self.tables {
            let (done, rows) = datastore.backfilled_of(table);
            if done > rows {
                return Err(not_followed());
            }
            is_done &= done == rows;
        }
        // A transaction that was taken back may have moved rows behind the place that was looked at.
        let is_in_vain = !is_done && !std::mem::take(&mut self.has_made);
        self.passes_in_vain = if is_in_vain {
            self.passes_in_vain + 1
        } else {
            0
        };
        match self.passes_in_vain >= PASSES_IN_VAIN_MAX {
            true => Err(not_followed()),
            false => Ok(is_done),
        }
    }

    /// Before the open transaction is committed: what was made of rows that it has taken away goes, and of those that it has
    /// brought new ones are made.
    ///
    /// # Errors
    /// As [`Backfill::batch`], but only what was done here has to be taken back.
    pub fn follow(
        &mut self,
        datastore: &mut Datastore,
        environment: &dyn Environment,
    ) -> Result<(), Failure> {
        let Backfill {
            tables,
            positions,
            functions,
            gone,
            come,
            transaction_time_max: time_max,
            ..
        } = self;
        let started = environment.instant();
        gone.clear();
        come.clear();
        datastore.for_each_net_change(
            |table| positions.contains_key(&table),
            |table, old, new| {
                let of = positions[&table.schema.id];
                gone.push(of, old);
                come.push(of, new);
            },
        );
        if gone.tables.is_empty() && come.tables.is_empty() {
            return Ok(());
        }
        let time_left = || time_left(environment.instant() - started, *time_max);
        // First all that goes: keys that it had may be used again.
        for (table, row) in gone.iter() {
            functions.limit(time_left()?);
            functions.unmake(datastore, &tables[table], row)?;
        }
        for (table, row) in come.iter() {
            functions.limit(time_left()?);
            functions.make(datastore, &tables[table], row)?;
        }
        time_left()?;
        Ok(())
    }
}

fn time_left(took: Duration, time_max: Duration) -> Result<Duration, Failure> {
    time_max.checked_sub(took).ok_or_else(too_long)
}

fn not_followed() -> Failure {
    Failure::other("the notes of which rows are done do not agree with the rows there are: something has changed rows that the new tables did not follow")
}
