//! Directories, permissions, disk space and limits of this machine.

use std::path::{Path, PathBuf};

use super::report::{Report, State};
use crate::config::Config;
use crate::paths::Paths;

/// The server keeps this much for its logs and publishes nothing below it (`limits.disk-reserve-bytes`).
const DISK_FREE_MIN: u64 = 256 << 20;
const DISK_FREE_GOOD: u64 = 1 << 30;
/// Each client and each open database takes some.
#[cfg(unix)]
const OPEN_FILES_GOOD: u64 = 1024;

/// Returns the configuration, or the one that a first run would write.
pub(super) fn check(report: &mut Report, paths: &Paths, config_path: &Path) -> Config {
    let config = check_config(report, config_path);
    let key = paths.config_dir.join("id_ecdsa");
    check_private(report, "key of the server", &key);
    check_data_directory(report, &paths.data_dir);
    #[cfg(unix)]
    check_open_files(report);
    config
}

fn check_config(report: &mut Report, path: &Path) -> Config {
    let read = Config::read(path);
    const NAME: &str = "cli.toml";
    let shown = path.display();
    match &read {
        Ok(Some(_)) => {
            report.ok(NAME, shown.to_string());
            check_private(report, NAME, path);
        }
        Ok(None) => {
            let message = format!("not there yet; the first command writes {shown}");
            report.ok(NAME, message);
        }
        Err(error) => {
            let advice = "Correct the file, or move it away: the next command writes a new one.";
            report.error(NAME, error.text(), advice);
        }
    }
    if let Some(directory) = existing(path.parent().unwrap_or(Path::new("."))) {
        let advice = "Logins and servers cannot be saved. Whose directory is it? `ls -ld` says.";
        check_writable(report, NAME, &directory, advice);
    }
    read.ok().flatten().unwrap_or_else(Config::initial)
}

fn check_writable(report: &mut Report, name: &str, directory: &Path, advice: &str) {
    if let Err(error) = tempfile::tempfile_in(directory) {
        let message = format!("{} cannot be written to: {error}", directory.display());
        report.error(name, message, advice);
    }
}

/// Files with secrets are their owner's alone.
fn check_private(report: &mut Report, name: &str, path: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let Ok(metadata) = std::fs::metadata(path) else {
            return;
        };
        let (mode, path) = (metadata.permissions().mode() & 0o777, path.display());
        if mode & 0o077 != 0 {
            let message = format!(
                "others on this machine may read {path} (mode {mode:03o}), which holds secrets"
            );
            report.warning(name, message, format!("chmod 600 {path}"));
        }
    }
    #[cfg(not(unix))]
    let _ = (report, name, path);
}

/// The directory, or the nearest one above it that is there.
fn existing(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let found = path.ancestors().find(|directory| directory.is_dir());
    found.map(Path::to_owned)
}

fn check_data_directory(report: &mut Report, path: &Path) {
    const NAME: &str = "data directory";
    let shown = path.display();
    match edition(path) {
        Some(edition) if edition != lightcone_node::EDITION => {
            let message = format!("{shown} belongs to a server of the edition `{edition}`");
            let advice = "Start ours with another --data-dir, or with another --root-dir.";
            report.error(NAME, message, advice);
        }
        _ if path.exists() => report.ok(NAME, shown.to_string()),
        _ => report.ok(NAME, format!("{shown}, which the first start makes")),
    }
    let Some(directory) = existing(path) else {
        return;
    };
    let advice = "A server cannot be started there. Whose directory is it? `ls -ld` says; --data-dir names another.";
    check_writable(report, NAME, &directory, advice);
    #[cfg(unix)]
    check_disk(report, &directory);
}

/// Which kind of server a data directory is of.
fn edition(data_directory: &Path) -> Option<String> {
    let text = std::fs::read_to_string(data_directory.join("metadata.toml")).ok()?;
    let metadata: toml_edit::DocumentMut = text.parse().ok()?;
    Some(metadata.get("edition")?.as_str()?.to_owned())
}

#[cfg(unix)]
fn check_disk(report: &mut Report, directory: &Path) {
    let Ok(disk) = rustix::fs::statvfs(directory) else {
        return;
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let message = format!("{} MiB free", free >> 20);
    let state = match free {
        free if free < DISK_FREE_MIN => State::Error,
        free if free < DISK_FREE_GOOD => State::Warning,
        _ => return report.ok("disk", message),
    };
    let advice = "Make room: below 256 MiB a server publishes nothing, and a full disk makes databases read-only.";
    report.bad("disk", state, message, advice);
}

#[cfg(unix)]
fn check_open_files(report: &mut Report) {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    let message = limit.map_or("no limit".to_owned(), |limit| format!("at most {limit}"));
    if limit.is_none_or(|limit| limit >= OPEN_FILES_GOOD) {
        return report.ok("open files", message);
    }
    let advice = "A server needs one for each client, and some for each database: `ulimit -n 65536`, or LimitNOFILE of its service.";
    report.warning("open files", message, advice);
}
