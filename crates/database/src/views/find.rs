//! Finding the rows of a view's query, in the open transaction and for as long as a view may take.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lightcone_engine::Datastore;
use lightcone_query::{Progress, Query, Run, SelectPlan};
use lightcone_table::{TableView, Tables};
use lightcone_types::{Identity, TableId};

use super::failures::ViewError;
use super::host::ViewHost;
use crate::error::Refusal;
use crate::evaluate::usable_index;

/// What a join keeps to find its matches.
const JOIN_MEMORY_BYTES_MAX: usize = 64 << 20;
/// Rows between two looks at the clock.
const PIECE_ROWS: usize = 1 << 14;
/// Steps of a join between two looks at the clock.
const PIECE_STEPS: usize = 1 << 14;

/// The tables as the open transaction has them, without events.
struct Open<'d>(&'d Datastore);

impl Tables for Open<'_> {
    fn table(&self, id: TableId) -> Option<&TableView> {
        let table = self.0.table(id)?;
        (!table.schema.is_event).then_some(table)
    }
}

pub(super) fn matches(plan: &SelectPlan, table: &TableView, row: &[u8]) -> bool {
    let predicate = plan.predicate.as_ref();
    predicate.is_none_or(|predicate| predicate.matches(table.layout(), row))
}

/// Until when the query of a view may run.
struct Deadline<'h> {
    host: ViewHost<'h>,
    until: Instant,
}

impl<'h> Deadline<'h> {
    fn new(host: ViewHost<'h>) -> Deadline<'h> {
        let ms_max = host.shared.options.limits.view_ms_max;
        Deadline {
            host,
            until: host.instant() + Duration::from_millis(ms_max),
        }
    }

    fn is_over(&self) -> bool {
        self.host.instant() > self.until
    }

    fn error(&self) -> ViewError {
        let ms_max = self.host.shared.options.limits.view_ms_max;
        ViewError {
            reason: format!("its query ran longer than limits.view-ms-max, which is {ms_max}"),
            may_pass: true,
            ran_too_long: true,
        }
    }
}

/// Visits the rows of a query on one table until `take` returns false, for as long as a view may take.
pub(super) fn find_rows(
    host: ViewHost<'_>,
    datastore: &Datastore,
    plan: &SelectPlan,
    mut take: impl FnMut(&[u8]) -> bool,
) -> Result<(), ViewError> {
    let table = datastore.table(plan.table.id);
    // Events are gone when the transaction ends: views see their tables empty.
    let Some(table) = table.filter(|table| !table.schema.is_event) else {
        return Ok(());
    };
    let deadline = Deadline::new(host);
    let (mut rows, mut is_late) = (0_usize, false);
    // Also those that are not taken take their time.
    let mut visit = |row: &[u8]| {
        rows += 1;
        is_late = rows.is_multiple_of(PIECE_ROWS) && deadline.is_over();
        !is_late && (!matches(plan, table, row) || take(row))
    };
    match usable_index(plan, &table.schema.indexes) {
        Some((position, point)) => {
            let index = &table.indexes()[position];
            let visit = |id| visit(table.row(id));
            let walked = index.walk_point(table.rows(), table.layout(), &point, None, visit);
            walked.map_err(|error| Refusal(error.to_string()))?;
        }
        None => {
            table.rows().walk(None, |_, row| visit(row));
        }
    }
    match is_late {
        true => Err(deadline.error()),
        false => Ok(()),
    }
}

/// The same of a query on several tables, for as long as a view may take.
pub(super) fn find_matches(
    host: ViewHost<'_>,
    datastore: &Datastore,
    (query, sender): (&Arc<Query>, Identity),
    mut take: impl FnMut(&[u8]) -> bool,
) -> Result<(), ViewError> {
    let deadline = Deadline::new(host);
    let mut run = Run::new(query.clone(), sender, JOIN_MEMORY_BYTES_MAX);
    loop {
        let mut steps = PIECE_STEPS;
        let progress = run.run(&Open(datastore), &mut steps, &mut take);
        if progress.map_err(|error| Refusal(error.to_string()))? != Progress::Paused {
            return Ok(());
        }
        if deadline.is_over() {
            return Err(deadline.error());
        }
    }
}
