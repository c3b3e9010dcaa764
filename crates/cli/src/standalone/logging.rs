//! The server's own log: stdout, and files per day in the data directory (07 §3.1, §11.3). Clients and modules cause much of
//! it, so it is bounded: lines are cut, files go, and a flood of one kind is left out.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use lightcone_node::config::Config;
use lightcone_storage::{DiskReserve, LogBounds, LogFiles};
use lightcone_types::Timestamp;
use tracing_subscriber::fmt::writer::MakeWriterExt;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::EnvFilter;

use super::log_rate::LogRate;
use crate::error::Result;
use crate::output::remark;

/// Longer lines are cut.
const LINE_BYTES_MAX: usize = 16 << 10;
const FILE_PREFIX: &str = "spacetime-standalone.";

/// Our own crates say when they start, stop and are in trouble, whatever the general level.
const OWN_CRATES: &str = "cli server gateway postgres node control database host_wasm engine log";

#[expect(clippy::disallowed_methods, reason = "the log is what a server prints")]
pub(super) fn install(data_dir: &Path, config: &Config) -> Result<()> {
    let filter = filter(config)?;
    let stdout = CutLines(io::stdout);
    let layer = tracing_subscriber::fmt::layer().with_ansi(false);
    // In front of all else, so that what is left out costs nothing more.
    let registry = tracing_subscriber::registry()
        .with(filter)
        .with(LogRate::start());
    if std::env::var_os("SPACETIMEDB_DISABLE_DISK_LOGGING").is_some() {
        registry.with(layer.with_writer(stdout)).init();
        return Ok(());
    }
    let directory = data_dir.join("logs");
    let made = std::fs::create_dir_all(&directory);
    made.map_err(caused!(
        "LC0619",
        "cannot write logs to {}",
        directory.display()
    ))?;
    let limits = &config.limits;
    let disk = DiskReserve::new(data_dir.to_owned(), limits.disk_reserve_bytes);
    let bounds = LogBounds::of_bytes(limits.server_log_bytes_max);
    let files = LogFiles::new(directory, FILE_PREFIX, bounds, disk.into());
    let files = CutLines(Files(Arc::new(Mutex::new(files))));
    registry.with(layer.with_writer(stdout.and(files))).init();
    Ok(())
}

/// The files as a writer of whole lines. What the disk does not take is lost; stdout has it.
#[derive(Clone)]
struct Files(Arc<Mutex<LogFiles>>);

impl<'a> MakeWriter<'a> for Files {
    type Writer = Files;

    fn make_writer(&'a self) -> Files {
        self.clone()
    }
}

impl Write for Files {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let date: String = Timestamp::now().to_rfc3339().chars().take(10).collect();
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A full disk must not end in a flood of complaints about itself.
        let _ = files.write(&date, line);
        if let Some((path, error)) = files.take_stuck() {
            let path = path.display();
            remark!("an old file of the log cannot be removed or renamed: {path}: {error}");
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writers whose lines are cut.
struct CutLines<W>(W);

impl<'a, W: MakeWriter<'a>> MakeWriter<'a> for CutLines<W> {
    type Writer = CutLine<W::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        CutLine(self.0.make_writer())
    }
}

struct CutLine<W>(W);

impl<W: Write> Write for CutLine<W> {
    /// A line comes as a whole.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if line.len() <= LINE_BYTES_MAX {
            self.0.write_all(line)?;
        } else {
            let text = String::from_utf8_lossy(line);
            let shown = lightcone_types::cut(text.trim_end(), LINE_BYTES_MAX);
            self.0.write_all(format!("{shown}\n").as_bytes())?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn filter(config: &Config) -> Result<EnvFilter> {
    let mut directives = vec![config.logs.level.to_lowercase()];
    if config.logs.directives.is_empty() {
        let own = OWN_CRATES.split(' ');
        directives.extend(own.map(|name| format!("lightcone_{name}=info")));
    }
    directives.extend(config.logs.directives.iter().cloned());
    EnvFilter::try_new(directives.join(",")).map_err(caused!(
        "LC0631",
        "config.toml: logs.level or logs.directives cannot be understood"
    ))
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
    fn long_lines_are_cut() {
        let mut out = Vec::new();
        let mut writer = CutLine(&mut out);
        writer.write_all(b"short\n").expect("written");
        let long = format!("{}\n", "x".repeat(1 << 20));
        writer.write_all(long.as_bytes()).expect("written");
        let text = String::from_utf8(out).expect("text");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!((lines.len(), lines[0]), (2, "short"));
        assert!(lines[1].len() < LINE_BYTES_MAX + 30 && lines[1].ends_with("[1048576 bytes]"));
    }

    #[test]
    fn files_are_bounded() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let directory = dir.path().join("logs");
        let files = LogFiles::new(
            directory.clone(),
            FILE_PREFIX,
            LogBounds::of_bytes(64 << 10),
            Arc::default(),
        );
        let mut files = Files(Arc::new(Mutex::new(files)));
        for _ in 0..1000 {
            files
                .write_all(&[&[b'y'; 499][..], b"\n"].concat())
                .expect("written");
        }
        let entries = std::fs::read_dir(&directory).expect("listed");
        let bytes: u64 = entries
            .map(|entry| entry.expect("entry").metadata().expect("metadata").len())
            .sum();
        assert!(bytes <= 64 << 10 && bytes > 32 << 10, "{bytes}");
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
