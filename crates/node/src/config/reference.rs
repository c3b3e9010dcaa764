//! Sections of the reference that say nothing of limits (07 §11.3). Some of their keys have no effect.

use std::path::PathBuf;

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

/// The reference's other keys of this table have no effect here: see [`super::unused`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct V8HeapPolicy {
    /// 0: `limits.memory-bytes-max` counts.
    pub heap_limit_mb: u64,
}

impl V8HeapPolicy {
    /// The memory of an instance of a JavaScript module, in bytes.
    pub fn heap_bytes_max(&self) -> Option<usize> {
        let bytes = self.heap_limit_mb.saturating_mul(1 << 20);
        (bytes > 0).then(|| usize::try_from(bytes).unwrap_or(usize::MAX))
    }
}

/// The reference's other keys of this table have no effect here: see [`super::unused`].
#[derive(Clone, Debug, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Commitlog {
    pub max_segment_size: u64,
    pub preallocate_segments: bool,
}

impl Default for Commitlog {
    fn default() -> Self {
        let database = lightcone_database::Limits::default();
        Self {
            max_segment_size: database.log_segment_bytes,
            preallocate_segments: database.log_preallocate,
        }
    }
}
