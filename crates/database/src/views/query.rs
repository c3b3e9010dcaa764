//! Views that return a query (08 §10.4): its rows are found by the database, and kept up to date from what changes, without
//! another call of the module.

use std::sync::Arc;

use lightcone_engine::{is_restricted, Datastore};
use lightcone_live::{
    BoundWindow, Holder, IndexBuilding, IndexUser, JoinShape, Joins, Shapes, WindowUser, Windows,
};
use lightcone_query::{
    admit_subscription, compile_aggregate, compile_subscription, Caller, Fragment, GroupedJoin,
    LiveGroups, Query, SelectPlan,
};
use lightcone_table::ReadSet;
use lightcone_types::{AlgebraicType, Identity, TableId};

use super::changes::Change;
use super::failures::ViewError;
use super::find::{find_matches, find_rows, matches};
use super::host::{Evaluation, InstanceKey, ViewHost, NO_ROWS};
use super::known::{Found, Known, KnownRows};
use super::runner::Returned;
use crate::error::Refusal;
use crate::evaluate::usable_index;

/// A query that a view returned.
pub(super) struct ViewQuery {
    query: Arc<Query>,
    sender: Identity,
    source: Source,
    /// None before the first evaluation, and after one that failed.
    known: Option<Known>,
    reads: ReadSet,
    /// It would be kept up to date if there was an index for it, or room.
    wants_index: bool,
}

/// What gives the rows that the result is made of.
enum Source {
    /// Rows of one table.
    Table(Arc<SelectPlan>),
    /// Matches of a join.
    Join(Box<Join>),
    /// The first ones in an order.
    Window(Arc<BoundWindow>),
    /// Anything else: the query runs again when a table changes.
    Whole,
}

/// The instance that a query is of, and what tells it of changes.
pub(super) struct Listener<'v> {
    pub instance: u32,
    pub key: InstanceKey,
    pub joins: &'v mut Joins,
    pub windows: &'v mut Windows,
    pub indexes: &'v mut IndexBuilding,
}

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
    evaluation: &mut Evaluation<'_>,
    listener: &mut Listener<'_>,
    (sender, returned): (Option<Identity>, Returned),
) -> (Option<ViewQuery>, Result<(), ViewError>) {
    let InstanceKey { table, instance } = listener.key;
    let datastore = &mut *evaluation.datastore;
    let mut replace = |rows: &[u8]| Ok(datastore.replace_view_rows(table, &instance, rows)?);
    let text = match returned {
        Returned::Rows(found) => return (None, replace(&found)),
        Returned::Query(text) if text.trim().is_empty() => return (None, replace(NO_ROWS)),
        Returned::Query(text) => text,
    };
    let host = evaluation.host;
    let (query, sender) = match compile(host, table, sender, &text) {
        Ok(compiled) => compiled,
        Err(error) => {
            let error = format!("Error executing raw SQL returned by view: {error}");
            return (None, Err(Refusal(error).into()));
        }
    };
    let mut query = ViewQuery::new(host, evaluation.datastore, query, sender);
    let result = query.evaluate(evaluation, listener);
    if result.is_err() {
        query.give_up(evaluation.datastore, listener);
    }
    (Some(query), result)
}

/// Compiles the text of a view with all rights of the database, and checks that its rows are the view's (08 §10.4).
fn compile(
    host: ViewHost<'_>,
    table: TableId,
    sender: Option<Identity>,
    text: &str,
) -> Result<(Query, Identity), Refusal> {
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
            aggregate.ok_or(error)?
        }
    };
    if let Some(view) = query.read_tables().find(|table| table.view.is_some()) {
        return Err(Refusal(format!("it reads the view `{}`", view.name)));
    }
    if query.read_tables().any(|table| is_restricted(&table.name)) {
        let text = "module SQL views cannot read a module-restricted table";
        return Err(Refusal(text.to_owned()));
    }
    if query.fragments.iter().any(Fragment::reads_sender) {
        return Err(Refusal("it has parameters".to_owned()));
    }
    // To a view an event table is not there, and what is not there gives a query no rows.
    let event = query.read_tables().find(|table| table.is_event);
    if let Some(event) = event.filter(|_| query.has_optional_tables()) {
        return Err(Refusal(format!(
            "it reads the event table `{}`, and has subqueries or LEFT JOIN: a view has no events to look at",
            event.name
        )));
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
    Err(Refusal(format!(
        "it returns rows that are not of the view's type: the query gives ({}), and the view has ({})",
        shown_columns(returned),
        shown_columns(declared)
    )))
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
        match plan {
            Some(plan) if !query.is_window() => return Source::Table(Arc::new(plan)),
            Some(plan) if !plan.table.is_event => {
                let window = BoundWindow::new(query, sender, shapes);
                return window.map_or(Source::Whole, |window| Source::Window(Arc::new(window)));
            }
            _ => {}
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
            Source::Join(_) | Source::Window(_) => ReadSet::default(),
            Source::Whole => reads_of(&query),
        };
        ViewQuery {
            query,
            sender,
            source,
            known: None,
            reads,
            wants_index: false,
        }
    }

    /// What has to be evaluated again when it changes, or what [`change`](Self::change) is told of.
    pub fn reads(&self) -> &ReadSet {
        &self.reads
    }

    /// The tables whose changes concern it; some more than once.
    pub fn read_tables(&self) -> impl Iterator<Item = TableId> + '_ {
        self.query.read_tables().map(|table| table.id)
    }

    /// Has the instance hear of the changes of its join or window. Without what that takes, the query is evaluated again whenever one of
    /// its tables changes. A join with an event table never has rows.
    fn listen(&mut self, evaluation: &mut Evaluation<'_>, listener: &mut Listener<'_>) {
        let (host, datastore) = (evaluation.host, &mut *evaluation.datastore);
        let user = WindowUser {
            limits: host.shared.options.window_limits(),
            is_modest: true,
            index_user: IndexUser::Module,
            now: host.instant(),
        };
        let holder = Holder::Instance(listener.instance);
        let (joins, windows) = (&mut *listener.joins, &mut *listener.windows);
        let indexes = &mut *listener.indexes;
        let heard = match &self.source {
            Source::Join(join) if !join.shape.reads_events() => {
                let columns = join.shape.looked_up_by();
                let has_indexes = indexes.check(datastore, columns, user.index_user, user.now);
                let join = (&join.shape, &*join.key);
                has_indexes.map(|()| joins.add((datastore, indexes), join, holder))
            }
            Source::Window(window) => {
                let window = std::iter::once(window);
                windows.add((datastore, indexes), window, holder, user)
            }
            _ => return,
        };
        if heard.is_err() {
            self.wants_index = true;
            self.give_up(datastore, listener);
        }
    }

    /// The query is evaluated again whenever one of its tables changes.
    fn give_up(&mut self, datastore: &mut Datastore, listener: &mut Listener<'_>) {
        if let Source::Join(_) | Source::Window(_) = self.source {
            self.end_listening(datastore, listener);
            self.source = Source::Whole;
            self.reads = reads_of(&self.query);
        }
    }

    /// The instance hears of the changes of its join or window no more.
    pub fn end_listening(&self, datastore: &mut Datastore, listener: &mut Listener<'_>) {
        let holder = Holder::Instance(listener.instance);
        let (joins, windows) = (&mut *listener.joins, &mut *listener.windows);
        match &self.source {
            Source::Join(join) => joins.remove(datastore, (&join.shape, &join.key), holder),
            Source::Window(window) => windows.remove(datastore, std::iter::once(window), holder),
            Source::Table(_) | Source::Whole => {}
        }
    }

    /// Its join or window, and its key of that.
    fn heard(&self) -> Option<(TableId, &[u8])> {
        match &self.source {
            Source::Join(join) => Some((join.shape.id, &join.key)),
            Source::Window(window) => Some((window.shape.id, &window.key)),
            Source::Table(_) | Source::Whole => None,
        }
    }

    /// Bytes of its rows, with what is kept to bring them up to date.
    pub fn bytes(&self) -> usize {
        self.known.as_ref().map_or(0, Known::bytes)
    }

    pub fn wants_index_on(&self, table: TableId) -> bool {
        self.wants_index && self.read_tables().any(|read| read == table)
    }

    /// Whether the instance hears of the changes of a join or window.
    pub fn hears(&self) -> bool {
        self.heard().is_some()
    }

    /// Whether it hears of changes, and the other query of the same ones.
    pub fn hears_as(&self, other: &ViewQuery) -> bool {
        self.heard()
            .is_some_and(|heard| other.heard() == Some(heard))
    }

    fn nothing_known(&self) -> Known {
        let groups = match &self.source {
            Source::Table(_) => LiveGroups::new(&self.query, &self.sender),
            Source::Join(join) if join.is_grouped => LiveGroups::of_join(&self.query, &self.sender),
            _ => None,
        };
        match groups {
            Some(groups) => Known::Groups(Box::new(groups)),
            None => Known::Rows(KnownRows::new(matches!(self.source, Source::Join(_)))),
        }
    }

    /// Finds all rows, in the open transaction.
    pub fn evaluate(
        &mut self,
        evaluation: &mut Evaluation<'_>,
        listener: &mut Listener<'_>,
    ) -> Result<(), ViewError> {
        self.known = None;
        self.listen(evaluation, listener);
        let (host, datastore) = (evaluation.host, &*evaluation.datastore);
        let mut known = self.nothing_known();
        let bytes_max = host.shared.options.limits.view_bytes_max;
        let mut found = Found::new();
        let mut take = |row: &[u8]| match &mut known {
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
            Source::Window(window) => {
                let mut entries = listener.windows.entries(window).iter();
                entries.all(|entry| take(entry.row()));
            }
            Source::Table(plan) => find_rows(host, datastore, plan, take)?,
            Source::Join(join) => {
                find_matches(host, datastore, (&join.matches, self.sender), take)?;
            }
            Source::Whole => find_matches(host, datastore, (&self.query, self.sender), take)?,
        }
        known.replace(evaluation, listener.key, found)?;
        self.known = Some(known);
        Ok(())
    }

    /// Brings the rows up to date that [`evaluate`](Self::evaluate) found before these changes of the table that it reads, or of
    /// its join.
    pub fn change(
        &mut self,
        evaluation: &mut Evaluation<'_>,
        listener: &mut Listener<'_>,
        mut changes: Vec<Change<'_>>,
    ) -> Result<(), ViewError> {
        // It is put back when all has gone well.
        let known = self.known.take();
        let mut known = match (known, &self.source) {
            (Some(known), Source::Table(_) | Source::Join(_) | Source::Window(_)) => known,
            _ => return self.evaluate(evaluation, listener),
        };
        if let Source::Table(plan) = &self.source {
            let Some(table) = evaluation.datastore.table(plan.table.id) else {
                return self.evaluate(evaluation, listener);
            };
            changes.retain(|(row, _)| matches(plan, table, row));
        }
        known.apply(&changes);
        match &mut known {
            Known::Groups(groups) if groups.is_stale() => {
                return self.evaluate(evaluation, listener);
            }
            _ => {}
        }
        known.write(evaluation, listener.key, changes)?;
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
