//! `config.toml` of the data directory (07 §11.3), and the keys that are Lightcone's own. Limits are in the crate `limits`.

mod auth;
mod databases;
mod edge;
mod outbox;
mod publish;
mod reference;
mod template;
mod traces;
mod unused;
mod word_or_list;

use std::path::Path;

use lightcone_control::Bounds;
use lightcone_database::CLIENT_BYTES_CEILING;
use serde::Deserialize;

use crate::error::Error;
use crate::private_files;

pub use auth::{Auth, ForeignIssuers};
pub use databases::Databases;
pub use edge::{
    Dashboard, Mcp, McpWrites, Metrics, Network, Postgres, Routes, Scheduling, Threads,
    TrustedProxies,
};
pub use lightcone_limits::{CompressionChoice, Limits, WebSocket};
pub use outbox::{Outbox, Peer};
pub use publish::{Publish, PublishAllowed, PUBLISH_ALLOWED_VARIABLE, PUBLISH_OWNERS_VARIABLE};
pub use reference::{CertificateAuthority, Commitlog, EnginePool, Logs, ModuleHttp, V8HeapPolicy};
pub use template::default_text;
pub use traces::Tracing;

/// The parsed `config.toml`. Unknown keys are ignored, and named in [`Config::warnings`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Config {
    pub certificate_authority: CertificateAuthority,
    pub module_http: ModuleHttp,
    pub logs: Logs,
    pub wasm: EnginePool,
    pub v8: EnginePool,
    pub v8_heap_policy: V8HeapPolicy,
    pub commitlog: Commitlog,
    pub network: Network,
    pub threads: Threads,
    pub websocket: WebSocket,
    pub limits: Limits,
    pub publish: Publish,
    pub auth: Auth,
    pub metrics: Metrics,
    pub postgres: Postgres,
    pub routes: Routes,
    pub dashboard: Dashboard,
    pub mcp: Mcp,
    pub tracing: Tracing,
    pub outbox: Outbox,
    pub databases: Databases,
    /// Warnings about the file that the log has when the server starts.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

impl Config {
    /// Parses the text of a `config.toml`; `path` is for messages.
    pub fn parse(text: &str, path: &Path) -> Result<Config, Error> {
        let wrong = |message: String| Error::Config {
            path: path.into(),
            message,
        };
        let mut config: Config =
            toml::from_str(text).map_err(|error| wrong(error.to_string().trim_end().to_owned()))?;
        config.check().map_err(wrong)?;
        config.warnings = unused::warnings(text);
        Ok(config)
    }

    fn check(&self) -> Result<(), String> {
        if self.websocket.ping_interval >= self.websocket.idle_timeout {
            let text = "websocket.ping-interval must be smaller than websocket.idle-timeout";
            return Err(text.into());
        }
        self.certificate_authority.check()?;
        self.network.check()?;
        self.postgres.check()?;
        self.routes.check()?;
        self.metrics.check()?;
        self.auth.check()?;
        self.tracing.check()?;
        self.outbox.check()?;
        self.module_http.allow_list()?;
        if let Some(key) = self.zero_key() {
            return Err(format!("{key} must be greater than zero"));
        }
        if self.limits.client_bytes_max > CLIENT_BYTES_CEILING {
            return Err(format!(
                "limits.client-bytes-max must be at most {CLIENT_BYTES_CEILING}: lengths in messages have 32 bits"
            ));
        }
        let percents = [
            ("clients", self.limits.clients_memory_percent),
            ("procedures", self.limits.procedures_memory_percent),
        ];
        if let Some((whose, _)) = percents.iter().find(|(_, percent)| *percent > 100) {
            return Err(format!("limits.{whose}-memory-percent must be at most 100"));
        }
        Ok(())
    }

    /// Whether the dashboard is served: a page of a module that has its origin could act as the person who is logged in there.
    pub fn shows_dashboard(&self) -> bool {
        let enabled = self.dashboard.enabled;
        enabled.unwrap_or_else(|| self.routes.are_sandboxed())
    }

    /// What may be in the control database.
    pub fn bounds(&self) -> Bounds {
        Bounds {
            databases_max: self.limits.databases_max,
            databases_per_owner_max: self.limits.databases_per_owner_max,
            names_max: self.limits.names_max,
            names_per_owner_max: self.limits.names_per_owner_max,
            named: self.publish.named().collect(),
        }
    }

    /// A key at zero that may not be.
    fn zero_key(&self) -> Option<String> {
        if self.websocket.ping_interval.is_zero() {
            return Some("websocket.ping-interval".into());
        }
        if self.limits.read_time_max.is_zero() {
            return Some("limits.read-time-max".into());
        }
        if self.commitlog.max_segment_size == 0 {
            return Some("commitlog.max-segment-size".into());
        }
        self.limits.zero_key().or_else(|| self.websocket.zero_key())
    }

    /// Reads the file at `path`; writes the default file first if there is none.
    pub fn load_or_create(path: &Path) -> Result<Config, Error> {
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let text = default_text();
                let written = private_files::write_whole(path, text.as_bytes());
                written.map_err(Error::io("write", path))?;
                text
            }
            read => read.map_err(Error::io("read", path))?,
        };
        Config::parse(&text, path)
    }
}

#[cfg(test)]
mod tests {
    use super::template::uncommented_default;
    use super::*;

    fn parse(text: &str) -> Result<Config, Error> {
        Config::parse(text, Path::new("config.toml"))
    }

    #[test]
    fn the_default_file_says_the_defaults() {
        // Every commented key, uncommented, must parse to what an empty file means.
        let mut full =
            parse(&uncommented_default()).expect("the default file parses when uncommented");
        assert!(std::mem::take(&mut full.certificate_authority)
            .jwt_pub_key_path
            .is_some());
        assert!(full.wasm.procedure_instance_pool_size.take().is_some());
        assert!(full.v8.procedure_instance_pool_size.take().is_some());
        assert!(full.network.threads.take().is_some());
        assert!(full.limits.disk_reserve_bytes.take().is_some());
        assert!(full.limits.outgoing_message_bytes_max.take().is_some());
        assert_eq!(full.dashboard.enabled.take(), Some(true));
        full.publish.owners.clear();
        assert_eq!(full.publish.allowed.take(), Some(PublishAllowed::Local));
        assert!(full.metrics.listen.take().is_some());
        assert!(full.tracing.otlp_endpoint.take().is_some());
        full.tracing.headers.clear();
        assert!(full.metrics.token.take().is_some());
        assert!(full.postgres.listen.take().is_some());
        assert!(full.postgres.certificate.take().is_some());
        assert!(full.postgres.key.take().is_some());
        assert_eq!(
            format!("{full:?}"),
            format!("{:?}", parse("").expect("empty file"))
        );
        parse(&default_text()).expect("the default file parses as it is");
    }

    #[test]
    fn words_are_told() {
        for (text, words) in [
            (
                "[mcp]\nwrites = true",
                r#"one of the words "never", "asked", "always""#,
            ),
            (
                "[mcp]\nwrites = \"yes\"",
                r#"one of the words "never", "asked", "always""#,
            ),
            ("[threads]\nscheduling = 1", r#""batch", "normal""#),
            (
                "[websocket]\ncompression = true",
                r#""off", "keep-order", "as-asked""#,
            ),
        ] {
            let error = parse(text).expect_err(text).to_string();
            assert!(error.contains(words), "{error}");
        }
        let asked = parse("[mcp]\nwrites = \"always\"").expect("a word");
        assert_eq!(asked.mcp.writes, McpWrites::Always);
    }

    #[test]
    fn no_number_is_zero_but_the_reserve_of_the_disk() {
        let rows: Vec<_> = Limits::rows()
            .into_iter()
            .chain(WebSocket::rows())
            .collect();
        let numbers = rows.iter().filter(|row| row.default.parse::<u64>().is_ok());
        let keys: Vec<_> = numbers.map(|row| row.key()).collect();
        let mut refused = 0;
        for key in &keys {
            let (section, name) = key.split_once('.').expect("a section");
            match parse(&format!("[{section}]\n{name} = 0")) {
                Ok(_) => assert_eq!(*key, "limits.disk-reserve-bytes"),
                Err(error) => {
                    let expected = format!("{key} must be greater than zero");
                    assert!(error.to_string().contains(&expected), "{error}");
                    refused += 1;
                }
            }
        }
        assert!(keys.len() > 40);
        assert_eq!(refused, keys.len() - 1);
    }

    #[test]
    fn an_older_name_is_understood() {
        let config = parse("[limits]\noutgoing-queue-bytes = 5").expect("understood");
        assert_eq!(config.limits.client_bytes_max, 5);
        let both = "[limits]\noutgoing-queue-bytes = 5\nclient-bytes-max = 6";
        let message = parse(both).expect_err(both).to_string();
        assert!(
            message.contains("duplicate field `client-bytes-max`"),
            "{message}"
        );
    }

    #[test]
    fn wrong_values_are_named() {
        for (text, expected) in [
            (
                "[websocket]\nping-interval = \"40s\"",
                "ping-interval must be smaller",
            ),
            ("[websocket]\nping-interval = 15", "invalid type"),
            ("[wasm]\nprocedure-instance-pool-size = 0", "nonzero"),
            (
                "[certificate-authority]\njwt-pub-key-path = \"x\"",
                "needs both",
            ),
            ("[network]\nthreads = 0", "nonzero"),
            (
                "[threads]\nscheduling = \"fifo\"",
                "expected one of the words \"batch\", \"normal\"",
            ),
            ("[publish]\nallowed = \"me\"", "\"anyone\", \"owner-list\""),
            ("[network]\nhosts = [\"http://x\"]", "network.hosts"),
            (
                "[network]\ntrusted-proxies = [\"x\"]",
                "network.trusted-proxies",
            ),
            (
                "[network]\nmanagement-origins = [\"x\"]",
                "is not an origin",
            ),
            (
                "[network]\nmanagement-origins = [\"https://x/\"]",
                "is not an origin",
            ),
            (
                "[routes]\ncontent-security-policy = \"a\\nb\"",
                "cannot be sent",
            ),
            (
                "[outbox]\npeers = [{ address = \"x\", databases = [] }]",
                "outbox.peers",
            ),
            (
                "[outbox]\npeers = [{ databases = [\"x\"] }]",
                "64 hexadecimal digits",
            ),
            ("[metrics]\ntoken = \"short\"", "metrics.token"),
            (
                "[tracing]\notlp-endpoint = \"here\"",
                "tracing.otlp-endpoint",
            ),
            (
                "[tracing]\notlp-endpoint = \"file:///x\"",
                "tracing.otlp-endpoint",
            ),
            ("[tracing]\nsample-ratio = 1.5", "tracing.sample-ratio"),
            ("[tracing.headers]\n\"a b\" = \"c\"", "tracing.headers"),
            ("[auth]\nforeign-issuers = \"x\"", "expected \"none\""),
            ("[auth]\nforeign-issuers = \"any\"", "[LC0135]"),
            (
                "[auth]\nforeign-issuers = [\"https://a.example\", \"any\"]",
                "list the issuers",
            ),
            (
                "[auth]\nforeign-issuers = [\"http://a.example\"]",
                "must begin with https",
            ),
            (
                "[auth]\nforeign-issuers = [\"https://a.example/#\"]",
                "no #",
            ),
            ("[metrics]\nlisten = \"here\"", "invalid"),
            (
                "[module-http]\nallow = [\"http://x\"]",
                "module-http.allow: \"http://x\" is neither a host name",
            ),
            ("[publish]\nallowed = [\"c200\"]", "64 hexadecimal digits"),
            ("[limits]\nconnections-max = 0", "limits.connections-max"),
            ("[databases]\nidle-close-after = 15", "invalid type"),
            ("[databases]\nidle-close-after = \"soon\"", "in duration"),
            ("[broken", "config.toml"),
        ] {
            let message = parse(text).expect_err(text).to_string();
            assert!(message.contains(expected), "{message}");
        }
        parse("[unknown]\nkey = 1\n[websocket]\nother = 2").expect("unknown keys are ignored");
    }
}
