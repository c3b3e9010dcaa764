//! Tables for tests of windows.

use lightcone_database::{DatabaseHandle, DatabaseOptions};
use lightcone_types::Identity;
use serde_json::{json, Value};

use super::tables::{create_tables, table_options};

pub fn program() -> Value {
    json!({
        "tables": {
            "t": [["id", "U32"], ["room", "U32"], ["score", "F64"], ["owner", "Identity"], ["open", "Bool"], ["text", "String"]],
            "u": [["a", "U32"], ["b", "U32"]],
            "member": [["id", "U32"], ["room", "U32"], ["who", "Identity"]],
        },
        "uniqueKeys": { "t": "id", "member": "id" },
        "indexes": { "t": [["room"], ["owner", "score"], ["score"]], "member": [["who"], ["room"]] },
    })
}

pub fn identity_of(number: u8) -> Identity {
    Identity::from_le_bytes([number; 32])
}

pub async fn create(program: &Value, set: impl FnOnce(&mut DatabaseOptions)) -> DatabaseHandle {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = table_options(directory.path());
    options.in_memory = true;
    set(&mut options);
    create_tables(options, program).await
}

pub fn row(id: u32, score: f64, text: &str) -> Value {
    let owner = identity_of(1).to_hex().to_string();
    json!([id, 1, score, owner, true, text])
}
