//! Indexes that clients' live queries need and the module does not have: those of large tables are built on the threads for reads,
//! and taken over here when they have caught up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lightcone_schema::TableSchema;
use lightcone_table::{CurrentTables, IndexChanges};
use lightcone_types::{ColId, Identity, TableId};
use tokio::sync::oneshot;

use super::state::{Build, ClientIndexes};
use super::Writer;
use crate::budget::ClientBudget;
use crate::error::Refusal;
use crate::inbox::Built;
use crate::index_build::BuildRound;
use crate::outgoing::ReadTicket;
use crate::peer::ConnectionNumber;
use crate::reads::Once;
use crate::request::CompiledSet;
use lightcone_live::{no_index, BUILT_AT_ONCE_ROWS_MAX};

/// Indexes that are built at a time; of one client, one.
const BUILDS_MAX: usize = 4;
/// What a table notes of changes during a round. With more, the building is given up.
const CHANGES_BYTES_MAX: usize = 32 << 20;
/// So few changes are applied on the writer.
const CAUGHT_UP_CHANGES_MAX: usize = 1024;
/// After so many rounds it is given up.
const ROUNDS_MAX: usize = 64;
/// A query set is asked again at most so often for an index.
const WAITS_MAX: usize = 8;
/// A new index is held so long for those who have waited for it.
const HELD_FOR_WAITERS: Duration = Duration::from_secs(2);
/// After a building that was given up, views ask for their index again.
const TRIED_AGAIN_AFTER: Duration = Duration::from_secs(60);

impl Writer {
    /// Makes sure that the indexes are there that a set needs, or may be built at once when it is made a live one. Otherwise gives the
    /// end of a building: the request of so many sets is to be asked again then. `coming` are the indexes that the sets in front of it
    /// will hold.
    ///
    /// # Errors
    /// What the client is told: there is none for it.
    pub(super) fn prepare_indexes(
        &mut self,
        set: &CompiledSet,
        connection: ConnectionNumber,
        (ticket, sets): (&ReadTicket, usize),
        coming: &mut Vec<(TableId, ColId)>,
    ) -> Result<Option<oneshot::Receiver<()>>, Refusal> {
        let columns = set.queries.iter().flat_map(|query| query.held_columns());
        let mut missing = Vec::new();
        for (schema, column) in columns {
            let table = self.datastore.table(schema.id);
            let is_missing = table.is_some_and(|table| table.index_on(column).is_none());
            let is_it =
                |(known, of): &(&Arc<TableSchema>, ColId)| (known.id, *of) == (schema.id, column);
            if is_missing && !missing.iter().any(is_it) {
                missing.push((schema, column));
            }
        }
        let client = self.state.clients.get(&connection);
        let (Some(client), false) = (client, missing.is_empty()) else {
            return Ok(None);
        };
        let (client, budget) = (client.peer.identity, client.queue.budget().clone());
        let builds = self.state.indexes.builds.iter();
        // Those that the request itself will hold are as good as built.
        for build in builds {
            let place = (build.table, build.column);
            if !coming.contains(&place) {
                coming.push(place);
            }
        }
        let mut wanted = None;
        for (schema, column) in missing {
            let place = (schema.id, column);
            let indexes = &mut self.state.indexes;
            let is_of_rules = self.module.catalog.rule_columns.contains(&place);
            if !is_of_rules && !coming.contains(&place) {
                let taken = (&**schema, column);
                indexes
                    .takers
                    .take(&self.datastore, coming, taken, client)?;
                coming.push(place);
            }
            let table = self.datastore.table(schema.id);
            let rows = table.map_or(0, |table| table.rows().row_count());
            if rows <= BUILT_AT_ONCE_ROWS_MAX {
                continue;
            }
            if ticket.way_back.is_none() || ticket.waits as usize >= WAITS_MAX * sets {
                return Err(no_index(schema, column).into());
            }
            let mut builds = indexes.builds.iter();
            let own = builds.clone().any(|build| build.client == client);
            let is_known = builds.any(|build| build.is_of(place));
            if !is_known && !own && indexes.builds.len() < BUILDS_MAX {
                self.begin_index(place, client, Some(&budget));
            }
            wanted = wanted.or(Some(place));
        }
        Ok(wanted.map(|place| self.state.indexes.end_of(place, client)))
    }

    fn begin_index(
        &mut self,
        (table, column): (TableId, ColId),
        client: Identity,
        budget: Option<&ClientBudget>,
    ) {
        let Some(frozen) = self.state.frozen.freeze(&mut self.datastore, table) else {
            return;
        };
        self.datastore.begin_index(table, column, CHANGES_BYTES_MAX);
        let indexes = &mut self.state.indexes;
        indexes.builds_so_far += 1;
        let number = indexes.builds_so_far;
        indexes.builds.push(Build {
            table,
            column,
            number,
            client,
            rounds: 1,
            waiting: Vec::new(),
        });
        let round = BuildRound::first(self.shared.clone(), frozen, column, number);
        match budget {
            Some(budget) => self.shared.read(budget, Box::new(round)),
            None => self.shared.read_for_no_client(Box::new(round)),
        }
    }

    /// A round of a building has ended: the index is taken, or has to catch up with what has changed meanwhile.
    pub(super) fn index_built(&mut self, built: Built) {
        let place = (built.table, built.column);
        let mut builds = self.state.indexes.builds.iter_mut();
        let Some(build) = builds.find(|build| build.number == built.number) else {
            return;
        };
        build.rounds += 1;
        let may_go_on = build.rounds <= ROUNDS_MAX;
        let changes = self.datastore.take_index_changes(place.0, place.1);
        let now = self.now.instant;
        match (built.index, changes) {
            (Some(mut index), Some(changes)) if changes.len() <= CAUGHT_UP_CHANGES_MAX => {
                index.apply(&changes, 0, usize::MAX);
                let unused = self.datastore.take_index(place.0, place.1, index);
                self.state.indexes.ready.push((place.0, place.1, now));
                self.drop_elsewhere(unused);
                self.state.views.try_indexes_again(place.0);
                self.state.indexes.end(built.number, now);
            }
            (Some(index), Some(changes)) if may_go_on => {
                let built = Built {
                    index: Some(index),
                    ..built
                };
                self.catch_up(built, changes);
            }
            (index, _) => {
                self.datastore.give_up_index(place.0, place.1);
                self.drop_elsewhere(index);
                let indexes = &mut self.state.indexes;
                indexes.end(built.number, now);
                if !indexes.given_up.iter().any(|(table, _)| *table == place.0) {
                    indexes.given_up.push((place.0, now));
                }
            }
        }
    }

    fn catch_up(&self, built: Built, changes: IndexChanges) {
        let round = BuildRound::next(self.shared.clone(), built, changes);
        self.shared.read_for_no_client(Box::new(round));
    }

    /// Freeing an index takes as long as it is large.
    fn drop_elsewhere(&self, unused: impl Send + 'static) {
        let (job, _) = Once::new(move || drop(unused));
        self.shared.read_for_no_client(Box::new(job));
    }

    /// Begins what views want, and lets go of what was held for those who have waited, and have come by now.
    pub(super) fn tend_indexes(&mut self) {
        while self.state.indexes.builds.len() < BUILDS_MAX {
            let Some(place) = self.state.views.indexes.next_wanted() else {
                break;
            };
            let table = self.datastore.table(place.0);
            let mut builds = self.state.indexes.builds.iter();
            if table.is_some_and(|table| table.index_on(place.1).is_some()) {
                self.state.views.try_indexes_again(place.0);
            } else if !builds.any(|build| build.is_of(place)) {
                let owner = self.shared.options.owner;
                self.begin_index(place, owner, None);
            }
        }
        let (datastore, indexes) = (&mut self.datastore, &mut self.state.indexes);
        if indexes.ready.is_empty() && indexes.given_up.is_empty() {
            return;
        }
        let now = self.now.instant;
        let views = &mut self.state.views;
        indexes.given_up.retain(|(table, since)| {
            let is_new = now.saturating_duration_since(*since) < TRIED_AGAIN_AFTER;
            if !is_new {
                views.try_indexes_again(*table);
            }
            is_new
        });
        // Who waits for one more index needs those that are ready, too.
        if !indexes.builds.is_empty() {
            return;
        }
        indexes.ready.retain(|(table, column, since)| {
            let is_new = now.saturating_duration_since(*since) < HELD_FOR_WAITERS;
            if !is_new {
                datastore.release_index(*table, *column);
            }
            is_new
        });
    }
}

impl ClientIndexes {
    /// Ends when the building of this index does, or if it waits for another one, that.
    fn end_of(&mut self, place: (TableId, ColId), client: Identity) -> oneshot::Receiver<()> {
        let (ended, end) = oneshot::channel();
        let builds = &mut self.builds;
        let waited_for = builds.iter().position(|build| build.is_of(place));
        let waited_for = waited_for.or_else(|| builds.iter().position(|b| b.client == client));
        // Without one, it ends now.
        if let Some(build) = builds.get_mut(waited_for.unwrap_or(0)) {
            build.waiting.push(ended);
        }
        end
    }

    /// Who has waited needs those that were ready before, too.
    fn end(&mut self, number: u64, now: Instant) {
        self.builds.retain(|build| build.number != number);
        self.ready.iter_mut().for_each(|(_, _, since)| *since = now);
    }

    /// The tables are others: what is built belongs to none.
    pub fn forget(&mut self) {
        *self = ClientIndexes {
            builds_so_far: self.builds_so_far,
            ..ClientIndexes::default()
        };
    }
}
