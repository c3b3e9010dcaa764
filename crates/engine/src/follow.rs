//! What records say, for those who have no tables: the catalog alone follows the log, so that each row is read by the schema that its
//! table has at that place.

use std::sync::Arc;

use lightcone_log::LogOffset;
use lightcone_schema::TableSchema;
use lightcone_snapshot::SnapshotStore;
use lightcone_types::TableId;

use crate::apply::{copy_of, of_tables, split_first_version};
use crate::datastore::Datastore;
use crate::error::RecoveryError;
use crate::record::{Group, GroupKind, Record};
use crate::recovery::load_newest;
use crate::system as st;

/// The tables of a database at a place of its log, without their rows.
#[derive(Default)]
pub struct Catalog(Datastore);

/// A part of what a record says, in its order.
pub enum Change<'a> {
    /// Rows or keys of a table that is like this now.
    Rows(&'a Arc<TableSchema>, &'a Group<'a>),
    /// A table was made, became another one, or is gone.
    Table {
        before: Option<Arc<TableSchema>>,
        now: Option<Arc<TableSchema>>,
        /// It took in all rows of this table, each with these bytes behind it.
        copied: Option<(Arc<TableSchema>, &'a [u8])>,
    },
}

/// Whether a system table says what the others are. Programs, for one, are large, and variables are told to no client.
fn is_of_catalog(table: TableId) -> bool {
    let others = [
        st::ST_MODULE_ID,
        st::ST_CLIENT_ID,
        st::ST_CONNECTION_CREDENTIALS_ID,
        st::ST_VAR_ID,
        st::ST_ENV_ID,
        st::ST_OUTBOUND_STREAM_ID,
        st::ST_OUTBOUND_MSG_ID,
        st::ST_INBOUND_STREAM_ID,
        st::ST_INBOUND_MSG_ID,
    ];
    table.0 <= st::SYSTEM_TABLE_ID_MAX && !others.contains(&table)
}

impl Catalog {
    /// The tables of the newest snapshot that has no transaction from `end` on, or those of a new database; and from which
    /// transaction on the log says how they went on.
    ///
    /// # Errors
    /// The disk, or an inconsistent catalog.
    pub fn until(
        snapshots: &mut SnapshotStore,
        end: LogOffset,
    ) -> Result<(Catalog, LogOffset), RecoveryError> {
        let loaded = load_newest(snapshots, end, |datastore, snapshot| {
            datastore.load_catalog(snapshot, is_of_catalog).map(drop)
        });
        let (datastore, offset) = loaded?.unwrap_or_default();
        Ok((Catalog(datastore), offset))
    }

    pub fn schemas(&self) -> impl Iterator<Item = &Arc<TableSchema>> {
        let is_system = |schema: &&Arc<TableSchema>| schema.id.0 <= st::SYSTEM_TABLE_ID_MAX;
        self.0.schemas().filter(move |schema| !is_system(schema))
    }

    /// Memory in bytes, about.
    pub fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }

    /// Goes on to behind a record, which is that of the transaction `offset`, and calls `tell` with each of its changes that is not
    /// one of system tables. Of a record of the first version, only with rows.
    ///
    /// # Errors
    /// The record does not fit the catalog, or those of `tell`. There is no way back.
    pub fn follow<E: From<RecoveryError>>(
        &mut self,
        offset: LogOffset,
        record: &Record<'_>,
        mut tell: impl FnMut(&Catalog, Change<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        match record {
            Record::Clock(_) => Ok(()),
            Record::Transaction(groups) => self.follow_groups(offset, groups, &mut tell),
            Record::Transaction1(groups) => {
                let (catalog, user) = split_first_version(groups);
                self.follow_groups(offset, catalog, &mut tell)?;
                if catalog.iter().any(|group| group.table == st::ST_TABLE_ID) {
                    self.0.sync_with_catalog()?;
                }
                self.follow_groups(offset, user, &mut tell)
            }
        }
    }

    fn follow_groups<E: From<RecoveryError>>(
        &mut self,
        offset: LogOffset,
        groups: &[Group<'_>],
        tell: &mut impl FnMut(&Catalog, Change<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let wrong = |detail: String| RecoveryError::Record { offset, detail };
        let mut runs = of_tables(groups).peekable();
        while let Some(run) = runs.next() {
            let group = &run[0];
            match group.kind {
                GroupKind::Schema => {
                    let before = self.0.schema(group.table).cloned();
                    self.0.apply_schema_group(group).map_err(wrong)?;
                    let is_copy = |next: &&[Group<'_>]| {
                        next[0].kind == GroupKind::Copy && next[0].table == group.table
                    };
                    let copy = runs.next_if(is_copy);
                    let copied = copy.map(|copy| self.copied(&copy[0])).transpose();
                    let change = Change::Table {
                        before,
                        now: self.0.schema(group.table).cloned(),
                        copied: copied.map_err(wrong)?,
                    };
                    tell(self, change)?;
                }
                // It comes behind the one that makes the table.
                GroupKind::Copy => {
                    let detail = "a copy into a table that is not new".to_owned();
                    return Err(wrong(detail).into());
                }
                _ if is_of_catalog(group.table) => self.0.apply_rows(run).map_err(wrong)?,
                _ if group.table.0 <= st::SYSTEM_TABLE_ID_MAX => {}
                _ => {
                    let schema = self.schema(group.table).map_err(wrong)?;
                    let mut groups = run.iter();
                    groups.try_for_each(|group| tell(self, Change::Rows(&schema, group)))?;
                }
            }
        }
        Ok(())
    }

    fn schema(&self, table: TableId) -> Result<Arc<TableSchema>, String> {
        let schema = self.0.schema(table).cloned();
        schema.ok_or_else(|| format!("table {table} does not exist"))
    }

    fn copied<'g>(&self, group: &Group<'g>) -> Result<(Arc<TableSchema>, &'g [u8]), String> {
        let (from, suffix) = copy_of(group)?;
        Ok((self.schema(from)?, suffix))
    }
}
