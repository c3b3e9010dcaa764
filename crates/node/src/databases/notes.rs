//! The control database as databases see it.

use std::sync::Arc;

use lightcone_control::ControlDb;
use lightcone_database::DueNotes;
use lightcone_types::{Due, Identity};

pub(super) struct Notes(pub Arc<ControlDb>);

impl DueNotes for Notes {
    fn note_open(&self, database: &Identity) -> Result<(), String> {
        let noted = self.0.note_due(&[(*database, Due::Open)]);
        noted.map_err(|error| error.to_string())
    }
}
