//! A database that follows another one: frames of its leader are its only transactions. Queries and subscriptions are answered as by any
//! other database; what would write is refused. `docs/design/commits.md` says what it can rely on.

use lightcone_backup::{Frame, Place};
use lightcone_engine::record::Records;
use lightcone_engine::RecoveryError;
use lightcone_log::{Epoch, FrameRef, LocalLog, Log as _, LogError, LogOffset};

use crate::environment::elsewhere;
use crate::error::Error;
use crate::handle::{DatabaseHandle, ShutdownReason};
use crate::inbox::Input;
use crate::open::{make_directory, open_log};
use crate::options::DatabaseOptions;

/// A copy of a database, in a directory of its own, that takes the frames of its leader. One that is dropped without being
/// [closed](Self::close) stops a moment later.
pub struct Follower {
    options: DatabaseOptions,
    /// None before the first transaction has come, which makes the database.
    database: Option<DatabaseHandle>,
    place: Place,
    /// Leaders with an older one are not listened to.
    epoch: Epoch,
}

impl Follower {
    /// Opens what there is of it in the directory of the options: nothing yet, what it had, or a database that was its own leader.
    /// Identity and owner are those of the database that it follows. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// Damage, or a program that does not load.
    pub async fn open(options: DatabaseOptions) -> Result<Follower, Error> {
        let mut follower = Follower {
            options,
            database: None,
            place: Place::default(),
            epoch: Epoch::FIRST,
        };
        follower.reopen(|_, _| Ok(())).await?;
        Ok(follower)
    }

    /// The place behind the last frame that it has, from which the leader is to go on.
    pub fn place(&self) -> Place {
        self.place
    }

    /// The database, as it is up to [`place`](Self::place). Another one takes its place when tables, program or settings change: its
    /// clients get Close 1001 then, and connect again.
    pub fn database(&self) -> Option<&DatabaseHandle> {
        self.database.as_ref()
    }

    /// Takes a frame of the leader, which has this epoch. On return it is durable, and clients of this database see it. Of frames that
    /// only change rows they hear as clients of the leader do; any other change opens the database anew.
    ///
    /// # Errors
    /// [`LogError::Fenced`] if there was a newer leader, and [`LogError::BadFrame`] if the frame does not follow: then nothing has
    /// changed. After any other one, or if this is not awaited to its end, the follower is to be opened anew.
    pub async fn take(&mut self, leader: Epoch, frame: Frame) -> Result<(), Error> {
        if leader < self.epoch {
            return Err(self.fenced(leader));
        }
        let epoch = frame.epoch;
        if epoch > leader {
            let reason = format!("it has epoch {epoch}, and its leader has {leader}");
            return Err(LogError::BadFrame { reason }.into());
        }
        let behind = self.place.behind(&frame);
        let behind = behind.map_err(|reason| LogError::BadFrame { reason })?;
        let only_rows = changes_only_rows(&frame)?;
        match self.database.as_ref().filter(|_| only_rows) {
            Some(database) => {
                database.follow(leader, frame).await?;
                (self.place, self.epoch) = (behind, leader);
                Ok(())
            }
            None => {
                self.reopen(move |_, log| {
                    log.follow(
                        leader,
                        FrameRef {
                            first_offset: frame.first_offset,
                            count: frame.count,
                            epoch: frame.epoch,
                            hash: frame.hash,
                            payload: &frame.payload,
                        },
                    )?;
                    Ok(log.sync()?)
                })
                .await
            }
        }
    }

    /// Takes back all from a place on: transactions that this database had made, or taken, and its leader has not.
    ///
    /// # Errors
    /// [`LogError::CutAway`] if the log has another history there; [`LogError::OutOfRange`] if it begins behind the place, or a snapshot
    /// has some of them, so that the follower has to begin anew. Nothing is taken back then.
    pub async fn rewind(&mut self, to: Place) -> Result<(), Error> {
        let offset = to.offset;
        self.reopen(move |options, log| {
            if log.feed().hash_at(offset)? != Some(to.hash) {
                return Err(LogError::CutAway { offset }.into());
            }
            let newest = options.snapshots()?.offsets()?.last().copied();
            if let Some(snapshot_end) = newest.filter(|newest| *newest > offset) {
                let error = LogError::OutOfRange {
                    wanted: offset,
                    oldest: snapshot_end,
                    next: log.tail().next_offset,
                };
                return Err(error.into());
            }
            log.truncate_from(offset)?;
            Ok(())
        })
        .await
    }

    /// Makes it the leader, in a new epoch: from now on it takes writes, and refuses frames of all leaders before.
    ///
    /// # Errors
    /// [`LogError::Fenced`] if there was a leader in this epoch, or a newer one: nothing has changed then. Or the disk.
    pub async fn promote(&mut self, epoch: Epoch) -> Result<DatabaseHandle, Error> {
        if epoch <= self.epoch {
            return Err(self.fenced(epoch));
        }
        self.close().await;
        let options = self.options.clone();
        let promoted = elsewhere(self.options.environment(), move || {
            let (mut log, _) = open_log(&options)?;
            log.raise_epoch(epoch)?;
            drop(log);
            DatabaseHandle::open(options)
        });
        promoted.await.unwrap_or_else(|| Err(thread_failed()))
    }

    /// Stops the database. What it has stays.
    pub async fn close(&mut self) {
        if let Some(database) = self.database.take() {
            database.clone().shutdown(ShutdownReason::Suspended).await;
            database.ended().await;
        }
    }

    fn fenced(&self, epoch: Epoch) -> Error {
        let current = self.epoch;
        LogError::Fenced { epoch, current }.into()
    }

    /// Has the log changed while the database is closed, and opens it again.
    async fn reopen(
        &mut self,
        change: impl FnOnce(&DatabaseOptions, &mut LocalLog) -> Result<(), Error> + Send + 'static,
    ) -> Result<(), Error> {
        self.close().await;
        let options = self.options.clone();
        let opened = elsewhere(self.options.environment(), move || {
            make_directory(&options)?;
            let (mut log, _) = open_log(&options)?;
            let changed = change(&options, &mut log);
            let tail = log.tail();
            drop(log);
            let has_begun = tail.next_offset > LogOffset::FIRST;
            let database = has_begun.then(|| DatabaseHandle::open_as(options, true));
            Ok::<_, Error>((tail, database.transpose()?, changed))
        });
        let (tail, database, changed) = opened.await.ok_or_else(thread_failed)??;
        self.database = database;
        self.epoch = tail.epoch;
        self.place = Place {
            offset: tail.next_offset,
            hash: tail.hash,
        };
        changed
    }
}

impl DatabaseHandle {
    /// Applies a frame to a database that follows, and returns when it is durable.
    async fn follow(&self, leader: Epoch, frame: Frame) -> Result<(), Error> {
        let shared = &self.shared;
        let gone = || Error::Other(shared.status.not_durable());
        let permit = shared.inbox.capacity.permit(0).await;
        let permit = permit.map_err(|_| gone())?;
        let follow = |waiter| Input::Follow(Box::new((leader, frame)), waiter);
        let followed = shared.ask(Some(permit), true, follow).await;
        followed.map_err(|_| gone())?
    }
}

/// Whether a running database can apply it.
fn changes_only_rows(frame: &Frame) -> Result<bool, Error> {
    for record in Records::new(&frame.payload) {
        let record = record.map_err(|error| RecoveryError::Record {
            offset: frame.first_offset,
            detail: error.to_string(),
        })?;
        if !record.changes_only_rows() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn thread_failed() -> Error {
    Error::Other("the thread that opened the database failed".to_owned())
}
