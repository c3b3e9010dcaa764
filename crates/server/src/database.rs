//! What the server uses of the database crate, and how its limits follow from the configuration.

use std::path::PathBuf;
use std::sync::Arc;

use lightcone_accounts::Account;
pub use lightcone_database::Engines;
pub(crate) use lightcone_database::{
    BackfillEnd, Begun, Body, CallArgs, CallError, CallOutcome, Caller, Changes, ChangesError,
    Commons, Compiler, ConnectError, ConnectRequest, Courier, CutSignal, DatabaseHandle,
    DatabaseMetrics, DatabaseOptions, DatabaseStats, Error as DatabaseError, FunctionKind,
    FunctionMetrics, HandlerReply, HeldBytes, HeldMemory, HistogramSnapshot, Holder, HostKind,
    HttpHeader, HttpMethod, HttpRequest, HttpVersion, JsonRows, LastMigration, Limits, Loads,
    Machine, MemoryMax, MessageBatch, MigrationOutcome, ModuleMetrics, Outgoing, OutgoingReceiver,
    Outlet, ParameterText, Place, Policy, PreparedUpdate, ProgramBytes, QueryKind, Reading,
    RequestSender, ResultRow, Rights, RowEncoder, RunningMigration, ShutdownReason, Small, Span,
    SpanName, SqlError, SqlOutcome, SqlStats, StepReport, SubmitError, TableMetrics, TraceContext,
    Tracer, UpdateError, UpdatePlan, BOUNDS_NS, LIVE_RECORDS_MAX, QUERY_BYTES_MAX,
};
use lightcone_limits::HostLimits;

use lightcone_outbound::{Outbound, OutboundOptions, OwnPorts};

use crate::config::{Config, EnginePool};
use crate::descriptors::Descriptors;
use crate::error::Error;

/// The limits of every database: `[limits]`, and what other sections say.
pub(crate) fn limits(config: &Config) -> Limits {
    let defaults = Limits::default();
    Limits {
        host: HostLimits::from(&config.limits),
        inbox_messages_max: config.websocket.incoming_queue_length,
        log_segment_bytes: config.commitlog.max_segment_size,
        log_preallocate: config.commitlog.preallocate_segments,
        wasm_procedures_running_max: pool_size(&config.wasm)
            .unwrap_or(defaults.wasm_procedures_running_max),
        js_procedure_threads_max: pool_size(&config.v8)
            .unwrap_or(defaults.js_procedure_threads_max),
        ..Limits::from(&config.limits)
    }
}

fn pool_size(pool: &EnginePool) -> Option<usize> {
    pool.procedure_instance_pool_size.map(usize::from)
}

/// The client for requests of modules, if they may make any.
pub(crate) fn outbound(
    config: &Config,
    own_ports: &OwnPorts,
    descriptors: Descriptors,
) -> Result<Option<Arc<Outbound>>, Error> {
    let module_http = &config.module_http;
    if !module_http.enabled {
        return Ok(None);
    }
    let failed = |error: String| Error::HttpClient(error);
    let read = |path: &PathBuf| std::fs::read(path).map_err(Error::io("read", path.clone()));
    let certificates = module_http.certificates.iter().map(read);
    let options = OutboundOptions {
        allow: module_http.allow_list().map_err(failed)?,
        certificates: certificates.collect::<Result<_, _>>()?,
        own_ports: own_ports.clone(),
        requests_max: descriptors.outbound_max,
        ..OutboundOptions::current()
    };
    let outbound = Outbound::new(options).map_err(|error| failed(error.to_string()))?;
    Ok(Some(Arc::new(outbound)))
}

/// Calls beside the writers may have so much also on a small machine: one owner half of it, which is what the isolates of
/// `[v8] procedure-instance-pool-size` begin with.
const PROCEDURES_BYTES_MIN: usize = 1 << 30;

/// What all databases have together. As many scans run at a time as there are processors.
pub(crate) fn commons(
    process: &Arc<Account>,
    config: &Config,
    outbound: Option<Arc<Outbound>>,
) -> Arc<Commons> {
    let memory = crate::memory::available_bytes();
    let part = |percent: u8| memory / 100 * usize::from(percent);
    let memory_max = MemoryMax {
        clients_bytes: part(config.limits.clients_memory_percent),
        procedures_bytes: part(config.limits.procedures_memory_percent).max(PROCEDURES_BYTES_MIN),
    };
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    Commons::below(
        process.clone(),
        Machine::current(),
        memory_max,
        threads,
        outbound,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A listener of its own, for all callers or for some: a request from its machine counts as one of a program there.
    #[tokio::test]
    async fn modules_do_not_ask_their_own_server() {
        use lightcone_outbound::{Bounds, OutboundError, Request};
        use std::time::Duration;
        let directory = tempfile::tempdir().expect("a directory");
        let text = "[module-http]\nallow = [\"127.0.0.0/8\", \"localhost\"]\n[metrics]\nlisten = \"127.0.0.1:0\"";
        let config = || Config::parse(text, "config.toml".as_ref()).expect("configuration");
        let address = || "127.0.0.1:0".parse().expect("an address");
        let engines = crate::fake_engine::engines();
        let mut options =
            crate::ServerOptions::new(address(), directory.path().join("data"), engines);
        options.jwt_key_dir = Some(directory.path().join("keys"));
        options.config = Some(config());
        options.postgres_addr = Some(address());
        let server = crate::Server::bind(options).await.expect("a server");
        let outbound = outbound(&config(), server.own_ports(), Descriptors::raise());
        let outbound = outbound.expect("a client").expect("there is one");
        let ask = |target: String| {
            let request = Request {
                method: "GET".to_owned(),
                url: format!("http://{target}/v1/metrics"),
                headers: Vec::new(),
                body: Default::default(),
                account: Account::root(lightcone_accounts::Kind::Process, usize::MAX),
            };
            let bounds = Bounds {
                timeout: Duration::from_secs(10),
                request_bytes_max: 1 << 20,
                response_bytes_max: 1 << 20,
            };
            let outbound = outbound.clone();
            async move { outbound.request(request, bounds).await }
        };
        let listeners = [
            Some(server.local_addr()),
            server.metrics_addr(),
            server.postgres_addr(),
        ];
        for listener in listeners {
            let port = listener.expect("it listens").port();
            for host in ["127.0.0.1", "localhost"] {
                let refused = ask(format!("{host}:{port}")).await;
                assert!(
                    matches!(refused, Err(OutboundError::OwnPort { .. })),
                    "{host}: {refused:?}"
                );
            }
        }
        server.shutdown().await;
    }

    #[test]
    fn limits_follow_the_configuration() {
        let text = "[commitlog]\nmax-segment-size = 1048576\npreallocate-segments = false\n\
                    [websocket]\nincoming-queue-length = 7\n[limits]\nsnapshots-kept = 3\ncall-ms-max = 5\n\
                    [wasm]\nprocedure-instance-pool-size = 9\n[v8]\nprocedure-instance-pool-size = 8";
        let config = Config::parse(text, "config.toml".as_ref()).expect("configuration");
        let configured = limits(&config);
        assert_eq!(configured.log_segment_bytes, 1 << 20);
        assert!(!configured.log_preallocate);
        assert_eq!(configured.inbox_messages_max, 7);
        assert_eq!(configured.snapshots_kept, 3);
        assert_eq!(configured.host.call_ms_max, 5);
        assert_eq!(configured.wasm_procedures_running_max, 9);
        assert_eq!(configured.js_procedure_threads_max, 8);
        // Without a configuration, the database's own limits hold.
        assert_eq!(limits(&Config::default()), Limits::default());
    }
}
