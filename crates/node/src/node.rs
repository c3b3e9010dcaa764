//! What one process has, whichever way a client comes, and from which options it is made.

use std::path::PathBuf;
use std::sync::Arc;

use lightcone_accounts::{Account, Kind};
use lightcone_control::{ControlDb, ControlError, DatabaseName, DatabaseRecord, NameOrIdentity};
use lightcone_database::{Engines, Loads};
use lightcone_outbound::OwnPorts;
use lightcone_storage::DiskReserve;
use lightcone_types::{Identity, Timestamp};

use crate::auth::{secrets, Authority, KeyPair, KeyPaths};
use crate::config::{Config, PublishAllowed};
use crate::data_dir::DataDir;
use crate::databases::{limits, orphans, Databases, ServerWide};
use crate::error::Error;
use crate::metrics::{History, ServerCounters};
use crate::network::Descriptors;
use crate::peers::Peers;
use crate::scrub::Scrub;
use crate::traces::Traces;

/// Everything that a node needs to know before it starts.
pub struct NodeOptions {
    /// Created if it does not exist.
    pub data_dir: PathBuf,
    /// From the command line; wins over the configuration file.
    pub jwt_keys: Option<KeyPaths>,
    /// The directory of the key pair if neither [`NodeOptions::jwt_keys`] nor the configuration file names one.
    pub jwt_key_dir: Option<PathBuf>,
    /// Databases keep nothing on disk.
    pub in_memory: bool,
    /// Each database has a clock of its own, which begins at this time, stands, and is moved by tests. Only in memory: a log
    /// of such times would be no use to anyone.
    pub test_time: Option<Timestamp>,
    /// What runs modules.
    pub engines: Engines,
    /// Read instead of the data directory's `config.toml`.
    pub config: Option<Config>,
    /// Value of `TEMP_SPACETIMEAUTH_ISSUER_REQUIRED_TO_PUBLISH` (06 §3.7).
    pub issuer_required_to_publish: Option<String>,
    pub publish_environment: PublishEnvironment,
}

/// Values of [`PUBLISH_ALLOWED_VARIABLE`](crate::config::PUBLISH_ALLOWED_VARIABLE) and
/// [`PUBLISH_OWNERS_VARIABLE`](crate::config::PUBLISH_OWNERS_VARIABLE).
#[derive(Clone, Debug, Default)]
pub struct PublishEnvironment {
    pub allowed: Option<String>,
    pub owners: Option<String>,
}

impl NodeOptions {
    /// Options with defaults for everything else.
    pub fn new(data_dir: impl Into<PathBuf>, engines: Engines) -> NodeOptions {
        NodeOptions {
            data_dir: data_dir.into(),
            jwt_keys: None,
            jwt_key_dir: None,
            in_memory: false,
            test_time: None,
            engines,
            config: None,
            issuer_required_to_publish: None,
            publish_environment: PublishEnvironment::default(),
        }
    }
}

/// One process with its data directory: what all who serve its clients share.
pub struct Node {
    pub authority: Authority,
    pub control: Arc<ControlDb>,
    pub databases: Arc<Databases>,
    pub config: Config,
    /// From the environment; see 06 §3.7.
    pub issuer_required_to_publish: Option<String>,
    pub counters: ServerCounters,
    pub history: History,
    pub scrub: Scrub,
    /// None unless traces are sent.
    pub traces: Option<Arc<Traces>>,
    pub descriptors: Descriptors,
    /// Where this node listens.
    pub own_ports: OwnPorts,
    pub peers: Peers,
    /// All memory that is held on behalf of others is below this account.
    pub process: Arc<Account>,
    /// The last field, so that it goes when all files are closed.
    pub open: Arc<()>,
}

/// What a name or identity does not lead to. The texts are those of 06 §4.3.
#[derive(Debug, thiserror::Error)]
pub enum NotFound {
    #[error("`{0}` not found")]
    Name(DatabaseName),
    #[error("No such database.")]
    Database,
}

impl Node {
    /// Opens everything that is there before clients come. Blocks; inside of a tokio runtime.
    pub fn open(mut options: NodeOptions) -> Result<Node, Error> {
        let data_dir = DataDir::open(&options.data_dir)?;
        let config = configuration(&mut options, &data_dir)?;
        let keys = KeyPair::load_or_create(&key_paths(&mut options, &config)?)?;
        let control = ControlDb::open(&data_dir.control_directory())?;
        let control = Arc::new(control.bounded(config.bounds()));
        remove_orphans(&data_dir, &control);
        let limits_of_each = limits::limits(&config);
        let disk = DiskReserve::new(options.data_dir, config.limits.disk_reserve_bytes);
        let (own_ports, descriptors) = (OwnPorts::default(), Descriptors::raise());
        let process = Account::root(Kind::Process, usize::MAX);
        let outbound = limits::outbound(&config, &own_ports, descriptors)?;
        let commons = limits::commons(&process, &config, outbound);
        commons.set_secrets(Arc::new(secrets(data_dir.secrets_key())));
        let traces = Traces::start(&config.tracing)?;
        if let Some(traces) = &traces {
            commons.set_tracer(traces.clone());
        }
        Ok(Node {
            traces,
            authority: Authority::new(keys, &config.auth)?,
            databases: Databases::new(
                data_dir,
                control.clone(),
                options.in_memory,
                options.engines,
                limits_of_each,
                ServerWide {
                    commons,
                    loads: Arc::new(Loads::new(config.limits.loads_given_up_max)),
                    disk: Arc::new(disk),
                    test_time: options.test_time.filter(|_| options.in_memory),
                    series_max: config.limits.metrics_databases_max,
                },
            ),
            open: control.open_token(),
            control,
            issuer_required_to_publish: options.issuer_required_to_publish,
            counters: ServerCounters::default(),
            history: History::new(&process),
            scrub: Scrub::default(),
            descriptors,
            own_ports,
            peers: Peers::open(&config.outbox)?,
            process,
            config,
        })
    }

    /// The identity that a path leads to, whether or not there is a database (06 §4.3).
    pub fn resolve(&self, path: &NameOrIdentity) -> Result<Identity, NotFound> {
        match path {
            NameOrIdentity::Identity(identity) => Ok(*identity),
            NameOrIdentity::Name(name) => {
                let identity = self.control.resolve(name.as_str());
                identity.ok_or_else(|| NotFound::Name(name.clone()))
            }
        }
    }

    /// The record of the existing database that a path leads to.
    pub fn record(&self, path: &NameOrIdentity) -> Result<DatabaseRecord, NotFound> {
        self.record_of(&self.resolve(path)?)
    }

    /// The record of an existing database.
    pub fn record_of(&self, identity: &Identity) -> Result<DatabaseRecord, NotFound> {
        self.control.database(identity).ok_or(NotFound::Database)
    }

    /// Runs a change of the control database, which waits for the disk, outside the async threads.
    pub async fn change_control<T: Send + 'static>(
        &self,
        change: impl FnOnce(&ControlDb) -> Result<T, ControlError> + Send + 'static,
    ) -> Result<T, ControlError> {
        let control = self.control.clone();
        let changed = tokio::task::spawn_blocking(move || change(&control)).await;
        changed.unwrap_or(Err(ControlError::Stopped))
    }
}

/// What the file says, completed by the environment.
fn configuration(options: &mut NodeOptions, data_dir: &DataDir) -> Result<Config, Error> {
    let mut config = match options.config.take() {
        Some(config) => config,
        None => Config::load_or_create(&data_dir.config_file())?,
    };
    for warning in &config.warnings {
        tracing::warn!("config.toml: {warning}");
    }
    let PublishEnvironment { allowed, owners } = &options.publish_environment;
    let publish = &mut config.publish;
    publish.complete(allowed.as_deref(), owners.as_deref())?;
    let issuer = options.issuer_required_to_publish.take();
    options.issuer_required_to_publish = issuer
        .map(|issuer| issuer.trim_end_matches('/').to_owned())
        .filter(|issuer| !issuer.is_empty());
    if options.issuer_required_to_publish.is_some() {
        // Then the issuer decides who may publish.
        config.publish.allowed.get_or_insert(PublishAllowed::Anyone);
    }
    Ok(config)
}

fn key_paths(options: &mut NodeOptions, config: &Config) -> Result<KeyPaths, Error> {
    let authority = &config.certificate_authority;
    let (private, public) = (&authority.jwt_priv_key_path, &authority.jwt_pub_key_path);
    let from_config = private.clone().zip(public.clone());
    let from_config = from_config.map(|(private, public)| KeyPaths { private, public });
    let in_directory = options.jwt_key_dir.as_deref().map(KeyPaths::in_directory);
    let named = options.jwt_keys.take().or(from_config);
    named.or(in_directory).ok_or(Error::NoKeyPair)
}

/// Large ones take their time; the start does not wait for them.
fn remove_orphans(data_dir: &DataDir, control: &ControlDb) {
    let orphans = orphans::find(data_dir, control);
    if !orphans.is_empty() {
        let thread = std::thread::Builder::new().name("lc-remove".to_owned());
        let _ = thread.spawn(move || orphans::remove(orphans));
    }
}
