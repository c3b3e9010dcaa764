//! The data directory (07 §3.1): layout, the lock that keeps a second server out, and the compatibility mark.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::private_files;

/// Keeps the reference server and this one out of each other's directories.
pub const EDITION: &str = "lightcone-standalone";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// An opened and locked data directory. Dropping it releases the lock and removes the pid file.
#[derive(Debug)]
pub struct DataDir {
    root: PathBuf,
    _lock: PidFile,
}

#[derive(Debug)]
struct PidFile {
    path: PathBuf,
    // Held open: the lock lives as long as the descriptor.
    _file: File,
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // Still locked here, so no other server's file can be removed.
        let _ = fs::remove_file(&self.path);
    }
}

impl DataDir {
    /// Creates the directory if needed, locks it and checks that it is one of ours.
    pub fn open(root: &Path) -> Result<DataDir, Error> {
        private_files::open_data_directory(root)?;
        let lock = PidFile::take(&root.join("spacetime.pid"))?;
        check_metadata(&root.join("metadata.toml"))?;
        let dir = DataDir {
            root: root.to_owned(),
            _lock: lock,
        };
        for part in [dir.control_directory(), dir.replicas()] {
            private_files::create_directory(&part)?;
        }
        Ok(dir)
    }

    pub(crate) fn config_file(&self) -> PathBuf {
        self.root.join("config.toml")
    }

    /// The key of secret variables, which is made when it is needed first.
    pub(crate) fn secrets_key(&self) -> PathBuf {
        self.root.join("secrets.key")
    }

    pub fn control_directory(&self) -> PathBuf {
        self.root.join("control-db")
    }

    pub fn replicas(&self) -> PathBuf {
        self.root.join("replicas")
    }

    /// The directory of one database's data.
    pub fn replica(&self, id: u64) -> PathBuf {
        self.replicas().join(id.to_string())
    }
}

impl PidFile {
    fn take(path: &Path) -> Result<PidFile, Error> {
        // A server that ends removes its file after the lock was taken by a waiting one, so the
        // locked file must still be the one at the path; otherwise try again.
        for _ in 0..16 {
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(false);
            let mut file = options.open(path).map_err(Error::io("open", path))?;
            if file.try_lock().is_err() {
                let mut pid = String::new();
                let _ = (&mut file).take(32).read_to_string(&mut pid);
                let pid = match pid.trim() {
                    "" => "unknown".to_owned(),
                    pid => pid.to_owned(),
                };
                return Err(Error::DataDirectoryLocked { pid });
            }
            if !same_file(&file, path) {
                continue;
            }
            let written = (|| {
                file.set_len(0)?;
                file.rewind()?;
                file.write_all(std::process::id().to_string().as_bytes())
            })();
            written.map_err(Error::io("write", path))?;
            return Ok(PidFile {
                path: path.to_owned(),
                _file: file,
            });
        }
        Err(Error::DataDirectoryLocked {
            pid: "unknown".into(),
        })
    }
}

fn same_file(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

#[derive(serde::Deserialize)]
struct Metadata {
    version: String,
    edition: String,
}

fn check_metadata(path: &Path) -> Result<(), Error> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return write_metadata(path),
        read => read.map_err(Error::io("read", path))?,
    };
    let metadata: Metadata = toml::from_str(&text).map_err(|error| Error::Config {
        path: path.into(),
        message: error.to_string(),
    })?;
    let directory = path.parent().unwrap_or(path).to_owned();
    if metadata.edition != EDITION {
        return Err(Error::WrongEdition {
            path: directory,
            found: metadata.edition,
            expected: EDITION,
        });
    }
    match (parse_version(&metadata.version), parse_version(VERSION)) {
        (Some(found), Some(running)) if compatible(found, running) => match found < running {
            true => write_metadata(path),
            false => Ok(()),
        },
        _ => Err(Error::WrongVersion {
            path: directory,
            found: metadata.version,
            running: VERSION,
        }),
    }
}

fn write_metadata(path: &Path) -> Result<(), Error> {
    let text = format!(
        "# Written by the server; do not change it by hand.\n\nversion = \"{VERSION}\"\nedition = \"{EDITION}\"\n"
    );
    private_files::write_whole(path, text.as_bytes()).map_err(Error::io("write", path))
}

type Version = (u64, u64, u64);

fn parse_version(text: &str) -> Option<Version> {
    let core = text.split(['-', '+']).next()?;
    let mut parts = core.split('.').map(|part| part.parse().ok());
    let version = (parts.next()??, parts.next()??, parts.next()??);
    parts.next().is_none().then_some(version)
}

/// `^MAJOR.MINOR` of the recorded version.
fn compatible(found: Version, running: Version) -> bool {
    found.0 == running.0 && found.1 <= running.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_one_owner() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let first = DataDir::open(dir.path()).expect("first");
        let message = DataDir::open(dir.path()).expect_err("second").to_string();
        let expected = format!(
            "cannot take lock on database; spacetime.pid already exists (owned by pid {}) [LC0103]",
            std::process::id()
        );
        assert_eq!(message, expected);
        drop(first);
        assert!(!dir.path().join("spacetime.pid").exists());
        DataDir::open(dir.path()).expect("again");
    }

    #[test]
    fn foreign_and_newer_directories_are_refused() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let write = |text: &str| fs::write(dir.path().join("metadata.toml"), text).expect("write");
        write("version = \"2.8.3\"\nedition = \"standalone\"\n");
        assert!(matches!(
            DataDir::open(dir.path()),
            Err(Error::WrongEdition { .. })
        ));
        write(&format!("version = \"99.0.0\"\nedition = \"{EDITION}\"\n"));
        assert!(matches!(
            DataDir::open(dir.path()),
            Err(Error::WrongVersion { .. })
        ));
        write("nonsense");
        assert!(matches!(
            DataDir::open(dir.path()),
            Err(Error::Config { .. })
        ));
    }
}
