//! Makes a list of the dashboard's files, so that the program has them inside.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

const FILES: &str = "assets/dashboard";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={FILES}");
    let package = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let out = env::var("OUT_DIR").expect("cargo sets it");
    let directory = Path::new(&package).join(FILES);
    let entries = fs::read_dir(&directory).expect("the directory is part of the sources");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("the directory can be read").path())
        .collect();
    paths.sort();
    let mut list = String::from("&[\n");
    for path in paths {
        println!("cargo:rerun-if-changed={}", path.display());
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .expect("names of these files are plain");
        let path = path.display().to_string();
        writeln!(list, "    ({name:?}, include_bytes!({path:?}) as &[u8]),")
            .expect("a string grows");
    }
    list.push(']');
    fs::write(Path::new(&out).join("dashboard.rs"), list)
        .expect("the directory is there to be written to");
}
