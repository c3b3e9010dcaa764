//! Views that return aggregates of a join: their groups are kept up to date from the matches that come and go.

use std::sync::Arc;

use lightcone_engine::Datastore;
use lightcone_query::{GroupedJoin, LiveGroups, LiveJoin, Query};
use lightcone_types::Identity;

use super::failures::ViewError;
use super::joins::Change;
use super::kept::{check_kept_bytes, Changed};
use super::query::{find_matches, Rows};
use super::ViewHost;

/// The groups of a join's matches.
pub(super) struct JoinedGroups {
    query: Arc<Query>,
    /// Gives what the groups take in.
    matches: Arc<Query>,
    sender: Identity,
    /// None before the first evaluation, and after one that failed.
    groups: Option<Box<LiveGroups>>,
}

impl JoinedGroups {
    /// None if the query is of another kind. Otherwise also the join.
    pub fn new(query: &Query, sender: Identity) -> Option<(LiveJoin, JoinedGroups)> {
        let GroupedJoin { matches, join } = GroupedJoin::new(query, &sender)?;
        let groups = JoinedGroups {
            query: Arc::new(query.clone()),
            matches: Arc::new(matches),
            sender,
            groups: None,
        };
        Some((join, groups))
    }

    /// Finds all rows, in the open transaction.
    pub fn evaluate(
        &mut self,
        host: ViewHost<'_>,
        datastore: &mut Datastore,
        rows: Rows<'_>,
    ) -> Result<(), ViewError> {
        self.groups = None;
        let bytes_max = host.shared.options.limits.view_bytes_max;
        let groups = LiveGroups::of_join(&self.query, &self.sender);
        let mut groups = groups.expect("it was found to be of that kind");
        find_matches(host, datastore, (&self.matches, self.sender), |found| {
            groups.add(found);
            groups.memory_bytes() <= bytes_max
        })?;
        let mut changed = Changed::default();
        changed.take_groups(&mut groups);
        check_kept_bytes(host, groups.memory_bytes())?;
        changed.replace(datastore, rows)?;
        self.groups = Some(Box::new(groups));
        Ok(())
    }

    /// Brings the rows up to date that [`evaluate`](Self::evaluate) found before these changes.
    pub fn change(
        &mut self,
        host: ViewHost<'_>,
        datastore: &mut Datastore,
        rows: Rows<'_>,
        changes: &[Change<'_>],
    ) -> Result<(), ViewError> {
        // They are put back when all has gone well.
        let Some(mut groups) = self.groups.take() else {
            return self.evaluate(host, datastore, rows);
        };
        // What comes is counted first: so a value that stays is never looked for.
        for (found, _) in changes.iter().filter(|(_, more)| *more > 0) {
            groups.add(found);
        }
        for (found, _) in changes.iter().filter(|(_, more)| *more < 0) {
            groups.remove(found);
        }
        if groups.is_stale() {
            return self.evaluate(host, datastore, rows);
        }
        let mut changed = Changed::default();
        changed.take_groups(&mut groups);
        check_kept_bytes(host, groups.memory_bytes())?;
        changed.write(datastore, rows)?;
        self.groups = Some(groups);
        Ok(())
    }
}
