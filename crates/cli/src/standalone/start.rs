//! `spacetimedb-standalone start` (07 §11.1).

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lightcone_database::Engines;
use lightcone_host::ModuleEngine;
use lightcone_host_wasm::{CodeCacheOptions, WasmEngine, WasmEngineOptions, CODE_CACHE_BYTES_MAX};
use lightcone_node::auth::KeyPaths;
use lightcone_node::config::{Config, PUBLISH_ALLOWED_VARIABLE, PUBLISH_OWNERS_VARIABLE};
use lightcone_node::PublishEnvironment;
use lightcone_server::{Server, ServerOptions};
use lightcone_types::Timestamp;

use super::logging;
use super::ports::{self, Address};
use super::scheduling;
use crate::error::{Error, FileResult as _, Result};
use crate::output::{self, result};
use crate::prompt;

/// How long threads that still work may take after everything is on the disk.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);
/// Threads for what is not a connection's: accepting, alarms, modules' requests.
const BACKGROUND_THREADS: usize = 2;
/// Where the server listens unless told otherwise: on this machine only.
const DEFAULT_ADDRESS: &str = "127.0.0.1:3000";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where to listen
    #[arg(short, long, value_name = "HOST:PORT", default_value = DEFAULT_ADDRESS)]
    pub listen_addr: String,
    /// Where everything is kept; created if absent
    #[arg(long, value_name = "DIR")]
    pub data_dir: PathBuf,
    /// The directory of the key pair id_ecdsa, id_ecdsa.pub
    #[arg(long, hide = true, value_name = "DIR")]
    jwt_key_dir: Option<PathBuf>,
    /// The public key that checks tokens
    #[arg(long, value_name = "FILE", requires = "jwt_priv_key_path")]
    jwt_pub_key_path: Option<PathBuf>,
    /// The private key that signs tokens
    #[arg(long, value_name = "FILE", requires = "jwt_pub_key_path")]
    jwt_priv_key_path: Option<PathBuf>,
    /// Keep the contents of databases in memory only
    #[arg(long)]
    in_memory: bool,
    /// For tests of modules: the clock of each database begins at this time, in microseconds since 1970, and moves when its owner moves it
    #[arg(long, value_name = "MICROSECONDS", hide = true)]
    test_time_us: Option<i64>,
    /// Accepted for scripts of the reference server; memory is not pooled here
    #[arg(long = "page_pool_max_size", value_name = "SIZE", hide = true)]
    page_pool_max_size: Option<String>,
    /// Speak PostgreSQL's protocol on this port, at the host of the listen address
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1024..=65534))]
    pg_port: Option<u16>,
    /// Accepted for scripts of the reference server; there is no profiler in this one
    #[arg(long, hide = true)]
    enable_tracy: bool,
    /// Fail instead of asking when the port is in use
    #[arg(long)]
    non_interactive: bool,
}

pub fn run(args: Args) -> Result<()> {
    let listen_addr = choose_address(&args)?;
    if args.test_time_us.is_some() && !(args.in_memory && listen_addr.ip().is_loopback()) {
        return Err(coded!("LC0161", "--test-time-us is for tests of modules: it wants --in-memory, and a listen address that only this machine reaches"));
    }
    let data_dir = std::path::absolute(&args.data_dir).or_cannot("find", &args.data_dir)?;
    lightcone_node::keep_new_files_private();
    lightcone_node::create_private_directory(&data_dir).map_err(starting)?;
    let config = Config::load_or_create(&data_dir.join("config.toml")).map_err(starting)?;
    logging::install(&data_dir, &config)?;
    scheduling::apply(config.threads.scheduling);
    let shows_dashboard = config.shows_dashboard();

    let program = std::env::current_exe();
    let program = program.map_or_else(
        |_| "spacetimedb-standalone".into(),
        |p| p.display().to_string(),
    );
    result!("{program} version: {}", env!("CARGO_PKG_VERSION"));
    result!("{program} path: {program}");
    result!("database running in data directory {}", data_dir.display());

    let code_cache = CodeCacheOptions {
        directory: data_dir.join("cache/wasmtime"),
        key_file: data_dir.join("code-cache.key"),
        bytes_max: CODE_CACHE_BYTES_MAX,
    };
    let stack_bytes_max = config.limits.stack_bytes_max;
    let engines = Engines {
        wasm: Arc::new(wasm_engine(Some(code_cache), stack_bytes_max)?),
        js: js_engine(stack_bytes_max, config.v8_heap_policy.heap_bytes_max())?,
    };
    let mut options = ServerOptions::new(listen_addr, data_dir.clone(), engines);
    let keys = args.jwt_pub_key_path.zip(args.jwt_priv_key_path);
    options.node.jwt_keys = keys.map(|(public, private)| KeyPaths { private, public });
    options.node.jwt_key_dir = args.jwt_key_dir;
    options.node.in_memory = args.in_memory;
    options.node.test_time = args.test_time_us.map(Timestamp);
    let postgres_addr = |port| SocketAddr::new(listen_addr.ip(), port);
    options.postgres_addr = args.pg_port.map(postgres_addr);
    options.node.config = Some(config);
    options.node.issuer_required_to_publish =
        std::env::var("TEMP_SPACETIMEAUTH_ISSUER_REQUIRED_TO_PUBLISH").ok();
    options.node.publish_environment = PublishEnvironment {
        allowed: std::env::var(PUBLISH_ALLOWED_VARIABLE).ok(),
        owners: std::env::var(PUBLISH_OWNERS_VARIABLE).ok(),
    };

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .worker_threads(BACKGROUND_THREADS)
        .thread_name("background")
        .build()
        .map_err(caused!("LC0620", "cannot start the asynchronous runtime"))?;
    let result: Result<()> = runtime.block_on(async {
        let mut stop = std::pin::pin!(crate::signals::stop(false));
        let handle = tokio::select! {
            () = &mut stop => return Ok(()),
            handle = Server::bind(options) => handle.map_err(starting)?,
        };
        if output::is_shown() {
            let facts = what_to_know(handle.local_addr(), &data_dir, shows_dashboard);
            result!("\n{facts}\n");
        }
        stop.await;
        tracing::info!("stopping");
        handle.shutdown().await;
        Ok(())
    });
    // Databases are on the disk. Whatever still blocks a thread, like a module that cannot be stopped, is not waited for.
    runtime.shutdown_timeout(STOP_TIMEOUT);
    result
}

/// What a person who has started a server needs to know.
fn what_to_know(mut address: SocketAddr, data_dir: &Path, shows_dashboard: bool) -> String {
    // One that listens everywhere is reached here too, and no browser opens 0.0.0.0.
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    let version = env!("CARGO_PKG_VERSION");
    let data = data_dir.display();
    let look = match shows_dashboard {
        true => format!("  Look     http://{address}/dashboard\n"),
        false => String::new(),
    };
    format!(
        "Lightcone {version} is ready.\n  Address  http://{address}\n{look}  Data     {data}\n  Stop     Ctrl-C"
    )
}

/// The server's errors carry their own code and advice.
fn starting(error: impl std::fmt::Display) -> Error {
    Error::plain(error.to_string())
}

pub(super) fn wasm_engine(
    code_cache: Option<CodeCacheOptions>,
    stack_bytes_max: usize,
) -> Result<WasmEngine> {
    let options = WasmEngineOptions {
        code_cache,
        stack_bytes_max,
    };
    WasmEngine::new(options).map_err(caused!("LC0620", "cannot set up the WebAssembly engine"))
}

/// The engine that this build runs JavaScript modules with, if it has one.
#[cfg(any(feature = "v8", feature = "quickjs"))]
pub(super) fn js_engine(
    stack_bytes_max: usize,
    memory_bytes_max: Option<usize>,
) -> Result<Option<Arc<dyn ModuleEngine>>> {
    let options = lightcone_host_js::JsEngineOptions {
        stack_bytes_max,
        memory_bytes_max,
    };
    lightcone_host_js::engine(options)
        .map(Some)
        .map_err(caused!("LC0620", "cannot set up the JavaScript engine"))
}

#[cfg(not(any(feature = "v8", feature = "quickjs")))]
pub(super) fn js_engine(
    _stack_bytes_max: usize,
    _memory_bytes_max: Option<usize>,
) -> Result<Option<Arc<dyn ModuleEngine>>> {
    Ok(None)
}

/// The address to listen on: the wanted one, or another port if that is taken and the user agrees.
fn choose_address(args: &Args) -> Result<SocketAddr> {
    let wanted: Address = args.listen_addr.parse()?;
    let listeners = ports::listeners();
    if !wanted.is_taken(&listeners) {
        return Ok(wanted.resolve());
    }
    let port = wanted.port;
    let taken = || {
        coded!("LC0621", "Port {port} is already in use. Stop the program that uses it, or choose another one with --listen-addr HOST:PORT.")
    };
    if args.non_interactive {
        return Err(taken());
    }
    let ports = (1..=100).filter_map(|offset| port.checked_add(offset));
    let mut others = ports.map(|port| Address { port, ..wanted });
    let free = others.find(|address| !address.is_taken(&listeners));
    let free = free.ok_or_else(taken)?;
    let other = free.port;
    let question =
        format!("Port {port} is already in use. Would you like to use port {other} instead?");
    match prompt::confirm(&question, false) {
        true => Ok(free.resolve()),
        false => Err(taken()),
    }
}
