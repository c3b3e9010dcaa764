//! How the limits of databases, and what they share, follow from the configuration.

use std::path::PathBuf;
use std::sync::Arc;

use lightcone_accounts::Account;
use lightcone_database::{Commons, Limits, Machine, MemoryMax};
use lightcone_limits::HostLimits;
use lightcone_outbound::{Outbound, OutboundOptions, OwnPorts};

use crate::config::{Config, EnginePool};
use crate::error::Error;
use crate::memory::{available_bytes, free_bytes};
use crate::network::Descriptors;

/// The limits of every database: `[limits]`, and what other sections say.
pub fn limits(config: &Config) -> Limits {
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
pub fn outbound(
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
pub fn commons(
    process: &Arc<Account>,
    config: &Config,
    outbound: Option<Arc<Outbound>>,
) -> Arc<Commons> {
    let memory = available_bytes();
    let part = |percent: u8| memory / 100 * usize::from(percent);
    let memory_max = MemoryMax {
        clients_bytes: part(config.limits.clients_memory_percent),
        procedures_bytes: part(config.limits.procedures_memory_percent).max(PROCEDURES_BYTES_MIN),
        free_bytes,
    };
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let (process, machine) = (process.clone(), Machine::current());
    Commons::below(process, machine, memory_max, threads, outbound)
}

#[cfg(test)]
mod tests {
    use super::*;

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
