//! Where live windows meet query sets: before first rows, and when they were too much.

use std::sync::Arc;

use lightcone_types::TableId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::state::SetCounts;
use super::Writer;
use crate::error::Refusal;
use crate::peer::ConnectionNumber;
use lightcone_live::{Holder, IndexUser, LiveQuery, WindowUser, WorkBudget};

/// A connection with so many windows may open them although others have half of all there may be, unless they are large
/// (`windows::MODEST_PART`).
const MODEST_WINDOWS_MAX: usize = 4;

/// The shapes that are kept up to date for a query.
fn shapes_of(query: &LiveQuery) -> impl Iterator<Item = TableId> + '_ {
    let joins = query.joins().map(|(join, _)| join.id);
    joins.chain(query.shape_id())
}

impl Writer {
    /// Makes sure that the rows of a set's windows are known, until [`close_windows`](Self::close_windows).
    ///
    /// # Errors
    /// What the client is told: they are too much.
    pub(super) fn open_windows(
        &mut self,
        connection: ConnectionNumber,
        queries: &[Arc<LiveQuery>],
    ) -> Result<(), Refusal> {
        self.end_failed_windows();
        let client = self.state.clients.get(&connection);
        let held = client.map_or(0, |client| client.counts.windows);
        let user = WindowUser {
            limits: self.shared.options.window_limits(),
            is_modest: held + SetCounts::of(queries).windows <= MODEST_WINDOWS_MAX,
            index_user: IndexUser::Client(&self.module.catalog.rule_columns),
            now: self.now.instant,
        };
        let of_set = queries.iter().filter_map(|query| query.window());
        let (windows, views) = (&mut self.state.windows, &mut self.state.views);
        let tables = &mut self.datastore;
        Ok(windows.add((tables, &mut views.indexes), of_set, Holder::Set, user)?)
    }

    pub(super) fn close_windows(&mut self, queries: &[Arc<LiveQuery>]) {
        let of_set = queries.iter().filter_map(|query| query.window());
        let windows = &mut self.state.windows;
        windows.remove(&mut self.datastore, of_set, Holder::Set);
    }

    pub(super) fn rebuild_windows(&mut self) {
        let limits = self.shared.options.window_limits();
        let windows = &mut self.state.windows;
        self.state.has_failed_windows |= windows.rebuild(&mut self.datastore, limits);
    }

    /// Before another client sees the rows of windows that have failed in this round, also by their joins.
    pub(super) fn end_failed_windows(&mut self) {
        if self.state.has_failed_joins {
            self.drop_failed_joins();
        }
        if self.state.has_failed_windows {
            self.drop_failed_windows();
        }
        if self.state.has_too_much_live_work {
            self.end_dearest();
        }
    }

    /// Joins and windows have taken more time than they may: ends the query sets with the one that has looked at most rows lately for
    /// each connection that has it. Their clients are told.
    #[cold]
    fn end_dearest(&mut self) {
        self.state.has_too_much_live_work = false;
        let rate = self.shared.options.limits.live_rows_per_second;
        // All clients are looked at, so not in every round: also where no shape is dear.
        self.state.live_work.forgive(rate);
        let (joins, windows) = (&self.state.views.joins, &self.state.windows);
        let all = joins.rows_lately().chain(windows.rows_lately());
        let dear_rows = WorkBudget::dear_rows(rate);
        let dear: FxHashMap<TableId, u64> = all.filter(|(_, rows)| *rows > dear_rows).collect();
        let mut connections: FxHashMap<TableId, u64> = FxHashMap::default();
        for client in self.state.clients.values() {
            let sets = client.query_sets.values();
            let queries = sets.flat_map(|set| set.set.queries.iter());
            let shapes = queries.flat_map(|query| shapes_of(query));
            let own: FxHashSet<TableId> = shapes.filter(|id| dear.contains_key(id)).collect();
            own.iter()
                .for_each(|shape| *connections.entry(*shape).or_default() += 1);
        }
        let dearest = connections
            .iter()
            .max_by_key(|(shape, count)| (dear[*shape] / **count, **shape));
        let Some((&dearest, _)) = dearest else {
            return;
        };
        let error = format!("joins and windows (ORDER BY … LIMIT) took more of the database's time than limits.live-rows-per-second allows ({rate} rows looked at), and one of this subscription took most of it: the subscription has ended [LC0730]");
        let sets = self.sets_with(|query| shapes_of(query).any(|shape| shape == dearest));
        self.end_sets(sets, &error);
    }

    /// Ends the query sets with windows that were too much for a transaction. Their clients are told.
    #[cold]
    fn drop_failed_windows(&mut self) {
        self.state.has_failed_windows = false;
        let limits = &self.shared.options.limits;
        let error = format!("the rows of a subscription with ORDER BY could not be kept up to date within limits.window-rows-read-max ({} rows looked at) and limits.windows-bytes-max ({} bytes in all): the subscription has ended [LC0728]", limits.window_rows_read_max, limits.windows_bytes_max);
        let windows = std::mem::take(&mut self.state.windows);
        let failed = self.sets_with(|query| {
            let window = query.window();
            window.is_some_and(|window| windows.has_failed(window))
        });
        self.state.windows = windows;
        self.end_sets(failed, &error);
    }
}
