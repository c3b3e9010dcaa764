//! Our own programs, and the toolchains that modules and clients are built with.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::project::Needs;
use super::report::{Report, State};
use super::run::{first_line, version_in, Outcome, TIME_MAX};
use crate::build::cpp;
use crate::build::rust_toolchain::{self, Target};
use crate::paths::{self, beside_this_program, in_path};

/// Below this, npm's packages for clients do not run.
const NODE_MAJOR_MIN: u64 = 20;

pub(super) async fn check(report: &mut Report, needs: &Needs) {
    let here = Path::new(".");
    this_program(report);
    server_program(report, here).await;
    check_rust(report, needs.rust.as_deref()).await;
    check_node(report, needs.node.as_deref()).await;
    if let Some(module) = needs.csharp.as_deref() {
        let without = "not found; the C# module cannot be built";
        let advice = "Install the .NET SDK that the module's global.json names, 8 unless you changed it: https://dot.net";
        check_version(report, "dotnet", module, State::Error, without, [advice; 2]).await;
    }
    if let Some(module) = needs.cpp.as_deref() {
        let without = "not found; the C++ module cannot be built";
        let advice = [cpp::packages(module); 2];
        for program in cpp::programs(module) {
            check_version(report, program, module, State::Error, without, advice).await;
        }
    }
    const WASM_OPT: &str = "Release builds of WebAssembly modules are not optimised without it; they work. It is part of `binaryen`.";
    const GIT: &str = "`spacetime init --template owner/repository` needs it.";
    for (program, what_for) in [("wasm-opt", WASM_OPT), ("git", GIT)] {
        let advice = [what_for; 2];
        check_version(report, program, here, State::Note, "not found", advice).await;
    }
}

/// The version that a program tells. The advice is for where it is not there, and where it is but does not run.
async fn version(
    report: &mut Report,
    (name, program): (&str, &OsStr),
    directory: &Path,
    missing: State,
    what_if_missing: &str,
    advice: [&str; 2],
) -> Option<String> {
    let (why, advice) = match first_line(program, &["--version"], directory).await {
        Outcome::Line(line) => return Some(line),
        Outcome::Missing => (what_if_missing.to_owned(), advice[0]),
        Outcome::Failed(why) => (why, advice[1]),
    };
    report.bad(name, missing, why, advice);
    None
}

/// A program of which any version will do.
async fn check_version(
    report: &mut Report,
    name: &str,
    directory: &Path,
    missing: State,
    what_if_missing: &str,
    advice: [&str; 2],
) {
    let program = (name, name.as_ref());
    if let Some(line) = version(report, program, directory, missing, what_if_missing, advice).await
    {
        report.ok(name, line);
    }
}

/// This program, and whether the shell means the same one.
fn this_program(report: &mut Report) {
    const NAME: &str = "spacetime";
    let Ok(this) = paths::this_program() else {
        let advice = "Was it replaced while it ran? Start it again.";
        return report.warning(NAME, "cannot find its own file", advice);
    };
    let (own, follows) = (env!("CARGO_PKG_VERSION"), crate::COMPATIBLE_VERSION);
    let version = format!("{own}, follows {follows}, at {}", this.display());
    let path = std::env::var_os("PATH").unwrap_or_default();
    match in_path(NAME, &path) {
        Some(other) if std::fs::canonicalize(&other).ok().as_deref() != Some(&this) => {
            let other = other.display();
            let message = format!("{version}\nbut `spacetime` in your shell is {other}");
            let advice = "Remove one of the two, or put the directory of the other first in PATH.";
            report.warning(NAME, message, advice);
        }
        Some(_) => report.ok(NAME, version),
        None => {
            let message = format!("{version}\nwhich is not in PATH");
            let directory = this.parent().unwrap_or(&this).display();
            report.note(NAME, message, format!("export PATH=\"{directory}:$PATH\""));
        }
    }
}

async fn server_program(report: &mut Report, here: &Path) {
    const NAME: &str = "spacetimedb-standalone";
    let program = match beside_this_program(NAME) {
        Ok(program) => program,
        Err(error) => {
            let advice = "Install both programs into one directory.";
            return report.error(NAME, error.to_string(), advice);
        }
    };
    let own = env!("CARGO_PKG_VERSION");
    match first_line(&program, &["-V"], here).await {
        Outcome::Line(line) if line.ends_with(own) => {
            report.ok(NAME, program.display().to_string())
        }
        Outcome::Line(line) => {
            let message = format!("is of another version: {line} beside {own}");
            report.error(NAME, message, "Install both programs of one version.");
        }
        Outcome::Missing | Outcome::Failed(_) => {
            let message = format!("{} cannot be run", program.display());
            let advice = "Is it executable (chmod +x), and made for this machine?";
            report.error(NAME, message, advice);
        }
    }
}

/// Needed by a project: an error. Not needed here: a note.
fn missing(module: Option<&Path>) -> State {
    module.map_or(State::Note, |_| State::Error)
}

async fn check_rust(report: &mut Report, module: Option<&Path>) {
    let directory = module.unwrap_or(Path::new("."));
    let cargo: OsString = rust_toolchain::program("CARGO", "cargo");
    let without = "not found; Rust modules cannot be built";
    let advice = [
        "https://rustup.rs tells how to install Rust.",
        "`cargo --version` should work in this directory; where rustup has no toolchain: rustup default stable",
    ];
    let state = missing(module);
    match version(report, ("cargo", &cargo), directory, state, without, advice).await {
        Some(line) => report.ok("cargo", line),
        None => return,
    }
    const NAME: &str = rust_toolchain::TARGET;
    let found = tokio::task::spawn_blocking(rust_toolchain::target);
    match tokio::time::timeout(TIME_MAX, found).await {
        Ok(Ok(Target::Installed)) => report.ok(NAME, "installed"),
        Ok(Ok(Target::BuiltByCargo)) => {
            report.ok(NAME, "cargo builds it (CARGO_UNSTABLE_BUILD_STD)")
        }
        Ok(Ok(Target::Missing(sysroot))) => {
            let message = format!("not in {}", sysroot.display());
            report.bad(NAME, state, message, rust_toolchain::how_to_get_target());
        }
        Ok(Ok(Target::NoCompiler)) | Ok(Err(_)) | Err(_) => {
            let message = "rustc does not say where it is installed";
            let advice = "Does `rustc --print sysroot` work in this directory?";
            report.bad(NAME, state, message, advice);
        }
    }
}

async fn check_node(report: &mut Report, package: Option<&Path>) {
    let directory = package.unwrap_or(Path::new("."));
    let state = missing(package);
    let wanted = format!("Install Node.js {NODE_MAJOR_MIN} or newer: https://nodejs.org, or your system's package `nodejs` if it is as new.");
    let without =
        "not found; clients in TypeScript cannot run, and types of modules are not checked";
    let node = ("node", "node".as_ref());
    if let Some(line) = version(report, node, directory, state, without, [&wanted; 2]).await {
        match version_in(&line) {
            Some((major, ..)) if major < NODE_MAJOR_MIN => {
                report.warning("node", format!("{line} is old"), wanted);
            }
            _ => report.ok("node", line),
        }
    }
    let without = "not found; packages cannot be installed";
    let advice = [
        "It comes with Node.js, or as your system's package `npm`. pnpm, yarn and bun do as well.",
        "Does `npm --version` work in this directory?",
    ];
    check_version(report, "npm", directory, state, without, advice).await;
}

#[cfg(test)]
mod tests {
    use crate::paths::in_path;

    #[test]
    fn the_first_directory_wins() {
        let (one, two) = (
            tempfile::tempdir().expect("a"),
            tempfile::tempdir().expect("b"),
        );
        for directory in [&one, &two] {
            std::fs::write(directory.path().join("x"), "").expect("written");
        }
        let path =
            std::env::join_paths(["/nowhere".as_ref(), one.path(), two.path()]).expect("a path");
        assert_eq!(in_path("x", &path), Some(one.path().join("x")));
        assert_eq!(in_path("y", &path), None);
    }
}
