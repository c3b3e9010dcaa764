//! Unit tests of modules (docs/design/module-tests.md): those of `testing/example`, which has a workspace of its own.

use std::path::Path;
use std::process::Command;

#[test]
fn modules_are_tested_without_a_server() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("module-tests");
    let output = Command::new(env!("CARGO"))
        .args(["test", "--locked", "--ignore-rust-version"])
        .arg("--manifest-path")
        .arg(root.join("testing/Cargo.toml"))
        .env("CARGO_TARGET_DIR", target)
        .output()
        .expect("cargo runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{errors}");
    assert!(said.contains("test result: ok. 5 passed"), "{said}");
}
