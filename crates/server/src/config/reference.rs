//! Sections of the reference that say nothing of limits (07 §11.3). Some of their keys have no effect.

use std::path::PathBuf;
use std::time::Duration;

use lightcone_outbound::AllowList;
use serde::Deserialize;

/// The key pair of tokens: both files or none.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct CertificateAuthority {
    pub jwt_priv_key_path: Option<PathBuf>,
    pub jwt_pub_key_path: Option<PathBuf>,
}

impl CertificateAuthority {
    pub(super) fn check(&self) -> Result<(), String> {
        if self.jwt_priv_key_path.is_some() != self.jwt_pub_key_path.is_some() {
            return Err(
                "certificate-authority needs both jwt-priv-key-path and jwt-pub-key-path".into(),
            );
        }
        Ok(())
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct ModuleHttp {
    pub enabled: bool,
    /// Hosts, addresses and networks beyond the public internet that modules reach.
    pub allow: Vec<String>,
    /// Files with certificates that are trusted beside those of the machine.
    pub certificates: Vec<PathBuf>,
}

impl ModuleHttp {
    pub(crate) fn allow_list(&self) -> Result<AllowList, String> {
        let entries = self.allow.iter().map(String::as_str);
        AllowList::parse(entries).map_err(|error| format!("module-http.allow: {error}"))
    }
}

impl Default for ModuleHttp {
    fn default() -> Self {
        Self {
            enabled: true,
            allow: Vec::new(),
            certificates: Vec::new(),
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Logs {
    pub level: String,
    pub directives: Vec<String>,
}

impl Default for Logs {
    fn default() -> Self {
        Self {
            level: "ERROR".into(),
            directives: Vec::new(),
        }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct EnginePool {
    /// `None`: the number of CPUs.
    pub procedure_instance_pool_size: Option<std::num::NonZeroUsize>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct V8HeapPolicy {
    pub heap_check_request_interval: u64,
    #[serde(deserialize_with = "lightcone_limits::duration::deserialize")]
    pub heap_check_time_interval: Duration,
    pub heap_gc_trigger_fraction: f64,
    pub heap_retire_fraction: f64,
    pub heap_limit_mb: u64,
}

impl Default for V8HeapPolicy {
    fn default() -> Self {
        Self {
            heap_check_request_interval: 4096,
            heap_check_time_interval: Duration::from_secs(5),
            heap_gc_trigger_fraction: 0.67,
            heap_retire_fraction: 0.75,
            heap_limit_mb: 0,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Commitlog {
    pub log_format_version: u8,
    pub max_segment_size: u64,
    #[serde(alias = "offset-interval-bytes")]
    pub offset_index_interval_bytes: u64,
    #[serde(alias = "offset-index-require-fsync")]
    pub offset_index_require_segment_fsync: bool,
    pub preallocate_segments: bool,
    pub write_buffer_size: u64,
}

impl Default for Commitlog {
    fn default() -> Self {
        let database = lightcone_database::Limits::default();
        Self {
            log_format_version: 1,
            max_segment_size: database.log_segment_bytes,
            offset_index_interval_bytes: 4096,
            offset_index_require_segment_fsync: true,
            preallocate_segments: database.log_preallocate,
            write_buffer_size: 128 * 1024,
        }
    }
}
