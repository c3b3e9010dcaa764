//! The host's side of one module instance, with a method for each host call.

mod console;
pub(crate) mod procedures;
mod reads;
mod variables;
mod writes;

use std::collections::BTreeMap;
use std::sync::Arc;

use lightcone_accounts::{Account, Counted, Kind, Terms};
use lightcone_engine::{DatastoreError, RowBuffer, ST_CONNECTION_CREDENTIALS_ID};
use lightcone_limits::HostLimits;
use lightcone_schema::ModuleDef;
use lightcone_table::ReadSet;
use lightcone_types::bsatn::Reader;
use lightcone_types::{ConnectionId, Hash, Identity};

use crate::access::Access;
use crate::handles::{ByteSinks, ByteSources, ConsoleTimers};
use crate::iterators::RowIterators;
use crate::{AbiError, ConsoleSink, Errno, HostTrap, Interrupt, ReadProgress, Secrets};

/// The configuration of an instance.
#[derive(Clone)]
pub struct HostConfig {
    /// Modules can read it.
    pub database_identity: Identity,
    pub console: Arc<dyn ConsoleSink>,
    pub limits: HostLimits,
    /// For calls that are to run right away; none without a database.
    pub immediate: Option<Arc<dyn ImmediateCalls>>,
    pub accounts: InstanceAccounts,
    /// Whose instance it is; none before its definition is known.
    pub program: Option<Arc<ProgramVariables>>,
}

/// What is known of a program that reads variables of the environment.
#[derive(Debug)]
pub struct ProgramVariables {
    pub hash: Hash,
    /// The keys that it declares, and whether they may have no value.
    pub variables: BTreeMap<String, bool>,
    /// For the values of secret ones.
    pub secrets: Arc<Secrets>,
}

impl ProgramVariables {
    pub fn new(hash: Hash, def: &ModuleDef, secrets: Arc<Secrets>) -> ProgramVariables {
        let declared = def.environment();
        let declared = declared.map(|(key, variable)| (key.clone(), variable.optional));
        ProgramVariables {
            hash,
            variables: declared.collect(),
            secrets,
        }
    }
}

/// The accounts of instances that share memory: those of a writer, or those for the procedures of a database.
#[derive(Clone, Debug)]
pub struct InstanceAccounts {
    /// All memory. If the account has a bound, a heap reserves before it grows.
    pub all: Arc<Account>,
    /// Linear memory, a part of `all`. JavaScript has none.
    pub memory: Arc<Account>,
}

impl InstanceAccounts {
    pub fn of(all: Arc<Account>) -> InstanceAccounts {
        InstanceAccounts {
            memory: all.open(Kind::Memory, Terms::exact(usize::MAX)),
            all,
        }
    }
}

/// An instance takes multiples of this from the shared account.
const INSTANCE_STEP_BYTES: usize = 64 << 10;

impl HostConfig {
    pub fn new(
        database_identity: Identity,
        console: Arc<dyn ConsoleSink>,
        limits: HostLimits,
    ) -> HostConfig {
        HostConfig {
            database_identity,
            console,
            limits,
            immediate: None,
            accounts: InstanceAccounts::of(Account::root(Kind::Instances, usize::MAX)),
            program: None,
        }
    }
}

/// Takes calls that are to run right away, outside of any transaction (spec 03 §8.9).
pub trait ImmediateCalls: Send + Sync {
    /// Queues a call, or ends the caller if too many wait.
    fn schedule(&self, name: &str, args: &[u8]) -> Result<(), HostTrap>;
}

/// The largest buffer that is kept between host calls.
const SCRATCH_BYTES_MAX: usize = 64 << 10;

/// The configuration of the first instance of a program.
pub type InstanceOptions = HostConfig;

/// The handles at the start of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallHandles {
    /// Source of the arguments; 0 without any.
    pub args: u32,
    pub sink: u32,
}

/// The result of [`HostEnv::point_read`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointRead {
    /// Bytes of rows, at the start of the buffer.
    Rows(usize),
    /// Bytes that are needed; the buffer is unchanged.
    TooSmall(usize),
}

/// See the crate's page.
pub struct HostEnv {
    config: HostConfig,
    /// All memory of the instance but its linear memory.
    account: Arc<Account>,
    /// Changed by [`crate::lend`], and by the procedure functions.
    pub(crate) access: Access,
    function: Option<Arc<str>>,
    sources: ByteSources,
    sinks: ByteSinks,
    iterators: RowIterators,
    timers: ConsoleTimers,
    /// Column values that the running insert or update generates.
    generated: Vec<u8>,
    /// For `get_jwt`.
    credentials: RowBuffer,
    /// For `point_read`.
    point_rows: RowBuffer,
    /// The reads of the running view.
    reads: Option<Box<ReadSet>>,
    console_bytes: usize,
    /// Why the last request was not made.
    refused_request: Option<String>,
    interrupt: Arc<Interrupt>,
}

impl HostEnv {
    pub fn new(config: HostConfig) -> HostEnv {
        let terms = Terms::in_steps(usize::MAX, INSTANCE_STEP_BYTES);
        let account = config.accounts.all.open(Kind::Instance, terms);
        HostEnv {
            config,
            access: Access::NOTHING,
            function: None,
            sources: ByteSources::new(&account),
            sinks: ByteSinks::new(&account),
            iterators: RowIterators::new(&account),
            timers: ConsoleTimers::new(&account),
            account,
            refused_request: None,
            generated: Vec::new(),
            credentials: RowBuffer::default(),
            point_rows: RowBuffer::default(),
            reads: None,
            console_bytes: 0,
            interrupt: Arc::default(),
        }
    }

    /// For an instance that replaces another one: the interrupt stays.
    pub fn with_interrupt(config: HostConfig, interrupt: Arc<Interrupt>) -> HostEnv {
        HostEnv {
            interrupt,
            ..HostEnv::new(config)
        }
    }

    pub fn account(&self) -> &Arc<Account> {
        &self.account
    }

    pub fn config(&self) -> &HostConfig {
        &self.config
    }

    pub fn limits(&self) -> &HostLimits {
        &self.config.limits
    }

    /// The time limit of later calls.
    pub fn limit_calls(&mut self, call_ms_max: u64) {
        self.config.limits.call_ms_max = call_ms_max;
    }

    /// Changes the memory limit, before the instance is made.
    #[must_use]
    pub fn with_memory_max(mut self, bytes_max: Option<usize>) -> HostEnv {
        if let Some(bytes_max) = bytes_max {
            self.config.limits.memory_bytes_max = bytes_max;
        }
        self
    }

    /// Notes reads from here on, for a view.
    pub fn begin_reads(&mut self) {
        self.reads = Some(Box::default());
    }

    /// The reads since [`HostEnv::begin_reads`].
    pub fn end_reads(&mut self) -> ReadSet {
        *self.reads.take().unwrap_or_default()
    }

    // ---- The frame of a call -------------------------------------------------------------------------------------

    /// Starts a call: console records name `function` from now on. [`crate::lend`] lends what it may touch. Fails without memory
    /// for the arguments.
    #[inline]
    pub fn begin_call(
        &mut self,
        function: &Arc<str>,
        args: &[u8],
    ) -> Result<CallHandles, HostTrap> {
        self.begin_script_call(function);
        Ok(CallHandles {
            args: self.open_source(args)?,
            sink: self.sinks.open(),
        })
    }

    /// As [`HostEnv::begin_call`], for a script, which gets its arguments without handles.
    #[inline]
    pub fn begin_script_call(&mut self, function: &Arc<str>) {
        let running = self.function.as_ref();
        if running.is_none_or(|running| !Arc::ptr_eq(running, function)) {
            self.function = Some(function.clone());
        }
    }

    /// Ends a call or a step of the load phase: drops all handles but console timers, and rolls back a transaction that a procedure
    /// left open.
    #[inline]
    pub fn end_call(&mut self) {
        self.sources.clear();
        self.sinks.clear();
        self.end_any_call();
    }

    /// As [`HostEnv::end_call`], for a script, whose console timers end with the call (spec 04 §7).
    #[inline]
    pub fn end_script_call(&mut self) {
        self.timers.clear();
        self.end_any_call();
    }

    #[inline]
    fn end_any_call(&mut self) {
        self.abort_dangling_transaction();
        self.iterators.clear();
        self.forget_scratch();
        self.console_bytes = 0;
    }

    /// Frees buffers beyond the size that an instance keeps between host calls and between calls.
    #[inline]
    pub(crate) fn forget_scratch(&mut self) {
        if self.generated.capacity() > SCRATCH_BYTES_MAX {
            self.generated = Vec::new();
        }
        for rows in [&mut self.credentials, &mut self.point_rows] {
            if rows.bytes.capacity() > SCRATCH_BYTES_MAX {
                *rows = RowBuffer::default();
            }
        }
    }

    /// Another source of a call; 0 for empty content. Fails without memory for it.
    pub fn open_source(&mut self, content: &[u8]) -> Result<u32, HostTrap> {
        self.sources.open(content, usize::MAX)
    }

    /// Another sink of a call, or one for the load phase.
    pub fn open_sink(&mut self) -> u32 {
        self.sinks.open()
    }

    pub fn sink_content(&self, sink: u32) -> &[u8] {
        self.sinks.content(sink)
    }

    /// The content of a sink, counted. Fails without memory for a copy.
    pub fn take_sink(&mut self, sink: u32) -> Result<Counted<Vec<u8>>, HostTrap> {
        self.sinks.take(sink)
    }

    // ---- Byte sources and sinks (spec 03 §7.1 to §7.3) ------------------------------------------------------------

    /// `bytes_source_remaining_length`, and the check that comes before guest memory is touched.
    #[inline]
    pub fn source_remaining(&mut self, source: u32) -> Result<usize, AbiError> {
        Ok(self.sources.remaining(source)?)
    }

    /// `bytes_source_read`
    #[inline]
    pub fn source_read(
        &mut self,
        source: u32,
        buffer: &mut [u8],
    ) -> Result<(usize, ReadProgress), AbiError> {
        Ok(self.sources.read(source, buffer)?)
    }

    /// Checked before guest memory is touched.
    pub fn sink_exists(&self, sink: u32) -> Result<(), AbiError> {
        let exists = self.sinks.exists(sink).then_some(());
        exists.ok_or(AbiError::Errno(Errno::NO_SUCH_BYTES))
    }

    /// `bytes_sink_write`: all or nothing.
    pub fn sink_write(&mut self, sink: u32, content: &[u8]) -> Result<(), AbiError> {
        self.sinks
            .write(sink, content, self.config.limits.sink_bytes_max)
    }

    // ---- Who and where (spec 03 §8.7, §8.8) -----------------------------------------------------------------------

    /// `identity`
    pub fn identity(&self) -> Identity {
        self.config.database_identity
    }

    /// `get_jwt`: a source with the token's payload (JSON text) of a connection, or 0 without a token.
    pub fn jwt_source(&mut self, connection: ConnectionId) -> Result<u32, AbiError> {
        self.find_credentials(connection)?;
        let payload = jwt_payload(&self.credentials);
        let sources_max = self.config.limits.sources_max;
        Ok(self.sources.open(payload.as_bytes(), sources_max)?)
    }

    /// `get_jwt_payload`: the same as text for scripts; empty without a token.
    pub fn jwt_payload(&mut self, connection: ConnectionId) -> Result<&str, AbiError> {
        self.find_credentials(connection)?;
        Ok(jwt_payload(&self.credentials))
    }

    fn find_credentials(&mut self, connection: ConnectionId) -> Result<(), AbiError> {
        let datastore = self.access.read()?;
        self.credentials.clear();
        let credentials = datastore.schema(ST_CONNECTION_CREDENTIALS_ID);
        let Some(index) = credentials.and_then(|table| table.indexes.first()) else {
            return Ok(());
        };
        datastore
            .index_scan_point(index.id, &connection.0.to_le_bytes(), &mut self.credentials)
            .map_err(failed)
    }
}

/// The row is the connection id and the payload.
fn jwt_payload(credentials: &RowBuffer) -> &str {
    let mut row = Reader::new(&credentials.bytes);
    row.read_u128()
        .and_then(|_| row.read_str())
        .unwrap_or_default()
}

#[cold]
fn failed(error: DatastoreError) -> AbiError {
    match error.errno().and_then(Errno::from_number) {
        Some(errno) => AbiError::Errno(errno),
        None => AbiError::Trap(HostTrap::Datastore(error.to_string().into())),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use lightcone_types::{IndexId, TableId};

    use super::*;
    use crate::{ConsoleRecord, RangeBounds};

    #[derive(Default)]
    struct Lines(Mutex<Vec<String>>);

    impl ConsoleSink for Lines {
        fn log(&self, record: ConsoleRecord<'_>) {
            self.0.lock().unwrap().push(format!(
                "{:?} {:?} {}",
                record.level, record.function, record.message
            ));
        }
    }

    fn env(limits: HostLimits) -> (HostEnv, Arc<Lines>) {
        let console = Arc::new(Lines::default());
        (
            HostEnv::new(HostConfig::new(Identity::ZERO, console.clone(), limits)),
            console,
        )
    }

    #[test]
    fn without_a_transaction_database_calls_answer_2() {
        let (mut env, _) = env(HostLimits::default());
        let two = AbiError::Errno(Errno::NOT_IN_TRANSACTION);
        assert_eq!(env.table_id_from_name("x").unwrap_err(), two);
        assert_eq!(env.index_id_from_name("x").unwrap_err(), two);
        assert_eq!(env.table_row_count(TableId(1)).unwrap_err(), two);
        assert_eq!(env.table_scan(TableId(1)).unwrap_err(), two);
        assert_eq!(env.index_scan_point(IndexId(1), &[]).unwrap_err(), two);
        assert_eq!(
            env.index_scan_range(IndexId(1), RangeBounds::of_first(&[2], &[2]))
                .unwrap_err(),
            two
        );
        assert_eq!(env.insert(TableId(1), &mut []).unwrap_err(), two);
        assert_eq!(
            env.update(TableId(1), IndexId(1), &mut []).unwrap_err(),
            two
        );
        assert_eq!(env.delete_by_index_point(IndexId(1), &[]).unwrap_err(), two);
        assert_eq!(
            env.delete_by_index_range(IndexId(1), RangeBounds::of_first(&[2], &[2]))
                .unwrap_err(),
            two
        );
        assert_eq!(env.delete_all_by_eq(TableId(1), &[]).unwrap_err(), two);
        assert_eq!(env.clear(TableId(1)).unwrap_err(), two);
        assert_eq!(env.jwt_source(ConnectionId(1)).unwrap_err(), two);
        assert_eq!(
            env.procedure_commit_mut_tx().unwrap_err(),
            AbiError::Errno(Errno::TRANSACTION_NOT_ANONYMOUS)
        );
        assert!(matches!(env.ask_transaction(), Err(AbiError::Trap(_))));
    }

    #[test]
    fn a_call_starts_with_fresh_handles() {
        let (mut env, _) = env(HostLimits::default());
        let name: Arc<str> = "add".into();
        assert_eq!(
            env.begin_call(&name, &[1, 2]).unwrap(),
            CallHandles { args: 1, sink: 1 }
        );
        env.sink_write(1, b"left").unwrap();
        env.end_call();
        assert!(env.source_remaining(1).is_err());
        assert!(env.sink_exists(1).is_err());
        let handles = env.begin_call(&name, &[]).unwrap();
        assert_eq!(handles, CallHandles { args: 0, sink: 1 });
        assert_eq!(env.sink_content(1), b"");
    }

    #[test]
    fn console_records_name_the_last_function() {
        let (mut env, lines) = env(HostLimits::default());
        env.console_log(2, None, None, 0, b"early", Vec::new);
        env.begin_call(&"add".into(), &[]).unwrap();
        env.console_log(1, None, None, 0, b"bad \xff utf8", Vec::new);
        env.end_call();
        let timer = env.console_timer_start(b"a\"b").unwrap();
        env.console_timer_end(timer).unwrap();
        assert!(env.console_timer_end(timer).is_err());
        let lines = lines.0.lock().unwrap();
        assert_eq!(lines[0], "Info None early");
        assert_eq!(lines[1], "Warn Some(\"add\") bad \u{fffd} utf8");
        assert!(
            lines[2].starts_with("Info Some(\"add\") Timing span \"a\\\"b\": "),
            "{}",
            lines[2]
        );
    }

    #[test]
    fn long_messages_are_cut_at_a_character() {
        let limits = HostLimits {
            console_message_bytes_max: 4,
            ..HostLimits::default()
        };
        let (mut env, lines) = env(limits);
        env.console_log(2, None, None, 0, "abc\u{e9}f".as_bytes(), Vec::new);
        env.console_log(2, None, None, 0, b"abcd", Vec::new);
        let lines = lines.0.lock().unwrap();
        assert_eq!(lines[0], "Info None abc... (6 bytes)");
        assert_eq!(lines[1], "Info None abcd");
    }

    #[test]
    fn a_call_can_not_fill_the_log() {
        let limits = HostLimits {
            console_call_bytes_max: 1000,
            ..HostLimits::default()
        };
        let (mut env, lines) = env(limits);
        for _ in 0..100 {
            env.console_log(2, None, None, 0, b"again", Vec::new);
        }
        assert_eq!(lines.0.lock().unwrap().len(), 10);
        assert!(lines.0.lock().unwrap()[9].contains("console-call-bytes-max = 1000"));
        env.end_call();
        env.console_log(2, None, None, 0, b"next call", Vec::new);
        assert_eq!(lines.0.lock().unwrap().len(), 11);
    }
}
