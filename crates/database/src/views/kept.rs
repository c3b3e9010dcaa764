//! Views that return aggregates, or the first rows of an order, of one table: what they need to know to keep their rows up to
//! date from the rows of the table that change.

use std::sync::Arc;

use lightcone_engine::Datastore;
use lightcone_query::{LiveGroups, Query, SelectPlan};
use lightcone_schema::TableSchema;
use lightcone_types::{ColId, Identity};

use super::failures::ViewError;
use super::query::{find_rows, matches, replace, Deadline, Rows};
use super::{Row, ViewHost};
use lightcone_live::OwnWindow;

/// The query of a view, with what is known of its result.
pub(super) struct Kept {
    query: Arc<Query>,
    sender: Identity,
    /// The rows of the table that are looked at.
    plan: Arc<SelectPlan>,
    /// None before the first evaluation, and after one that failed.
    result: Option<Known>,
}

enum Known {
    Groups(Box<LiveGroups>),
    Window(OwnWindow),
}

impl Kept {
    /// None if the query is of another kind.
    pub fn new(query: &Arc<Query>, sender: Identity) -> Option<Kept> {
        let is_group = LiveGroups::new(query, &sender).is_some();
        if !is_group && !query.is_window() {
            return None;
        }
        Some(Kept {
            query: query.clone(),
            sender,
            plan: Arc::new(query.rows_plan(&sender)?),
            result: None,
        })
    }

    pub fn plan(&self) -> &SelectPlan {
        &self.plan
    }

    /// The column whose index helps to find rows of its window, if the table has none.
    pub fn held_column(&self) -> Option<(Arc<TableSchema>, ColId)> {
        match &self.result {
            Some(Known::Window(window)) => window.held_column(),
            _ => None,
        }
    }

    /// Finds all rows, in the open transaction.
    pub fn evaluate(
        &mut self,
        host: ViewHost<'_>,
        datastore: &mut Datastore,
        rows: Rows<'_>,
    ) -> Result<(), ViewError> {
        self.result = None;
        let mut result = match LiveGroups::new(&self.query, &self.sender) {
            Some(groups) => Known::Groups(Box::new(self.count_all(host, datastore, groups)?)),
            None => Known::Window(self.first_rows(host, datastore)?),
        };
        let changed = result.take_changes();
        check_kept_bytes(host, result.memory_bytes())?;
        changed.replace(datastore, rows)?;
        self.result = Some(result);
        Ok(())
    }

    fn count_all(
        &self,
        host: ViewHost<'_>,
        datastore: &Datastore,
        mut groups: LiveGroups,
    ) -> Result<LiveGroups, ViewError> {
        let bytes_max = host.shared.options.limits.view_bytes_max;
        find_rows(host, datastore, &self.plan, |row| {
            groups.add(row);
            groups.memory_bytes() <= bytes_max
        })?;
        Ok(groups)
    }

    fn first_rows(
        &self,
        host: ViewHost<'_>,
        datastore: &Datastore,
    ) -> Result<OwnWindow, ViewError> {
        let windows = &host.module.catalog.shapes.windows;
        let window = self.query.live_window(&self.sender);
        let joins = &host.module.catalog.shapes.joins;
        let shape = window.and_then(|window| windows.shape_of(&window, joins));
        let Some((shape, key)) = shape else {
            return Err("the first column of its ORDER BY has an index without an order, which is of the kind `hash`: make it `btree`".to_owned().into());
        };
        let limits = &host.shared.options.limits;
        if shape.extent.end > limits.window_rows_max {
            return Err(format!(
                "its LIMIT and OFFSET are more rows than limits.window-rows-max, which is {}",
                limits.window_rows_max
            )
            .into());
        }
        let mut window = OwnWindow::new(shape, key);
        fill(host, &mut window, datastore)?;
        Ok(window)
    }

    /// Brings the rows up to date that [`evaluate`](Self::evaluate) found before these changes.
    pub fn change<'r>(
        &mut self,
        host: ViewHost<'_>,
        datastore: &mut Datastore,
        (view, instance): Rows<'_>,
        changes: impl Iterator<Item = Row<'r>>,
    ) -> Result<(), ViewError> {
        // It is put back when all has gone well.
        let result = self.result.take();
        let table = datastore.table(self.plan.table.id);
        let (Some(mut result), Some(table)) = (result, table) else {
            return self.evaluate(host, datastore, (view, instance));
        };
        let changes: Vec<Row<'r>> = changes.collect();
        let is_wanted = |row: &&[u8]| matches(&self.plan, table, row);
        let come = changes.iter().filter_map(|row| row.new);
        let gone = changes.iter().filter_map(|row| row.old);
        result.apply(come.filter(is_wanted), gone.filter(is_wanted));
        match &mut result {
            Known::Groups(groups) if groups.is_stale() => {
                return self.evaluate(host, datastore, (view, instance));
            }
            Known::Groups(_) => {}
            Known::Window(window) => {
                fill(host, window, datastore)?;
            }
        }
        let changed = result.take_changes();
        check_kept_bytes(host, result.memory_bytes())?;
        changed.write(datastore, (view, instance))?;
        self.result = Some(result);
        Ok(())
    }
}

impl Known {
    /// Rows that come are counted first: so a value, or a place in a window, that stays is never looked for.
    fn apply<'r>(
        &mut self,
        come: impl Iterator<Item = &'r [u8]>,
        gone: impl Iterator<Item = &'r [u8]>,
    ) {
        match self {
            Known::Groups(groups) => {
                come.for_each(|row| groups.add(row));
                gone.for_each(|row| groups.remove(row));
            }
            Known::Window(window) => {
                come.for_each(|row| window.add(row));
                gone.for_each(|row| window.remove(row));
            }
        }
    }

    fn take_changes(&mut self) -> Changed {
        let mut changed = Changed::default();
        match self {
            Known::Groups(groups) => changed.take_groups(groups),
            Known::Window(window) => window.take_changes(|came, row| {
                let rows = if came {
                    &mut changed.come
                } else {
                    &mut changed.gone
                };
                rows.push(row.into());
            }),
        }
        changed
    }

    fn memory_bytes(&self) -> usize {
        match self {
            Known::Groups(groups) => groups.memory_bytes(),
            Known::Window(window) => window.memory_bytes(),
        }
    }
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

/// The rows are part of what is known of them, so this bounds both.
pub(super) fn check_kept_bytes(host: ViewHost<'_>, bytes: usize) -> Result<(), ViewError> {
    let bytes_max = host.shared.options.limits.view_bytes_max;
    match bytes > bytes_max {
        false => Ok(()),
        true => Err(format!("its rows, with what is needed to keep them up to date, have more bytes than limits.view-bytes-max, which is {bytes_max}").into()),
    }
}

/// Rows that an instance has no more, and that it has now.
#[derive(Default)]
pub(super) struct Changed {
    gone: Vec<Box<[u8]>>,
    come: Vec<Box<[u8]>>,
}

impl Changed {
    pub fn take_groups(&mut self, groups: &mut LiveGroups) {
        for change in groups.take_changes() {
            self.gone.extend(change.gone);
            self.come.extend(change.come);
        }
    }

    /// Makes what has come all rows of the instance.
    pub fn replace(self, datastore: &mut Datastore, rows: Rows<'_>) -> Result<(), ViewError> {
        debug_assert!(self.gone.is_empty(), "there was nothing that could go");
        // A BSATN array.
        let mut found = (self.come.len() as u32).to_le_bytes().to_vec();
        self.come
            .iter()
            .for_each(|row| found.extend_from_slice(row));
        replace(datastore, rows, &found)
    }

    pub fn write(
        self,
        datastore: &mut Datastore,
        (view, instance): Rows<'_>,
    ) -> Result<(), ViewError> {
        let (gone, come) = (self.gone.iter(), self.come.iter());
        let (gone, come) = (gone.map(|row| &**row), come.map(|row| &**row));
        Ok(datastore.change_view_rows(view, instance, gone, come, |_| {})?)
    }
}
