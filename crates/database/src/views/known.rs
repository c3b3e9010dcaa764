//! What is kept of a query's result to bring the rows of an instance up to date from what its query finds more often, or less.

use lightcone_engine::Datastore;
use lightcone_query::LiveGroups;

use super::changes::Change;
use super::failures::ViewError;
use super::host::{Evaluation, InstanceKey, ViewHost, NO_ROWS};
use crate::error::Refusal;

/// What more than rows is in the bytes of what is known.
const KEPT_TOO: &str = ", with what is needed to keep them up to date,";

/// What is known of a result.
pub(super) enum Known {
    /// The rows that are found, each once.
    Rows(KnownRows),
    /// Aggregates of what is found.
    Groups(Box<LiveGroups>),
}

/// Rows, of which the instance has each once.
#[derive(Default)]
pub(super) struct KnownRows {
    /// How often a row is found beyond the first time. Clients choose rows: they are hashed with a secret.
    repeated: hashbrown::HashMap<Box<[u8]>, isize>,
    /// A join finds a row once for each match, a table has it once.
    may_repeat: bool,
    /// Of all that is found, the repetitions included.
    bytes: usize,
}

impl Known {
    /// Takes changes in. What comes is counted first: so a value that stays is never looked for.
    pub fn apply(&mut self, changes: &[Change<'_>]) {
        let come = changes.iter().filter(|(_, more)| *more > 0);
        let gone = changes.iter().filter(|(_, more)| *more < 0);
        match self {
            Known::Rows(rows) => rows.add_bytes(changes),
            Known::Groups(groups) => {
                come.for_each(|(row, _)| groups.add(row));
                gone.for_each(|(row, _)| groups.remove(row));
            }
        }
    }

    /// Makes what was found the rows of the instance.
    ///
    /// # Errors
    /// There are too many bytes, and those of [`Datastore::replace_view_rows`].
    pub fn replace(
        &mut self,
        evaluation: &mut Evaluation<'_>,
        InstanceKey { table, instance }: InstanceKey,
        mut found: Found,
    ) -> Result<(), ViewError> {
        match self {
            Known::Rows(rows) => rows.count(&found),
            Known::Groups(groups) => {
                let changed = Changed::of(groups);
                debug_assert!(changed.gone.is_empty(), "there was nothing that could go");
                changed.come.iter().for_each(|row| found.push(row));
            }
        }
        self.check_bytes(evaluation.host)?;
        let datastore = &mut evaluation.datastore;
        Ok(datastore.replace_view_rows(table, &instance, &found.into_array())?)
    }

    /// Brings the rows of the instance up to date after [`apply`](Self::apply).
    ///
    /// # Errors
    /// There are too many bytes, and those of [`Datastore::change_view_rows`]. All is to be found again then.
    pub fn write(
        &mut self,
        Evaluation {
            host, datastore, ..
        }: &mut Evaluation<'_>,
        key: InstanceKey,
        changes: Vec<Change<'_>>,
    ) -> Result<(), ViewError> {
        self.check_bytes(*host)?;
        let changed = match self {
            Known::Rows(rows) => return rows.write(datastore, key, changes),
            Known::Groups(groups) => Changed::of(groups),
        };
        let (gone, come) = (changed.gone.iter(), changed.come.iter());
        let (gone, come) = (gone.map(|row| &**row), come.map(|row| &**row));
        Ok(datastore.change_view_rows(key.table, &key.instance, gone, come, |_| {})?)
    }

    pub fn bytes(&self) -> usize {
        match self {
            Known::Rows(rows) => rows.bytes,
            Known::Groups(groups) => groups.memory_bytes(),
        }
    }

    /// The rows of the result are part of what is known of it, so this bounds both.
    fn check_bytes(&self, host: ViewHost<'_>) -> Result<(), ViewError> {
        let (bytes, with_what) = match self {
            Known::Rows(_) => (self.bytes(), ""),
            Known::Groups(_) => (self.bytes(), KEPT_TOO),
        };
        let bytes_max = host.shared.options.limits.view_bytes_max;
        match bytes > bytes_max {
            false => Ok(()),
            true => Err(Refusal(format!("its rows{with_what} have more bytes than limits.view-bytes-max, which is {bytes_max}")).into()),
        }
    }
}

/// Rows that an instance has no more, and that it has now.
#[derive(Default)]
struct Changed {
    gone: Vec<Box<[u8]>>,
    come: Vec<Box<[u8]>>,
}

impl Changed {
    fn of(groups: &mut LiveGroups) -> Changed {
        let mut changed = Changed::default();
        for change in groups.take_changes() {
            changed.gone.extend(change.gone);
            changed.come.extend(change.come);
        }
        changed
    }
}

/// Rows that were found, as the BSATN array that an instance is replaced with.
pub(super) struct Found {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Found {
    pub fn new() -> Found {
        Found {
            bytes: NO_ROWS.to_vec(),
            ends: Vec::new(),
        }
    }

    pub fn push(&mut self, row: &[u8]) {
        self.bytes.extend_from_slice(row);
        self.ends.push(self.bytes.len());
    }

    pub fn bytes_len(&self) -> usize {
        self.bytes.len()
    }

    fn into_array(mut self) -> Vec<u8> {
        let count = self.ends.len() as u32;
        self.bytes[..NO_ROWS.len()].copy_from_slice(&count.to_le_bytes());
        self.bytes
    }
}

impl KnownRows {
    pub fn new(may_repeat: bool) -> KnownRows {
        KnownRows {
            may_repeat,
            ..KnownRows::default()
        }
    }

    fn count(&mut self, found: &Found) {
        self.bytes = found.bytes.len();
        if !self.may_repeat {
            return;
        }
        let mut start = NO_ROWS.len();
        let mut rows = Vec::with_capacity(found.ends.len());
        for &end in &found.ends {
            rows.push(&found.bytes[start..end]);
            start = end;
        }
        rows.sort_unstable();
        for equal in rows.chunk_by(|a, b| a == b).filter(|rows| rows.len() > 1) {
            let more = equal.len() as isize - 1;
            self.repeated.insert(equal[0].into(), more);
        }
    }

    fn add_bytes(&mut self, changes: &[Change<'_>]) {
        let more = changes.iter().map(|(row, more)| row.len() as isize * more);
        self.bytes = self.bytes.saturating_add_signed(more.sum());
    }

    fn write(
        &mut self,
        datastore: &mut Datastore,
        InstanceKey { table, instance }: InstanceKey,
        mut changes: Vec<Change<'_>>,
    ) -> Result<(), ViewError> {
        // Rows of a table keep their order.
        if self.may_repeat {
            changes.sort_unstable_by_key(|(row, _)| *row);
            changes.dedup_by(|next, kept| {
                let is_same = next.0 == kept.0;
                if is_same {
                    kept.1 += next.1;
                }
                is_same
            });
        }
        let (mut gone, mut come) = (Vec::new(), Vec::new());
        for (row, more) in changes {
            if more > 0 {
                self.repeat(row, more - 1);
                come.push(row);
            } else if more < 0 && !self.repeat(row, more) {
                gone.push(row);
            }
        }
        let (gone, come) = (gone.into_iter(), come.into_iter());
        Ok(
            datastore.change_view_rows(table, &instance, gone, come, |row| {
                self.repeat(row, 1);
            })?,
        )
    }

    /// A row is found so much more often beyond the first time, or less. False: it is not found any more.
    fn repeat(&mut self, row: &[u8], more: isize) -> bool {
        if more == 0 {
            return true;
        }
        let after = self.repeated.get(row).copied().unwrap_or(0) + more;
        if after > 0 {
            self.repeated.insert(row.into(), after);
        } else {
            self.repeated.remove(row);
        }
        after >= 0
    }
}
