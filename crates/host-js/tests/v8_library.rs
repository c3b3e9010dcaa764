//! The library of V8 is used only with the checksum that is pinned.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn check(file: &Path, trusted: Option<&str>) -> Output {
    let mut command = Command::new(root().join("scripts/v8-library.sh"));
    command.arg(file).env_remove("LIGHTCONE_V8_SHA256");
    if let Some(trusted) = trusted {
        command.env("LIGHTCONE_V8_SHA256", trusted);
    }
    command.output().expect("the script runs")
}

#[test]
fn another_library_is_refused() {
    let directory = std::env::temp_dir().join(format!("lightcone-v8-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let file = directory.join("library.a.gz");
    std::fs::write(&file, "not V8").expect("a file");
    let sum = "f7bf09efd47fd61a0b9c7d2c4f3c9f8c4fd9c93b9fb2ea5c0b4fee8a4a6bd1c2";
    let refused = check(&file, Some(sum));
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && text.contains("is not the library"),
        "{text}"
    );
    assert!(refused.stdout.is_empty());
    let right = text
        .split("its SHA-256 is ")
        .nth(1)
        .and_then(|rest| rest.get(..64));
    let accepted = check(&file, Some(right.expect("the checksum")));
    assert!(accepted.status.success());
    assert!(String::from_utf8_lossy(&accepted.stdout)
        .trim()
        .ends_with("library.a.gz"));
    // Without a word of the caller, only what is listed counts, if anything is.
    assert!(!check(&file, None).status.success());
    std::fs::remove_dir_all(&directory).expect("removed");
}

/// A new version of V8 needs the checksum of its library.
#[test]
fn the_version_of_the_lock_file_is_pinned() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).expect("a file");
    let lock = read("Cargo.lock");
    let version = lock.split("name = \"v8\"\nversion = \"").nth(1);
    let version = version.and_then(|rest| rest.split('"').next()).expect("v8");
    let pinned = read("scripts/v8.sha256");
    assert!(pinned
        .lines()
        .all(|line| line.len() > 66 && line[66..].starts_with(&format!("v{version}/"))));
    assert!(pinned.contains("x86_64-unknown-linux-gnu"));
}
