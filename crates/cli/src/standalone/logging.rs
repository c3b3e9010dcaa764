//! The server's own log: stdout, and a file per day in the data directory (07 §3.1, §11.3).

use std::path::Path;

use lightcone_server::config::Config;
use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::fmt::writer::MakeWriterExt;
use tracing_subscriber::EnvFilter;

use crate::error::{Error, Result};

/// Our own crates say when they start, stop and are in trouble, whatever the general level.
const OWN_CRATES: [&str; 6] = ["cli", "server", "database", "host_wasm", "engine", "log"];

pub(super) fn install(data_dir: &Path, config: &Config) -> Result<()> {
    let filter = filter(config)?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false);
    if std::env::var_os("SPACETIMEDB_DISABLE_DISK_LOGGING").is_some() {
        builder.init();
        return Ok(());
    }
    let directory = data_dir.join("logs");
    let file = RollingFileAppender::builder()
        .rotation(Rotation::DAILY)
        .filename_prefix("spacetime-standalone")
        .filename_suffix("log")
        .build(&directory)
        .map_err(|e| {
            Error::caused(
                "LC0619",
                format!("cannot write logs to {}", directory.display()),
                e,
            )
        })?;
    builder.with_writer(std::io::stdout.and(file)).init();
    Ok(())
}

fn filter(config: &Config) -> Result<EnvFilter> {
    let mut directives = vec![config.logs.level.to_lowercase()];
    if config.logs.directives.is_empty() {
        directives.extend(
            OWN_CRATES
                .iter()
                .map(|name| format!("lightcone_{name}=info")),
        );
    }
    directives.extend(config.logs.directives.iter().cloned());
    EnvFilter::try_new(directives.join(",")).map_err(|e| {
        Error::caused(
            "LC0631",
            "config.toml: logs.level or logs.directives cannot be understood",
            e,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readiness_is_logged_by_default() {
        let text = filter(&Config::default()).expect("valid").to_string();
        assert!(
            text.contains("lightcone_server=info") && text.contains("error"),
            "{text}"
        );
    }

    #[test]
    fn directives_replace_ours() {
        let mut config = Config::default();
        config.logs.directives = vec!["lightcone_server=debug".into()];
        let text = filter(&config).expect("valid").to_string();
        assert!(
            text.contains("lightcone_server=debug") && !text.contains("lightcone_engine"),
            "{text}"
        );
        config.logs.directives = vec!["a=b=c".into()];
        assert!(filter(&config).is_err());
    }
}
