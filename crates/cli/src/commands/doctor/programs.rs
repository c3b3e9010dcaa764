//! Our own programs, and the toolchains that modules and clients are built with.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::project::Needs;
use super::report::{Report, State};
use super::run::{first_line, version_in, Outcome};
use crate::build::cpp;
use crate::build::rust_toolchain::{self, Target};
use crate::paths::{beside_this_program, program_file};

/// Below this, npm's packages for clients do not run.
const NODE_MAJOR_MIN: u64 = 20;

pub(super) async fn check(report: &mut Report, needs: &Needs) {
    let here = Path::new(".");
    this_program(report);
    server_program(report, here).await;
    check_rust(report, needs.rust.as_deref()).await;
    check_node(report, needs.node.as_deref()).await;
    if let Some(module) = needs.csharp.as_deref() {
        check_dotnet(report, module).await;
    }
    if let Some(module) = needs.cpp.as_deref() {
        check_cpp(report, module).await;
    }
    for (program, what_for) in [
        (
            "wasm-opt",
            "Release builds of WebAssembly modules are not optimised without it; they work. It is part of `binaryen`.",
        ),
        (
            "git",
            "`spacetime init --template owner/repository` needs it.",
        ),
    ] {
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
    let this = std::env::current_exe().and_then(std::fs::canonicalize);
    let Ok(this) = this else {
        let advice = "Was it replaced while it ran? Start it again.";
        report.warning("spacetime", "cannot find its own file", advice);
        return;
    };
    let version = format!(
        "{}, follows {}, at {}",
        env!("CARGO_PKG_VERSION"),
        crate::COMPATIBLE_VERSION,
        this.display()
    );
    let path = std::env::var_os("PATH").unwrap_or_default();
    match in_path("spacetime", &path) {
        Some(other) if std::fs::canonicalize(&other).ok().as_deref() != Some(&this) => report
            .warning(
                "spacetime",
                format!(
                    "{version}\nbut `spacetime` in your shell is {}",
                    other.display()
                ),
                "Remove one of the two, or put the directory of the other first in PATH.",
            ),
        Some(_) => report.ok("spacetime", version),
        None => report.note(
            "spacetime",
            format!("{version}\nwhich is not in PATH"),
            format!(
                "export PATH=\"{}:$PATH\"",
                this.parent().unwrap_or(&this).display()
            ),
        ),
    }
}

/// The first file of that name in the directories of PATH.
fn in_path(name: &str, path: &OsStr) -> Option<PathBuf> {
    let mut directories = std::env::split_paths(path);
    let file = |directory: PathBuf| directory.join(program_file(name));
    directories.find_map(|directory| Some(file(directory)).filter(|file| file.is_file()))
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
        Outcome::Line(line) => report.error(
            NAME,
            format!("is of another version: {line} beside {own}"),
            "Install both programs of one version.",
        ),
        Outcome::Missing | Outcome::Failed(_) => report.error(
            NAME,
            format!("{} cannot be run", program.display()),
            "Is it executable (chmod +x), and made for this machine?",
        ),
    }
}

/// Needed by a project: an error. Not needed here: a note.
fn missing(needed: bool) -> State {
    match needed {
        true => State::Error,
        false => State::Note,
    }
}

async fn check_rust(report: &mut Report, module: Option<&Path>) {
    let directory = module.unwrap_or(Path::new("."));
    let cargo: OsString = rust_toolchain::program("CARGO", "cargo");
    let without = "not found; Rust modules cannot be built";
    let advice = [
        "https://rustup.rs tells how to install Rust.",
        "`cargo --version` should work in this directory; where rustup has no toolchain: rustup default stable",
    ];
    let state = missing(module.is_some());
    match version(report, ("cargo", &cargo), directory, state, without, advice).await {
        Some(line) => report.ok("cargo", line),
        None => return,
    }
    let found = tokio::task::spawn_blocking(rust_toolchain::target);
    match tokio::time::timeout(std::time::Duration::from_secs(10), found).await {
        Ok(Ok(Target::Installed)) => report.ok(rust_toolchain::TARGET, "installed"),
        Ok(Ok(Target::BuiltByCargo)) => report.ok(
            rust_toolchain::TARGET,
            "cargo builds it (CARGO_UNSTABLE_BUILD_STD)",
        ),
        Ok(Ok(Target::Missing(sysroot))) => report.bad(
            rust_toolchain::TARGET,
            state,
            format!("not in {}", sysroot.display()),
            rust_toolchain::how_to_get_target(),
        ),
        Ok(Ok(Target::NoCompiler)) | Ok(Err(_)) | Err(_) => report.bad(
            rust_toolchain::TARGET,
            state,
            "rustc does not say where it is installed",
            "Does `rustc --print sysroot` work in this directory?",
        ),
    }
}

async fn check_node(report: &mut Report, package: Option<&Path>) {
    let directory = package.unwrap_or(Path::new("."));
    let state = missing(package.is_some());
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

/// Only where a module is in C#: nothing else needs it.
async fn check_dotnet(report: &mut Report, module: &Path) {
    let without = "not found; the C# module cannot be built";
    let advice = "Install the .NET SDK that the module's global.json names, 8 unless you changed it: https://dot.net";
    check_version(report, "dotnet", module, State::Error, without, [advice; 2]).await;
}

/// The same for C++.
async fn check_cpp(report: &mut Report, module: &Path) {
    let without = "not found; the C++ module cannot be built";
    let advice = [cpp::packages(module); 2];
    for program in cpp::programs(module) {
        check_version(report, program, module, State::Error, without, advice).await;
    }
}

#[cfg(test)]
mod tests {
    use super::in_path;

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
