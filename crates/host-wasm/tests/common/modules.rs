//! The Rust modules of the repository, built to WebAssembly, and databases that run them.

#![allow(dead_code)]

use std::path::Path;
use std::process::Command;

use lightcone_engine::Datastore;
use lightcone_schema::ModuleDef;

/// `modules/<name>-rs` as a program. `LIGHTCONE_MODULES_DIR` may hold `<name>.wasm` already; else it is built here.
pub fn program(name: &str) -> Vec<u8> {
    if let Some(directory) = std::env::var_os("LIGHTCONE_MODULES_DIR") {
        let path = Path::new(&directory).join(format!("{name}.wasm"));
        return std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.wasm"));
    let status = Command::new(root.join("scripts/build-module.sh"))
        .arg(root.join(format!("modules/{name}-rs")))
        .arg(&out)
        // What cargo sets for this process is not meant for a build for another target.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .status()
        .expect("scripts/build-module.sh runs");
    assert!(
        status.success(),
        "modules/{name}-rs could not be built: {status}"
    );
    std::fs::read(&out).expect("the script wrote the module")
}

/// An empty database with the tables of a module.
pub fn database(def: &ModuleDef) -> Datastore {
    let mut datastore = Datastore::new();
    datastore.begin();
    datastore.bootstrap();
    datastore
        .create_tables(def)
        .expect("the tables of a valid definition can be made");
    datastore
        .commit(&mut Default::default())
        .expect("the record fits");
    datastore
}
