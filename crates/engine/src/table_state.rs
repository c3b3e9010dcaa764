//! What the engine keeps of one table, and where.

use std::sync::Arc;

use lightcone_schema::{SequenceSchema, TableSchema};
use lightcone_table::{RowLayout, Table};
use rustc_hash::FxHashMap;

use crate::counters::TableCounters;
use crate::hidden::is_hidden;
use crate::outbox_columns::OutboxColumns;
use crate::schedule::ScheduleColumns;
use crate::sequence::Sequence;

/// A table with what the engine keeps beside it.
pub(crate) struct TableState {
    pub table: Table,
    pub sequences: Vec<Sequence>,
    /// The next commit saves the sequences.
    pub is_saving_sequences: bool,
    /// Subscribers want the table's changes as deltas.
    pub watched: bool,
    /// Views do.
    pub is_read: bool,
    /// Its rows call a function.
    pub schedule: Option<ScheduleColumns>,
    /// Its rows are messages to other databases.
    pub outbox: Option<OutboxColumns>,
    /// It holds the rows of a view, and this is how they are declared: without the hash in front.
    pub declared: Option<RowLayout>,
    /// Modules and SQL may change its rows: it holds none of a view, was not set aside, and is none of a backfill.
    pub is_writable: bool,
    pub counters: Arc<TableCounters>,
}

impl TableState {
    pub fn new(
        schema: Arc<TableSchema>,
        allocated: impl Fn(&SequenceSchema) -> i128,
    ) -> TableState {
        let declared = schema
            .view
            .map(|_| RowLayout::of(schema.declared_columns()));
        TableState {
            is_writable: declared.is_none() && !is_hidden(&schema.name),
            declared,
            schedule: ScheduleColumns::of(&schema),
            outbox: OutboxColumns::of(&schema),
            sequences: sequences_of(&schema, allocated),
            table: Table::new(schema),
            is_saving_sequences: false,
            watched: false,
            is_read: false,
            counters: Arc::default(),
        }
    }

    /// Its changes are wanted as deltas.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.watched | self.is_read
    }

    /// Commits look at its net change, not only at what is in it then.
    #[inline]
    pub fn is_told(&self) -> bool {
        self.is_wanted() || self.schedule.is_some() || self.table.schema.is_event
    }

    /// Notes how much is in the table.
    #[inline]
    pub fn count_rows(&self) {
        let rows = self.table.rows();
        self.counters.rows.set(rows.row_count());
        self.counters.bytes.set(rows.heap_bytes() as u64);
    }

    /// The table holds the rows of a view: only the database itself writes them, and they are in memory only.
    #[inline]
    pub fn is_view(&self) -> bool {
        self.declared.is_some()
    }
}

/// The sequences of a table, in the order of their columns, as generated values are returned (02 §12).
pub(crate) fn sequences_of(
    schema: &TableSchema,
    allocated: impl Fn(&SequenceSchema) -> i128,
) -> Vec<Sequence> {
    let sequences = schema.sequences.iter().map(|s| {
        let column = &schema.columns[usize::from(s.column.0)].ty;
        Sequence::new(s.clone(), column, allocated(s))
    });
    let mut sequences: Vec<Sequence> = sequences.collect();
    sequences.sort_by_key(|s| s.schema.column);
    sequences
}

/// The position of a table in the datastore; dense, unlike table ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub(crate) struct TableSlot(u32);

impl TableSlot {
    /// For ids that no table or index has.
    pub const NONE: TableSlot = TableSlot(u32::MAX);

    /// The slot that has `index` slots before it.
    pub fn new(index: usize) -> TableSlot {
        TableSlot(index as u32)
    }

    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A table's description in the catalog.
pub(crate) struct Described {
    pub schema: TableSchema,
    /// Where its sequences are to go on, in their order.
    pub allocated: Vec<i128>,
}

impl Described {
    pub fn into_state(self) -> TableState {
        let schema = Arc::new(self.schema);
        let stored = schema.sequences.iter().zip(self.allocated);
        let stored: FxHashMap<_, _> = stored.map(|(s, at)| (s.id.0, at)).collect();
        TableState::new(schema, |sequence| stored[&sequence.id.0])
    }
}
