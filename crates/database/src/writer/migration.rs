//! A new program takes over (02 §14.1): its migration, what is live afterwards, and who is disconnected.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use lightcone_engine::MigrationWork;
use lightcone_host::{ConsoleLevel, HostEnv};
use lightcone_schema::{MigrationPlan, TableSchema};
use lightcone_types::{ConnectionId, Identity, TableId};
use rustc_hash::FxHashMap;

use super::queries::counts_of;
use super::same_meaning::same_meaning;
use super::views::views_of_set;
use super::Writer;
use crate::catalog::CatalogView;
use crate::compile::SetCompiler;
use crate::error::UpdateError;
use crate::events::Event;
use crate::guest::Guest;
use crate::metrics::{ModuleCounters, SeriesMax};
use crate::migration::{cancelled, log_text, take_steps, PlannedMigration};
use crate::migration_function::Surroundings;
use crate::migration_progress::MigrationOutcome;
use crate::module::{Module, Program};
use crate::peer::ConnectionNumber;
use crate::request::CompiledSet;
use lightcone_live::LiveQuery;

/// What clients are told that have to go.
const CLOSE_CODE: u16 = 1001;
const CLOSE_REASON: &str = "module exited";

type Schemas = FxHashMap<TableId, Arc<TableSchema>>;

/// A query set whose queries read tables that have changed, and were compiled again.
struct Swapped {
    connection: ConnectionNumber,
    query_set_id: u32,
    /// In the place of which others are now.
    old: CompiledSet,
    /// Why there are no others: the set ends.
    error: Option<String>,
}

impl Writer {
    /// Swaps the program, and brings the tables to what its definition says.
    pub(super) fn replace(
        &mut self,
        program: Program,
        planned: PlannedMigration,
    ) -> Result<(), UpdateError> {
        self.may_replace(&planned, &program)?;
        self.shared
            .status
            .migration
            .begin(self.shared.environment().instant());
        self.replace_at_once(program, planned)
    }

    /// The same, in a migration that has begun.
    pub(super) fn replace_at_once(
        &mut self,
        program: Program,
        planned: PlannedMigration,
    ) -> Result<(), UpdateError> {
        let replaced = self.replace_in_steps(program, planned);
        let progress = &self.shared.status.migration;
        let outcome = match &replaced {
            Ok(()) => MigrationOutcome::Committed,
            Err(_) if progress.is_cancelled() => MigrationOutcome::Cancelled,
            Err(error) => MigrationOutcome::Failed {
                reason: error.to_string(),
            },
        };
        let ended = (self.shared.environment().instant(), self.now());
        progress.end(outcome, ended);
        replaced
    }

    fn replace_in_steps(
        &mut self,
        program: Program,
        planned: PlannedMigration,
    ) -> Result<(), UpdateError> {
        let env = HostEnv::new(self.shared.host_config());
        let instance = program
            .loaded
            .instantiate(env)
            .map_err(|error| UpdateError::Module(error.to_string()))?;
        // A migration may take its time: no other answer waits for it.
        self.end_round();
        let log = self.shared.log.clone();
        log.info(&format!("Updated program to {}", program.hash.to_hex()));
        let breaks_clients = planned.plan.breaks_clients();
        if let Err(error) = self.migrate(program, &planned) {
            self.datastore.know_old_tables(self.module.def());
            let reason = error.to_string();
            let text = format!("Database update failed: {reason}");
            log.host(ConsoleLevel::Error, None, &text, self.now());
            return Err(error);
        }
        self.shared.set_module(self.module.clone());
        self.guest = Guest::new(instance);
        self.guest.instance.prepare();
        if breaks_clients {
            self.run_all_disconnects();
        }
        log.info("Database updated");
        Ok(())
    }

    /// The transaction of an update, and what has to follow the tables.
    fn migrate(&mut self, program: Program, planned: &PlannedMigration) -> Result<(), UpdateError> {
        let before = self.schemas();
        self.datastore.begin();
        let taken = self.take_steps(&program, planned);
        let taken = taken.and_then(|()| match self.shared.status.migration.commit() {
            true => Ok(()),
            false => Err(cancelled()),
        });
        if let Err(error) = taken {
            self.datastore.rollback();
            return Err(error);
        }
        let catalog = CatalogView::new(&self.datastore, &program.def);
        let version = self.module.version + 1;
        let tables_version = match planned.plan.changes_tables() {
            true => version,
            false => self.module.tables_version,
        };
        let counting = Some(&self.module.counters);
        let series_max = SeriesMax::of(&self.shared.options.limits);
        let counters = ModuleCounters::new(&program.def, &self.datastore, counting, series_max);
        let module = Module::new(version, tables_version, program, catalog, counters);
        let module = Arc::new(module);
        match planned.plan.breaks_clients() {
            true => self.commit_and_close_all(module)?,
            false => self.commit_and_go_on(module, &before)?,
        }
        self.move_schedules(&before, &planned.plan);
        Ok(())
    }

    fn take_steps(
        &mut self,
        program: &Program,
        planned: &PlannedMigration,
    ) -> Result<(), UpdateError> {
        let refused =
            |error: lightcone_engine::DatastoreError| UpdateError::Refused(error.to_string());
        let datastore = &mut self.datastore;
        let mut record = datastore
            .module_record()
            .expect("a running database has a module");
        record.program_kind = program.kind as u8;
        record.program_hash = program.hash;
        record.program = program.bytes.to_vec();
        datastore.set_module_record(&record).map_err(refused)?;
        let (old, log) = (self.module.def().clone(), self.shared.log.clone());
        let around = Surroundings {
            options: &self.shared.options,
            console: log.clone(),
            progress: &self.shared.status.migration,
            started: self.shared.environment().instant(),
        };
        let mut may_go_on = || around.may_go_on();
        let bytes_max = self.shared.options.limits.migration_bytes_max;
        let mut work = MigrationWork::new(bytes_max, &mut may_go_on);
        let (plan, of) = (&planned.plan, (&*old, program));
        take_steps(datastore, &around, &mut work, of, plan, |step| {
            if let Some(text) = log_text(step) {
                log.info(&text);
            }
        })?;
        // Of a database that was made by a version without views.
        datastore.create_views(&program.def).map_err(refused)?;
        Ok(())
    }

    fn schemas(&self) -> Schemas {
        let schemas = self.datastore.schemas();
        schemas.map(|schema| (schema.id, schema.clone())).collect()
    }

    // ---- Clients go on --------------------------------------------------------------------------------------------------

    fn commit_and_go_on(
        &mut self,
        module: Arc<Module>,
        before: &Schemas,
    ) -> Result<(), UpdateError> {
        let is_altered = |table: TableId| {
            let now = self.datastore.schema(table);
            match (before.get(&table), now) {
                (Some(before), Some(now)) => !Arc::ptr_eq(before, now),
                _ => true,
            }
        };
        let affected = self.sets_with(|query| query.read_tables().into_iter().any(is_altered));
        self.state.windows.begin_publish();
        let swapped = self.swap_sets(affected, &module.catalog);
        let ops = match self.commit_program(module) {
            Ok(ops) => ops,
            Err(error) => {
                self.state.windows.abandon_publish();
                self.swap_back(swapped);
                self.rebuild_views();
                return Err(error);
            }
        };
        let deltas = &mut self.state.output.deltas;
        self.state.windows.end_publish(deltas);
        let ops = ops.start..deltas.position();
        self.tell_of_swapped(swapped, ops);
        Ok(())
    }

    /// Puts newly compiled queries in the place of those of these sets, in the open transaction.
    fn swap_sets(
        &mut self,
        sets: Vec<(ConnectionNumber, u32)>,
        catalog: &CatalogView,
    ) -> Vec<Swapped> {
        let mut swapped = Vec::with_capacity(sets.len());
        for (connection, query_set_id) in sets {
            let Some(new) = self.compile_again(connection, query_set_id, catalog) else {
                continue;
            };
            let (new, error) = match new {
                Ok(new) => (new, None),
                Err(error) => (CompiledSet::default(), Some(error)),
            };
            let Some(old) = self.exchange_set(connection, query_set_id, new) else {
                continue;
            };
            // First all go, then all come: the same query is never known in both forms.
            self.let_go_of(&old.queries);
            swapped.push(Swapped {
                connection,
                query_set_id,
                old,
                error,
            });
        }
        for place in &mut swapped {
            if place.error.is_none() {
                place.error = self.take_up(place.connection, place.query_set_id).err();
            }
        }
        swapped
    }

    /// The update was taken back, and so is what it did to query sets.
    fn swap_back(&mut self, swapped: Vec<Swapped>) {
        let mut old = Vec::with_capacity(swapped.len());
        for Swapped {
            connection,
            query_set_id,
            old: before,
            error,
        } in swapped
        {
            let Some(new) = self.exchange_set(connection, query_set_id, before) else {
                continue;
            };
            if error.is_none() {
                self.let_go_of(&new.queries);
            }
            old.push((connection, query_set_id));
        }
        let mut failed = Vec::new();
        for (connection, query_set_id) in old {
            if let Err(error) = self.take_up(connection, query_set_id) {
                failed.push(((connection, query_set_id), error));
            }
        }
        for (set, error) in failed {
            if let Some(old) = self.exchange_set(set.0, set.1, CompiledSet::default()) {
                self.end_swapped(set, &old, &error);
            }
        }
    }

    /// Fan-out hears of the new queries before it hears of changes that they are to be compared with.
    fn tell_of_swapped(&mut self, swapped: Vec<Swapped>, ops: Range<usize>) {
        let mut sets = Vec::new();
        for place in swapped {
            let key = (place.connection, place.query_set_id);
            if let Some(error) = place.error {
                // Those of the new queries that were taken up are none.
                self.exchange_set(key.0, key.1, CompiledSet::default());
                self.end_swapped(
                    key,
                    &place.old,
                    &format!("the module was updated, and this subscription cannot go on: {error}"),
                );
            } else if let Some(set) = self.query_set(key) {
                sets.push((key.0, key.1, set.queries.clone()));
            }
        }
        if !sets.is_empty() {
            self.event(Event::Resubscribed { sets });
        }
        self.event(Event::Committed { ops });
    }

    /// Ends a set that holds nothing any more but the instances of views that its old queries read.
    fn end_swapped(&mut self, set: (ConnectionNumber, u32), old: &CompiledSet, error: &str) {
        let client = self.state.clients.get(&set.0);
        if let Some(identity) = client.map(|client| client.peer.identity) {
            self.unsubscribe_from_views(identity, &views_of_set(&old.queries), set);
        }
        self.end_sets(vec![set], error);
    }

    fn query_set(
        &self,
        (connection, query_set_id): (ConnectionNumber, u32),
    ) -> Option<&CompiledSet> {
        let client = self.state.clients.get(&connection)?;
        Some(&client.query_sets.get(&query_set_id)?.set)
    }

    /// The queries of a set, compiled from their texts. None: the set is gone.
    fn compile_again(
        &self,
        connection: ConnectionNumber,
        query_set_id: u32,
        catalog: &CatalogView,
    ) -> Option<Result<CompiledSet, String>> {
        let client = self.state.clients.get(&connection)?;
        let set = &client.query_sets.get(&query_set_id)?.set;
        let mut compiler = SetCompiler::new(&client.peer, client.queue.budget());
        let mut texts = set.queries.iter().map(|query| query.query.text());
        let compiled = texts.try_for_each(|text| compiler.add_again(catalog, text));
        Some(compiled.and_then(|()| {
            let new = compiler.finish();
            same_meaning(&set.queries, &new.queries)?;
            Ok(new)
        }))
    }

    /// Puts other queries into a set and gives back those that it had.
    fn exchange_set(
        &mut self,
        connection: ConnectionNumber,
        query_set_id: u32,
        new: CompiledSet,
    ) -> Option<CompiledSet> {
        let client = self.state.clients.get_mut(&connection)?;
        let set = &mut client.query_sets.get_mut(&query_set_id)?.set;
        let old = std::mem::replace(set, new);
        let (was, now) = (counts_of(&old), counts_of(set));
        client.queries = client.queries - was.queries + now.queries;
        client.windows = client.windows - was.windows + now.windows;
        client.query_steps = client.query_steps - was.steps + now.steps;
        Some(old)
    }

    /// Lets go of what live queries hold, but for views, which stay theirs.
    fn let_go_of(&mut self, queries: &[Arc<LiveQuery>]) {
        self.state.query_load.remove(queries);
        self.close_windows(queries);
        self.watch(queries, -1);
    }

    /// Takes what the queries of a set need, after [`let_go_of`](Self::let_go_of).
    fn take_up(&mut self, connection: ConnectionNumber, query_set_id: u32) -> Result<(), String> {
        let Some(set) = self.query_set((connection, query_set_id)) else {
            return Ok(());
        };
        let queries = set.queries.clone();
        self.open_windows(connection, &queries)?;
        // They were let in before.
        let _ = self.state.query_load.add(&queries, usize::MAX);
        self.watch(&queries, 1);
        Ok(())
    }

    // ---- Clients have to go ---------------------------------------------------------------------------------------------

    /// Nothing that was live stays so: its tables may be others, or gone.
    ///
    /// # Errors
    /// The record is too large; everything is as before.
    fn commit_and_close_all(&mut self, module: Arc<Module>) -> Result<(), UpdateError> {
        self.datastore.unwatch_all();
        let state = &mut self.state;
        let windows = std::mem::take(&mut state.windows);
        let views = std::mem::take(&mut state.views);
        let ops = match self.commit() {
            Ok(committed) => committed.changes,
            Err(error) => {
                (self.state.windows, self.state.views) = (windows, views);
                self.watch_again();
                return Err(UpdateError::Refused(error.to_string()));
            }
        };
        self.module = module;
        let state = &mut self.state;
        state.watchers.clear();
        state.query_load = Default::default();
        state.indexes.forget();
        (state.has_failed_joins, state.has_failed_windows) = (false, false);
        let clients = std::mem::take(&mut state.clients);
        self.datastore.forget_live();
        for connection in clients.into_keys() {
            self.event(Event::Closed {
                connection,
                code: CLOSE_CODE,
                reason: CLOSE_REASON,
            });
        }
        self.event(Event::Committed { ops });
        Ok(())
    }

    /// The disconnect reducer of the new module, for all clients that were connected.
    fn run_all_disconnects(&mut self) {
        let clients: Vec<(Identity, ConnectionId)> = crate::open::clients_of(&self.datastore);
        for (identity, connection_id) in clients {
            self.disconnect(identity, connection_id);
            self.end_full_round();
        }
    }

    // ---- Schedules ------------------------------------------------------------------------------------------------------

    /// Calls that are planned stay so, also if their rows have moved to another table; those of new schedules are planned. Rows that
    /// a migration function writes are new ones.
    fn move_schedules(&mut self, before: &Schemas, plan: &MigrationPlan) {
        let set_aside: BTreeSet<&str> = plan.set_aside().map(|(table, _)| table).collect();
        let mut moved = Vec::new();
        for old in before.values().filter(|schema| schema.schedule.is_some()) {
            if set_aside.contains(old.name.as_str()) {
                moved.push((old.id, None));
                continue;
            }
            let new = self.datastore.table_id_from_name(&old.name);
            let new = new.and_then(|id| self.datastore.schema(id)).cloned();
            let at = |schema: &TableSchema| schema.schedule.as_ref().map(|s| s.at_column);
            let new = new.filter(|new| new.name == old.name);
            if let Some(new) = new.as_ref().filter(|new| new.id != old.id) {
                self.move_under_way(old.id, new.id);
            }
            let kept = new.filter(|new| at(new) == at(old));
            let to = kept.map(|schema| schema.id);
            if to != Some(old.id) {
                moved.push((old.id, to));
            }
        }
        let of = |schema: &Arc<TableSchema>| schema.schedule.is_some().then_some(schema.id);
        let is_new = |id: &TableId| {
            let old = before.get(id).and_then(|schema| schema.schedule.as_ref());
            let new = self
                .datastore
                .schema(*id)
                .and_then(|schema| schema.schedule.as_ref());
            old.map(|s| s.at_column) != new.map(|s| s.at_column)
        };
        let added: Vec<TableId> = self
            .datastore
            .schemas()
            .filter_map(of)
            .filter(is_new)
            .collect();
        if !moved.is_empty() || !added.is_empty() {
            self.plan_moved(&moved, &added);
        }
    }
}
