//! Our own programs, and the toolchains that modules and clients are built with.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::project::Needs;
use super::report::{Report, State};
use super::run::{first_line, version_in, Outcome};
use crate::build::cpp;
use crate::build::rust_toolchain::{self, Target};
use crate::paths::beside_this_program;

/// Below this, npm's packages for clients do not run.
const NODE_MAJOR_MIN: u64 = 18;

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
    optional(
        report,
        "wasm-opt",
        "Release builds of WebAssembly modules are not optimised without it; they work. It is part of `binaryen`.",
    )
    .await;
    optional(
        report,
        "git",
        "`spacetime init --template owner/repository` needs it.",
    )
    .await;
}

/// This program, and whether the shell means the same one.
fn this_program(report: &mut Report) {
    let this = std::env::current_exe().and_then(std::fs::canonicalize);
    let Ok(this) = this else {
        let advice = "Was it replaced while it ran? Start it again.";
        report.bad(
            "spacetime",
            State::Warning,
            "cannot find its own file",
            advice,
        );
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
        Some(other) if std::fs::canonicalize(&other).ok().as_deref() != Some(&this) => report.bad(
            "spacetime",
            State::Warning,
            format!(
                "{version}\nbut `spacetime` in your shell is {}",
                other.display()
            ),
            "Remove one of the two, or put the directory of the other first in PATH.",
        ),
        Some(_) => report.ok("spacetime", version),
        None => report.bad(
            "spacetime",
            State::Note,
            format!("{version}\nwhich is not in PATH"),
            format!(
                "export PATH=\"{}:$PATH\"",
                this.parent().unwrap_or(&this).display()
            ),
        ),
    }
}

/// The first file of that name in the directories of PATH.
fn in_path(name: &str, path: &std::ffi::OsStr) -> Option<PathBuf> {
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    std::env::split_paths(path)
        .map(|directory| directory.join(&name))
        .find(|file| file.is_file())
}

async fn server_program(report: &mut Report, here: &Path) {
    const NAME: &str = "spacetimedb-standalone";
    let program = match beside_this_program(NAME) {
        Ok(program) => program,
        Err(error) => {
            report.bad(
                NAME,
                State::Error,
                error.to_string(),
                "Install both programs into one directory.",
            );
            return;
        }
    };
    let own = env!("CARGO_PKG_VERSION");
    match first_line(&program, &["-V"], here).await {
        Outcome::Line(line) if line.ends_with(own) => {
            report.ok(NAME, program.display().to_string())
        }
        Outcome::Line(line) => report.bad(
            NAME,
            State::Error,
            format!("is of another version: {line} beside {own}"),
            "Install both programs of one version.",
        ),
        Outcome::Missing | Outcome::Failed(_) => report.bad(
            NAME,
            State::Error,
            format!("{} cannot be run", program.display()),
            "Is it executable (chmod +x), and made for this machine?",
        ),
    }
}

/// Needed by a project: an error. Needed by nobody here: a note.
fn missing(needed: bool) -> State {
    match needed {
        true => State::Error,
        false => State::Note,
    }
}

async fn check_rust(report: &mut Report, module: Option<&Path>) {
    let directory = module.unwrap_or(Path::new("."));
    let cargo: OsString = rust_toolchain::program("CARGO", "cargo");
    match first_line(&cargo, &["--version"], directory).await {
        Outcome::Line(line) => report.ok("cargo", line),
        Outcome::Missing => {
            report.bad(
                "cargo",
                missing(module.is_some()),
                "not found; Rust modules cannot be built",
                "https://rustup.rs tells how to install Rust.",
            );
            return;
        }
        Outcome::Failed(why) => {
            let advice = "`cargo --version` should work in this directory; where rustup has no toolchain: rustup default stable";
            report.bad("cargo", missing(module.is_some()), why, advice);
            return;
        }
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
            missing(module.is_some()),
            format!("not in {}", sysroot.display()),
            rust_toolchain::how_to_get_target(),
        ),
        Ok(Ok(Target::NoCompiler)) | Ok(Err(_)) | Err(_) => report.bad(
            rust_toolchain::TARGET,
            missing(module.is_some()),
            "rustc does not say where it is installed",
            "Does `rustc --print sysroot` work in this directory?",
        ),
    }
}

async fn check_node(report: &mut Report, package: Option<&Path>) {
    let directory = package.unwrap_or(Path::new("."));
    let needed = package.is_some();
    let wanted = format!("Install Node.js {NODE_MAJOR_MIN} or newer: https://nodejs.org, or your system's package `nodejs`.");
    match first_line("node", &["--version"], directory).await {
        Outcome::Line(line) => match version_in(&line) {
            Some((major, ..)) if major < NODE_MAJOR_MIN => {
                report.bad("node", State::Warning, format!("{line} is old"), wanted);
            }
            _ => report.ok("node", line),
        },
        Outcome::Missing => report.bad(
            "node",
            missing(needed),
            "not found; clients in TypeScript cannot run, and types of modules are not checked",
            wanted,
        ),
        Outcome::Failed(why) => report.bad("node", missing(needed), why, wanted),
    }
    match first_line("npm", &["--version"], directory).await {
        Outcome::Line(line) => report.ok("npm", line),
        Outcome::Missing => report.bad(
            "npm",
            missing(needed),
            "not found; packages cannot be installed",
            "It comes with Node.js, or as your system's package `npm`. pnpm, yarn and bun do as well.",
        ),
        Outcome::Failed(why) => {
            report.bad("npm", missing(needed), why, "Does `npm --version` work in this directory?");
        }
    }
}

/// Only where a module is in C#: nobody else needs it.
async fn check_dotnet(report: &mut Report, module: &Path) {
    let advice = "Install the .NET SDK that the module's global.json names, 8 unless you changed it: https://dot.net";
    match first_line("dotnet", &["--version"], module).await {
        Outcome::Line(line) => report.ok("dotnet", line),
        Outcome::Missing => report.bad(
            "dotnet",
            State::Error,
            "not found; the C# module cannot be built",
            advice,
        ),
        Outcome::Failed(why) => report.bad("dotnet", State::Error, why, advice),
    }
}

/// The same for C++.
async fn check_cpp(report: &mut Report, module: &Path) {
    for program in cpp::programs(module) {
        match first_line(program, &["--version"], module).await {
            Outcome::Line(line) => report.ok(program, line),
            Outcome::Missing => report.bad(
                program,
                State::Error,
                "not found; the C++ module cannot be built",
                cpp::packages(module),
            ),
            Outcome::Failed(why) => report.bad(program, State::Error, why, cpp::packages(module)),
        }
    }
}

async fn optional(report: &mut Report, program: &str, what_for: &str) {
    match first_line(program, &["--version"], Path::new(".")).await {
        Outcome::Line(line) => report.ok(program, line),
        Outcome::Missing => report.bad(program, State::Note, "not found", what_for),
        Outcome::Failed(why) => report.bad(program, State::Note, why, what_for),
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
