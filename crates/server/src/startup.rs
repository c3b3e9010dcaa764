//! From options to the state of a server: what is read and opened before it listens.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use lightcone_accounts::{Account, Kind, Terms};
use lightcone_outbound::OwnPorts;
use lightcone_storage::DiskReserve;
use tokio::sync::Semaphore;

use crate::auth::{Authority, KeyPair, KeyPaths};
use crate::config::{Config, PublishAllowed};
use crate::control::ControlDb;
use crate::data_dir::DataDir;
use crate::database::{Engines, Loads};
use crate::databases::{Databases, ServerWide};
use crate::descriptors::Descriptors;
use crate::error::Error;
use crate::metrics::ServerCounters;
use crate::publishing::{Publishing, WaitingMax};
use crate::state::{ServerState, LARGE_ANSWERS_MADE_MAX};
use crate::traces::Traces;

/// Everything a server needs to know before it starts.
pub struct ServerOptions {
    pub listen_addr: SocketAddr,
    /// Where PostgreSQL's protocol is spoken. None: nowhere.
    pub postgres_addr: Option<SocketAddr>,
    /// Created if it does not exist.
    pub data_dir: PathBuf,
    /// From the command line; wins over the configuration file.
    pub jwt_keys: Option<KeyPaths>,
    /// The directory of the key pair if neither [`ServerOptions::jwt_keys`] nor the configuration file names one.
    pub jwt_key_dir: Option<PathBuf>,
    /// Databases keep nothing on disk.
    pub in_memory: bool,
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

impl ServerOptions {
    /// Options with defaults for everything else.
    pub fn new(
        listen_addr: SocketAddr,
        data_dir: impl Into<PathBuf>,
        engines: Engines,
    ) -> ServerOptions {
        ServerOptions {
            listen_addr,
            postgres_addr: None,
            data_dir: data_dir.into(),
            jwt_keys: None,
            jwt_key_dir: None,
            in_memory: false,
            engines,
            config: None,
            issuer_required_to_publish: None,
            publish_environment: PublishEnvironment::default(),
        }
    }
}

/// Opens everything that a server has before it listens. Blocks.
pub(crate) fn prepare(options: ServerOptions) -> Result<ServerState, Error> {
    let data_dir = DataDir::open(&options.data_dir)?;
    let mut config = match options.config {
        Some(config) => config,
        None => Config::load_or_create(&data_dir.config_file())?,
    };
    for warning in &config.warnings {
        tracing::warn!("config.toml: {warning}");
    }
    let publish = &options.publish_environment;
    config
        .publish
        .complete(publish.allowed.as_deref(), publish.owners.as_deref())?;
    let issuer_required_to_publish = options
        .issuer_required_to_publish
        .map(|issuer| issuer.trim_end_matches('/').to_owned())
        .filter(|issuer| !issuer.is_empty());
    if issuer_required_to_publish.is_some() {
        // Then the issuer decides who may publish.
        config.publish.allowed.get_or_insert(PublishAllowed::Anyone);
    }
    let authority = &config.certificate_authority;
    let from_config = match (&authority.jwt_priv_key_path, &authority.jwt_pub_key_path) {
        (Some(private), Some(public)) => Some(KeyPaths {
            private: private.clone(),
            public: public.clone(),
        }),
        _ => None,
    };
    let key_paths = options
        .jwt_keys
        .or(from_config)
        .or(options.jwt_key_dir.as_deref().map(KeyPaths::in_directory))
        .ok_or(Error::NoKeyPair)?;
    let keys = KeyPair::load_or_create(&key_paths)?;
    let control = ControlDb::open(&data_dir.control_directory())?;
    let control = Arc::new(control.bounded(config.bounds()));
    let orphans = crate::orphans::find(&data_dir, &control);
    if !orphans.is_empty() {
        // Large ones take their time; the start does not wait for them.
        let _ = std::thread::Builder::new()
            .name("lc-remove".to_owned())
            .spawn(move || crate::orphans::remove(orphans));
    }
    let postgres = crate::postgres::shared::PostgresShared::new(&config.postgres)?;
    let limits = crate::database::limits(&config);
    let disk = DiskReserve::new(options.data_dir, config.limits.disk_reserve_bytes);
    let (own_ports, descriptors) = (OwnPorts::default(), Descriptors::raise());
    // All memory that is held on behalf of others is below this account.
    let process = Account::root(Kind::Process, usize::MAX);
    let outbound = crate::database::outbound(&config, &own_ports, descriptors)?;
    let commons = crate::database::commons(&process, &config, outbound);
    let traces = Traces::start(&config.tracing)?;
    if let Some(traces) = &traces {
        commons.set_tracer(traces.clone());
    }
    let waiting_max = WaitingMax {
        all: config.limits.publishes_waiting_max,
        per_owner: config.limits.publishes_waiting_per_owner_max,
    };
    Ok(ServerState {
        traces,
        scrapes: Arc::default(),
        authority: Authority::new(keys, &config.auth)?,
        databases: Databases::new(
            data_dir,
            control.clone(),
            options.in_memory,
            options.engines,
            limits,
            ServerWide {
                commons,
                loads: Arc::new(Loads::new(config.limits.loads_given_up_max)),
                disk: Arc::new(disk),
                series_max: config.limits.metrics_databases_max,
            },
        ),
        open: control.open_token(),
        postgres,
        control,
        issuer_required_to_publish,
        counters: ServerCounters::default(),
        descriptors,
        own_ports,
        making: Arc::new(Semaphore::new(LARGE_ANSWERS_MADE_MAX)),
        buffered_bytes: process.open(
            Kind::Requests,
            Terms::exact(config.limits.buffered_bytes_max),
        ),
        upload_bytes: process.open(Kind::Uploads, Terms::exact(config.limits.upload_bytes_max)),
        rehearsing: Publishing::few(waiting_max),
        publishing: Publishing::new(
            std::thread::available_parallelism().map_or(1, usize::from),
            waiting_max,
        ),
        config,
    })
}

/// The state of a server that does not listen.
#[cfg(test)]
pub(crate) fn state_for_tests(directory: &std::path::Path) -> Arc<ServerState> {
    struct NoEngine;
    impl lightcone_host::ModuleEngine for NoEngine {
        fn name(&self) -> &'static str {
            "none"
        }

        fn load(
            &self,
            _: &[u8],
            _: &lightcone_host::InstanceOptions,
        ) -> Result<Box<dyn lightcone_host::LoadedModule>, lightcone_host::HostError> {
            Err(lightcone_host::HostError::Compile("no engine".into()))
        }
    }
    let engines = Engines {
        wasm: Arc::new(NoEngine),
        js: None,
    };
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut options = ServerOptions::new(address, directory.join("data"), engines);
    options.jwt_key_dir = Some(directory.join("keys"));
    options.config = Some(Config::default());
    Arc::new(prepare(options).expect("a state"))
}
