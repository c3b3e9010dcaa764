//! Of the commands that remove backups of a place there is one at a time, and no backup is completed meanwhile.

use std::fmt::Display;
use std::fs::{File, TryLockError};
use std::future::Future;
use std::path::Path;
use std::time::{Duration, SystemTime};

use lightcone_types::Timestamp;
use object_store::aws::AmazonS3;
use object_store::{Error as S3Error, ObjectStore as _, ObjectStoreExt as _, PutMode};
use rustix::fs::{Mode, OFlags};
use tokio::time::{sleep, Instant};

use super::place::{create_directory, object_path, refused, Store};
use crate::error::{Error, Result};
use crate::output::remark;

/// An object of S3. Of a directory, `manifests` itself is locked.
const LOCK: &str = "manifests/lock";
/// Backups are completed beside a lock that is older.
const LOCK_AGE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// A command that removes backups waits so long for another one; one that has made a backup, which would be lost, so long.
pub(super) const REMOVE_WAIT_MAX: Duration = Duration::from_secs(60);
pub(super) const COMPLETE_WAIT_MAX: Duration = Duration::from_secs(60 * 60);
/// They look so often.
const PAUSE: Duration = Duration::from_millis(500);
/// What is shown of who holds it.
const OWNER_CHARS_MAX: usize = 200;
/// The status of a command that Ctrl-C has ended, as shells have it.
const INTERRUPTED: u8 = 130;

/// What a command does with the backups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// In S3, who makes backups need not have the right to remove objects: he takes no lock, and only looks for one.
    Complete,
    Remove,
}

enum Held {
    /// The lock goes with the process, however that ends.
    Directory(#[expect(dead_code, reason = "the lock goes with the file")] File),
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
        let (owner, end, mut is_told) = (owner(), Instant::now() + wait_max, false);
        let held = loop {
            if let Some(held) = self.try_hold(change, &owner).await? {
                break held;
            }
            if Instant::now() >= end {
                return Err(self.is_held().await.into());
            }
            if !std::mem::replace(&mut is_told, true) {
                let place = self.shown("");
                remark!("Another command changes the backups in {place}; waiting for it to end.");
            }
            sleep(PAUSE).await;
        };
        if !matches!(held, Held::Object) {
            return work.await;
        }
        let done = tokio::select! {
            done = work => done,
            () = crate::signals::stop(true) => Err(Error::Exit(INTERRUPTED).into()),
        };
        if let Err(error) = self.release(&owner).await {
            remark!("warning: the lock of the place stays there: {error}");
        }
        done
    }

    /// None: another command has it.
    async fn try_hold(&self, change: Change, owner: &str) -> Result<Option<Held>> {
        match self {
            Store::Directory(path) => Ok(hold_directory(&path.join("manifests"), change)),
            Store::S3 { store, prefix, .. } if change == Change::Complete => {
                self.look(store.head(&object_path(prefix, LOCK)).await)
            }
            Store::S3 { store, prefix, .. } => self.hold_object(store, prefix, owner).await,
        }
    }

    fn look(&self, found: Result<object_store::ObjectMeta, S3Error>) -> Result<Option<Held>> {
        let shown = self.shown(LOCK);
        match found {
            Ok(found) => {
                let age = SystemTime::from(found.last_modified).elapsed();
                let is_old = age.is_ok_and(|age| age > LOCK_AGE_MAX);
                if is_old {
                    remark!("warning: {shown} is older than a day and keeps no one waiting; if its command was killed, remove it");
                }
                Ok(is_old.then_some(Held::Nothing))
            }
            Err(S3Error::NotFound { .. }) => Ok(Some(Held::Nothing)),
            Err(error) if has_no_locks(&error) => Ok(Some(unguarded(&shown, &error))),
            Err(error) => Err(refused("read", shown)(error)),
        }
    }

    async fn hold_object(
        &self,
        store: &AmazonS3,
        prefix: &str,
        owner: &str,
    ) -> Result<Option<Held>> {
        let (path, shown) = (object_path(prefix, LOCK), self.shown(LOCK));
        let put = || store.put_opts(&path, owner.to_owned().into(), PutMode::Create.into());
        match put().await {
            Ok(_) => {
                // There are stores that look at no condition.
                if !matches!(put().await, Err(S3Error::AlreadyExists { .. })) {
                    unguarded(&shown, &"the storage knows no conditional requests");
                }
                Ok(Some(Held::Object))
            }
            // The answer to the first attempt to write it may have been lost.
            Err(S3Error::AlreadyExists { .. }) => {
                let found = self.get(LOCK).await.ok().flatten();
                let is_own = found.as_deref() == Some(owner.as_bytes());
                Ok(is_own.then_some(Held::Object))
            }
            Err(error) if has_no_locks(&error) => Ok(Some(unguarded(&shown, &error))),
            Err(error) => Err(refused("write", shown)(error)),
        }
    }

    /// Who was taken for killed has it no more.
    async fn release(&self, owner: &str) -> Result<()> {
        match self.get(LOCK).await? {
            Some(found) if found == owner.as_bytes() => self.remove(&[LOCK.to_owned()]).await,
            _ => Ok(()),
        }
    }

    async fn is_held(&self) -> Error {
        let (place, lock) = (self.shown(""), self.shown(LOCK));
        if let Store::Directory(_) = self {
            return coded!(
                "LC0895",
                "another command changes the backups in {place}. Try again when it has ended"
            );
        }
        let owner = self.get(LOCK).await.ok().flatten().unwrap_or_default();
        let owner = String::from_utf8_lossy(&owner);
        let shown = owner.chars().filter(|char| !char.is_control());
        let owner: String = shown.take(OWNER_CHARS_MAX).collect();
        coded!("LC0895", "another command changes the backups in {place}: `{owner}`. Try again when it has ended; if it was killed, remove {lock}")
    }
}

/// The right to read the directory is enough to lock it.
fn hold_directory(manifests: &Path, change: Change) -> Option<Held> {
    if change == Change::Complete {
        // Why it cannot be made, the manifest's file will say.
        let _ = create_directory(manifests);
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let shown = manifests.display();
    let directory = match rustix::fs::open(manifests, flags, Mode::empty()) {
        Ok(directory) => File::from(directory),
        // There is nothing to remove.
        Err(rustix::io::Errno::NOENT) => return Some(Held::Nothing),
        Err(error) => return Some(unguarded(&shown, &error)),
    };
    match directory.try_lock() {
        Ok(()) => Some(Held::Directory(directory)),
        Err(TryLockError::WouldBlock) => None,
        Err(TryLockError::Error(error)) => Some(unguarded(&shown, &error)),
    }
}

/// The storage knows no conditional requests, or does not let this caller have the lock.
fn has_no_locks(error: &S3Error) -> bool {
    match error {
        S3Error::NotImplemented { .. } | S3Error::PermissionDenied { .. } => true,
        // The status has no kind of its own.
        error => error.to_string().contains("501 Not Implemented"),
    }
}

/// Not all places have locks.
fn unguarded(lock: &dyn Display, why: &dyn Display) -> Held {
    remark!("warning: nothing keeps other commands from removing backups meanwhile, as {lock} cannot be locked: {why}");
    Held::Nothing
}

/// No two commands have the same. Only those that remove backups make an object.
fn owner() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let host = host.map_or("an unknown machine".to_owned(), |name| {
        name.trim().to_owned()
    });
    let (process, since) = (std::process::id(), Timestamp::now().to_rfc3339());
    format!("spacetime backup prune, process {process} on {host}, since {since}")
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
        let names = || std::fs::read_dir(root.path()).expect("a directory");
        // Nothing is written where there are no backups.
        tried(Change::Remove).await.expect("it is free");
        assert_eq!(names().count(), 0);
        tried(Change::Complete).await.expect("it is free");
        // Of others, who have nothing to do with it.
        std::fs::create_dir(root.path().join("lock")).expect("made");
        let other = async {
            for change in [Change::Remove, Change::Complete] {
                let why = tried(change).await.expect_err("it is held").to_string();
                assert!(why.ends_with("when it has ended [LC0895]"), "{why}");
                assert!(why.contains(&store.shown("")), "{why}");
            }
            Err::<(), Error>(coded!("LC0888", "it fails"))
        };
        let held = store.alone(Change::Remove, Duration::ZERO, other).await;
        assert!(held.expect_err("as told").to_string().contains("LC0888"));
        tried(Change::Complete).await.expect("it is free");
        tried(Change::Remove).await.expect("it is free");
        // No file was made for it.
        assert_eq!(names().count(), 2);
        assert!(store.list("manifests").await.expect("a list").is_empty());
        // That of S3 is none of those that are removed.
        assert!(!lightcone_backup::is_file_name(LOCK));
        // What cannot be locked keeps no one away.
        let manifests = root.path().join("manifests");
        std::fs::remove_dir(&manifests).expect("removed");
        std::os::unix::fs::symlink("lock", &manifests).expect("made");
        for change in [Change::Remove, Change::Complete] {
            tried(change).await.expect("it is done without a lock");
        }
    }
}
