//! The databases that are running in this process: opened at their first use, each in its replica directory.

mod checks;
mod due;
mod earlier;
pub mod limits;
mod name_locks;
mod notes;
pub(crate) mod orphans;
mod running;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lightcone_control::{ControlDb, ControlError, DatabaseRecord, HostType};
use lightcone_database::{
    Carrier, Commons, DatabaseHandle, DatabaseOptions, Engines, EnvironmentChange,
    EnvironmentError, Error as DatabaseError, Holder, HostKind, Limits, Loads, ProgramBytes,
    Restore, RightsNow, ShutdownReason,
};
use lightcone_storage::DiskReserve;
use lightcone_types::{Identity, Timestamp};
use parking_lot::RwLock;

use crate::data_dir::DataDir;
use crate::memory::free_bytes;
use crate::metrics::{Left, Looks};
use name_locks::NameLocks;
use running::{end, SHUTDOWN_TIMEOUT};

pub use earlier::EarlierProgram;
pub use name_locks::NameLock;
pub(crate) use running::Activity;
pub use running::{Running, Started};

/// A database that would not open is not tried again sooner.
const RETRY_AFTER: Duration = Duration::from_secs(3);
pub(crate) const PROGRAM_FILE: &str = "program";
const STOPPED: &str =
    "the database stopped while it was being opened; see the server's log [LC0120]";

/// Why a database was not created.
#[derive(Debug)]
pub enum CreateError {
    /// No more modules are loaded now.
    Busy(String),
    /// The variables are not what the program declares.
    Environment(EnvironmentError),
    Failed(String),
}

/// Why a database does not run.
#[derive(Debug)]
pub enum OpenError {
    /// It was deleted in this moment, or the server is stopping.
    Gone,
    Failed(String),
}

/// The running databases; after `closed` no more are added.
#[derive(Default)]
struct Open {
    closed: bool,
    databases: HashMap<Identity, Running>,
    left: Left,
}

impl Open {
    /// Has the database a series already, or is there room for one more?
    fn may_have_series(&self, identity: &Identity, series_max: usize) -> bool {
        let before = self.databases.get(identity);
        let databases = self.databases.values();
        before.is_some_and(|before| before.has_series)
            || databases.filter(|running| running.has_series).count() < series_max
    }
}

/// What all databases of a server share.
pub struct ServerWide {
    pub commons: Arc<Commons>,
    pub loads: Arc<Loads>,
    pub disk: Arc<DiskReserve>,
    /// When the clock of each database begins, which tests move.
    pub test_time: Option<Timestamp>,
    /// Most databases that have series of their own in the metrics.
    pub series_max: usize,
}

pub struct Databases {
    data_dir: DataDir,
    control: Arc<ControlDb>,
    in_memory: bool,
    engines: Engines,
    limits: Limits,
    shared: ServerWide,
    running: RwLock<Open>,
    failed: RwLock<HashMap<Identity, (Instant, String)>>,
    /// It is unknown whether these still exist: see [`Databases::suspend`].
    suspended: RwLock<HashSet<Identity>>,
    /// Opening, deleting and putting a database into place exclude each other. No new program is loaded under this lock.
    locks: NameLocks,
    /// Updates of one database exclude each other.
    update_locks: NameLocks,
}

/// How a database runs the programs of a record.
pub fn host_kind(of: HostType) -> HostKind {
    match of {
        HostType::Wasm => HostKind::Wasm,
        HostType::Js => HostKind::Js,
    }
}

impl Databases {
    pub fn new(
        data_dir: DataDir,
        control: Arc<ControlDb>,
        in_memory: bool,
        engines: Engines,
        limits: Limits,
        shared: ServerWide,
    ) -> Arc<Databases> {
        let notes = Arc::new(notes::Notes(control.clone()));
        shared.commons.set_due_notes(notes);
        Arc::new(Databases {
            data_dir,
            control,
            in_memory,
            engines,
            limits,
            shared,
            running: RwLock::default(),
            failed: RwLock::default(),
            suspended: RwLock::default(),
            locks: NameLocks::default(),
            update_locks: NameLocks::default(),
        })
    }

    /// Has messages of outbox tables carried from now on.
    pub(crate) fn carry_with(&self, carrier: Arc<dyn Carrier>) {
        self.shared.commons.set_carrier(carrier);
    }

    /// Has callers who had to wait asked again what they may do.
    pub(crate) fn ask_rights_of(&self, rights: Arc<RightsNow>) {
        self.shared.commons.set_rights(rights);
    }

    /// Bytes that clients have asked for and not yet taken.
    pub fn clients_bytes(&self) -> usize {
        self.shared.commons.clients_bytes()
    }

    /// The account of a client that may use several databases, or none yet.
    pub fn holder(&self) -> Holder {
        self.shared.commons.holder(&self.limits)
    }

    /// Keeps every other change of this database out. Hold it shortly: module code that is not stored yet never runs under it.
    pub async fn lock(&self, identity: &Identity) -> NameLock {
        self.locks.lock(identity).await
    }

    /// Keeps other updates of this database out, and nothing else.
    pub async fn lock_updates(&self, identity: &Identity) -> NameLock {
        self.update_locks.lock(identity).await
    }

    /// What publishes leave free of the disk.
    pub fn disk(&self) -> &DiskReserve {
        &self.shared.disk
    }

    /// What a new segment of a database's log takes of the disk before anything is in it.
    pub fn new_segment_bytes(&self) -> u64 {
        match self.limits.log_preallocate {
            true => self.limits.log_segment_bytes,
            false => 0,
        }
    }

    /// The threads that load modules.
    pub fn loads(&self) -> &Arc<Loads> {
        &self.shared.loads
    }

    /// The database, unless it is not open or failed; a failed one is opened again from its log.
    pub fn running(&self, identity: &Identity) -> Option<Running> {
        let open = self.running.read();
        let running = open.databases.get(identity).cloned();
        running.filter(|running| running.handle.is_running())
    }

    pub(crate) fn open_count(&self) -> usize {
        self.running.read().databases.len()
    }

    /// All that are open. `look` sees what closed ones have left, at the same moment.
    pub(crate) fn running_beside(&self, look: impl FnOnce(&Left)) -> Vec<(Identity, Running)> {
        let open = self.running.read();
        look(&open.left);
        let all = open.databases.iter();
        all.map(|(id, running)| (*id, running.clone())).collect()
    }

    /// The running database of a record, opened if need be.
    pub async fn get(self: &Arc<Self>, record: &DatabaseRecord) -> Result<Running, OpenError> {
        if let Some(running) = self.running(&record.identity) {
            running.uses.fetch_add(1, Relaxed);
            return Ok(running);
        }
        let lock = self.lock(&record.identity).await;
        let (databases, identity) = (self.clone(), record.identity);
        // In a task of its own: a request that is given up must not leave behind an opened database that is not in the list.
        let opening = tokio::spawn(async move {
            let _lock = lock;
            databases.open(&identity).await
        });
        let opened = opening.await;
        opened.unwrap_or_else(|_| Err(OpenError::Failed(STOPPED.to_owned())))
    }

    /// Opens a database, unless it runs or was deleted meanwhile. For a caller who holds its lock.
    async fn open(&self, identity: &Identity) -> Result<Running, OpenError> {
        if let Some(running) = self.running(identity) {
            return Ok(running);
        }
        if self.running.read().closed {
            return Err(OpenError::Gone);
        }
        if self.suspended.read().contains(identity) {
            let control = self.control.clone();
            let settled = blocking(move || control.settle()).await;
            settled.map_err(OpenError::Failed)?;
            self.suspended.write().remove(identity);
        }
        match self.control.database(identity) {
            Some(record) => self.open_record(&record).await,
            None => Err(OpenError::Gone),
        }
    }

    async fn open_record(&self, record: &DatabaseRecord) -> Result<Running, OpenError> {
        if let Some((at, reason)) = self.failed.read().get(&record.identity) {
            if at.elapsed() < RETRY_AFTER {
                return Err(OpenError::Failed(reason.clone()));
            }
        }
        // One that failed may still hold its log.
        let failed = self.running.read().databases.get(&record.identity).cloned();
        if let Some(failed) = failed {
            let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, failed.handle.ended()).await;
        }
        let options = self.options(record);
        let kind = host_kind(record.host_type);
        let identity = record.identity;
        let opened = blocking(move || {
            open_replica(options, kind).map(|handle| Started::new(identity, handle))
        });
        match opened.await {
            // A stop of the server waits for the openings that are under way.
            Ok(started) if self.running.read().closed => {
                end(&identity, started.into_handle(), ShutdownReason::ServerStop).await;
                Err(OpenError::Gone)
            }
            Ok(started) => Ok(self.insert(started)),
            Err(reason) => {
                tracing::error!(database = %identity, reason, "a database cannot be opened");
                let failed = (Instant::now(), reason.clone());
                self.failed.write().insert(identity, failed);
                Err(OpenError::Failed(reason))
            }
        }
    }

    /// Creates the data of a new database or replica. It is not yet the running one: see [`Databases::insert`].
    pub async fn create(
        &self,
        record: &DatabaseRecord,
        program: ProgramBytes,
        environment: EnvironmentChange,
    ) -> Result<Started, CreateError> {
        let options = self.options(record);
        let (identity, kind) = (record.identity, host_kind(record.host_type));
        let kept = self.in_memory.then(|| program.clone());
        let created = tokio::task::spawn_blocking(move || {
            let created = create_replica(options, program, kind, environment);
            created.map(|handle| Started::new(identity, handle))
        });
        let stopped = |_| CreateError::Failed(STOPPED.to_owned());
        let created = created.await.map_err(stopped)??;
        if let Some(program) = kept {
            self.keep_program(record, program).await;
        }
        Ok(created)
    }

    /// Nothing but programs and module logs is on the disk.
    pub fn are_in_memory(&self) -> bool {
        self.in_memory
    }

    /// Begins to bring back a backup as a new database, in a directory of its own. If nothing comes of it, its files are to be
    /// [removed](Self::remove_files).
    pub async fn begin_restore(&self, record: &DatabaseRecord) -> Result<Restore, CreateError> {
        let options = self.options(record);
        let begun = tokio::task::spawn_blocking(move || {
            make_directory(&options)?;
            let directory = options.directory.clone();
            let begun = Restore::begin(options, || free_bytes() as u64);
            begun.map_err(|error| {
                remove_files(&directory);
                CreateError::Failed(lightcone_outbound::error_chain(&error))
            })
        });
        let stopped = |_| CreateError::Failed(STOPPED.to_owned());
        begun.await.map_err(stopped)?
    }

    /// Opens what was brought back. It is not yet the running one: see [`Databases::insert`].
    pub async fn open_restored(&self, record: &DatabaseRecord) -> Result<Started, CreateError> {
        let (options, identity) = (self.options(record), record.identity);
        let opened = blocking(move || {
            DatabaseHandle::open(options).map(|handle| Started::new(identity, handle))
        });
        opened.await.map_err(CreateError::Failed)
    }

    /// In memory mode, a restarted server starts the databases anew from their programs (07 §11.1).
    pub async fn keep_program(&self, record: &DatabaseRecord, program: ProgramBytes) {
        if !self.in_memory {
            return;
        }
        let directory = self.data_dir.replica(record.replica_id);
        let kept = blocking(move || {
            lightcone_storage::disk().create_directory(&directory)?;
            std::fs::write(directory.join(PROGRAM_FILE), &*program)
        });
        if let Err(reason) = kept.await {
            tracing::warn!(
                reason,
                "the program of an in-memory database cannot be kept for a restart"
            );
        }
    }

    fn earlier_directory(&self, record: &DatabaseRecord) -> PathBuf {
        self.data_dir
            .replica(record.replica_id)
            .join(earlier::DIRECTORY)
    }

    /// Keeps the program that another one has replaced. That an update was made does not depend on it.
    pub async fn keep_earlier(&self, record: &DatabaseRecord, program: (ProgramBytes, HostKind)) {
        let (directory, disk) = (self.earlier_directory(record), self.shared.disk.clone());
        let kept = blocking(move || earlier::keep(&directory, &disk, program));
        if let Err(reason) = kept.await {
            tracing::warn!(database = %record.identity, reason, "an earlier program cannot be kept");
        }
    }

    /// The programs before the one that runs, the last one first. Blocks.
    pub fn earlier_programs(&self, record: &DatabaseRecord) -> Vec<EarlierProgram> {
        earlier::programs_in(&self.earlier_directory(record))
    }

    /// The end of the newest module log on disk, for a database that does not run. Blocks.
    pub fn stored_log(&self, record: &DatabaseRecord, num_lines: Option<u32>) -> Option<Vec<u8>> {
        let directory = self.data_dir.replica(record.replica_id);
        lightcone_database::ModuleLog::stored_tail(&directory, num_lines)
    }

    /// Makes a started database the running one.
    pub fn insert(&self, started: Started) -> Running {
        let identity = started.identity;
        self.failed.write().remove(&identity);
        let mut open = self.running.write();
        let running = Running {
            handle: started.into_handle(),
            counters: Arc::default(),
            has_series: open.may_have_series(&identity, self.shared.series_max),
            looks: Looks::default(),
            uses: Arc::default(),
        };
        if open.closed {
            let handle = running.handle.clone();
            tokio::spawn(async move { end(&identity, handle, ShutdownReason::ServerStop).await });
        } else if let Some(before) = open.databases.insert(identity, running.clone()) {
            open.left.add(&before);
        }
        drop(open);
        running
    }

    /// The open databases that are so.
    pub(crate) fn identities_of(&self, are: impl Fn(&Running) -> bool) -> Vec<Identity> {
        let open = self.running.read();
        let found = open.databases.iter().filter(|(_, running)| are(running));
        found.map(|(identity, _)| *identity).collect()
    }

    /// Opens a database anew from its log that is read-only for a reason that has passed: the disk takes data again.
    pub(crate) async fn reopen(&self, identity: &Identity) {
        let _lock = self.lock(identity).await;
        let (record, running) = (self.control.database(identity), self.running(identity));
        let (Some(record), Some(running)) = (record, running) else {
            return;
        };
        if !running.handle.may_work_again() {
            return;
        }
        let tried = running.handle.clone();
        if let Err(reason) = blocking(move || tried.try_disk()).await {
            tracing::debug!(database = %identity, reason, "a read-only database stays so");
            return;
        }
        tracing::info!(database = %identity, "the disk takes data again; a read-only database is opened anew");
        end(identity, running.handle, ShutdownReason::Reopen).await;
        // Why it does not open is logged there; the next request tries again.
        let _ = self.open_record(&record).await;
    }

    /// Ends a created database that did not become the running one, and removes its files.
    pub async fn discard(&self, record: &DatabaseRecord, started: Started) {
        let handle = started.into_handle();
        end(&record.identity, handle, ShutdownReason::Deleted).await;
        self.remove_files(record).await;
    }

    /// The same, because its record could not be written. Where that is unknown, the files stay: what is known after a
    /// restart decides over them.
    pub async fn give_up(&self, record: &DatabaseRecord, started: Started, error: &ControlError) {
        if error.is_unknown() {
            tracing::error!(database = %record.identity, replica = record.replica_id, %error, "a new database is kept until it is known whether it is there");
            let handle = started.into_handle();
            end(&record.identity, handle, ShutdownReason::Suspended).await;
        } else {
            self.discard(record, started).await;
        }
    }

    /// Ends a database that may not exist any more: the control database failed, so it is unknown. It opens again,
    /// if it exists, when that can be read: what it would acknowledge until then might be lost.
    pub async fn suspend(&self, identity: &Identity) {
        self.suspended.write().insert(*identity);
        let running = self.running.read().databases.get(identity).cloned();
        if let Some(running) = running {
            end(identity, running.handle, ShutdownReason::Suspended).await;
        }
    }

    /// Ends a database and removes the files of its replica.
    pub async fn remove(&self, record: &DatabaseRecord) {
        let running = {
            let mut open = self.running.write();
            let running = open.databases.remove(&record.identity);
            running.inspect(|running| open.left.add(running))
        };
        self.failed.write().remove(&record.identity);
        if let Some(running) = running {
            end(&record.identity, running.handle, ShutdownReason::Deleted).await;
        }
        self.remove_files(record).await;
    }

    /// Removes the files of a replica that does not run.
    pub async fn remove_files(&self, record: &DatabaseRecord) {
        let directory = self.data_dir.replica(record.replica_id);
        // A panic is reported where it happens.
        let _ = tokio::task::spawn_blocking(move || remove_files(&directory)).await;
    }

    /// Ends every database, all at once, and notes which of them have still something to do.
    pub async fn shutdown(&self) {
        self.shared.loads.stop();
        let open = Open {
            closed: true,
            ..Open::default()
        };
        let running = std::mem::replace(&mut *self.running.write(), open).databases;
        let mut ending = tokio::task::JoinSet::new();
        for (identity, running) in running {
            ending.spawn(async move {
                let due = end(&identity, running.handle, ShutdownReason::ServerStop).await;
                due.map(|due| (identity, due))
            });
        }
        let due = ending.join_all().await;
        self.note_due(due.into_iter().flatten().collect()).await;
    }

    fn options(&self, record: &DatabaseRecord) -> DatabaseOptions {
        let commons = &self.shared.commons;
        DatabaseOptions {
            test_clock: self.shared.test_time.map(|now| commons.test_clock(now)),
            directory: self.data_dir.replica(record.replica_id),
            identity: record.identity,
            owner: record.owner,
            in_memory: self.in_memory,
            limits: self.limits.clone(),
            engines: self.engines.clone(),
            commons: commons.clone(),
            storage: lightcone_database::disk(),
            loads: self.shared.loads.clone(),
            disk: self.shared.disk.clone(),
        }
    }
}

/// Opens what is on the disk. Blocks.
fn open_replica(options: DatabaseOptions, kind: HostKind) -> Result<DatabaseHandle, DatabaseError> {
    if !options.in_memory {
        return DatabaseHandle::open(options);
    }
    let lost =
        |error: std::io::Error| format!("the program of an in-memory database is lost: {error}");
    let program = std::fs::read(options.directory.join(PROGRAM_FILE));
    let program = program.map_err(|error| DatabaseError::Other(lost(error)))?;
    DatabaseHandle::create(options, program, kind)
}

/// Creates a database in a new directory, which is removed again if this fails. Blocks.
fn create_replica(
    options: DatabaseOptions,
    program: ProgramBytes,
    kind: HostKind,
    environment: EnvironmentChange,
) -> Result<DatabaseHandle, CreateError> {
    make_directory(&options)?;
    let directory = options.directory.clone();
    let created = DatabaseHandle::create_with(options, program, kind, environment);
    created.map_err(|error| {
        remove_files(&directory);
        match error {
            DatabaseError::Load(error) if error.is_busy() => CreateError::Busy(error.to_string()),
            DatabaseError::Environment(error) => CreateError::Environment(error),
            error => CreateError::Failed(lightcone_outbound::error_chain(&error)),
        }
    })
}

/// Makes the directory of a new replica.
fn make_directory(options: &DatabaseOptions) -> Result<(), CreateError> {
    let shown = options.directory.display();
    let made = options.storage.make_directory(&options.directory);
    made.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => CreateError::Failed(format!(
            "the directory {shown} is there already and is not this server's; it was left alone, and the next attempt \
             takes another number [LC0328]"
        )),
        _ => CreateError::Failed(format!("cannot create {shown}: {error}")),
    })
}

fn remove_files(directory: &Path) {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            tracing::warn!(directory = %directory.display(), %error, "files of a removed database stay behind");
        }
        _ => {}
    }
}

async fn blocking<T: Send + 'static, E: std::error::Error + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, String> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(lightcone_outbound::error_chain(&error)),
        Err(_) => Err(STOPPED.to_owned()),
    }
}
