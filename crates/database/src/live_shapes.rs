//! What clients are subscribed to, for those who look at a database.

use lightcone_live::{QueryShape, QueryShapeKind};
use lightcone_schema::TableSchema;
use lightcone_types::{ColId, TableId};
use rustc_hash::FxHashMap;

use crate::environment::Environment;

/// Queries that are looked at when a list of their shapes is wanted, so that messages do not wait for it.
pub(crate) const QUERIES_LOOKED_AT_MAX: usize = 50_000;
pub(crate) const SHAPES_LISTED_MAX: usize = 500;
/// One in so many transactions is measured. No usual rhythm of transactions hides one of them.
pub(crate) const MEASURED_ONE_IN: u32 = 17;
/// Joins and windows with times. When there are more, as shapes come and go, all begin anew.
const UPKEEP_TIMES_MAX: usize = 4096;

/// What measured changes took together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MeasuredTime {
    pub ns: u64,
    pub changes: u64,
}

impl MeasuredTime {
    pub fn add(&mut self, other: MeasuredTime) {
        self.ns += other.ns;
        self.changes += other.changes;
    }

    fn mean_ns(self) -> Option<u64> {
        self.ns.checked_div(self.changes)
    }
}

/// What it takes the writer to keep joins and windows up to date.
#[derive(Default)]
pub(crate) struct UpkeepTimes {
    calls: u32,
    /// By the id of the join or window.
    pub by_shape: FxHashMap<TableId, MeasuredTime>,
}

impl UpkeepTimes {
    /// To be told of each shape that is up to date: what it took since the one before is noted if it is measured.
    pub fn watch<'t>(&'t mut self, environment: &'t dyn Environment) -> impl FnMut(TableId) + 't {
        self.calls = self.calls.wrapping_add(1);
        let is_measured = self.calls.is_multiple_of(MEASURED_ONE_IN);
        let mut since = is_measured.then(|| environment.instant());
        move |shape| {
            let Some(since) = &mut since else {
                return;
            };
            let before = std::mem::replace(since, environment.instant());
            let ns = (*since - before).as_nanos() as u64;
            if self.by_shape.len() >= UPKEEP_TIMES_MAX {
                self.by_shape.clear();
            }
            let time = self.by_shape.entry(shape).or_default();
            time.add(MeasuredTime { ns, changes: 1 });
        }
    }
}

/// The shapes of live queries.
#[derive(Debug, Default)]
pub struct LiveShapes {
    pub listed: Vec<LiveShape>,
    /// All of them are listed, with all their queries.
    pub is_whole: bool,
}

/// Live queries that differ in values only.
#[derive(Debug)]
pub struct LiveShape {
    /// Whose rows come out.
    pub table: String,
    /// `rows`, `join` or `window`.
    pub kind: &'static str,
    /// The column that must have one value.
    pub by: Option<String>,
    /// There are other conditions.
    pub is_filtered: bool,
    pub queries: u64,
    /// A client counts as often as it has query sets with one of them.
    pub subscribers: u64,
    /// Transactions that concerned them, and rows that these inserted and deleted, since each was subscribed to.
    pub changes: u64,
    pub changed_rows: u64,
    /// Finding out who is concerned, and writing their messages.
    pub(crate) delivery: MeasuredTime,
    /// Keeping the joins or windows up to date.
    pub(crate) upkeep: MeasuredTime,
}

impl LiveShape {
    pub(crate) fn new(shape: &QueryShape, table: &TableSchema) -> LiveShape {
        let column = |by: ColId| table.columns.get(usize::from(by.0));
        LiveShape {
            table: table.name.clone(),
            kind: match shape.kind {
                QueryShapeKind::Rows => "rows",
                QueryShapeKind::Join => "join",
                QueryShapeKind::Window => "window",
            },
            by: shape.by.and_then(column).map(|column| column.name.clone()),
            is_filtered: shape.is_filtered,
            queries: 0,
            subscribers: 0,
            changes: 0,
            changed_rows: 0,
            delivery: MeasuredTime::default(),
            upkeep: MeasuredTime::default(),
        }
    }

    /// What a transaction that concerns one of them takes the server, in nanoseconds: the mean of those measured. None: none was yet.
    pub fn change_ns(&self) -> Option<u64> {
        let (delivery, upkeep) = (self.delivery.mean_ns(), self.upkeep.mean_ns());
        Some(delivery.unwrap_or(0) + upkeep.unwrap_or(0)).filter(|_| delivery.or(upkeep).is_some())
    }
}
