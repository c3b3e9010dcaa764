//! The key of secret variables of the environment: `secrets.key` in the data directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use lightcone_database::{Secrets, SECRETS_KEY_BYTES};

use crate::private_files::write_whole;

type Key = [u8; SECRETS_KEY_BYTES];

/// Seals with the key of a data directory, which is read or made when it is needed first.
pub(crate) fn secrets(path: PathBuf) -> Secrets {
    Secrets::new(Box::new(move |may_create| key(&path, may_create)))
}

/// An error names the file, without the directory: it is told to modules and publishers.
fn key(path: &Path, may_create: bool) -> Result<Key, String> {
    let failed = |error: io::Error| {
        tracing::warn!(path = %path.display(), %error, "the key of secret variables of the environment cannot be used [LC0260]");
        match error.kind() {
            io::ErrorKind::NotFound => "its key, secrets.key in the data directory of the server, is not there; put it back, or set the variable again".to_owned(),
            _ => format!("its key, secrets.key in the data directory of the server: {error}"),
        }
    };
    match read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && may_create => {
            create(path).map_err(failed)
        }
        read => read.map_err(failed),
    }
}

fn read(path: &Path) -> io::Result<Key> {
    fs::read(path)?.try_into().map_err(|_| {
        let text = format!("it is not a file of {SECRETS_KEY_BYTES} bytes");
        io::Error::new(io::ErrorKind::InvalidData, text)
    })
}

fn create(path: &Path) -> io::Result<Key> {
    let key: Key = rand::random();
    write_whole(path, &key)?;
    tracing::info!(path = %path.display(), "made a key for secret variables of the environment; they cannot be read without it");
    Ok(key)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use lightcone_types::Identity;

    use super::*;

    #[test]
    fn the_key_is_made_once_and_missed_by_name() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("secrets.key");
        let open = |kept: &str| {
            let opened = secrets(path.clone()).open(&Identity::ZERO, "KEY", kept.to_owned());
            opened.map_err(|error| error.to_string())
        };
        let sealed = secrets(path.clone()).seal(&Identity::ZERO, "KEY", "value");
        let sealed = sealed.expect("sealed");
        let mode = fs::metadata(&path)
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, 0o600);
        assert_eq!(open(&sealed).as_deref(), Ok("value"), "by another process");

        let key = fs::read(&path).expect("the key");
        fs::remove_file(&path).expect("removed");
        for (content, expected) in [(None, "is not there"), (Some(&key[1..]), "32 bytes")] {
            if let Some(content) = content {
                fs::write(&path, content).expect("written");
            }
            let text = open(&sealed).expect_err("no key");
            assert!(text.contains(expected), "{text}");
            assert!(
                text.contains("secrets.key") && text.contains("LC0260"),
                "{text}"
            );
            assert!(!text.contains(directory.path().to_str().expect("UTF-8")));
        }
        for bit in 0..8 * SECRETS_KEY_BYTES {
            let mut other = key.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, other).expect("written");
            let text = open(&sealed).expect_err("another key");
            assert!(text.contains("not the one"), "{text}");
        }
        fs::write(&path, key).expect("written");
        assert_eq!(open(&sealed).as_deref(), Ok("value"));
    }
}
