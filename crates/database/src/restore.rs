//! Bringing back a backup as a new database (06 §5.13c): from the items that a client sends to a directory that can be opened.
//!
//! What is sent is taken for hostile: pages, records and the catalog are checked as recovery checks them, and how much memory they take
//! is bounded by what the machine has.

use std::mem;

use lightcone_backup::{Decoder, Frame, Head, Item, Place, SnapshotHead, FORMAT};
use lightcone_engine::{CommitOutput, CopyRoom, Datastore, RecoveryError, Replayer};
use lightcone_log::{LocalLog, Log as _, LogError, LogOffset};
use lightcone_snapshot::{SnapshotError, SnapshotStore, SnapshotWriter};
use lightcone_types::{Hash, Identity};

use crate::commit::seal;
use crate::error::Error;
use crate::open::log_options;
use crate::options::{DatabaseOptions, HostKind};

/// Why nothing was brought back.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error("what was sent is no backup: {0} [LC0550]")]
    Malformed(String),
    #[error("{0} [LC0550]")]
    Unusable(RecoveryError),
    #[error("the disk is nearly full, and what is left is kept for running databases; free some space and try again [LC0125]")]
    NoRoom,
    #[error(transparent)]
    Failed(#[from] Error),
}

impl From<SnapshotError> for RestoreError {
    fn from(error: SnapshotError) -> RestoreError {
        Error::from(error).into()
    }
}

impl From<LogError> for RestoreError {
    fn from(error: LogError) -> RestoreError {
        Error::from(error).into()
    }
}

impl From<RecoveryError> for RestoreError {
    fn from(error: RecoveryError) -> RestoreError {
        RestoreError::Unusable(error)
    }
}

/// The program of a database that was brought back.
#[derive(Clone, Copy, Debug)]
pub struct Restored {
    pub kind: HostKind,
    pub program: Hash,
}

/// A database that is being brought back. Dropped before its end, it leaves files that no database has.
pub struct Restore {
    options: DatabaseOptions,
    /// The most bytes that its pages may have, asked when they are all there.
    bytes_max: Box<dyn Fn() -> u64 + Send>,
    decoder: Decoder,
    store: SnapshotStore,
    stage: Stage,
    head: Option<Head>,
    /// Where the frames so far lead.
    place: Place,
}

enum Stage {
    /// Nothing but the head has come.
    Begun,
    /// With how many have come.
    Objects(SnapshotWriter, SnapshotHead, usize),
    Frames(Replayer),
    Ended(Replayer),
    /// Something failed.
    Over,
}

impl Restore {
    /// Begins in the directory of the options, which has nothing in it. `bytes_max` says how much memory there is for its pages. Blocks,
    /// as all here does.
    ///
    /// # Errors
    /// The disk.
    pub fn begin(
        options: DatabaseOptions,
        bytes_max: impl Fn() -> u64 + Send + 'static,
    ) -> Result<Restore, RestoreError> {
        // There is one snapshot at a time, which goes when the next one is there.
        let store = options.snapshots()?.keeping(1);
        Ok(Restore {
            options,
            bytes_max: Box::new(bytes_max),
            decoder: Decoder::default(),
            store,
            stage: Stage::Begun,
            head: None,
            place: Place::default(),
        })
    }

    /// Bytes in memory of what has come and was not used yet.
    pub fn pending(&self) -> usize {
        self.decoder.pending()
    }

    /// Takes what has come.
    ///
    /// # Errors
    /// It is no backup, it does not make sense, or the disk. There is no way back.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), RestoreError> {
        self.decoder.push(bytes);
        while let Some(item) = self.decoder.next().map_err(RestoreError::Malformed)? {
            self.item(item)?;
        }
        Ok(())
    }

    fn item(&mut self, item: Item) -> Result<(), RestoreError> {
        let malformed = |text: &str| Err(RestoreError::Malformed(text.to_owned()));
        match (item, mem::replace(&mut self.stage, Stage::Over)) {
            (Item::Head(head), Stage::Begun) if self.head.is_none() => {
                if head.format != FORMAT {
                    return malformed("it has a format that this version does not know");
                }
                self.place = head.from;
                self.head = Some(head);
                self.stage = Stage::Begun;
            }
            _ if self.head.is_none() => return malformed("it does not begin with its head"),
            (Item::Snapshot(snapshot), Stage::Begun) => {
                let writer = self.store.begin(snapshot.offset)?;
                self.stage = Stage::Objects(writer, snapshot, 0);
            }
            (Item::Object(object), Stage::Objects(mut writer, snapshot, count)) => {
                if count >= snapshot.objects.len() {
                    return malformed("it has more objects than its snapshot names");
                }
                if !self.options.disk.has_room_for(object.len() as u64) {
                    return Err(RestoreError::NoRoom);
                }
                writer.put(&object)?;
                self.stage = Stage::Objects(writer, snapshot, count + 1);
            }
            (Item::Frame(frame), stage) => {
                let mut replayer = self.replayer(stage)?;
                self.frame(&mut replayer, &frame)?;
                self.stage = Stage::Frames(replayer);
            }
            (Item::End(place), stage) => {
                let replayer = self.replayer(stage)?;
                if place != self.place {
                    return malformed("its frames do not lead to where it ends");
                }
                self.stage = Stage::Ended(replayer);
            }
            (Item::Failed(why), _) => return malformed(&why),
            _ => return malformed("its parts come in another order than they should"),
        }
        Ok(())
    }

    /// Who applies the frames, when the first one comes.
    fn replayer(&mut self, stage: Stage) -> Result<Replayer, RestoreError> {
        let (datastore, offset) = match stage {
            Stage::Frames(replayer) => return Ok(replayer),
            Stage::Begun => (Datastore::new(), LogOffset::FIRST),
            Stage::Objects(writer, snapshot, _) => {
                writer.finish(&snapshot.engine)?;
                Datastore::of_snapshot(&mut self.store, (self.bytes_max)())?
            }
            Stage::Ended(_) | Stage::Over => {
                let text = "something follows its end".to_owned();
                return Err(RestoreError::Malformed(text));
            }
        };
        let end = self.head.as_ref().map_or(0, |head| head.end);
        Ok(Replayer::new(datastore, offset).until(LogOffset::new(end)))
    }

    fn frame(&mut self, replayer: &mut Replayer, frame: &Frame) -> Result<(), RestoreError> {
        let behind = self.place.behind(frame);
        self.place = behind.map_err(RestoreError::Malformed)?;
        replayer.apply(frame.first_offset, frame.count, &frame.payload)?;
        Ok(())
    }

    /// Makes it the database of the options, with their identity and owner: a snapshot, and a log that begins behind it.
    ///
    /// # Errors
    /// What has come is not whole or has no program, or the disk.
    pub fn finish(mut self) -> Result<Restored, RestoreError> {
        let malformed = |text: &str| RestoreError::Malformed(text.to_owned());
        let stage = mem::replace(&mut self.stage, Stage::Over);
        let (Stage::Ended(replayer), Some(head)) = (stage, &self.head) else {
            return Err(malformed("it is cut off"));
        };
        let end = LogOffset::new(head.end);
        if replayer.next_offset() != end || self.decoder.pending() > 0 {
            return Err(malformed("it does not lead to the place that it names"));
        }
        let mut datastore = replayer.finish()?;
        let record = datastore.module_record();
        let mut record = record.ok_or_else(|| malformed("it has no program"))?;
        record.database_identity = self.options.identity;
        record.owner_identity = self.options.owner;
        let restored = Restored {
            kind: HostKind::from_u8(record.program_kind),
            program: record.program_hash,
        };
        datastore.begin();
        let mut output = CommitOutput::default();
        let changed = datastore.set_module_record(&record);
        changed.map_err(Error::from)?;
        let now = self.options.commons.environment.now();
        // The identity may be that of a deleted database, whose streams the targets of its messages know.
        let renewed = datastore.renew_outbound_streams(now);
        renewed.map_err(Error::from)?;
        seal(&mut datastore, &mut output, now).map_err(Error::from)?;
        datastore.finish(&mut output);
        // The change of the identity is the transaction behind those of the backup.
        let next = end + 1;
        let has_room = || self.options.disk.has_room_for(0);
        let written = datastore.snapshot().write_while(
            &self.store,
            next,
            &CopyRoom::new(u64::MAX),
            has_room,
        )?;
        written.ok_or(RestoreError::NoRoom)?;
        self.store.prune(1)?;
        let log_options = lightcone_log::LogOptions {
            first_offset: next,
            ..log_options(&self.options)
        };
        let directory = self.options.log_directory();
        let storage = self.options.storage.clone();
        let (mut log, _) = LocalLog::open_on(storage, &directory, log_options)?;
        log.close()?;
        Ok(restored)
    }

    /// Whose it will be.
    pub fn identity(&self) -> Identity {
        self.options.identity
    }
}
