//! Views that return a query (08 §10.4): its rows are found by the database, and kept up to date from what changes, without
//! another call of the module.

use std::sync::Arc;
use std::time::Instant;

use lightcone_engine::Datastore;
use lightcone_live::{Asker, IndexBuilding, JoinShape, OwnWindow, Shapes};
use lightcone_query::{
    admit_subscription, compile_aggregate, compile_subscription, Caller, Fragment, GroupedJoin,
    LiveGroups, Query, SelectPlan,
};
use lightcone_table::ReadSet;
use lightcone_types::{AlgebraicType, ColId, Identity, TableId};

use super::changes::Change;
use super::failures::ViewError;
use super::find::{find_matches, find_rows, matches, Deadline, Rows};
use super::host::{ViewHost, NO_ROWS};
use super::known::{Found, Known, KnownRows};
use super::runner::Returned;
use crate::evaluate::usable_index;

/// A query that a view returned.
pub(super) struct ViewQuery {
    query: Arc<Query>,
    sender: Identity,
    source: Source,
    /// None before the first evaluation, and after one that failed.
    known: Option<Known>,
    reads: ReadSet,
    /// The table and column on which an index is held for it.
    held: Option<(TableId, ColId)>,
}

/// What gives the rows that the result is made of.
enum Source {
    /// Rows of one table.
    Table(Arc<SelectPlan>),
    /// Matches of a join.
    Join(Box<Join>),
    /// Anything else: the query runs again when a table changes.
    Whole,
}

/// A shape, and the key of a query.
pub(super) type JoinKey<'q> = (&'q Arc<JoinShape>, &'q [u8]);

/// A join that is kept up to date.
struct Join {
    shape: Arc<JoinShape>,
    key: Box<[u8]>,
    /// Gives all matches.
    matches: Arc<Query>,
    /// The result is aggregates of them.
    is_grouped: bool,
}

/// Makes what a view returned its rows, in the open transaction. Gives the query, if it is one: also if evaluating it failed, as
/// it may go well when its tables have changed.
pub(super) fn store(
    host: ViewHost<'_>,
    datastore: &mut Datastore,
    (table, instance): Rows<'_>,
    sender: Option<Identity>,
    returned: Returned,
) -> (Option<ViewQuery>, Result<(), ViewError>) {
    let mut replace = |rows: &[u8]| Ok(datastore.replace_view_rows(table, instance, rows)?);
    let text = match returned {
        Returned::Rows(found) => return (None, replace(&found)),
        Returned::Query(text) if text.trim().is_empty() => return (None, replace(NO_ROWS)),
        Returned::Query(text) => text,
    };
    let (query, sender) = match compile(host, table, sender, &text) {
        Ok(compiled) => compiled,
        Err(error) => {
            let error = format!("Error executing raw SQL returned by view: {error}");
            return (None, Err(error.into()));
        }
    };
    let mut query = ViewQuery::new(host, datastore, query, sender);
    let result = query.evaluate(host, datastore, (table, instance));
    if result.is_err() {
        query.give_up_join();
    }
    (Some(query), result)
}

/// Compiles the text of a view with all rights of the database, and checks that its rows are the view's (08 §10.4).
fn compile(
    host: ViewHost<'_>,
    table: TableId,
    sender: Option<Identity>,
    text: &str,
) -> Result<(Query, Identity), String> {
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
        return Ok((query, caller.identity));
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

impl Source {
    fn new(query: &Arc<Query>, sender: &Identity, shapes: &Shapes) -> Source {
        let is_of_table = query.returned_table().is_some() && !query.is_window();
        let plan = match is_of_table {
            true => query.only_select_plan(sender),
            false => None,
        };
        let is_kept = || query.is_window() || LiveGroups::new(query, sender).is_some();
        let plan = plan.or_else(|| query.rows_plan(sender).filter(|_| is_kept()));
        if let Some(plan) = plan {
            return Source::Table(Arc::new(plan));
        }
        let (join, matches, is_grouped) = match GroupedJoin::new(query, sender) {
            Some(grouped) => (Some(grouped.join), Arc::new(grouped.matches), true),
            None => {
                let join = match &query.fragments[..] {
                    [fragment] => query.live_join(fragment, sender),
                    _ => None,
                };
                (join, query.clone(), false)
            }
        };
        let Some(join) = join else {
            return Source::Whole;
        };
        let (shape, key) = shapes.joins.shape_of(&join);
        Source::Join(Box::new(Join {
            shape,
            key,
            matches,
            is_grouped,
        }))
    }
}

impl ViewQuery {
    fn new(host: ViewHost<'_>, datastore: &Datastore, query: Query, sender: Identity) -> ViewQuery {
        let query = Arc::new(query);
        let source = Source::new(&query, &sender, &host.module.catalog.shapes);
        let reads = match &source {
            Source::Table(plan) => reads_of_plan(datastore, plan),
            Source::Join(_) => ReadSet::default(),
            Source::Whole => reads_of(&query),
        };
        ViewQuery {
            query,
            sender,
            source,
            known: None,
            reads,
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
        let Some(Known::Window(window)) = &self.known else {
            return;
        };
        let Some((table, column)) = window.held_column() else {
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

    /// The join of whose changes [`change`](Self::change) is told, with its key. One with an event table never has rows.
    pub fn join(&self) -> Option<JoinKey<'_>> {
        match &self.source {
            Source::Join(join) if !join.shape.reads_events() => Some((&join.shape, &join.key)),
            _ => None,
        }
    }

    /// The tables whose changes concern it; some more than once.
    pub fn read_tables(&self) -> impl Iterator<Item = TableId> + '_ {
        let joined = self.join().into_iter();
        let joined = joined.flat_map(|(shape, _)| shape.tables());
        joined.chain(self.reads.tables().map(|(table, _)| table))
    }

    /// The join is evaluated again whenever one of its tables changes.
    pub fn give_up_join(&mut self) {
        if let Source::Join(_) = self.source {
            self.source = Source::Whole;
            self.reads = reads_of(&self.query);
        }
    }

    fn nothing_known(&self, host: ViewHost<'_>) -> Result<Known, ViewError> {
        let groups = match &self.source {
            Source::Table(_) => LiveGroups::new(&self.query, &self.sender),
            Source::Join(join) if join.is_grouped => LiveGroups::of_join(&self.query, &self.sender),
            _ => None,
        };
        Ok(match (groups, &self.source) {
            (Some(groups), _) => Known::Groups(Box::new(groups)),
            (None, Source::Table(_)) if self.query.is_window() => {
                Known::Window(self.empty_window(host)?)
            }
            (None, source) => Known::Rows(KnownRows::new(matches!(source, Source::Join(_)))),
        })
    }

    fn empty_window(&self, host: ViewHost<'_>) -> Result<OwnWindow, ViewError> {
        let shapes = &host.module.catalog.shapes;
        let window = self.query.live_window(&self.sender);
        let shape = window.and_then(|window| shapes.windows.shape_of(&window, &shapes.joins));
        let Some((shape, key)) = shape else {
            return Err("the first column of its ORDER BY has an index without an order, which is of the kind `hash`: make it `btree`".into());
        };
        let rows_max = host.shared.options.limits.window_rows_max;
        if shape.extent.end > rows_max {
            return Err(format!(
                "its LIMIT and OFFSET are more rows than limits.window-rows-max, which is {rows_max}"
            )
            .into());
        }
        Ok(OwnWindow::new(shape, key))
    }

    /// Finds all rows, in the open transaction.
    pub fn evaluate(
        &mut self,
        host: ViewHost<'_>,
        datastore: &mut Datastore,
        rows: Rows<'_>,
    ) -> Result<(), ViewError> {
        self.known = None;
        let mut known = self.nothing_known(host)?;
        let bytes_max = host.shared.options.limits.view_bytes_max;
        let mut found = Found::new();
        let take = |row: &[u8]| match &mut known {
            Known::Groups(groups) => {
                groups.add(row);
                groups.memory_bytes() <= bytes_max
            }
            _ => {
                found.push(row);
                found.bytes_len() <= bytes_max
            }
        };
        match &self.source {
            Source::Table(_) if self.query.is_window() => {}
            Source::Table(plan) => find_rows(host, datastore, plan, take)?,
            Source::Join(join) => {
                find_matches(host, datastore, (&join.matches, self.sender), take)?;
            }
            Source::Whole => find_matches(host, datastore, (&self.query, self.sender), take)?,
        }
        if let Known::Window(window) = &mut known {
            fill(host, window, datastore)?;
        }
        known.replace(host, datastore, rows, found)?;
        self.known = Some(known);
        Ok(())
    }

    /// Brings the rows up to date that [`evaluate`](Self::evaluate) found before these changes of the table that it reads, or of
    /// its join.
    pub fn change(
        &mut self,
        host: ViewHost<'_>,
        datastore: &mut Datastore,
        rows: Rows<'_>,
        mut changes: Vec<Change<'_>>,
    ) -> Result<(), ViewError> {
        // It is put back when all has gone well.
        let known = self.known.take();
        let mut known = match (known, &self.source) {
            (Some(known), Source::Table(_) | Source::Join(_)) => known,
            _ => return self.evaluate(host, datastore, rows),
        };
        if let Source::Table(plan) = &self.source {
            let Some(table) = datastore.table(plan.table.id) else {
                return self.evaluate(host, datastore, rows);
            };
            changes.retain(|(row, _)| matches(plan, table, row));
        }
        known.apply(&changes);
        match &mut known {
            Known::Groups(groups) if groups.is_stale() => {
                return self.evaluate(host, datastore, rows);
            }
            Known::Window(window) => fill(host, window, datastore)?,
            _ => {}
        }
        known.write(host, datastore, rows, changes)?;
        self.known = Some(known);
        Ok(())
    }
}

/// All tables of a query.
fn reads_of(query: &Query) -> ReadSet {
    let mut reads = ReadSet::default();
    query.read_tables().for_each(|table| reads.table(table.id));
    reads
}

/// Looks for the rows that a window is short of, for as long as a view may take.
fn fill(
    host: ViewHost<'_>,
    window: &mut OwnWindow,
    datastore: &Datastore,
) -> Result<(), ViewError> {
    let deadline = Deadline::new(host);
    let rows_read_max = host.shared.options.limits.window_rows_read_max;
    match window.fill(datastore, rows_read_max, &mut || deadline.is_over()) {
        true => Ok(()),
        false => Err(deadline.error()),
    }
}
