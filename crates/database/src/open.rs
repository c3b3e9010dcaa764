//! Creating a database and opening one.

mod initialize;
mod threads;

use std::collections::BTreeMap;
use std::sync::Arc;

use lightcone_engine::{CommitOutput, Datastore};
use lightcone_host::NullConsole;
use lightcone_log::{Frame, LocalLog, Log, LogError, LogOffset, LogOptions, MemoryLog, Recovery};
use lightcone_schema::ViewDef;

pub(crate) use self::initialize::create_catalog;
use self::initialize::{initialize, Initialized};
use self::threads::Opened;

use crate::backfill::{Failure, Resumed};
use crate::commit::seal;
use crate::due::acts_by_itself;
use crate::error::Error;
use crate::handle::DatabaseHandle;
use crate::loads::Purpose;
use crate::metrics::Replayed;
use crate::module::{Program, ProgramBytes};
use crate::options::{DatabaseOptions, HostKind};
use crate::shared::Ground;
use crate::variables::EnvironmentChange;

impl DatabaseHandle {
    /// Creates a database from a program: a dry run in memory, then the real thing, durable on return (02 §13).
    /// Blocks. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// The program is no module, its `init` reducer fails, or writing fails. Nothing is left behind then.
    pub fn create(
        options: DatabaseOptions,
        program: impl Into<ProgramBytes>,
        kind: HostKind,
    ) -> Result<DatabaseHandle, Error> {
        DatabaseHandle::create_with(options, program, kind, EnvironmentChange::default())
    }

    /// The same with variables of the environment, which `init` can read.
    ///
    /// # Errors
    /// As [`create`](Self::create), or the variables are not what the program declares.
    pub fn create_with(
        options: DatabaseOptions,
        program: impl Into<ProgramBytes>,
        kind: HostKind,
        environment: EnvironmentChange,
    ) -> Result<DatabaseHandle, Error> {
        let program = program.into();
        let ground = Ground::new(options);
        let (options, log) = (&ground.options, ground.log.clone());
        let silent = options.host_config(Arc::new(NullConsole));
        let program = Program::load(options, &silent, program, kind, Purpose::Publish)?;
        let variables =
            Arc::new(environment.checked(BTreeMap::new(), &program.def, options.sealing())?);
        let (program, _) = initialize(options, program, variables.clone(), silent, None)?;

        make_directory(options)?;
        let (config, log_to) = (ground.config.clone(), Some(log.clone()));
        let (program, initialized) = initialize(options, program, variables, config, log_to)?;
        let Initialized {
            datastore,
            instance,
            records,
        } = initialized;
        let mut durable: Box<dyn Log> = match options.in_memory {
            true => Box::new(MemoryLog::new()),
            false => Box::new(open_log(options)?.0),
        };
        append(durable.as_mut(), LogOffset::FIRST, &records)?;
        if acts_by_itself(&program.def) {
            options.note_open()?;
        }
        log.info("Database initialized");
        threads::start(Opened {
            ground,
            program,
            datastore,
            instance,
            durable,
            replayed: Replayed::default(),
            resumed: None,
            follows: false,
        })
    }

    /// Opens a database that was created earlier: recovery, then the disconnects that a crash left out (05 §11).
    /// Blocks. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// Damage, or a program that does not load any more.
    pub fn open(options: DatabaseOptions) -> Result<DatabaseHandle, Error> {
        DatabaseHandle::open_as(options, false)
    }

    /// The same of a leader, or of a database that follows one and makes no transaction of its own.
    pub(crate) fn open_as(
        options: DatabaseOptions,
        follows: bool,
    ) -> Result<DatabaseHandle, Error> {
        let ground = Ground::new(options);
        let options = &ground.options;
        let (mut durable, recovery) = open_log(options)?;
        if recovery.torn_bytes_cut > 0 {
            tracing::warn!(database = %options.identity, bytes = recovery.torn_bytes_cut, "cut an unfinished write from the end of the log");
        }
        let environment = options.shared_environment();
        let started = environment.instant();
        let mut snapshots = options.snapshots()?;
        let (mut datastore, report) =
            Datastore::recover(&options.directory, &mut snapshots, &durable)?;
        durable.forget_read();
        for problem in snapshots.problems() {
            tracing::warn!(database = %options.identity, %problem, "an older snapshot was used, and the log since then");
        }
        let replayed = Replayed {
            time: environment.instant() - started,
            transactions: report.replayed,
            bytes: report.replayed_bytes,
        };
        tracing::info!(database = %options.identity, snapshot = ?report.snapshot_offset, replayed = report.replayed, elapsed_ms = replayed.time.as_millis() as u64, "recovered");
        options.configure(&mut datastore);
        let record = datastore
            .module_record()
            .ok_or_else(|| Error::Empty(options.directory.clone()))?;
        let (program, instance) = Program::load_with_instance(
            options,
            &ground.config,
            record.program.into(),
            HostKind::from_u8(record.program_kind),
            Purpose::Open,
        )?;
        datastore.know_old_tables(&program.def);
        let mut backfill = None;
        if !follows {
            if acts_by_itself(&program.def) || datastore.has_backfill_tables() {
                options.note_open()?;
            }
            backfill = resumed(&ground, &datastore);
            bring_up_to_date(options, &mut datastore, &program, &mut durable)?;
        }
        threads::start(Opened {
            ground,
            program,
            datastore,
            instance,
            durable: Box::new(durable),
            replayed,
            resumed: backfill,
            follows,
        })
    }
}

/// The program of a backfill that goes on, loaded. It runs before the first transaction, which the new tables follow; a program
/// that does not load any more ends the backfill, and nothing else.
fn resumed(ground: &Ground, datastore: &Datastore) -> Option<Result<Resumed, Failure>> {
    let mut record = datastore.backfill_record()?;
    let options = &ground.options;
    let config = options.host_config(ground.log.clone());
    let bytes = std::mem::take(&mut record.program).into();
    let kind = HostKind::from_u8(record.program_kind);
    let loaded = Program::load(options, &config, bytes, kind, Purpose::Open);
    let resumed = loaded.map(|program| Resumed { program, record });
    let failure = |error| Failure::other(format!("its program does not load any more: {error}"));
    Some(resumed.map_err(failure))
}

/// Lists the system tables of a database that was made by a version without some of them, makes the tables for its views if that had
/// no views, and those anew that are not as the loaded definition says.
fn bring_up_to_date(
    options: &DatabaseOptions,
    datastore: &mut Datastore,
    program: &Program,
    log: &mut LocalLog,
) -> Result<(), Error> {
    let is_as_defined = |view: &ViewDef| {
        datastore.view_table(&view.name).is_some() && !datastore.view_differs(view, &program.def)
    };
    // They are there without being listed: a full disk keeps no database from being opened.
    let lists = datastore.lacks_system_tables() && options.disk.has_room_for(0);
    if program.def.views.iter().all(is_as_defined) && !lists {
        return Ok(());
    }
    datastore.begin();
    if lists {
        datastore.list_system_tables()?;
    }
    let mended = datastore.mend_views(&program.def)?;
    if !mended.is_empty() {
        tracing::warn!(database = %options.identity, views = mended.join(", "), "tables of views were not as the program says, and were made anew");
    }
    datastore.create_views(&program.def)?;
    let mut output = CommitOutput::default();
    seal(datastore, &mut output, options.environment().now())?;
    datastore.finish(&mut output);
    let next = log.tail().next_offset;
    append(log, next, &output.records)?;
    Ok(())
}

/// One transaction, durable on return. A log that goes on elsewhere refuses it.
fn append(log: &mut dyn Log, first_offset: LogOffset, records: &[u8]) -> Result<(), LogError> {
    let tail = log.tail();
    let frame = Frame {
        first_offset,
        count: 1,
        payload: &[records],
    };
    log.append(tail.epoch, frame)?;
    log.sync()
}

pub(crate) fn make_directory(options: &DatabaseOptions) -> Result<(), Error> {
    let created = options.storage.create_directory(&options.directory);
    created.map_err(|source| Error::Io {
        action: "cannot create",
        path: options.directory.clone(),
        source,
    })
}

pub(crate) fn log_options(options: &DatabaseOptions) -> LogOptions {
    LogOptions {
        database: options.identity.to_le_bytes(),
        segment_bytes: options.limits.log_segment_bytes,
        preallocate: options.limits.log_preallocate,
        ..LogOptions::default()
    }
}

pub(crate) fn open_log(options: &DatabaseOptions) -> Result<(LocalLog, Recovery), LogError> {
    LocalLog::open_on(
        options.storage.clone(),
        &options.log_directory(),
        log_options(options),
    )
}
