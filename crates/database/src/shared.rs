//! What all holders of a handle or a connection share with the threads of a database.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use lightcone_engine::CopyRoom;
use lightcone_host::HostConfig;
use lightcone_log::LogOffset;
use lightcone_types::Identity;
use parking_lot::RwLock;
use tokio::sync::{oneshot, Mutex, Semaphore};

use crate::budget::ClientBudget;
use crate::calls::{CallError, Caller};
use crate::environment::{elsewhere, Environment};
use crate::history::History;
use crate::inbox::{Inbox, Input};
use crate::inbox_capacity::{Closed, InboxPermit};
use crate::metrics::Metrics;
use crate::module::Module;
use crate::module_log::ModuleLog;
use crate::options::{DatabaseOptions, WRITER_STACK_EXTRA_BYTES};
use crate::outbox::Outbox;
use crate::peer::ConnectionNumber;
use crate::procedures::{ImmediateQueue, Procedures};
use crate::reads::{Job, Owner, Waited, Work, NO_CLIENT};
use crate::replies::Waiter;
use crate::rights::Rights;
use crate::status::{SnapshotGate, Status, FAILED_TEXT};

/// Queries at a time that have no permit of the database, and that the writer is asked about whether they need one.
const FIRST_TRIES_MAX: usize = 16;

/// What a database has before its program is loaded.
pub(crate) struct Ground {
    pub options: DatabaseOptions,
    pub log: Arc<ModuleLog>,
    immediate: Arc<ImmediateQueue>,
    /// For the instances of the running database that are not for procedures.
    pub config: HostConfig,
}

impl Ground {
    pub fn new(options: DatabaseOptions) -> Ground {
        let log = Arc::new(ModuleLog::of(&options));
        let immediate = ImmediateQueue::new(&options.limits);
        let config = HostConfig {
            immediate: Some(immediate.clone()),
            ..options.host_config(log.clone())
        };
        Ground {
            options,
            log,
            immediate,
            config,
        }
    }
}

pub(crate) struct Shared {
    pub options: DatabaseOptions,
    pub log: Arc<ModuleLog>,
    pub inbox: Arc<Inbox>,
    /// What waits for the disk.
    pub outbox: Arc<Outbox>,
    pub status: Status,
    pub metrics: Arc<Metrics>,
    pub snapshots: SnapshotGate,
    /// For pages that the writer copies while one is written.
    pub copy_room: CopyRoom,
    pub history: History,
    /// Calls beside the writer.
    pub procedures: Procedures,
    /// Calls that modules have asked to run right away.
    pub immediate: Arc<ImmediateQueue>,
    /// For instances of the module that are not for procedures.
    pub config: HostConfig,
    /// Queries that clients may have under way, until there is an answer; more wait with their clients.
    pub reads: Arc<Semaphore>,
    /// Queries that are tried on the writer while others have all of these.
    pub first_tries: Arc<Semaphore>,
    /// Streams of changes that may be open.
    pub changes: Arc<Semaphore>,
    /// Whose turn it is to wait for the server's one state of the past, or to use it.
    pub past: Arc<Mutex<()>>,
    /// Connections and streams of changes have it too.
    pub users: Arc<()>,
    /// Tells databases apart.
    number: u64,
    module: RwLock<Arc<Module>>,
    next_connection: AtomicU64,
}

impl Shared {
    /// All before `durable_offset` is durable.
    pub fn new(
        ground: Ground,
        inbox: Inbox,
        durable_offset: LogOffset,
        module: Arc<Module>,
        metrics: Metrics,
    ) -> Shared {
        let Ground {
            options,
            log,
            immediate,
            config,
        } = ground;
        let inbox = Arc::new(inbox);
        immediate.connect(&inbox);
        Shared {
            log,
            inbox,
            procedures: Procedures::new(&options),
            immediate,
            config,
            outbox: Arc::new(Outbox::new(durable_offset)),
            status: Status::new(),
            metrics: Arc::new(metrics),
            snapshots: SnapshotGate::default(),
            copy_room: CopyRoom::new(options.limits.snapshot_copied_bytes_max),
            history: History::open(&options),
            reads: Arc::new(Semaphore::new(options.limits.reads_per_database_max.max(1))),
            first_tries: Arc::new(Semaphore::new(FIRST_TRIES_MAX)),
            changes: Arc::new(Semaphore::new(options.limits.change_streams_max)),
            past: Arc::default(),
            users: Arc::default(),
            number: options.commons.next_database(),
            module: RwLock::new(module),
            next_connection: AtomicU64::new(1),
            options,
        }
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn environment(&self) -> &dyn Environment {
        self.options.environment()
    }

    /// Of a thread that runs code of the module.
    pub fn stack_bytes(&self) -> usize {
        self.options.limits.host.stack_bytes_max + WRITER_STACK_EXTRA_BYTES
    }

    /// For instances of calls beside the writer.
    pub fn procedure_config(&self) -> HostConfig {
        HostConfig {
            accounts: self.procedures.accounts.clone(),
            ..self.config.clone()
        }
    }

    pub fn module(&self) -> Arc<Module> {
        self.module.read().clone()
    }

    pub fn set_module(&self, module: Arc<Module>) {
        *self.module.write() = module;
    }

    /// All for the owner, whatever he was granted.
    pub fn rights_of(&self, identity: &Identity, granted: Rights) -> Rights {
        match *identity == self.options.owner {
            true => Rights::All,
            false => granted,
        }
    }

    /// What a caller may do now who had to wait.
    pub fn rights_now(&self, caller: &Caller) -> Rights {
        let (options, who) = (&self.options, &caller.identity);
        let rights = options
            .commons
            .rights(&options.identity, who, caller.rights);
        self.rights_of(who, rights)
    }

    pub fn next_connection(&self) -> ConnectionNumber {
        ConnectionNumber(self.next_connection.fetch_add(1, Ordering::Relaxed))
    }

    /// The bytes of a new client.
    pub fn client_budget(&self) -> Arc<ClientBudget> {
        self.options.commons.client_budget(&self.options.limits)
    }

    /// Does some work of a client on the threads for reads.
    pub fn read(&self, client: &ClientBudget, job: Box<dyn Job>) {
        let owner = Owner {
            database: self.number,
            client: client.number(),
        };
        self.options.commons.reads.push(owner, job);
    }

    /// The same for work whose result he waits for, for as long as a read may take.
    pub fn read_for<W: Work + 'static>(
        &self,
        client: &Arc<ClientBudget>,
        work: W,
    ) -> oneshot::Receiver<W::Reply> {
        let time_max = self.options.limits.read_time_max;
        let (job, reply) = Waited::new(work, client, time_max, &self.metrics);
        self.read(client, Box::new(job));
        reply
    }

    /// The same for work that is no client's.
    pub fn read_for_no_client(&self, job: Box<dyn Job>) {
        let owner = Owner {
            database: self.number,
            client: NO_CLIENT,
        };
        self.options.commons.reads.push(owner, job);
    }

    /// A thread of the database ended because of a bug: the writer is to end too.
    pub fn fail(&self) {
        // A writer that waits for one takes no input until it is given up.
        self.snapshots.cancel();
        // A writer that has ended need not be told.
        let _ = self.inbox.send(Input::Failed);
    }

    /// Asks the writer for something, and waits for the answer.
    ///
    /// # Errors
    /// There will be none.
    pub async fn ask<R>(
        &self,
        permit: Option<InboxPermit>,
        confirmed: bool,
        command: impl FnOnce(Waiter<R>) -> Input,
    ) -> Result<R, Closed> {
        let (waiter, answer) = Waiter::new(permit, confirmed);
        self.inbox.send(command(waiter))?;
        answer.await.map_err(|_| Closed)
    }

    /// What a caller gets who got no answer.
    pub fn gone(&self) -> CallError {
        match self.status.is_stopping() {
            true => CallError::ModuleGone,
            false => CallError::Database(FAILED_TEXT.to_owned()),
        }
    }

    /// Does some work where it holds up no other work, to its end also if the caller waits for it no more. None: it panicked.
    pub async fn elsewhere<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        elsewhere(self.environment(), work).await
    }

    /// Nothing more is let in.
    pub fn close(&self) {
        self.inbox.capacity.close();
        self.reads.close();
        self.first_tries.close();
        self.changes.close();
    }
}
