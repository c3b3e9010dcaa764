//! One command after the other changes the file: it is locked, read again, changed and replaced.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::NamedTempFile;
use tokio::time::Instant;

use super::Config;
use crate::error::{Error, FileResult as _, Result};
use crate::output::remark;

/// For others that renew a login, with as many requests as that takes.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(75);
/// What new tokens take at most.
const PLACE_BYTES: usize = 64 << 10;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// As long as it lives, no other command changes the file.
pub struct ConfigLock(#[expect(dead_code, reason = "the lock goes with the file")] File);

/// Where the next version of the file goes.
pub struct Place(NamedTempFile);

impl Config {
    /// Waits until no other command changes the file.
    ///
    /// # Errors
    /// The lock's file cannot be made (LC0619), or is held for too long (LC0877).
    pub async fn lock(&self) -> Result<ConfigLock> {
        let path = self.lock_path();
        let failed = |error| Error::file("lock", &path, error);
        let file = self.lock_file().map_err(failed)?;
        let end = Instant::now() + LOCK_WAIT_MAX;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(ConfigLock(file)),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
                Err(TryLockError::WouldBlock) if Instant::now() >= end => {
                    let (path, seconds) = (path.display(), LOCK_WAIT_MAX.as_secs());
                    bail!("LC0877", "another command has held {path} for {seconds} seconds: it renews a login, or hangs. End it, and try again");
                }
                Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_PAUSE).await,
            }
        }
    }

    fn lock_file(&self) -> std::io::Result<File> {
        let path = self.lock_path();
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(path)
    }

    /// Writes down whose an older file's token is, unless another command changes the file: it does that too. A file that cannot
    /// be written is adopted anew by every command, always with the same result.
    pub(super) fn save_adopted(&mut self) -> Result<()> {
        let file = self.lock_file().ok();
        if let Some(file) = file.filter(|file| file.try_lock().is_ok()) {
            let lock = ConfigLock(file);
            self.read_again(&lock)?;
            if let Err(error) = self.save() {
                remark!("warning: {error}");
            }
        }
        Ok(())
    }

    /// Changes the file as it is now, which others may have changed since it was read.
    pub async fn update(&mut self, change: impl FnOnce(&mut Config)) -> Result<()> {
        let change = |now: &mut Config| {
            change(now);
            Ok(())
        };
        self.try_update(change).await
    }

    /// The same with a change that may not fit the file as it is now.
    ///
    /// # Errors
    /// As `change`; the file stays as it is.
    pub async fn try_update(
        &mut self,
        change: impl FnOnce(&mut Config) -> Result<()>,
    ) -> Result<()> {
        let lock = self.lock().await?;
        self.read_again(&lock)?;
        change(self)?;
        self.save()
    }

    /// Makes sure that the file can be replaced: by one that is there already, with room for what it will have more.
    pub fn make_place(&self, _: &ConfigLock) -> Result<Place> {
        let make = || -> std::io::Result<Place> {
            let mut file = self.temporary_file()?;
            let bytes = self.document.to_string().len() + PLACE_BYTES;
            file.write_all(&vec![b' '; bytes])?;
            file.as_file().sync_all()?;
            Ok(Place(file))
        };
        make().or_cannot("write", &self.path)
    }

    /// Changes the file, which was read with the lock, and writes it to its place.
    pub fn update_in(&mut self, place: Place, change: impl FnOnce(&mut Config)) -> Result<()> {
        change(self);
        self.save_in(place.0)
    }

    /// What is in the file now.
    pub fn read_again(&mut self, _: &ConfigLock) -> Result<()> {
        if let Some(now) = Config::read(&self.path)? {
            *self = now;
        }
        Ok(())
    }

    /// Beside the file, which is replaced as a whole.
    fn lock_path(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".lock");
        PathBuf::from(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_others_have_changed_stays() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("cli.toml");
        let mut one = Config::load(&path).expect("loaded");
        let mut other = Config::load(&path).expect("loaded");
        let first = one.update(|config| config.set_token("http://a", "1"));
        first.await.expect("changed");
        let lock = other.lock().await.expect("locked");
        let waiting = one.update(|config| config.set_token("http://b", "2"));
        let mut waiting = std::pin::pin!(waiting);
        let early = tokio::time::timeout(LOCK_PAUSE * 4, waiting.as_mut()).await;
        early.expect_err("it waits for the lock");
        other.read_again(&lock).expect("read");
        let place = other.make_place(&lock).expect("a place");
        let third = other.update_in(place, |config| config.set_token("http://c", "3"));
        third.expect("changed");
        drop(lock);
        waiting.await.expect("changed");
        let logins = Config::load(&path).expect("loaded").logins();
        let origins: Vec<_> = logins.iter().map(|(origin, _)| &**origin).collect();
        assert_eq!(origins, ["http://a", "http://c", "http://b"]);
    }
}
