//! A new database in memory, from a program (02 §13).

use std::collections::BTreeMap;
use std::sync::Arc;

use lightcone_engine::{CommitOutput, Datastore, ModuleRecord};
use lightcone_host::{
    HostConfig, ModuleInstance, OpenTransaction, ReducerCall, ReducerOutcome, FATAL_ERROR_TEXT,
};
use lightcone_schema::ModuleDef;
use lightcone_types::ConnectionId;

use crate::commit::seal;
use crate::error::Error;
use crate::module::{init_task, Program};
use crate::module_log::ModuleLog;
use crate::options::DatabaseOptions;
use crate::rules;

/// A new database in memory.
pub(super) struct Initialized {
    pub datastore: Datastore,
    pub instance: Box<dyn ModuleInstance>,
    /// The log record of the creating transaction.
    pub records: Vec<u8>,
}

/// Runs the creating transaction on a thread that is given up if `init` does not end.
pub(super) fn initialize(
    options: &DatabaseOptions,
    program: Program,
    variables: Arc<BTreeMap<String, String>>,
    config: HostConfig,
    log: Option<Arc<ModuleLog>>,
) -> Result<(Program, Initialized), Error> {
    let task = init_task(options, program.hash);
    let kept = options.clone();
    let environment = options.environment();
    options.loads.run(environment, task, move || {
        let initialized =
            creating_transaction(&kept, (&program, &variables), &config, log.as_deref())?;
        Ok((program, initialized))
    })?
}

/// Catalog, tables, program, variables, `init`.
fn creating_transaction(
    options: &DatabaseOptions,
    (program, variables): (&Program, &BTreeMap<String, String>),
    config: &HostConfig,
    log: Option<&ModuleLog>,
) -> Result<Initialized, Error> {
    let say = |text: &str| {
        if let Some(log) = log {
            log.info(text);
        }
    };
    let mut instance = program.instantiate(config.clone())?;
    let mut datastore = Datastore::new();
    options.configure(&mut datastore);
    datastore.know_old_tables(&program.def);
    datastore.begin();
    let record = module_record(options, program);
    create_catalog(&mut datastore, &program.def, &record, say)?;
    datastore.set_environment(variables)?;
    if let Some(init) = program.def.init {
        say("Invoking `init` reducer");
        run_init(options, program, init, instance.as_mut(), &mut datastore)?;
    }
    let mut output = CommitOutput::default();
    seal(&mut datastore, &mut output, options.environment().now())?;
    datastore.finish(&mut output);
    Ok(Initialized {
        datastore,
        instance,
        records: output.records,
    })
}

/// The tables, views, rules and program of a database without rows, in its first transaction.
pub(crate) fn create_catalog(
    datastore: &mut Datastore,
    def: &ModuleDef,
    record: &ModuleRecord,
    say: impl Fn(&str),
) -> Result<(), Error> {
    datastore.bootstrap();
    for table in &def.tables {
        say(&format!("Creating table `{}`", table.name));
    }
    datastore.create_tables(def)?;
    let mut views: Vec<&str> = def.views.iter().map(|view| &*view.name).collect();
    views.sort_unstable();
    for view in views {
        say(&format!("Creating table for view `{view}`"));
    }
    datastore.create_views(def)?;
    for (table, sql) in rules::checked(datastore, def, record.owner_identity)? {
        say(&format!("Creating row level security `{sql}`"));
        datastore.put_row_level_security(table, &sql)?;
    }
    datastore.set_module_record(record)?;
    Ok(())
}

fn module_record(options: &DatabaseOptions, program: &Program) -> ModuleRecord {
    ModuleRecord {
        database_identity: options.identity,
        owner_identity: options.owner,
        program_kind: program.kind as u8,
        program_hash: program.hash,
        program: program.bytes.to_vec(),
    }
}

fn run_init(
    options: &DatabaseOptions,
    program: &Program,
    init: usize,
    instance: &mut dyn ModuleInstance,
    datastore: &mut Datastore,
) -> Result<(), Error> {
    let name: Arc<str> = program.def.reducers[init].name.as_str().into();
    let call = ReducerCall {
        id: init as u32,
        name: &name,
        sender: options.owner,
        connection_id: ConnectionId(0),
        timestamp: options.environment().now(),
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
