//! Who else on this machine may read or change what the server keeps.
//!
//! Directories are made for the server alone (0700), whatever the umask. What is there already and belongs to the server's
//! user is mended, and said; what cannot be mended and lets strangers in is refused.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use crate::error::Error;

pub(crate) const SECRET_MODE: u32 = 0o600;
/// Nothing for others, and no writing for the group: its members may make backups.
const DIRECTORY_TOO_WIDE: u32 = 0o027;
/// A user who may read a private key can take any identity.
const SECRET_TOO_WIDE: u32 = 0o077;
/// A mounted secret of another owner may be readable for the server's group.
const FOREIGN_SECRET_TOO_WIDE: u32 = 0o037;
const WRITABLE_BY_OTHERS: u32 = 0o002;

/// From here on, whatever this process makes is for its user alone.
pub fn keep_new_files_private() {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
}

/// Makes a directory and those above it that are missing, durably and for the server alone.
pub fn create_directory(path: &Path) -> Result<(), Error> {
    lightcone_storage::disk()
        .create_directory(path)
        .map_err(Error::io("create", path))
}

/// Writes a file that is not there yet. Its bytes are durable then; its name is when [its directory is synced](sync_name).
pub(crate) fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes the name of a file durable.
pub(crate) fn sync_name(path: &Path) -> io::Result<()> {
    lightcone_storage::disk().sync_directory(lightcone_storage::parent_of(path))
}

/// Writes a file as a whole or not at all, durably and for the server alone: it has its name when its bytes are on the disk.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    write_new(Path::new(&unfinished), bytes, SECRET_MODE)?;
    fs::rename(&unfinished, path)?;
    sync_name(path)
}

/// Makes the data directory, or checks the one that is there.
pub(crate) fn open_data_directory(path: &Path) -> Result<(), Error> {
    create_directory(path)?;
    let (owner, mode) = owner_and_mode(path)?;
    let me = rustix::process::geteuid().as_raw();
    // Root may do everything in any case, and orchestrators make volumes that belong to it.
    if owner != me && owner != 0 && me != 0 {
        return Err(Error::DirectoryOwner {
            path: path.to_owned(),
            owner,
            me,
        });
    }
    if mode & DIRECTORY_TOO_WIDE == 0 {
        return Ok(());
    }
    if set_mode(path, mode & !DIRECTORY_TOO_WIDE).is_ok() {
        tracing::info!(
            "{} is closed to other users of this machine from now on; its mode was {mode:o} [LC0138]",
            path.display()
        );
        return Ok(());
    }
    if mode & WRITABLE_BY_OTHERS != 0 {
        return Err(Error::DirectoryMode {
            path: path.to_owned(),
            mode,
        });
    }
    tracing::warn!(
        "{} can be entered by other users of this machine (mode {mode:o}), and cannot be mended by this one [LC0138]",
        path.display()
    );
    Ok(())
}

/// Checks the file of a private key.
pub fn check_private_key(path: &Path) -> Result<(), Error> {
    let (owner, mode) = owner_and_mode(path)?;
    if mode & SECRET_TOO_WIDE == 0 {
        return Ok(());
    }
    let me = rustix::process::geteuid().as_raw();
    if owner == me && set_mode(path, SECRET_MODE).is_ok() {
        tracing::warn!(
            "the private key {} could be read by other users of this machine (mode {mode:o}); it is mended, but a user who has \
             read it can still take any identity: replace it if you do not trust them all [LC0139]",
            path.display()
        );
        return Ok(());
    }
    if mode & FOREIGN_SECRET_TOO_WIDE == 0 {
        return Ok(());
    }
    Err(Error::PrivateKeyMode {
        path: path.to_owned(),
        mode,
    })
}

fn owner_and_mode(path: &Path) -> Result<(u32, u32), Error> {
    let metadata = fs::metadata(path).map_err(Error::io("look at", path))?;
    Ok((metadata.uid(), metadata.mode() & 0o7777))
}

fn set_mode(path: &Path, mode: u32) -> std::io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        owner_and_mode(path).expect("metadata").1
    }

    #[test]
    fn directories_are_for_the_server_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let data = dir.path().join("a/b/data");
        open_data_directory(&data).expect("created");
        for path in [dir.path().join("a"), dir.path().join("a/b"), data.clone()] {
            assert_eq!(mode(&path), 0o700, "{}", path.display());
        }
        for (found, expected) in [
            (0o755, 0o750),
            (0o777, 0o750),
            (0o1777, 0o1750),
            (0o2770, 0o2750),
            (0o750, 0o750),
            (0o700, 0o700),
        ] {
            set_mode(&data, found).expect("a mode");
            open_data_directory(&data).expect("mended");
            assert_eq!(mode(&data), expected, "{found:o}");
        }
    }

    #[test]
    fn private_keys_are_mended() {
        let dir = tempfile::tempdir().expect("a directory");
        let key = dir.path().join("id_ecdsa");
        fs::write(&key, "secret").expect("a file");
        for found in [0o644, 0o640, 0o660, 0o604, 0o777] {
            set_mode(&key, found).expect("a mode");
            check_private_key(&key).expect("mended");
            assert_eq!(mode(&key), 0o600, "{found:o}");
        }
        set_mode(&key, 0o400).expect("a mode");
        check_private_key(&key).expect("left alone");
        assert_eq!(mode(&key), 0o400);
    }
}
