//! A new program takes over (02 §14.1): its migration, what is live afterwards, and who is disconnected.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use lightcone_engine::MigrationWork;
use lightcone_schema::{is_sealed, MigrationPlan, TableSchema};
use lightcone_types::{Hash, TableId};
use rustc_hash::FxHashMap;

use super::away::Away;
use super::same_meaning::same_meaning;
use super::views::views_of_set;
use super::Writer;
use crate::catalog::CatalogView;
use crate::compile::SetCompiler;
use crate::error::{Refusal, UpdateError};
use crate::events::Event;
use crate::guest::Guest;
use crate::migration::{cancelled, take_steps, PlannedMigration};
use crate::migration_function::Surroundings;
use crate::migration_progress::MigrationOutcome;
use crate::module::{Module, Program};
use crate::peer::SetKey;
use crate::request::CompiledSet;
use crate::variables::{EnvironmentChange, EnvironmentError, EnvironmentMetadata};
use lightcone_live::LiveQuery;

/// What clients are told that have to go.
const CLOSE_CODE: u16 = 1001;
const CLOSE_REASON: &str = "module exited";

type Schemas = FxHashMap<TableId, Arc<TableSchema>>;

/// A query set whose queries read tables that have changed, and were compiled again.
struct Swapped {
    key: SetKey,
    /// In the place of which others are now.
    old: CompiledSet,
    /// Why there are no others: the set ends.
    error: Option<Refusal>,
}

impl Writer {
    /// Swaps the program, and brings the tables to what its definition says.
    pub(super) fn replace(
        &mut self,
        program: Program,
        planned: PlannedMigration,
    ) -> Result<(), UpdateError> {
        self.may_replace(&planned, &program)?;
        self.shared.status.migration.begin(self.now.instant);
        self.replace_at_once(program, planned)
    }

    /// The same, in a migration that has begun.
    pub(super) fn replace_at_once(
        &mut self,
        program: Program,
        planned: PlannedMigration,
    ) -> Result<(), UpdateError> {
        let replaced = self.replace_in_steps(program, planned);
        let was_cancelled = self.shared.status.migration.is_cancelled();
        self.end_migration(&replaced, was_cancelled);
        replaced
    }

    /// Notes how a migration has ended.
    pub(super) fn end_migration(&self, result: &Result<(), UpdateError>, was_cancelled: bool) {
        let progress = &self.shared.status.migration;
        let outcome = match result {
            Ok(()) => MigrationOutcome::Committed,
            Err(_) if was_cancelled => MigrationOutcome::Cancelled,
            Err(error) => MigrationOutcome::Failed {
                reason: error.to_string(),
            },
        };
        progress.end(outcome, (self.clock(), self.time()));
    }

    pub(super) fn log_failed_update(&self, error: &UpdateError) {
        let text = format!("Database update failed: {error}");
        self.log_error(None, &text, self.time());
    }

    fn replace_in_steps(
        &mut self,
        program: Program,
        planned: PlannedMigration,
    ) -> Result<(), UpdateError> {
        let instance = program
            .instantiate(self.shared.config.clone())
            .map_err(|error| UpdateError::Module(error.to_string()))?;
        // A migration may take its time: no other answer waits for it.
        self.end_round();
        let log = self.shared.log.clone();
        log.info(&format!("Updated program to {}", program.hash.to_hex()));
        let breaks_clients = planned.plan.breaks_clients();
        if let Err(error) = self.migrate(program, &planned) {
            self.datastore.know_old_tables(self.module.def());
            self.log_failed_update(&error);
            return Err(error);
        }
        self.shared.set_module(self.module.clone());
        self.guest = Guest::new(instance);
        self.guest.instance.prepare();
        if breaks_clients {
            self.disconnect_all();
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
        let knows_tables = !planned.plan.changes_tables();
        let limits = &self.shared.options.limits;
        let old = Some(&*self.module);
        let module = Module::new(program, &self.datastore, old, knows_tables, limits);
        let module = Arc::new(module);
        match planned.plan.breaks_clients() {
            true => self.commit_and_close_all(module)?,
            false => self.commit_and_go_on(module, &before)?,
        }
        self.move_schedules(&before, &planned.plan);
        self.state.outboxes.forget_sent();
        Ok(())
    }

    fn take_steps(
        &mut self,
        program: &Program,
        planned: &PlannedMigration,
    ) -> Result<(), UpdateError> {
        let datastore = &mut self.datastore;
        let mut record = datastore
            .module_record()
            .expect("a running database has a module");
        record.program_kind = program.kind as u8;
        record.program_hash = program.hash;
        record.program = program.bytes.to_vec();
        datastore.set_module_record(&record)?;
        // Before the first step: the migration function may read it.
        let stored = datastore.environment();
        let variables =
            planned
                .environment
                .checked(stored, &program.def, self.shared.options.sealing())?;
        datastore.set_environment(&variables)?;
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
            if let Some(text) = step.log_text() {
                log.info(&text);
            }
        })?;
        // Of a database that was made by a version without views.
        datastore.create_views(&program.def)?;
        Ok(())
    }

    // ---- The environment alone ------------------------------------------------------------------------------------------

    /// Changes variables of the running program. Whether that changes anything.
    pub(super) fn change_environment(
        &mut self,
        change: &EnvironmentChange,
        expected: Option<Hash>,
    ) -> Result<bool, UpdateError> {
        if let Some(reason) = self.shared.status.read_only() {
            return Err(UpdateError::Database(reason));
        }
        if expected.is_some_and(|expected| expected != self.module.program.hash) {
            return Err(EnvironmentError::VersionConflict.into());
        }
        let stored = self.datastore.environment();
        let sealing = self.shared.options.sealing();
        let variables = change.checked(stored.clone(), self.module.def(), sealing)?;
        if variables == stored {
            return Ok(false);
        }
        self.datastore.begin();
        if let Err(error) = self.datastore.set_environment(&variables) {
            self.datastore.rollback();
            return Err(error.into());
        }
        let committed = self.commit_program(self.module.clone(), |reason| {
            format!("view evaluation failed during environment publication: {reason}")
        });
        match committed {
            Ok(ops) => self.event(Event::Committed { ops }),
            Err(error) => {
                self.rebuild_views();
                self.log_failed_update(&error);
                return Err(error);
            }
        }
        self.shared.log.info("Database environment updated");
        Ok(true)
    }

    pub(super) fn environment(&self) -> EnvironmentMetadata {
        let stored = self.datastore.environment();
        let secret = stored.iter().filter(|(_, value)| is_sealed(value));
        EnvironmentMetadata {
            program_hash: self.module.program.hash,
            declarations: self.module.def().environment_declarations(),
            secret_keys: secret.map(|(key, _)| key.clone()).collect(),
            stored_keys: stored.into_keys().collect(),
        }
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
        let failed = |reason| {
            format!("Views evaluation did not complete successfully during database update: the new program's {reason}")
        };
        let ops = match self.commit_program(module, failed) {
            Ok(ops) => ops,
            Err(error) => {
                self.state.windows.abandon_publish();
                self.swap_back(swapped);
                self.rebuild_views();
                return Err(error);
            }
        };
        let deltas = &mut self.state.effects.output.deltas;
        self.state.windows.end_publish(deltas);
        let ops = ops.start..deltas.position();
        self.tell_of_swapped(swapped, ops);
        Ok(())
    }

    /// Puts newly compiled queries in the place of those of these sets, in the open transaction.
    fn swap_sets(&mut self, sets: Vec<SetKey>, catalog: &CatalogView) -> Vec<Swapped> {
        let mut swapped = Vec::with_capacity(sets.len());
        for key in sets {
            let Some(new) = self.compile_again(key, catalog) else {
                continue;
            };
            let (new, error) = match new {
                Ok(new) => (new, None),
                Err(error) => (CompiledSet::default(), Some(error)),
            };
            let Some(old) = self.exchange_set(key, new) else {
                continue;
            };
            // First all go, then all come: the same query is never known in both forms.
            self.let_go_of(&old.queries);
            swapped.push(Swapped { key, old, error });
        }
        for place in &mut swapped {
            if place.error.is_none() {
                place.error = self.take_up(place.key).err();
            }
        }
        swapped
    }

    /// The update was taken back, and so is what it did to query sets.
    fn swap_back(&mut self, swapped: Vec<Swapped>) {
        let mut old = Vec::with_capacity(swapped.len());
        for Swapped {
            key,
            old: before,
            error,
        } in swapped
        {
            let Some(new) = self.exchange_set(key, before) else {
                continue;
            };
            if error.is_none() {
                self.let_go_of(&new.queries);
            }
            old.push(key);
        }
        let mut failed = Vec::new();
        for key in old {
            if let Err(error) = self.take_up(key) {
                failed.push((key, error));
            }
        }
        for (key, error) in failed {
            if let Some(old) = self.exchange_set(key, CompiledSet::default()) {
                self.end_swapped(key, &old, &error.0);
            }
        }
    }

    /// Fan-out hears of the new queries before it hears of changes that they are to be compared with.
    fn tell_of_swapped(&mut self, swapped: Vec<Swapped>, ops: Range<usize>) {
        let mut sets = Vec::new();
        for Swapped { key, old, error } in swapped {
            if let Some(error) = error {
                // Those of the new queries that were taken up are none.
                self.exchange_set(key, CompiledSet::default());
                let error =
                    format!("the module was updated, and this subscription cannot go on: {error}");
                self.end_swapped(key, &old, &error);
            } else if let Some(set) = self.query_set(key) {
                sets.push((key, set.queries.clone()));
            }
        }
        if !sets.is_empty() {
            self.event(Event::Resubscribed { sets });
        }
        self.event(Event::Committed { ops });
    }

    /// Ends a set that holds nothing any more but the instances of views that its old queries read.
    fn end_swapped(&mut self, key: SetKey, old: &CompiledSet, error: &str) {
        let client = self.state.clients.get(&key.connection);
        if let Some(identity) = client.map(|client| client.peer.identity) {
            self.unsubscribe_from_views(identity, &views_of_set(&old.queries), key);
        }
        self.end_sets(vec![key], error);
    }

    fn query_set(&self, key: SetKey) -> Option<&CompiledSet> {
        let client = self.state.clients.get(&key.connection)?;
        Some(&client.query_sets.get(&key.id)?.set)
    }

    /// The queries of a set, compiled from their texts. None: the set is gone.
    fn compile_again(
        &self,
        key: SetKey,
        catalog: &CatalogView,
    ) -> Option<Result<CompiledSet, Refusal>> {
        let client = self.state.clients.get(&key.connection)?;
        let set = &client.query_sets.get(&key.id)?.set;
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
    fn exchange_set(&mut self, key: SetKey, new: CompiledSet) -> Option<CompiledSet> {
        let client = self.state.clients.get_mut(&key.connection)?;
        let set = &mut client.query_sets.get_mut(&key.id)?.set;
        client.counts.remove(&set.queries);
        client.counts.add(&new.queries);
        Some(std::mem::replace(set, new))
    }

    /// Lets go of what live queries hold, but for views, which stay theirs.
    fn let_go_of(&mut self, queries: &[Arc<LiveQuery>]) {
        self.state.query_load.remove(queries);
        self.close_windows(queries);
        self.watch(queries, -1);
    }

    /// Takes what the queries of a set need, after [`let_go_of`](Self::let_go_of).
    fn take_up(&mut self, key: SetKey) -> Result<(), Refusal> {
        let Some(set) = self.query_set(key) else {
            return Ok(());
        };
        let queries = set.queries.clone();
        self.open_windows(key.connection, &queries)?;
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
                return Err(error.into());
            }
        };
        self.module = module;
        let state = &mut self.state;
        state.watchers.clear();
        state.query_load = Default::default();
        state.indexes.forget();
        (state.has_failed_joins, state.has_failed_windows) = (false, false);
        let clients = std::mem::take(&mut state.clients);
        state.sessions.clear();
        // They have rows, and so are disconnected with the others.
        state.away = Away::default();
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
