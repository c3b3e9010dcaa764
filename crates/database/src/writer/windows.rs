//! Where live windows meet query sets: before first rows, and when they were too much.

use std::sync::Arc;

use lightcone_limits::DatabaseLimits;

use super::Writer;
use crate::peer::ConnectionNumber;
use lightcone_live::LiveQuery;
use lightcone_live::WindowLimits;

/// A connection with so many windows may open them although others have half of all there may be, unless they are large
/// (`windows::MODEST_PART`).
const MODEST_WINDOWS_MAX: usize = 4;

pub(super) fn window_limits(limits: &DatabaseLimits) -> WindowLimits {
    WindowLimits {
        rows_max: limits.window_rows_max,
        windows_max: limits.windows_max,
        bytes_max: limits.windows_bytes_max,
        rows_read_max: limits.window_rows_read_max,
    }
}

/// How many of these queries are windows.
pub(super) fn windows_of(queries: &[Arc<LiveQuery>]) -> usize {
    let windows = queries.iter().filter(|query| query.window().is_some());
    windows.count()
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
    ) -> Result<(), String> {
        self.end_failed_windows();
        let client = self.state.clients.get(&connection);
        let held = client.map_or(0, |client| client.windows);
        let is_modest = held + windows_of(queries) <= MODEST_WINDOWS_MAX;
        let limits = window_limits(&self.shared.options.limits);
        let now = self.shared.environment().instant();
        let windows = &mut self.state.windows;
        windows.add(&mut self.datastore, queries, limits, is_modest, now)
    }

    pub(super) fn close_windows(&mut self, queries: &[Arc<LiveQuery>]) {
        self.state.windows.remove(&mut self.datastore, queries);
    }

    pub(super) fn rebuild_windows(&mut self) {
        let limits = window_limits(&self.shared.options.limits);
        let windows = &mut self.state.windows;
        self.state.has_failed_windows |= windows.rebuild(&mut self.datastore, limits);
    }

    /// Before somebody else sees the rows of windows that have failed in this round, also by their joins.
    pub(super) fn end_failed_windows(&mut self) {
        if self.state.has_failed_joins {
            self.drop_failed_joins();
        }
        if self.state.has_failed_windows {
            self.drop_failed_windows();
        }
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
