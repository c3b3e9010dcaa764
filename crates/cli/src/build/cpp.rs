//! C++ modules, built by CMake (07 §7): with clang and the project's own toolchain file if it has one, as the template of
//! `spacetime init` does, and with Emscripten otherwise.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use super::options::{Built, HostType, Options};
use super::wasm;
use crate::error::{Error, FileResult as _, Result};
use crate::output::remark_text;
use crate::paths::files_below;

/// Below the directory of the module.
const TOOLCHAIN: &str = "lightcone/toolchain.cmake";
const BUILD: &str = "build";

pub fn build(directory: &Path, options: &Options) -> Result<Built> {
    let directory = std::path::absolute(directory).or_cannot("find", directory)?;
    let build_type = if options.debug { "Debug" } else { "Release" };
    for program in programs(&directory) {
        require(program, &directory)?;
    }
    let mut configure = match has_toolchain_file(&directory) {
        true => Command::new("cmake"),
        false => Command::new("emcmake"),
    };
    match has_toolchain_file(&directory) {
        true => configure.arg(format!("-DCMAKE_TOOLCHAIN_FILE={TOOLCHAIN}")),
        false => configure.arg("cmake"),
    };
    configure
        .args(["-S", ".", "-B", BUILD])
        .arg(format!("-DCMAKE_BUILD_TYPE={build_type}"));
    run(&mut configure, &directory)?;
    let mut compile = Command::new("cmake");
    compile.args(["--build", BUILD, "--config", build_type, "--parallel"]);
    run(&mut compile, &directory)?;
    let Some(path) = newest(&directory.join(BUILD))? else {
        let build = directory.join(BUILD);
        return Err(failed(format!(
            "CMake made no *.wasm file below {}",
            build.display()
        )));
    };
    check(&path)?;
    Ok(Built::new(path, HostType::Wasm))
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
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = [program.to_owned(), format!("{program}.exe")];
    let is_in = |directory: PathBuf| names.iter().any(|name| directory.join(name).is_file());
    if std::env::split_paths(&path).any(is_in) {
        return Ok(());
    }
    let packages = packages(module);
    bail!(
        "LC0611",
        "the C++ module needs `{program}`, which is not in the PATH. {packages}"
    );
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

/// The newest WebAssembly file of a build.
fn newest(directory: &Path) -> Result<Option<PathBuf>> {
    let mut newest: Option<(SystemTime, PathBuf)> = None;
    let files = files_below(directory)?.into_iter();
    for path in files.filter(|path| path.extension().is_some_and(|e| e == "wasm")) {
        let modified = path.metadata().and_then(|metadata| metadata.modified());
        let modified = modified.or_cannot("read", &path)?;
        if newest.as_ref().is_none_or(|(time, _)| *time <= modified) {
            newest = Some((modified, path));
        }
    }
    Ok(newest.map(|(_, path)| path))
}

/// Refuses what no host of modules can run: the C library asked for a system.
fn check(path: &Path) -> Result<()> {
    let bytes = std::fs::read(path).or_cannot("read", path)?;
    let names = wasm::names(&bytes)
        .ok_or_else(|| failed(format!("{}: this is no WebAssembly module", path.display())))?;
    let mut imports = names.imports.iter();
    let foreign = imports.find(|(module, _)| !module.starts_with("spacetime_"));
    match foreign {
        None => Ok(()),
        Some((module, field)) => Err(failed(format!(
            "{}: the module imports `{field}` of `{module}`, which no host of modules has. Files, clocks, threads and \
             exceptions are not there",
            path.display()
        ))),
    }
}
