//! Of the commands that remove backups of a place there is one at a time, and no backup is completed meanwhile.

use std::fs::{File, TryLockError};
use std::future::Future;
use std::io::Write as _;
use std::time::Duration;

use lightcone_types::Timestamp;
use object_store::{Error as S3Error, ObjectStore as _, PutMode};
use tokio::time::{sleep, Instant};

use super::place::{cannot, lock_file, object_path, refused, Store};
use crate::error::{Error, Result};
use crate::output::remark;

const LOCK: &str = "lock";
/// A command waits so long for another one, and looks so often.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(500);
/// What is shown of who holds it.
const OWNER_CHARS_MAX: usize = 200;

/// What a command does with the backups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// In S3, who makes backups need not have the right to remove objects: he takes no lock, and only looks for one.
    Complete,
    Remove,
}

enum Held {
    /// The lock goes with the process, however that ends.
    File(#[expect(dead_code, reason = "the lock goes with the file")] File),
    Object,
    Nothing,
}

impl Store {
    /// Does work while no other command removes backups here.
    ///
    /// # Errors
    /// Those of the work; another one does so for too long (LC0895); the place cannot be used.
    pub(super) async fn alone<T, E: From<Error>>(
        &self,
        change: Change,
        wait_max: Duration,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let (owner, end) = (owner(change), Instant::now() + wait_max);
        let held = loop {
            if let Some(held) = self.try_hold(change, &owner).await? {
                break held;
            }
            if Instant::now() >= end {
                return Err(self.is_held().await.into());
            }
            sleep(PAUSE).await;
        };
        let done = work.await;
        if matches!(held, Held::Object) {
            if let Err(error) = self.remove(&[LOCK.to_owned()]).await {
                remark!("warning: the lock of the place stays there: {error}");
            }
        }
        done
    }

    /// None: another command has it.
    async fn try_hold(&self, change: Change, owner: &str) -> Result<Option<Held>> {
        let shown = self.shown(LOCK);
        match self {
            // There is nothing to remove.
            Store::Directory(path) if !path.join("manifests").is_dir() => Ok(Some(Held::Nothing)),
            Store::Directory(path) => {
                let mut file = lock_file(&path.join(LOCK)).map_err(cannot("lock", &shown))?;
                match file.try_lock() {
                    Ok(()) => {}
                    Err(TryLockError::WouldBlock) => return Ok(None),
                    Err(TryLockError::Error(error)) => return Ok(Some(unguarded(&shown, &error))),
                }
                // It is for others to read; who removes backups may do so as the disk is full.
                let _ = file
                    .set_len(0)
                    .and_then(|()| file.write_all(owner.as_bytes()));
                Ok(Some(Held::File(file)))
            }
            Store::S3 { .. } if change == Change::Complete => {
                let is_held = self.get(LOCK).await?.is_some();
                Ok((!is_held).then_some(Held::Nothing))
            }
            Store::S3 { store, prefix, .. } => {
                let (path, bytes) = (object_path(prefix, LOCK), owner.to_owned().into());
                match store.put_opts(&path, bytes, PutMode::Create.into()).await {
                    Ok(_) => Ok(Some(Held::Object)),
                    // The answer to the first attempt to write it may have been lost.
                    Err(S3Error::AlreadyExists { .. }) => {
                        let is_own = self.get(LOCK).await?.as_deref() == Some(owner.as_bytes());
                        Ok(is_own.then_some(Held::Object))
                    }
                    Err(error @ S3Error::NotImplemented { .. }) => {
                        Ok(Some(unguarded(&shown, &error)))
                    }
                    Err(error) => Err(refused("write", shown)(error)),
                }
            }
        }
    }

    async fn is_held(&self) -> Error {
        let owner = self.get(LOCK).await.ok().flatten().unwrap_or_default();
        let owner = String::from_utf8_lossy(&owner);
        let shown = owner.chars().filter(|char| !char.is_control());
        let owner: String = shown.take(OWNER_CHARS_MAX).collect();
        let (place, lock) = (self.shown(""), self.shown(LOCK));
        coded!("LC0895", "another command changes the backups in {place}: `{owner}`. Try again when it has ended; if it was killed, remove {lock}")
    }
}

/// Not all places have locks.
fn unguarded(lock: &str, error: &dyn std::error::Error) -> Held {
    remark!("warning: nothing keeps other commands from removing backups meanwhile, as {lock} cannot be locked: {error}");
    Held::Nothing
}

/// No two commands have the same.
fn owner(change: Change) -> String {
    let command = match change {
        Change::Complete => "create",
        Change::Remove => "prune",
    };
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let host = host.map_or("an unknown machine".to_owned(), |name| {
        name.trim().to_owned()
    });
    let (process, since) = (std::process::id(), Timestamp::now().to_rfc3339());
    format!("spacetime backup {command}, process {process} on {host}, since {since}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_at_a_time_removes_backups() {
        let root = tempfile::tempdir().expect("a directory");
        let store = Store::Directory(root.path().to_owned());
        let nothing = async || Ok::<(), Error>(());
        let tried = async |change| store.alone(change, Duration::ZERO, nothing()).await;
        // Nothing is written where there are no backups.
        tried(Change::Remove).await.expect("it is free");
        assert!(!root.path().join(LOCK).exists());

        let put = store.put("manifests/x.json", Vec::new()).await;
        put.expect("written");
        // Of a command that was killed.
        let put = store.put(LOCK, b"x".repeat(1_000)).await;
        put.expect("written");
        let other = async {
            for change in [Change::Remove, Change::Complete] {
                let why = tried(change).await.expect_err("it is held").to_string();
                let owner = format!(
                    "`spacetime backup prune, process {} on ",
                    std::process::id()
                );
                assert!(why.contains(&owner) && why.contains("[LC0895]"), "{why}");
                assert!(why.contains(&store.shown(LOCK)), "{why}");
            }
            Err::<(), Error>(coded!("LC0888", "it fails"))
        };
        let held = store.alone(Change::Remove, Duration::ZERO, other).await;
        assert!(held.expect_err("as told").to_string().contains("LC0888"));
        tried(Change::Complete).await.expect("it is free");
        tried(Change::Remove).await.expect("it is free");
    }
}
