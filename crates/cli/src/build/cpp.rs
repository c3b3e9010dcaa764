//! C++ modules, built by CMake (07 §7): with clang and the project's own toolchain file if it has one, as the template of
//! `spacetime init` does, and with Emscripten otherwise.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use super::options::{Built, HostType, Options};
use super::wasm;
use crate::error::{Error, FileResult as _, Result};
use crate::output::remark_text;

/// Below the directory of the module.
const TOOLCHAIN: &str = "lightcone/toolchain.cmake";
const BUILD: &str = "build";

pub fn build(directory: &Path, options: &Options) -> Result<Built> {
    let directory = std::path::absolute(directory).or_cannot("find", directory)?;
    let build_type = if options.debug { "Debug" } else { "Release" };
    for program in programs(&directory) {
        require(program, &directory)?;
    }
    let mut configure = if has_toolchain_file(&directory) {
        let mut command = Command::new("cmake");
        command.arg(format!("-DCMAKE_TOOLCHAIN_FILE={TOOLCHAIN}"));
        command
    } else {
        let mut command = Command::new("emcmake");
        command.arg("cmake");
        command
    };
    configure
        .args(["-S", ".", "-B", BUILD])
        .arg(format!("-DCMAKE_BUILD_TYPE={build_type}"));
    run(&mut configure, &directory)?;
    let mut compile = Command::new("cmake");
    compile.args(["--build", BUILD, "--config", build_type, "--parallel"]);
    run(&mut compile, &directory)?;
    let mut newest = None;
    find_newest(&directory.join(BUILD), &mut newest)?;
    let Some((_, path)) = newest else {
        return Err(failed(format!(
            "CMake made no *.wasm file below {}",
            directory.join(BUILD).display()
        )));
    };
    check(&path)?;
    Ok(Built {
        path,
        host_type: HostType::Wasm,
    })
}

fn failed(why: String) -> Error {
    Error::coded("LC0613", why)
}

fn has_toolchain_file(module: &Path) -> bool {
    module.join(TOOLCHAIN).is_file()
}

/// What a module is built with.
pub fn programs(module: &Path) -> [&'static str; 3] {
    match has_toolchain_file(module) {
        true => ["cmake", "clang++", "wasm-ld"],
        false => ["cmake", "emcc", "emcmake"],
    }
}

/// How to get all that a module needs.
pub fn packages(module: &Path) -> &'static str {
    match has_toolchain_file(module) {
        true => {
            "On Debian: apt-get install cmake clang lld wasi-libc libc++-dev-wasm32 libc++abi-14-dev-wasm32 libclang-rt-14-dev-wasm32"
        }
        false => "On Debian: apt-get install cmake emscripten",
    }
}

/// Makes sure that a program can be run.
fn require(program: &str, module: &Path) -> Result<()> {
    let found = std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|directory| {
            directory.join(program).is_file() || directory.join(format!("{program}.exe")).is_file()
        })
    });
    if found {
        return Ok(());
    }
    Err(coded!(
        "LC0611",
        "the C++ module needs `{program}`, which is not in the PATH. {}",
        packages(module)
    ))
}

/// Runs a program with its messages on our stderr.
fn run(command: &mut Command, directory: &Path) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .output()
        .map_err(caused!("LC0611", "cannot run {name}"))?;
    if output.status.success() {
        return Ok(());
    }
    // What tools for Ninja and Make report on stdout is of interest only now.
    remark_text!("{}", String::from_utf8_lossy(&output.stdout));
    Err(failed(format!(
        "{name} could not build the module; its messages are above"
    )))
}

fn find_newest(directory: &Path, newest: &mut Option<(SystemTime, PathBuf)>) -> Result<()> {
    let entries = std::fs::read_dir(directory).or_cannot("read", directory)?;
    for entry in entries {
        let entry = entry.or_cannot("read", directory)?;
        let path = entry.path();
        let kind = entry.file_type().or_cannot("read", &path)?;
        if kind.is_dir() {
            find_newest(&path, newest)?;
        } else if path.extension().is_some_and(|e| e == "wasm") {
            let modified = entry
                .metadata()
                .and_then(|metadata| metadata.modified())
                .or_cannot("read", &path)?;
            if newest.as_ref().is_none_or(|(time, _)| *time <= modified) {
                *newest = Some((modified, path));
            }
        }
    }
    Ok(())
}

/// Refuses what no host of modules can run: the C library asked for a system.
fn check(path: &Path) -> Result<()> {
    let bytes = std::fs::read(path).or_cannot("read", path)?;
    let names = wasm::names(&bytes)
        .ok_or_else(|| failed(format!("{}: this is no WebAssembly module", path.display())))?;
    let foreign = names
        .imports
        .iter()
        .find(|(module, _)| !module.starts_with("spacetime_"));
    match foreign {
        None => Ok(()),
        Some((module, field)) => Err(failed(format!(
            "{}: the module imports `{field}` of `{module}`, which no host of modules has. Files, clocks, threads and \
             exceptions are not there",
            path.display()
        ))),
    }
}
