//! C# modules, built by the .NET SDK (07 §7).

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::options::{Built, HostType, Options};
use crate::error::{Error, FileResult as _, Result};
use crate::output::{self, remark};
use crate::paths::nearest;

/// Major versions of .NET that compile to WebAssembly for modules.
const MAJORS: [&str; 2] = ["8", "10"];
/// Tells the packages to compile ahead of time, with NativeAOT-LLVM.
const AHEAD_OF_TIME: &str = "EXPERIMENTAL_WASM_AOT";
const MODULE: &str = "StdbModule.wasm";
/// What .NET 8 needs to compile to WebAssembly, unless it does ahead of time.
const WORKLOAD: &str = "wasi-experimental";

pub fn build(directory: &Path, options: &Options) -> Result<Built> {
    let sdk = sdk_version(directory)?;
    let major = wanted(directory, options, &sdk)?;
    let is_ahead_of_time = options.native_aot || major != "8";
    let dotnet = |args: &[&str]| {
        let mut command = command(directory, args);
        match is_ahead_of_time {
            true => command.env(AHEAD_OF_TIME, "1"),
            false => command.env_remove(AHEAD_OF_TIME),
        };
        run(command)
    };
    let bin = bin(directory)?;
    if major == "8" {
        if !is_ahead_of_time {
            ensure_workload(directory)?;
        }
        forget_restored(directory)?;
        dotnet(&["restore", "--force", "-p:TargetFrameworks=net8.0"])?;
    }
    let configuration = if options.debug { "Debug" } else { "Release" };
    let framework = format!("net{major}.0");
    let target = ["-c", configuration, "-f", &framework];
    dotnet(&[&["publish"], &target[..], &["-v", "quiet"]].concat())?;
    let place = ["AppBundle", "native"][usize::from(is_ahead_of_time)];
    // The directory may be made by this build.
    let bin = self::bin(directory)?.or(bin).unwrap_or("bin");
    let path = [bin, configuration, &framework, "wasi-wasm", place, MODULE];
    let path = directory.join(path.iter().collect::<PathBuf>());
    if !path.is_file() {
        let path = path.display();
        bail!("LC0613", "dotnet made no {path}. The project must be named StdbModule and use the package SpacetimeDB.Runtime");
    }
    Ok(Built::new(path, HostType::Wasm))
}

fn command(directory: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("dotnet");
    command
        .args(args)
        .current_dir(directory)
        .stdin(Stdio::null())
        // Messages in the words that the documentation has.
        .env("DOTNET_CLI_UI_LANGUAGE", "en");
    command
}

fn cannot_run(error: std::io::Error) -> Error {
    let what = "cannot run `dotnet`, which C# modules need: install the .NET SDK 8, which projects of `spacetime init` are for, or the one that your global.json names (8 or 10)";
    Error::caused("LC0611", what, error)
}

/// Runs it with its messages on ours.
fn run(mut command: Command) -> Result<()> {
    let status = command.stdout(output::of_children()).status();
    let status = status.map_err(cannot_run)?;
    if status.success() {
        return Ok(());
    }
    let args = command.get_args().collect::<Vec<_>>();
    let args = args.join(OsStr::new(" "));
    let args = args.to_string_lossy();
    bail!("LC0613", "`dotnet {args}` failed; its messages are above");
}

fn asked(directory: &Path, args: &[&str]) -> Result<Output> {
    command(directory, args).output().map_err(cannot_run)
}

/// What the active SDK calls itself, such as `8.0.404`; a `global.json` has a say in it.
fn sdk_version(directory: &Path) -> Result<String> {
    let output = asked(directory, &["--version"])?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("LC0611", "`dotnet --version` failed: {}", said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The major version that the module is compiled with, which must be the one that is active.
fn wanted(directory: &Path, options: &Options, sdk: &str) -> Result<String> {
    let active = sdk.split('.').next().unwrap_or_default();
    let major = match &options.dotnet_version {
        Some(version) => version.clone(),
        None if nearest(directory, "global.json").is_some() => active.to_owned(),
        None => only_framework(directory).unwrap_or_else(|| "10".to_owned()),
    };
    if !MAJORS.contains(&&*major) {
        bail!(
            "LC0611",
            "modules are compiled with .NET 8 or 10, not {major}"
        );
    }
    if major != active {
        bail!(
            "LC0611",
            "the module is to be compiled with .NET {major}, and the active SDK is {sdk}. Install that version, choose it in \
             global.json, or say --dotnet-version"
        );
    }
    Ok(major)
}

/// The projects in a directory.
pub fn projects(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|e| e == "csproj"))
}

/// The major version of the project's one `TargetFramework`.
fn only_framework(directory: &Path) -> Option<String> {
    let text = std::fs::read_to_string(projects(directory).next()?).ok()?;
    let (_, rest) = text.split_once("<TargetFramework>")?;
    let (framework, _) = rest.split_once("</TargetFramework>")?;
    let (major, _) = framework.trim().strip_prefix("net")?.split_once('.')?;
    Some(major.to_owned())
}

/// Where results go: Unity ignores directories with a tilde.
fn bin(directory: &Path) -> Result<Option<&'static str>> {
    let names = ["bin", "bin~"];
    match names.map(|name| directory.join(name).is_dir()) {
        [false, false] => Ok(None),
        [true, false] => Ok(Some(names[0])),
        [false, true] => Ok(Some(names[1])),
        [true, true] => {
            let directory = directory.display();
            bail!(
                "LC0613",
                "{directory} has both `bin` and `bin~`; delete the one that is not in use"
            )
        }
    }
}

fn ensure_workload(directory: &Path) -> Result<()> {
    let output = asked(directory, &["workload", "list"])?;
    if String::from_utf8_lossy(&output.stdout).contains(WORKLOAD) {
        return Ok(());
    }
    remark!("Installing the workload {WORKLOAD} of .NET");
    run(command(directory, &["workload", "install", WORKLOAD]))
}

/// What was restored for another framework would be used again.
fn forget_restored(directory: &Path) -> Result<()> {
    for objects in ["obj", "obj~"] {
        let path = directory.join(objects).join("project.assets.json");
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            removed => removed.or_cannot("delete", &path)?,
        }
    }
    Ok(())
}
