//! Creating a database, opening one, and starting its threads.

use std::any::Any;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::sync::Arc;

use lightcone_engine::{
    CommitOutput, Datastore, ModuleRecord, ST_CLIENT_ID, ST_CONNECTION_CREDENTIALS_ID,
};
use lightcone_host::{
    ConsoleLevel, HostConfig, HostEnv, ModuleInstance, NullConsole, OpenTransaction, ReducerCall,
    ReducerOutcome, FATAL_ERROR_TEXT,
};
use lightcone_log::{
    CommitEvent, Committer, CommitterOptions, Frame, LocalLog, Log, LogError, LogOptions,
    MemoryLog, Recovery,
};
use lightcone_schema::ModuleDef;
use lightcone_snapshot::SnapshotStore;
use lightcone_types::{ConnectionId, Identity, Reader, Timestamp};
use tokio::sync::mpsc;

use crate::catalog::CatalogView;
use crate::error::Error;
use crate::fanout::{Fanout, FanoutStats, Message, QUEUE_BATCHES_MAX};
use crate::handle::{DatabaseHandle, Shared};
use crate::loads::{Purpose, Task};
use crate::module::{Module, Program};
use crate::module_log::{Bounds, ModuleLog, MODULE_LOGS};
use crate::options::{DatabaseOptions, HostKind, WRITER_STACK_EXTRA_BYTES};
use crate::rules;
use crate::writer::{Writer, WriterState, FAILED_TEXT};

/// The writer's and the log's epoch on a single machine.
const EPOCH: u64 = 1;
/// Batches kept for reuse between the writer and fan-out.
const SPARE_BATCHES: usize = 8;

impl DatabaseHandle {
    /// Creates a database from a program: a dry run in memory, then the real thing, durable on return (02 §13).
    /// Blocks. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// The program is no module, its `init` reducer fails, or writing fails. Nothing is left behind then.
    pub fn create(
        options: DatabaseOptions,
        program: Arc<[u8]>,
        kind: HostKind,
    ) -> Result<DatabaseHandle, Error> {
        let log = module_log(&options);
        let silent = host_config(&options, None);
        let program = Program::load(&options, &silent, program, kind, Purpose::Publish)?;
        let (program, _) = initialize_bounded(&options, program, silent, None)?;

        make_directory(&options)?;
        let config = host_config(&options, Some(&log));
        let (program, (datastore, instance, records)) =
            initialize_bounded(&options, program, config, Some(log.clone()))?;
        let mut durable: Box<dyn Log> = match options.in_memory {
            true => Box::new(MemoryLog::new()),
            false => Box::new(open_log(&options)?.0),
        };
        durable.append(
            EPOCH,
            Frame {
                first_offset: 0,
                count: 1,
                payload: &[&records],
            },
        )?;
        durable.sync()?;
        mark_planned(&options, &datastore)?;
        log.info("Database initialized");
        warn_unsupported(&log, &program.def);
        Ok(start(
            options, log, program, datastore, instance, durable, 0,
        ))
    }

    /// Opens a database that was created earlier: recovery, then the disconnects that a crash left out (05 §11).
    /// Blocks. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// Damage, or a program that does not load any more.
    pub fn open(options: DatabaseOptions) -> Result<DatabaseHandle, Error> {
        let log = module_log(&options);
        let (durable, recovery) = open_log(&options)?;
        if recovery.torn_bytes_cut > 0 {
            tracing::warn!(database = %options.identity, bytes = recovery.torn_bytes_cut, "cut an unfinished write from the end of the log");
        }
        let started = std::time::Instant::now();
        let mut snapshots = SnapshotStore::open_on(
            options.storage.clone(),
            &options.directory.join("snapshots"),
        )?;
        let (mut datastore, report) =
            Datastore::recover(&options.directory, &mut snapshots, &durable)?;
        for problem in snapshots.problems() {
            tracing::warn!(database = %options.identity, %problem, "an older snapshot was used, and the log since then");
        }
        tracing::info!(database = %options.identity, snapshot = ?report.snapshot_offset, replayed = report.replayed, elapsed_ms = started.elapsed().as_millis() as u64, "recovered");
        datastore.set_transaction_bytes_max(options.limits.transaction_bytes_max);
        mark_planned(&options, &datastore)?;
        let record = datastore
            .module_record()
            .ok_or_else(|| Error::Empty(options.directory.clone()))?;
        let config = host_config(&options, Some(&log));
        let (program, instance) = Program::load_with_instance(
            &options,
            &config,
            record.program.into(),
            HostKind::from_u8(record.program_kind),
            Purpose::Open,
        )?;
        Ok(start(
            options,
            log,
            program,
            Box::new(datastore),
            instance,
            Box::new(durable),
            report.replayed_bytes,
        ))
    }
}

fn module_log(options: &DatabaseOptions) -> Arc<ModuleLog> {
    let bounds = Bounds {
        bytes_max: options.limits.module_log_bytes_max,
        bytes_per_second: options.limits.module_log_bytes_per_second,
    };
    let directory = options.directory.join(MODULE_LOGS);
    Arc::new(ModuleLog::new(directory, bounds, options.disk.clone()))
}

/// Says in the module's log what of the module this version does not run.
pub(crate) fn warn_unsupported(log: &ModuleLog, def: &ModuleDef) {
    let warn = |text: String| log.host(ConsoleLevel::Warn, None, &text, Timestamp::now());
    if !def.views.is_empty() {
        warn(format!(
            "views are not supported yet: {} views of this module cannot be queried [LC0404]",
            def.views.len()
        ));
    }
    if !def.row_level_security.is_empty() {
        warn("row-level security is not supported yet: only the owner may read the tables of this module [LC0405]".to_owned());
    }
}

fn make_directory(options: &DatabaseOptions) -> Result<(), Error> {
    let created = options.storage.create_directory(&options.directory);
    created.map_err(|source| Error::Io {
        action: "cannot create",
        path: options.directory.clone(),
        source,
    })
}

fn host_config(options: &DatabaseOptions, log: Option<&Arc<ModuleLog>>) -> HostConfig {
    HostConfig {
        database_identity: options.identity,
        console: match log {
            Some(log) => log.clone(),
            None => Arc::new(NullConsole),
        },
        limits: options.limits.host.clone(),
    }
}

fn log_options(options: &DatabaseOptions) -> LogOptions {
    LogOptions {
        database: options.identity.to_le_bytes(),
        segment_bytes: options.limits.log_segment_bytes,
        preallocate: options.limits.log_preallocate,
        ..LogOptions::default()
    }
}

fn open_log(options: &DatabaseOptions) -> Result<(LocalLog, Recovery), LogError> {
    LocalLog::open_on(
        options.storage.clone(),
        &options.directory.join("log"),
        log_options(options),
        EPOCH,
    )
}

/// While a database that may plan calls is open, nothing says that it plans none.
fn mark_planned(options: &DatabaseOptions, datastore: &Datastore) -> Result<(), Error> {
    let (storage, directory) = (&*options.storage, &options.directory);
    if !datastore.has_schedule_tables() {
        // Without the mark, which a full disk may refuse, it is opened at a start for nothing.
        let _ = crate::planned::set(storage, directory, true);
        return Ok(());
    }
    crate::planned::set(storage, directory, false).map_err(|source| Error::Io {
        action: "cannot note that calls may be planned in",
        path: directory.clone(),
        source,
    })
}

type Initialized = (Box<Datastore>, Box<dyn ModuleInstance>, Vec<u8>);

/// [`initialize`] on a thread that is given up if `init` does not end.
fn initialize_bounded(
    options: &DatabaseOptions,
    program: Program,
    config: HostConfig,
    log: Option<Arc<ModuleLog>>,
) -> Result<(Program, Initialized), Error> {
    let task = Task::init(options, program.hash);
    let kept = options.clone();
    options.loads.run(task, move || {
        let initialized = initialize(&kept, &program, &config, log.as_deref())?;
        Ok((program, initialized))
    })?
}

/// The creating transaction: catalog, tables, program, `init`. Returns its log record.
fn initialize(
    options: &DatabaseOptions,
    program: &Program,
    config: &HostConfig,
    log: Option<&ModuleLog>,
) -> Result<Initialized, Error> {
    let say = |text: &str| {
        if let Some(log) = log {
            log.info(text);
        }
    };
    let other = |error: lightcone_engine::DatastoreError| Error::Other(error.to_string());
    let mut instance = program.loaded.instantiate(HostEnv::new(config.clone()))?;
    let mut datastore = Box::new(Datastore::new());
    datastore.set_transaction_bytes_max(options.limits.transaction_bytes_max);
    datastore.begin();
    datastore.bootstrap();
    for table in &program.def.tables {
        say(&format!("Creating table `{}`", table.name));
    }
    datastore.create_tables(&program.def).map_err(other)?;
    for (table, sql) in rules::checked(&datastore, &program.def, options.owner)? {
        datastore
            .put_row_level_security(table, &sql)
            .map_err(other)?;
    }
    let record = ModuleRecord {
        database_identity: options.identity,
        owner_identity: options.owner,
        program_kind: program.kind as u8,
        program_hash: program.hash,
        program: program.bytes.to_vec(),
    };
    datastore.set_module_record(&record).map_err(other)?;
    if let Some(init) = program.def.init {
        say("Invoking `init` reducer");
        run_init(
            options.owner,
            program,
            init,
            instance.as_mut(),
            &mut datastore,
        )?;
    }
    let mut output = CommitOutput::default();
    lightcone_engine::record::put_clock(&mut output.records, Timestamp::now().0);
    datastore.commit(&mut output);
    Ok((datastore, instance, output.records))
}

fn run_init(
    owner: Identity,
    program: &Program,
    init: usize,
    instance: &mut dyn ModuleInstance,
    datastore: &mut Datastore,
) -> Result<(), Error> {
    let name: Arc<str> = program.def.reducers[init].name.as_str().into();
    let call = ReducerCall {
        id: init as u32,
        name: &name,
        sender: owner,
        connection_id: ConnectionId(0),
        timestamp: Timestamp::now(),
        args: &[],
    };
    match instance.call_reducer(OpenTransaction::of(datastore), &call) {
        ReducerOutcome::Ok => Ok(()),
        ReducerOutcome::UserError(text) => Err(Error::Init(text)),
        ReducerOutcome::Fatal { message } => {
            tracing::warn!(%message, "the init reducer of a new database trapped");
            Err(Error::Init(FATAL_ERROR_TEXT.to_owned()))
        }
        ReducerOutcome::TimedOut { message } => Err(Error::Init(message)),
    }
}

/// Starts the log, fan-out and writer threads.
fn start(
    options: DatabaseOptions,
    log: Arc<ModuleLog>,
    program: Program,
    datastore: Box<Datastore>,
    instance: Box<dyn ModuleInstance>,
    durable: Box<dyn Log>,
    replayed_bytes: u64,
) -> DatabaseHandle {
    let stack_bytes = options.limits.host.stack_bytes_max + WRITER_STACK_EXTRA_BYTES;
    let next_offset = durable.tail().next_offset;
    let catalog = CatalogView::new(&datastore, &program.def);
    let module = Arc::new(Module::new(0, program, catalog));
    let (inbox_sender, inbox) = mpsc::unbounded_channel();
    let stats = Arc::new(FanoutStats::default());
    let committer_options = CommitterOptions {
        queue_bytes_max: options.limits.log_queue_bytes_max,
        ..CommitterOptions::default()
    };
    let shared = Arc::new(Shared::new(
        options,
        log,
        inbox_sender,
        module.clone(),
        stats.clone(),
    ));

    let (fanout_sender, fanout_inbox) = sync_channel(QUEUE_BATCHES_MAX);
    let (used_sender, used_batches) = sync_channel(SPARE_BATCHES);
    let fanout = Fanout::new(fanout_inbox, used_sender, next_offset, stats);
    let waiting_writer = Arc::downgrade(&shared);
    spawn("fan-out", 2 << 20, move || {
        let mut fanout = fanout;
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| fanout.run())) {
            tracing::error!(
                panic = panic_text(&panic),
                "fan-out failed; the database stops [LC0308]"
            );
            fanout.cut_all();
            // It may wait for requests, and would take some more before it noticed.
            if let Some(shared) = waiting_writer.upgrade() {
                shared.fail();
            }
        }
    });

    let (events, poisoned) = (fanout_sender.clone(), Arc::downgrade(&shared));
    let on_event = move |event: CommitEvent| {
        if let (CommitEvent::Poisoned { error }, Some(shared)) = (&event, poisoned.upgrade()) {
            if error.is_bug() {
                tracing::error!(database = %shared.options.identity, %error, "the log's thread failed; the database stops [LC0308]");
                shared.fail();
            } else {
                shared.set_read_only(error);
            }
        }
        // Fan-out ends after the log.
        let _ = events.send(Message::Log(event));
    };
    let committer = Arc::new(Committer::spawn(
        durable,
        committer_options,
        Box::new(on_event),
    ));
    let reader = committer.clone();
    *shared.log_stats.lock().expect("nobody else holds it yet") =
        Some(Arc::new(move || reader.stats()));

    let mut writer = Writer {
        shared: shared.clone(),
        inbox,
        datastore: Some(datastore),
        instance,
        module,
        committer,
        fanout: fanout_sender,
        used_batches,
        next_offset,
        replayed_bytes,
        state: WriterState::default(),
    };
    let (failure, stop) = (shared.clone(), writer.fanout.clone());
    spawn("writer", stack_bytes, move || {
        let run = move || {
            writer.instance.prepare();
            for (identity, connection_id) in
                left_over_clients(writer.datastore.as_deref_mut().expect("just put there"))
            {
                writer.disconnect(identity, connection_id);
                writer.end_full_round();
            }
            writer.run();
        };
        // A bug must not take the other databases with it: this one stops, and opens again from its log.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
            tracing::error!(database = %failure.options.identity, panic = panic_text(&panic), "the writer failed; the database stops [LC0308]");
            failure.close_inbox();
            failure.forget_log();
            failure.snapshot_cancelled.store(true, Ordering::Relaxed);
            let (done, _) = tokio::sync::oneshot::channel();
            let _ = stop.send(Message::Stop {
                code: 1011,
                reason: FAILED_TEXT.to_owned(),
                done,
            });
        }
        failure.ended.close();
    });
    DatabaseHandle { shared }
}

fn panic_text(panic: &Box<dyn Any + Send>) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no text")
}

fn spawn(name: &str, stack_bytes: usize, body: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new()
        .name(name.to_owned())
        .stack_size(stack_bytes)
        .spawn(body)
        .expect("the operating system has threads for a database");
}

/// Clients whose disconnect a crash prevented; credentials without client are removed with them.
fn left_over_clients(datastore: &mut Datastore) -> Vec<(Identity, ConnectionId)> {
    let mut clients = Vec::new();
    let table = datastore.table(ST_CLIENT_ID).expect("system tables exist");
    table.rows().for_each(|_, row| {
        let reader = &mut Reader::new(row);
        let identity: [u8; 32] = reader
            .read_slice(32)
            .ok()
            .and_then(|bytes| bytes.try_into().ok())
            .unwrap_or_default();
        let connection: [u8; 16] = reader
            .read_slice(16)
            .ok()
            .and_then(|bytes| bytes.try_into().ok())
            .unwrap_or_default();
        clients.push((
            Identity::from_le_bytes(identity),
            ConnectionId::from_le_bytes(connection),
        ));
    });
    debug_assert!(datastore.table(ST_CONNECTION_CREDENTIALS_ID).is_some());
    clients
}
