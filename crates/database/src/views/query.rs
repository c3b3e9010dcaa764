//! Views that return a query (08 §10.4): its rows are found by the database, and kept up to date from what changes, without
//! another call of the module.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lightcone_engine::{Datastore, ViewInstance};
use lightcone_query::{
    admit_subscription, compile_aggregate, compile_subscription, Caller, Fragment, Progress, Query,
    Run, SelectPlan,
};
use lightcone_table::ReadSet;
use lightcone_table::{TableView, Tables};
use lightcone_types::{AlgebraicType, ColId, Identity, TableId};

use super::failures::ViewError;
use super::joins::{JoinResult, ViewJoin};
use super::kept::Kept;
use super::runner::Returned;
use super::{Row, ViewHost, NO_ROWS};
use crate::evaluate::usable_index;
use lightcone_live::BoundQuery;
use lightcone_live::{Asker, IndexBuilding};

/// Changed rows of one transaction that are listed for queries, counted once for each query. With more, queries run again.
const LISTED_ROWS_MAX: usize = 65_536;

/// What a join keeps to find its matches.
const JOIN_MEMORY_BYTES_MAX: usize = 64 << 20;
/// Rows between two looks at the clock.
const PIECE_ROWS: usize = 1 << 14;
/// Steps of a join between two looks at the clock.
const PIECE_STEPS: usize = 1 << 17;

/// Where the rows of an instance are, and which of them they are.
pub(super) type Rows<'a> = (TableId, &'a ViewInstance);

/// A query that a view returned.
pub(super) struct ViewQuery {
    asked: BoundQuery,
    /// The join that it is, if it is kept up to date as one.
    join: Option<ViewJoin>,
    /// What it knows of its result, if that is one of aggregates of one table, or the first rows of an order.
    kept: Option<Kept>,
    reads: ReadSet,
    /// Of its rows, if they are those of one table.
    bytes: usize,
    /// The table and column on which an index is held for it.
    held: Option<(TableId, ColId)>,
}

/// Makes what a view returned its rows, in the open transaction. Gives the query, if it is one: also if evaluating it failed, as
/// it may go well when its tables have changed.
pub(super) fn store(
    host: ViewHost<'_>,
    datastore: &mut Datastore,
    rows: Rows<'_>,
    sender: Option<Identity>,
    returned: Returned,
) -> (Option<ViewQuery>, Result<(), ViewError>) {
    let text = match returned {
        Returned::Rows(found) => return (None, replace(datastore, rows, &found)),
        Returned::Query(text) => text,
    };
    if text.trim().is_empty() {
        return (None, replace(datastore, rows, NO_ROWS));
    }
    let asked = match compile(host, rows.0, sender, &text) {
        Ok(asked) => asked,
        Err(error) => {
            let error = format!("Error executing raw SQL returned by view: {error}");
            return (None, Err(error.into()));
        }
    };
    let mut query = ViewQuery::new(host, datastore, asked);
    let result = query.evaluate(host, datastore, rows);
    if result.is_err() {
        query.give_up_join(datastore);
    }
    (Some(query), result)
}

pub(super) fn replace(
    datastore: &mut Datastore,
    (table, instance): Rows<'_>,
    rows: &[u8],
) -> Result<(), ViewError> {
    Ok(datastore.replace_view_rows(table, instance, rows)?)
}

/// Compiles the text of a view with all rights of the database, and checks that its rows are the view's (08 §10.4).
fn compile(
    host: ViewHost<'_>,
    table: TableId,
    sender: Option<Identity>,
    text: &str,
) -> Result<BoundQuery, String> {
    let caller = Caller {
        identity: sender.unwrap_or(host.shared.options.owner),
        is_owner: true,
    };
    let (text, catalog) = (text.trim(), &host.module.catalog);
    let of_rows = compile_subscription(text, catalog, &caller)
        .and_then(|query| admit_subscription(&query).map(|()| query));
    let query = match of_rows {
        Ok(query) => query,
        Err(error) => {
            let aggregate = compile_aggregate(text, catalog, &caller);
            aggregate.ok_or_else(|| error.to_string())?
        }
    };
    if let Some(view) = query.read_tables().find(|table| table.view.is_some()) {
        return Err(format!("it reads the view `{}`", view.name));
    }
    if query.fragments.iter().any(Fragment::reads_sender) {
        return Err("it has parameters".to_owned());
    }
    // To a view an event table is not there, and what is not there gives a query no rows.
    let event = query.read_tables().find(|table| table.is_event);
    if let Some(event) = event.filter(|_| query.has_optional_tables()) {
        return Err(format!(
            "it reads the event table `{}`, and has subqueries or LEFT JOIN: a view has no events to look at",
            event.name
        ));
    }
    let function = host.module.views.get(&table);
    let view = function.map(|function| &host.module.def().views[function.position]);
    let declared = view.map_or(&[][..], |view| &view.columns);
    let returned = query.output_type().elements;
    let is_same = declared.len() == returned.len()
        && declared
            .iter()
            .zip(&returned)
            .all(|(a, b)| b.name.as_deref() == Some(&*a.name) && a.ty == b.algebraic_type);
    if is_same {
        let identity = caller.identity;
        return Ok(match query.returned_table() {
            Some(_) => BoundQuery::new(query, identity),
            None => BoundQuery::Tables(Arc::new(query), identity),
        });
    }
    let declared = declared.iter().map(|column| (&*column.name, &column.ty));
    let returned = returned.iter();
    let returned = returned.map(|e| (e.name.as_deref().unwrap_or(""), &e.algebraic_type));
    Err(format!(
        "it returns rows that are not of the view's type: the query gives ({}), and the view has ({})",
        shown_columns(returned),
        shown_columns(declared)
    ))
}

fn shown_columns<'c>(columns: impl Iterator<Item = (&'c str, &'c AlgebraicType)>) -> String {
    let shown = columns.map(|(name, ty)| format!("{name}: {}", ty.type_name()));
    shown.collect::<Vec<_>>().join(", ")
}

/// What a query reads: the rows of a key if it is on one table with an index for it, else whole tables.
fn reads_of(datastore: &Datastore, asked: &BoundQuery) -> ReadSet {
    let mut reads = ReadSet::default();
    match asked {
        BoundQuery::Table(plan) => return reads_of_plan(datastore, plan),
        BoundQuery::Tables(query, _) => query.read_tables().for_each(|table| reads.table(table.id)),
        BoundQuery::Window(asked) => reads.table(asked.shape.table.id),
    }
    reads
}

fn reads_of_plan(datastore: &Datastore, plan: &SelectPlan) -> ReadSet {
    let mut reads = ReadSet::default();
    match usable_index(plan, &plan.table.indexes) {
        Some((position, point)) => {
            let index = plan.table.indexes[position].id;
            if let Some(found) = datastore.index_of(index) {
                reads.point(found, index, &point);
            }
        }
        None => reads.table(plan.table.id),
    }
    reads
}

/// The tables as the open transaction has them, without events.
struct Open<'d>(&'d Datastore);

impl Tables for Open<'_> {
    fn table(&self, id: TableId) -> Option<&TableView> {
        let table = self.0.table(id)?;
        (!table.schema.is_event).then_some(table)
    }
}

impl ViewQuery {
    fn new(host: ViewHost<'_>, datastore: &Datastore, asked: BoundQuery) -> ViewQuery {
        let (mut join, mut kept) = (None, None);
        if let BoundQuery::Tables(query, sender) = &asked {
            kept = Kept::new(query, *sender);
            join = match &kept {
                Some(_) => None,
                None => ViewJoin::new(query, sender, &host.module.catalog.shapes.joins),
            };
        }
        let reads = match (&join, &kept) {
            (Some(_), _) => ReadSet::default(),
            (None, Some(kept)) => reads_of_plan(datastore, kept.plan()),
            (None, None) => reads_of(datastore, &asked),
        };
        ViewQuery {
            asked,
            join,
            kept,
            reads,
            bytes: 0,
            held: None,
        }
    }

    /// Holds an index that finds the rows of its window, if that may be built now. Without it, all are looked at each time.
    pub fn hold_index(
        &mut self,
        datastore: &mut Datastore,
        building: &mut IndexBuilding,
        now: Instant,
    ) {
        let held = self.kept.as_ref().and_then(Kept::held_column);
        let Some((table, column)) = held else {
            return;
        };
        let columns = [(&table, column)].into_iter();
        let of_module = Asker::Module;
        if building.check(datastore, columns, of_module, now).is_ok() {
            building.hold(datastore, table.id, column);
            self.held = Some((table.id, column));
        }
    }

    /// The table and column on which an index is held for it.
    pub fn held_index(&self) -> Option<(TableId, ColId)> {
        self.held
    }

    /// What has to be evaluated again when it changes, or what [`change`](Self::change) is told of.
    pub fn reads(&self) -> &ReadSet {
        &self.reads
    }

    pub fn join(&self) -> Option<&ViewJoin> {
        self.join.as_ref()
    }

    pub fn join_mut(&mut self) -> Option<&mut ViewJoin> {
        self.join.as_mut()
    }

    /// The join is evaluated again whenever one of its tables changes.
    pub fn give_up_join(&mut self, datastore: &Datastore) {
        self.join = None;
        self.reads = reads_of(datastore, &self.asked);
    }

    /// Finds all rows, in the open transaction.
    pub fn evaluate(
        &mut self,
        host: ViewHost<'_>,
        datastore: &mut Datastore,
        rows: Rows<'_>,
    ) -> Result<(), ViewError> {
        if let Some(kept) = &mut self.kept {
            return kept.evaluate(host, datastore, rows);
        }
        let result = self.join.as_mut().map(|join| &mut join.result);
        let joined = match result {
            Some(JoinResult::Groups(groups)) => return groups.evaluate(host, datastore, rows),
            Some(JoinResult::Rows(joined)) => Some(joined),
            None => None,
        };
        let bytes_max = host.shared.options.limits.view_bytes_max;
        // A BSATN array.
        let mut found = NO_ROWS.to_vec();
        let mut count = 0_u32;
        let mut ends = Vec::new();
        let is_join = joined.is_some();
        let mut take = |row: &[u8]| {
            found.extend_from_slice(row);
            count += 1;
            if is_join {
                ends.push(found.len());
            }
            found.len() <= bytes_max
        };
        match &self.asked {
            BoundQuery::Table(plan) => find_rows(host, datastore, plan, take)?,
            BoundQuery::Window(_) => unreachable!("only subscriptions are made windows"),
            BoundQuery::Tables(query, sender) => {
                find_matches(host, datastore, (query, *sender), &mut take)?;
            }
        }
        check_bytes(host, found.len())?;
        if let Some(joined) = joined {
            joined.count(&found, NO_ROWS.len(), &ends);
        }
        self.bytes = found.len();
        found[..NO_ROWS.len()].copy_from_slice(&count.to_le_bytes());
        replace(datastore, rows, &found)
    }

    /// Brings the rows up to date that [`evaluate`](Self::evaluate) found before these changes of the table that it reads. What
    /// reads several is evaluated again.
    pub fn change<'r>(
        &mut self,
        host: ViewHost<'_>,
        datastore: &mut Datastore,
        (view, instance): Rows<'_>,
        changes: impl Iterator<Item = Row<'r>>,
    ) -> Result<(), ViewError> {
        if let Some(kept) = &mut self.kept {
            return kept.change(host, datastore, (view, instance), changes);
        }
        let BoundQuery::Table(plan) = &self.asked else {
            return self.evaluate(host, datastore, (view, instance));
        };
        let Some(table) = datastore.table(plan.table.id) else {
            return Ok(());
        };
        let (mut gone, mut come) = (Vec::new(), Vec::new());
        for Row { old, new } in changes {
            gone.extend(old.filter(|row| matches(plan, table, row)));
            come.extend(new.filter(|row| matches(plan, table, row)));
        }
        let bytes_of = |rows: &[&[u8]]| rows.iter().map(|row| row.len()).sum::<usize>();
        let bytes = (self.bytes + bytes_of(&come)).saturating_sub(bytes_of(&gone));
        check_bytes(host, bytes)?;
        self.bytes = bytes;
        let (gone, come) = (gone.into_iter(), come.into_iter());
        Ok(datastore.change_view_rows(view, instance, gone, come, |_| {})?)
    }
}

/// Whether rows of so many bytes may be those of an instance.
pub(super) fn check_bytes(host: ViewHost<'_>, bytes: usize) -> Result<(), ViewError> {
    let bytes_max = host.shared.options.limits.view_bytes_max;
    match bytes > bytes_max {
        false => Ok(()),
        true => Err(format!(
            "its rows have more bytes than limits.view-bytes-max, which is {bytes_max}"
        )
        .into()),
    }
}

pub(super) fn matches(plan: &SelectPlan, table: &TableView, row: &[u8]) -> bool {
    let predicate = plan.predicate.as_ref();
    predicate.is_none_or(|predicate| predicate.matches(table.layout(), row))
}

/// Until when the query of a view may run.
pub(super) struct Deadline<'h> {
    host: ViewHost<'h>,
    until: Instant,
}

impl<'h> Deadline<'h> {
    pub fn new(host: ViewHost<'h>) -> Deadline<'h> {
        let ms_max = host.shared.options.limits.view_ms_max;
        Deadline {
            host,
            until: host.instant() + Duration::from_millis(ms_max),
        }
    }

    pub fn is_over(&self) -> bool {
        self.host.instant() > self.until
    }

    pub fn error(&self) -> ViewError {
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
            walked.map_err(|error| error.to_string())?;
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
        if progress.map_err(|error| error.to_string())? != Progress::Paused {
            return Ok(());
        }
        if deadline.is_over() {
            return Err(deadline.error());
        }
    }
}

/// The changed rows of a transaction that concern queries, with the instances that they concern. Reused.
#[derive(Default)]
pub(super) struct RowChanges {
    /// Old and new images, one behind the other.
    bytes: Vec<u8>,
    rows: Vec<RowPlace>,
    /// Instance and row; sorted when all are listed.
    of_instances: Vec<(u32, u32)>,
    /// The row that is looked at is in `rows`.
    is_noted: bool,
}

struct RowPlace {
    start: usize,
    old_len: Option<usize>,
    new_len: Option<usize>,
}

/// What is kept of the memory for the next transaction.
const KEPT_BYTES_MAX: usize = 64 << 10;
const KEPT_ROWS_MAX: usize = 1024;

impl RowChanges {
    /// From here on, another row is looked at.
    pub fn next_row(&mut self) {
        self.is_noted = false;
    }

    /// Lists the row for an instance. False: too many are listed.
    pub fn note(&mut self, instance: u32, row: Row<'_>) -> bool {
        if self.of_instances.len() >= LISTED_ROWS_MAX {
            return false;
        }
        if !self.is_noted {
            self.is_noted = true;
            self.rows.push(RowPlace {
                start: self.bytes.len(),
                old_len: row.old.map(<[u8]>::len),
                new_len: row.new.map(<[u8]>::len),
            });
            for image in [row.old, row.new].into_iter().flatten() {
                self.bytes.extend_from_slice(image);
            }
        }
        let entry = (instance, self.rows.len() as u32 - 1);
        self.of_instances.push(entry);
        true
    }

    pub fn sort(&mut self) {
        self.of_instances.sort_unstable();
        // A row may concern an instance by its old and by its new key.
        self.of_instances.dedup();
    }

    /// The rows that are listed for an instance.
    pub fn of(&self, instance: u32) -> impl Iterator<Item = Row<'_>> {
        let start = self.of_instances.partition_point(|(of, _)| *of < instance);
        let listed = self.of_instances[start..].iter();
        let listed = listed.take_while(move |(of, _)| *of == instance);
        listed.map(|(_, row)| {
            let place = &self.rows[*row as usize];
            let middle = place.start + place.old_len.unwrap_or(0);
            Row {
                old: place
                    .old_len
                    .map(|len| &self.bytes[place.start..place.start + len]),
                new: place.new_len.map(|len| &self.bytes[middle..middle + len]),
            }
        })
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES_MAX);
        self.rows.clear();
        self.rows.shrink_to(KEPT_ROWS_MAX);
        self.of_instances.clear();
        self.of_instances.shrink_to(KEPT_ROWS_MAX);
    }
}
