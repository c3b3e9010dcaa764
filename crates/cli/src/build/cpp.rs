//! C++ modules, built by CMake (07 §7): with clang and the project's own toolchain file if it has one, as the template of
//! `spacetime init` does, and with Emscripten otherwise.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::options::{Built, HostType, Options};
use super::wasm;
use crate::error::{FileResult as _, Result};
use crate::output::remark_text;
use crate::paths::{files_below, in_path};

/// Below the directory of the module.
const TOOLCHAIN: &str = "lightcone/toolchain.cmake";
const BUILD: &str = "build";

pub fn build(directory: &Path, options: &Options) -> Result<Built> {
    let directory = std::path::absolute(directory).or_cannot("find", directory)?;
    let build_type = if options.debug { "Debug" } else { "Release" };
    for program in programs(&directory) {
        require(program, &directory)?;
    }
    let toolchain = format!("-DCMAKE_TOOLCHAIN_FILE={TOOLCHAIN}");
    let (configure, first) = match has_toolchain_file(&directory) {
        true => ("cmake", &*toolchain),
        false => ("emcmake", "cmake"),
    };
    let release = format!("-DCMAKE_BUILD_TYPE={build_type}");
    let args = [first, "-S", ".", "-B", BUILD, &release];
    run(configure, &args, &directory)?;
    let args = ["--build", BUILD, "--config", build_type, "--parallel"];
    run("cmake", &args, &directory)?;
    let build = directory.join(BUILD);
    let Some(path) = newest(&build)? else {
        bail!(
            "LC0613",
            "CMake made no *.wasm file below {}",
            build.display()
        );
    };
    check(&path)?;
    Ok(Built::new(path, HostType::Wasm))
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

fn require(program: &str, module: &Path) -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if in_path(program, &path).is_some() {
        return Ok(());
    }
    let packages = packages(module);
    bail!(
        "LC0611",
        "the C++ module needs `{program}`, which is not in the PATH. {packages}"
    );
}

/// Runs a program with its messages on our stderr.
fn run(name: &str, args: &[&str], directory: &Path) -> Result<()> {
    let output = Command::new(name)
        .args(args)
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
    bail!(
        "LC0613",
        "{name} could not build the module; its messages are above"
    );
}

fn newest(directory: &Path) -> Result<Option<PathBuf>> {
    let files = files_below(directory)?.into_iter();
    let files = files.filter(|path| path.extension().is_some_and(|e| e == "wasm"));
    let dated = files.map(|path| {
        let modified = path.metadata().and_then(|metadata| metadata.modified());
        Ok((modified.or_cannot("read", &path)?, path))
    });
    let dated = dated.collect::<Result<Vec<_>>>()?.into_iter();
    Ok(dated.max_by_key(|(time, _)| *time).map(|(_, path)| path))
}

/// Refuses what no host of modules can run: the C library asked for a system.
fn check(path: &Path) -> Result<()> {
    let mut imports = wasm::names_of(path)?.imports.into_iter();
    let foreign = imports.find(|(module, _)| !module.starts_with("spacetime_"));
    let Some((module, field)) = foreign else {
        return Ok(());
    };
    bail!(
        "LC0613",
        "{}: the module imports `{field}` of `{module}`, which no host of modules has. Files, clocks, threads and exceptions \
         are not there",
        path.display()
    )
}
