//! What comes of a subscription, in whichever protocol it came.

use std::collections::BTreeMap;

use lightcone_types::json::write_string;

use crate::error::{Error, Result};
use crate::schema::{Rows, Schema};

/// What a server tells.
#[derive(Debug)]
pub enum Event {
    /// It has taken the queries; these are their rows.
    Applied(Update),
    Refused(String),
    Update(Update),
}

/// Which way a row went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Deletes,
    Inserts,
}

/// One line of output: for every table the rows that went and came, as JSON texts.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Update {
    tables: BTreeMap<String, [Vec<String>; 2]>,
}

impl Update {
    /// Names a table, with rows or without any.
    pub fn table(&mut self, table: &str) {
        self.tables.entry(table.to_owned()).or_default();
    }

    pub fn add(&mut self, table: &str, side: Side, row: String) {
        self.tables.entry(table.to_owned()).or_default()[side as usize].push(row);
    }

    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    pub fn json(&self) -> String {
        let tables = self.tables.iter().map(|(table, [deletes, inserts])| {
            let mut out = String::new();
            write_string(table, &mut out);
            let (deletes, inserts) = (deletes.join(","), inserts.join(","));
            out + &format!(":{{\"deletes\":[{deletes}],\"inserts\":[{inserts}]}}")
        });
        format!("{{{}}}", tables.collect::<Vec<_>>().join(","))
    }
}

/// The shape of a table's rows.
pub fn shape_of<'a>(schema: &'a Schema, table: &str) -> Result<&'a Rows> {
    schema.rows(table).ok_or_else(|| {
        coded!(
            "LC0623",
            "the server sent rows of a table `{table}` that the module does not have"
        )
    })
}

pub fn protocol_error(what: impl std::fmt::Display) -> Error {
    coded!("LC0623", "the server broke the protocol: {what}")
}
