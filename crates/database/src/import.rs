//! A database out of a program and rows, as what a restore takes (06 §5.13c). Nothing of the program runs.

use std::collections::BTreeSet;
use std::mem;

use lightcone_backup::{Frame, Head, Item, Place, FORMAT};
use lightcone_engine::{CommitOutput, Datastore, MigrationWork, ModuleRecord};
use lightcone_log::Epoch;
use lightcone_schema::{ModuleDef, TableKind};
use lightcone_types::bsatn::encode_value;
use lightcone_types::json::value_from_json;
use lightcone_types::{AlgebraicType, Hash, Identity, TableId, Timestamp, Typespace};

use crate::changes::row_type;
use crate::commit::seal;
use crate::error::Error;
use crate::open::create_catalog;
use crate::options::HostKind;

/// The rows since the last frame become one when they have so many bytes.
const FRAME_BYTES: usize = 4 << 20;

/// A database that is being made.
pub struct Import {
    datastore: Datastore,
    now: Timestamp,
    place: Place,
    /// Of the rows that are in no frame yet.
    bytes: usize,
    row: Vec<u8>,
    filled: BTreeSet<String>,
}

/// A table that rows are put into.
pub struct ImportedTable {
    id: TableId,
    name: String,
    row: AlgebraicType,
}

impl Import {
    /// Begins with the tables of a program, empty. Gives the first item but for the head.
    ///
    /// # Errors
    /// The definition makes no tables.
    pub fn new(
        def: &ModuleDef,
        program: Vec<u8>,
        kind: HostKind,
        now: Timestamp,
    ) -> Result<(Import, Vec<u8>), Error> {
        let mut import = Import {
            datastore: Datastore::new(),
            now,
            place: Place::default(),
            bytes: 0,
            row: Vec::new(),
            filled: BTreeSet::new(),
        };
        let record = ModuleRecord {
            // The restore says whose it is.
            database_identity: Identity::ZERO,
            owner_identity: Identity::ZERO,
            program_kind: kind as u8,
            program_hash: Hash::keccak256(&program),
            program,
        };
        import.datastore.begin();
        create_catalog(&mut import.datastore, def, &record, |_| ())?;
        let frame = import.commit()?;
        Ok((import, frame))
    }

    /// A table that has rows; none if there is none of this name.
    pub fn table(&self, name: &str) -> Option<ImportedTable> {
        let schemas = self.datastore.schemas();
        let mut schemas = schemas.filter(|schema| schema.kind == TableKind::User);
        let schema = schemas.find(|schema| schema.name == name)?;
        if schema.view.is_some() || schema.outbox.is_some() || schema.is_event {
            return None;
        }
        Some(ImportedTable {
            id: schema.id,
            name: name.to_owned(),
            row: AlgebraicType::Product(row_type(&schema.columns)),
        })
    }

    /// Puts a row into a table, in SATS-JSON. Gives a frame when there is enough for one.
    ///
    /// # Errors
    /// It is no row of the table, a unique key of it is there already, or an auto-increment column of it has 0.
    pub fn insert(&mut self, table: &ImportedTable, row: &str) -> Result<Option<Vec<u8>>, Error> {
        let value = value_from_json(&Typespace::default(), &table.row, row);
        let value = value.map_err(|error| Error::Other(error.to_string()))?;
        self.row.clear();
        encode_value(&value, &mut self.row);
        let mut generated = Vec::new();
        self.datastore.insert(table.id, &self.row, &mut generated)?;
        if !generated.is_empty() {
            let text = "a column that counts by itself has 0, in place of which a row that is put in gets the next number";
            return Err(Error::Other(text.to_owned()));
        }
        if !self.filled.contains(&table.name) {
            self.filled.insert(table.name.clone());
        }
        self.bytes += self.row.len();
        match self.bytes >= FRAME_BYTES {
            true => self.commit().map(Some),
            false => Ok(None),
        }
    }

    /// What comes first of all, and what comes last: counters go on behind the values that rows have.
    ///
    /// # Errors
    /// A counter cannot go on.
    pub fn finish(mut self) -> Result<(Vec<u8>, Vec<u8>), Error> {
        let filled = mem::take(&mut self.filled);
        let filled = filled.iter().map(String::as_str).collect();
        let mut may_go_on = || true;
        let mut work = MigrationWork::new(u64::MAX, &mut may_go_on);
        self.datastore.settle_counters(&filled, &mut work)?;
        let mut last = self.commit()?;
        Item::End(self.place).encode(&mut last);
        let head = Head {
            format: FORMAT,
            database: Identity::ZERO.to_hex(),
            time: self.now.0,
            from: Place::default(),
            end: self.place.offset.get(),
            begins_because: None,
        };
        Ok((Item::Head(head).to_vec(), last))
    }

    /// The frame of what has changed; nothing, if nothing has.
    fn commit(&mut self) -> Result<Vec<u8>, Error> {
        self.bytes = 0;
        let mut output = CommitOutput::default();
        let has_record = seal(&mut self.datastore, &mut output, self.now)?;
        self.datastore.finish(&mut output);
        self.datastore.begin();
        if !has_record {
            return Ok(Vec::new());
        }
        let (first_offset, payload) = (self.place.offset, output.records);
        let hash = self.place.hash;
        let hash = hash.after(Epoch::FIRST, first_offset, 1, &[&payload]);
        let frame = Frame {
            first_offset,
            count: 1,
            epoch: Epoch::FIRST,
            hash,
            payload,
        };
        self.place = Place {
            offset: frame.end(),
            hash,
        };
        Ok(Item::Frame(frame).to_vec())
    }
}
