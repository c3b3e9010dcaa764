//! What a database is opened with.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use lightcone_accounts::{Account, Kind, Terms};
use lightcone_engine::Datastore;
use lightcone_host::{ConsoleSink, HostConfig, InstanceAccounts, ModuleEngine, Secrets};
/// Bounds of one database.
pub use lightcone_limits::DatabaseLimits as Limits;
use lightcone_live::WindowLimits;
use lightcone_outbound::{Outbound, RequestShare};
use lightcone_snapshot::{SnapshotError, SnapshotStore};
use lightcone_storage::{DiskReserve, Storage};
use lightcone_types::{Identity, Timestamp};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::Semaphore;

use crate::budget::{ClientBudget, Holder, MemoryBudget};
use crate::due::DueNotes;
use crate::environment::Environment;
use crate::error::Error;
use crate::loads::Loads;
use crate::messages::Carrier;
use crate::past::PastSlot;
use crate::reads::ReadPool;
use crate::rights::{Rights, RightsNow};
use crate::test_clock::TestClock;
use crate::trace::Tracer;
use crate::variables::Sealing;

/// Stack of a thread that runs module code, beyond what the code may use, in bytes.
pub(crate) const WRITER_STACK_EXTRA_BYTES: usize = 4 << 20;

/// How a program is interpreted (03 §1). The numbers are those of `st_module.program_kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostKind {
    Wasm = 0,
    Js = 1,
}

impl HostKind {
    pub(crate) fn from_u8(kind: u8) -> HostKind {
        match kind {
            1 => HostKind::Js,
            _ => HostKind::Wasm,
        }
    }
}

/// The engines that run modules.
#[derive(Clone)]
pub struct Engines {
    pub wasm: Arc<dyn ModuleEngine>,
    /// None where this build has no JavaScript engine.
    pub js: Option<Arc<dyn ModuleEngine>>,
}

/// No message to a client is larger: lengths in messages have 32 bits.
pub const CLIENT_BYTES_CEILING: usize = 2 << 30;

/// Most bytes that are held on behalf of others, by what they are held for.
#[derive(Clone, Copy, Debug)]
pub struct MemoryMax {
    /// What all clients together have asked for and not yet taken.
    pub clients_bytes: usize,
    /// Calls beside the writers, of all databases.
    pub procedures_bytes: usize,
    /// What is free now, on the machine. A state of the past takes a part of it.
    pub free_bytes: fn() -> usize,
}

/// An account takes parts of this size from those of the whole process.
const STEP_BYTES: usize = 1 << 20;
/// Long payloads that are decoded at a time in a server: what comes of one may take several times its bytes for a moment.
const LONG_PAYLOADS_DECODED_MAX: usize = 2;
/// So many databases of a server write snapshots at a time. Others wait for their turn, and freeze nothing until then.
const SNAPSHOTS_AT_ONCE_MAX: usize = 2;

/// What all databases of a server have together.
pub struct Commons {
    /// The root of all accounts.
    process: Arc<Account>,
    procedures: Arc<Account>,
    /// Those of owners that have calls beside a writer, or may have some.
    owners: Mutex<FxHashMap<Identity, Weak<Account>>>,
    pub(crate) memory: Arc<MemoryBudget>,
    pub(crate) reads: Arc<ReadPool>,
    pub(crate) environment: Arc<dyn Environment>,
    /// For requests of procedures; without it they make none.
    pub(crate) outbound: Option<Arc<Outbound>>,
    /// The turns of connections whose long payloads are decoded.
    pub(crate) decoding: Arc<Semaphore>,
    /// The turns of databases that write snapshots.
    pub(crate) snapshots: Arc<Semaphore>,
    /// The state of the past that statements are on, and what it counts as.
    pub(crate) past: PastSlot,
    pub(crate) past_memory: Arc<Account>,
    pub(crate) free_bytes: fn() -> usize,
    /// What owners have of outbound requests, each for all of his databases.
    request_shares: Mutex<FxHashMap<Identity, RequestShare>>,
    databases: AtomicU64,
    tracer: OnceLock<Arc<dyn Tracer>>,
    carrier: OnceLock<Arc<dyn Carrier>>,
    due_notes: OnceLock<Arc<dyn DueNotes>>,
    rights: OnceLock<Arc<RightsNow>>,
    secrets: OnceLock<Arc<Secrets>>,
}

impl Commons {
    /// `clients_bytes_max`: what all clients together have asked for and not yet taken. `read_threads`: how many scans run
    /// at a time.
    pub fn new(
        environment: Arc<dyn Environment>,
        clients_bytes_max: usize,
        read_threads: usize,
    ) -> Arc<Commons> {
        Commons::with_outbound(environment, clients_bytes_max, read_threads, None)
    }

    /// The same with a client for the requests of procedures.
    pub fn with_outbound(
        environment: Arc<dyn Environment>,
        clients_bytes_max: usize,
        read_threads: usize,
        outbound: Option<Arc<Outbound>>,
    ) -> Arc<Commons> {
        let memory_max = MemoryMax {
            clients_bytes: clients_bytes_max,
            procedures_bytes: usize::MAX,
            free_bytes: || usize::MAX,
        };
        let process = Account::root(Kind::Process, usize::MAX);
        Commons::below(process, environment, memory_max, read_threads, outbound)
    }

    /// The same below the account of a process that has more than databases.
    pub fn below(
        process: Arc<Account>,
        environment: Arc<dyn Environment>,
        memory_max: MemoryMax,
        read_threads: usize,
        outbound: Option<Arc<Outbound>>,
    ) -> Arc<Commons> {
        let procedures_terms = Terms::in_steps(memory_max.procedures_bytes, STEP_BYTES);
        Arc::new(Commons {
            outbound,
            memory: MemoryBudget::below(&process, environment.clone(), memory_max.clients_bytes),
            procedures: process.open(Kind::AllProcedures, procedures_terms),
            owners: Mutex::default(),
            past: PastSlot::default(),
            past_memory: process.open(Kind::Past, Terms::in_steps(usize::MAX, STEP_BYTES)),
            free_bytes: memory_max.free_bytes,
            process,
            reads: ReadPool::new(environment.clone(), read_threads),
            environment,
            request_shares: Mutex::default(),
            decoding: Arc::new(Semaphore::new(LONG_PAYLOADS_DECODED_MAX)),
            snapshots: Arc::new(Semaphore::new(SNAPSHOTS_AT_ONCE_MAX)),
            databases: AtomicU64::new(0),
            tracer: OnceLock::new(),
            carrier: OnceLock::new(),
            due_notes: OnceLock::new(),
            rights: OnceLock::new(),
            secrets: OnceLock::new(),
        })
    }

    /// The clock of one database, on the machine of all.
    pub fn test_clock(&self, now: Timestamp) -> Arc<TestClock> {
        Arc::new(TestClock::new(self.environment.clone(), now))
    }

    /// What an owner's databases have together of outbound requests.
    pub(crate) fn request_share(&self, owner: Identity) -> RequestShare {
        let mut shares = self.request_shares.lock();
        shares.retain(|_, share| share.is_shared());
        let new = || self.outbound.as_ref().map(|outbound| outbound.share());
        let share = shares
            .entry(owner)
            .or_insert_with(|| new().unwrap_or_default());
        share.clone()
    }

    /// What the instances of a database count as that are not for procedures.
    pub(crate) fn instances(&self) -> InstanceAccounts {
        let terms = Terms::in_steps(usize::MAX, STEP_BYTES);
        InstanceAccounts::of(self.process.open(Kind::Instances, terms))
    }

    /// What calls beside the writer of a database count as. All of an owner's databases may have as much as is left for others.
    pub(crate) fn procedures(&self, owner: Identity, bytes_max: usize) -> InstanceAccounts {
        let owner = self.owner(owner);
        let terms = Terms::in_steps(bytes_max, STEP_BYTES);
        InstanceAccounts::of(owner.open(Kind::Procedures, terms))
    }

    fn owner(&self, owner: Identity) -> Arc<Account> {
        let mut owners = self.owners.lock();
        if let Some(account) = owners.get(&owner).and_then(Weak::upgrade) {
            return account;
        }
        owners.retain(|_, account| account.strong_count() > 0);
        let account = self.procedures.open(
            Kind::Owner,
            Terms {
                leaves_as_much: true,
                ..Terms::in_steps(usize::MAX, STEP_BYTES)
            },
        );
        owners.insert(owner, Arc::downgrade(&account));
        account
    }

    /// What the arguments and bodies of a database's calls under way count as.
    pub(crate) fn arguments(&self, bytes_max: usize) -> Arc<Account> {
        let terms = Terms::in_steps(bytes_max, STEP_BYTES);
        self.process.open(Kind::Requests, terms)
    }

    /// Bytes that calls beside the writers hold, of all databases.
    pub fn procedures_bytes(&self) -> usize {
        self.procedures.used()
    }

    /// Has calls traced from now on. The first one stays.
    pub fn set_tracer(&self, tracer: Arc<dyn Tracer>) {
        let _ = self.tracer.set(tracer);
    }

    pub(crate) fn tracer(&self) -> Option<&Arc<dyn Tracer>> {
        self.tracer.get()
    }

    /// Has messages of outbox tables carried from now on. The first one stays.
    pub fn set_carrier(&self, carrier: Arc<dyn Carrier>) {
        let _ = self.carrier.set(carrier);
    }

    pub(crate) fn carrier(&self) -> Option<&Arc<dyn Carrier>> {
        self.carrier.get()
    }

    /// Has it noted from now on which databases are to be opened after a crash. The first one stays; without one, nothing is noted.
    pub fn set_due_notes(&self, notes: Arc<dyn DueNotes>) {
        let _ = self.due_notes.set(notes);
    }

    /// Says from now on what callers may do who had to wait. The first one stays; without one, they may do what they might before.
    pub fn set_rights(&self, rights: Arc<RightsNow>) {
        let _ = self.rights.set(rights);
    }

    /// What a caller may do now who was granted this.
    pub(crate) fn rights(&self, database: &Identity, caller: &Identity, granted: Rights) -> Rights {
        let rights = self.rights.get();
        rights.map_or(granted, |rights| rights(database, caller))
    }

    /// Has secret variables sealed with a key that lasts, from now on. The first one stays.
    pub fn set_secrets(&self, secrets: Arc<Secrets>) {
        let _ = self.secrets.set(secrets);
    }

    pub(crate) fn secrets(&self) -> &Arc<Secrets> {
        self.secrets.get_or_init(|| Arc::new(Secrets::in_memory()))
    }

    /// Bytes that clients have asked for and not yet taken.
    pub fn clients_bytes(&self) -> usize {
        self.memory.used()
    }

    /// The bytes of a new client.
    pub(crate) fn client_budget(&self, limits: &Limits) -> Arc<ClientBudget> {
        let (client_bytes_max, message_bytes_max) = bytes_of_clients(limits);
        ClientBudget::with_messages(&self.memory, client_bytes_max, message_bytes_max)
    }

    /// Whom memory is held for that one client takes. He need not have asked a database yet.
    pub fn holder(&self, limits: &Limits) -> Holder {
        Holder::new(self.client_budget(limits))
    }

    /// Tells databases apart.
    pub(crate) fn next_database(&self) -> u64 {
        self.databases.fetch_add(1, Ordering::Relaxed)
    }
}

/// What a database is opened with.
#[derive(Clone)]
pub struct DatabaseOptions {
    /// Holds `log/`, `snapshots/` and `module_logs/`.
    pub directory: PathBuf,
    pub identity: Identity,
    /// Who may publish, read private tables and the log.
    pub owner: Identity,
    /// Nothing but module logs is written to disk.
    pub in_memory: bool,
    pub limits: Limits,
    pub engines: Engines,
    pub commons: Arc<Commons>,
    /// The disk that log and snapshots are on.
    pub storage: Arc<dyn Storage>,
    /// Shared by all databases of a server.
    pub loads: Arc<Loads>,
    /// What module logs and snapshots leave free of the disk.
    pub disk: Arc<DiskReserve>,
    /// Its own, in a test. None: it is the time of [`Commons`].
    pub test_clock: Option<Arc<TestClock>>,
}

impl DatabaseOptions {
    /// The machine that the database runs on.
    pub(crate) fn environment(&self) -> &dyn Environment {
        match &self.test_clock {
            Some(clock) => &**clock,
            None => &*self.commons.environment,
        }
    }

    /// The same for what lasts.
    pub(crate) fn shared_environment(&self) -> Arc<dyn Environment> {
        match &self.test_clock {
            Some(clock) => clock.clone(),
            None => self.commons.environment.clone(),
        }
    }

    /// Gives a datastore its limit and its clock. To do before its first transaction that is not replayed.
    pub(crate) fn configure(&self, datastore: &mut Datastore) {
        datastore.set_transaction_bytes_max(self.limits.transaction_bytes_max);
        datastore.set_outbox_messages_max(self.limits.outbox_messages_max);
        let environment = self.shared_environment();
        datastore.set_clock(Arc::new(move || environment.now()));
    }

    /// Its snapshots, for who writes them, or reads them before it runs.
    pub(crate) fn snapshots(&self) -> Result<SnapshotStore, SnapshotError> {
        SnapshotStore::open_on(self.storage.clone(), &self.snapshots_directory())
    }

    pub(crate) fn log_directory(&self) -> PathBuf {
        self.directory.join("log")
    }

    pub(crate) fn snapshots_directory(&self) -> PathBuf {
        self.directory.join("snapshots")
    }

    /// Notes that the database is to be opened after a crash. To do before it acts by itself. Blocks.
    pub(crate) fn note_open(&self) -> Result<(), Error> {
        let notes = self.commons.due_notes.get();
        let noted = notes.map_or(Ok(()), |notes| notes.note_open(&self.identity));
        noted.map_err(|reason| {
            let text = format!("cannot note that the database may act by itself: {reason}");
            Error::Other(text)
        })
    }

    pub(crate) fn sealing(&self) -> Sealing<'_> {
        Sealing {
            secrets: self.commons.secrets(),
            database: &self.identity,
        }
    }

    pub(crate) fn window_limits(&self) -> WindowLimits {
        WindowLimits {
            rows_max: self.limits.window_rows_max,
            windows_max: self.limits.windows_max,
            bytes_max: self.limits.windows_bytes_max,
            rows_read_max: self.limits.window_rows_read_max,
        }
    }

    pub(crate) fn host_config(&self, console: Arc<dyn ConsoleSink>) -> HostConfig {
        HostConfig {
            accounts: self.commons.instances(),
            ..HostConfig::new(self.identity, console, self.limits.host.clone())
        }
    }
}

/// Bytes that one client may have asked for and not taken, and bytes of one message to him.
fn bytes_of_clients(limits: &Limits) -> (usize, usize) {
    let client_bytes_max = limits.client_bytes_max.min(CLIENT_BYTES_CEILING);
    // An operator who lets clients have more lets them have it in one message.
    let message_bytes_max = limits.outgoing_message_bytes_max;
    (
        client_bytes_max,
        message_bytes_max.unwrap_or(client_bytes_max),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::machine;

    #[test]
    fn databases_of_one_owner_share_their_requests() {
        let commons = Commons::new(machine(), 1 << 20, 1);
        let owner = |number| Identity::from_le_bytes([number; 32]);
        let of_first = commons.request_share(owner(1));
        assert!(!of_first.is_same(&commons.request_share(owner(2))));
        assert!(of_first.is_same(&commons.request_share(owner(1))));
        drop(of_first);
        commons.request_share(owner(3));
        let shares = commons.request_shares.lock();
        assert_eq!(shares.len(), 1, "those who have gone are forgotten");
    }

    #[test]
    fn procedures_of_one_owner_leave_as_much_for_others() {
        let process = Account::root(Kind::Process, usize::MAX);
        let memory_max = MemoryMax {
            clients_bytes: 1 << 30,
            procedures_bytes: 100 << 20,
            free_bytes: || usize::MAX,
        };
        let commons = Commons::below(process.clone(), machine(), memory_max, 1, None);
        let (greedy, other) = (Identity::from_le_bytes([1; 32]), Identity::ZERO);
        let databases = [greedy, greedy, other].map(|owner| commons.procedures(owner, 40 << 20));
        let mut held = Vec::new();
        let mut fill = |database: &InstanceAccounts| loop {
            match database.all.reserve(1 << 20) {
                Ok(reserved) => held.push(reserved),
                Err(exceeded) => return exceeded.kind,
            }
        };
        assert_eq!(fill(&databases[0]), Kind::Procedures, "its own limit");
        assert_eq!(fill(&databases[1]), Kind::AllProcedures);
        assert_eq!(commons.procedures_bytes(), 50 << 20);
        assert_eq!(fill(&databases[2]), Kind::AllProcedures);
        assert_eq!(commons.procedures_bytes(), 75 << 20);
        assert_eq!(process.used(), 75 << 20);
        drop(held);
        drop(databases);
        assert_eq!((commons.procedures_bytes(), process.used()), (0, 0));
    }

    #[test]
    fn one_message_may_have_what_its_client_may_have() {
        let mut limits = Limits::default();
        assert_eq!(bytes_of_clients(&limits), (256 << 20, 256 << 20));
        limits.client_bytes_max = 1 << 30;
        assert_eq!(bytes_of_clients(&limits), (1 << 30, 1 << 30));
        limits.client_bytes_max = usize::MAX;
        let ceiling = CLIENT_BYTES_CEILING;
        assert_eq!(bytes_of_clients(&limits), (ceiling, ceiling));
        limits.outgoing_message_bytes_max = Some(64 << 20);
        assert_eq!(bytes_of_clients(&limits), (ceiling, 64 << 20));
    }
}
