//! Statements on a state of the past (08 §5.5): built beside the writer, as a restore builds it, from a snapshot that lies on the disk and
//! the frames of the log behind it.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Weak};
use std::time::Duration;

use lightcone_accounts::Reservation;
use lightcone_engine::{Datastore, RecoveryError};
use lightcone_live::{BoundQuery, Windows};
use lightcone_log::{LogError, LogFeed};
use lightcone_snapshot::SnapshotStore;
use lightcone_types::{AsOf, Timestamp};
use tokio::sync::OwnedMutexGuard;

use crate::calls::Caller;
use crate::catalog::CatalogView;
use crate::environment::Alarm;
use crate::error::{ReadError, SqlError};
use crate::evaluate::{Allowance, Finder, Source};
use crate::frozen::FrozenTables;
use crate::handle::DatabaseHandle;
use crate::past::Past;
use crate::rights::Rights;
use crate::shared::Shared;

/// A state has at most this part of the memory that is free.
const FREE_MEMORY_PART: u64 = 2;
/// So long a state is kept for the next statement on it.
const KEPT: Duration = Duration::from_secs(10);

/// Whose turn it is. The state is kept for a while behind it.
pub(super) struct PastTurn {
    past: OwnedMutexGuard<Option<Past>>,
    shared: Arc<Shared>,
    /// One statement of each database waits for the server's turn, so that many of one do not hold up the others.
    _own: OwnedMutexGuard<()>,
}

impl Drop for PastTurn {
    fn drop(&mut self) {
        if let Some(past) = self.past.as_mut() {
            past._end = Some(forget_later(&self.shared));
        }
    }
}

/// Why it is not for this caller, or not of this query.
pub(super) fn refused(what: &str) -> SqlError {
    SqlError::Query(format!("{what} [LC0418]"))
}

pub(super) fn check_past(rights: Rights) -> Result<(), SqlError> {
    let text = "what tables were in the past (AS OF) is for owners of the database";
    rights
        .reads_past()
        .then_some(())
        .ok_or_else(|| refused(text))
}

impl Shared {
    /// The same of now, while work goes on for the caller.
    pub(super) fn check_past_now(&self, caller: &Caller) -> Result<(), SqlError> {
        let rights = self.rights_now(caller);
        // Its files may be gone, and with it went all rights.
        if self.status.is_stopping() {
            return Err(SqlError::ModuleGone);
        }
        check_past(rights)
    }
}

impl DatabaseHandle {
    /// Where the rows of a query are found that `compile` makes with the tables of then. The turn is to be kept until they are read.
    ///
    /// # Errors
    /// The caller may not read it any more when it is his turn, or the database is gone; the state is not kept, or takes too much time or
    /// memory; those of `compile`; the query reads views.
    pub(super) async fn find_as_of(
        &self,
        as_of: AsOf,
        caller: &Caller,
        compile: impl FnOnce(&CatalogView) -> Result<BoundQuery, SqlError> + Send + 'static,
    ) -> Result<(BoundQuery, Source, PastTurn), SqlError> {
        // Goes with the client, who needs no rows then.
        let asked = Arc::new(());
        let (shared, is_asked) = (self.shared.clone(), Arc::downgrade(&asked));
        let own = shared.past.clone().lock_owned().await;
        let mut turn = PastTurn {
            past: shared.options.commons.past.clone().lock_owned().await,
            shared,
            _own: own,
        };
        turn.shared.check_past_now(caller)?;
        let find = move || {
            let PastTurn { past, shared, .. } = &mut turn;
            let is_it = |past: &Past| past.database == shared.number() && past.as_of == as_of;
            if !past.as_ref().is_some_and(is_it) {
                // Its memory is free before more is taken.
                **past = None;
                **past = Some(Past::build(shared, as_of, &is_asked)?);
            }
            let past = past.as_mut().expect("it is there, or was put there");
            let (plan, source) = past.find(compile)?;
            Ok((plan, source, turn))
        };
        let found = self.shared.elsewhere(find).await;
        drop(asked);
        found.unwrap_or(Err(SqlError::ModuleGone))
    }
}

/// Forgets the state after a while, unless a statement has it then, whose turn puts off its end.
fn forget_later(shared: &Shared) -> Alarm {
    let environment = shared.options.shared_environment();
    let slot = Arc::downgrade(&shared.options.commons.past);
    let forget = move || {
        let past = slot
            .upgrade()
            .and_then(|slot| slot.try_lock_owned().ok()?.take());
        // Giving its memory back takes a while.
        environment.spawn_blocking(Box::new(move || drop(past)));
    };
    shared.environment().alarm(KEPT, Box::new(forget))
}

impl Past {
    fn build(shared: &Shared, as_of: AsOf, is_asked: &Weak<()>) -> Result<Past, SqlError> {
        let (options, environment) = (&shared.options, shared.environment());
        let feed = shared.status.feed().filter(|_| !options.in_memory);
        let feed = feed.ok_or_else(|| {
            refused("a server that keeps its databases in memory only has no states of the past")
        })?;
        if matches!(as_of, AsOf::Moment(moment) if moment > environment.now()) {
            return Err(not_there(&format!(
                "the state {as_of} is one of the future"
            )));
        }
        let commons = &options.commons;
        let bytes_max = (commons.free_bytes)() as u64 / FREE_MEMORY_PART;
        let (started, limit) = (environment.instant(), options.limits.read_time_max);
        let memory = RefCell::new(Reservation::none(&commons.past_memory));
        let why = Cell::new(None);
        let may_go_on = |bytes: u64| {
            let is_wanted = is_asked.strong_count() > 0 && !shared.status.is_stopping();
            let error = if !is_wanted {
                SqlError::ModuleGone
            } else if environment.instant() - started > limit {
                ReadError::TooLong { limit }.into()
            } else if bytes > bytes_max || memory.borrow_mut().hold(bytes as usize).is_err() {
                SqlError::Busy(format!("the state {as_of} takes more than {bytes_max} bytes of memory, which is half of what is free [LC0420]"))
            } else {
                return true;
            };
            why.set(Some(error));
            false
        };
        let snapshots =
            SnapshotStore::beside(options.storage.clone(), &options.snapshots_directory());
        let times = shared.history.known().snapshots;
        let begun = |offset| times.get(&offset).copied().flatten();
        let built = snapshots
            .map_err(RecoveryError::from)
            .and_then(|mut snapshots| {
                Datastore::past(&mut snapshots, feed, as_of, &begun, &may_go_on)
            });
        let (datastore, _) = built.map_err(|error| {
            let given_up = why.take();
            given_up.unwrap_or_else(|| failed(error, as_of, feed))
        })?;
        Ok(Past {
            database: shared.number(),
            as_of,
            catalog: CatalogView::of_tables(&datastore),
            datastore,
            _memory: memory.into_inner(),
            _end: None,
        })
    }

    fn find(
        &mut self,
        compile: impl FnOnce(&CatalogView) -> Result<BoundQuery, SqlError>,
    ) -> Result<(BoundQuery, Source), SqlError> {
        let plan = compile(&self.catalog)?;
        if plan.reads_views() {
            return Err(refused(
                "the rows of views are not kept, so AS OF has tables only",
            ));
        }
        let (mut frozen, windows) = (FrozenTables::default(), Windows::default());
        let mut left = Allowance::default();
        let datastore = &mut self.datastore;
        let mut finder = Finder::new(datastore, &mut frozen, &windows, true, None, &mut left);
        let source = finder.find(&plan);
        Ok((plan, source.expect("what is not found at once is frozen")))
    }
}

fn not_there(what: &str) -> SqlError {
    SqlError::Query(format!("{what} [LC0419]"))
}

fn failed(error: RecoveryError, as_of: AsOf, feed: &LogFeed) -> SqlError {
    match error {
        RecoveryError::NotKept { oldest } => {
            let time = Datastore::committed_at(feed, oldest).ok().flatten();
            let time = time.map(|time| format!(", of {}", Timestamp(time).to_rfc3339()));
            let time = time.unwrap_or_default();
            not_there(&format!("the state {as_of} is not kept any more: the oldest one is that before transaction {oldest}{time}"))
        }
        RecoveryError::Log(LogError::OutOfRange { next, .. }) => not_there(&format!(
            "there is no state {as_of} yet: the newest one is that before transaction {next}"
        )),
        error => SqlError::Database(error.to_string()),
    }
}
