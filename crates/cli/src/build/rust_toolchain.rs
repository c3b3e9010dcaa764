//! The Rust toolchain: its programs, and the platform of modules in it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::error::Result;

/// The platform of modules.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// A program of the toolchain, or what its variable names.
pub fn program(variable: &str, default: &str) -> OsString {
    std::env::var_os(variable)
        .filter(|v| !v.is_empty())
        .unwrap_or_else(|| default.into())
}

/// The state of the standard library for WebAssembly, in whichever toolchain is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Installed,
    /// The user builds the standard library himself (Debian's toolchain works like that).
    BuiltByCargo,
    /// The toolchain in this directory does not have it.
    Missing(PathBuf),
    NoCompiler,
}

pub fn target() -> Target {
    if std::env::var_os("CARGO_UNSTABLE_BUILD_STD").is_some() {
        return Target::BuiltByCargo;
    }
    let sysroot = Command::new(program("RUSTC", "rustc"))
        .args(["--print", "sysroot"])
        .stdin(Stdio::null())
        .output();
    let sysroot = match sysroot {
        Ok(output) if output.status.success() => {
            PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
        }
        _ => return Target::NoCompiler,
    };
    let libraries = sysroot.join("lib/rustlib").join(TARGET).join("lib");
    match libraries.is_dir() {
        true => Target::Installed,
        false => Target::Missing(sysroot),
    }
}

pub fn how_to_get_target() -> String {
    format!(
        "With rustup:   rustup target add {TARGET}\n\
         On Debian:     apt-get install rustc-web cargo-web rust-web-src lld-22, then what scripts/wasm-toolchain.sh \
         of Lightcone's sources sets"
    )
}

/// Makes sure that the standard library for WebAssembly is there.
pub fn ensure_target() -> Result<()> {
    let missing = |why: &str| {
        coded!(
            "LC0611",
            "Rust modules need a Rust toolchain with the target {TARGET}: {why}.\n{}",
            how_to_get_target()
        )
    };
    let sysroot = match target() {
        Target::Installed | Target::BuiltByCargo => return Ok(()),
        Target::NoCompiler => {
            return Err(missing(
                "rustc was not found, or does not run. Does `rustc --version` work here? `rustup default stable` chooses a \
                 toolchain; https://rustup.rs tells how to install one",
            ))
        }
        Target::Missing(sysroot) => sysroot,
    };
    let added = Command::new("rustup")
        .args(["target", "add", TARGET])
        .stdout(Stdio::null())
        .status();
    match added {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(missing("`rustup target add` failed, see above")),
        Err(_) => Err(missing(&format!(
            "{} has no such target",
            sysroot.display()
        ))),
    }
}
