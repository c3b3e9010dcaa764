//! TypeScript modules (07 §7.1, 04 §12): checked by the project's own compiler, bundled without Node.

#[cfg(feature = "bundler")]
mod bundler;
mod imports;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use self::imports::Bundled;
use super::options::{Built, HostType, Options};
use crate::error::{Error, FileResult as _, Result};
use crate::output::{self, remark};
use crate::paths::nearest;

pub fn build(directory: &Path, options: &Options) -> Result<Built> {
    check_types(directory)?;
    bundle(directory, options)
}

/// Only the bundling, for `spacetime dev`, which checks types beside it.
pub fn bundle(directory: &Path, options: &Options) -> Result<Built> {
    let entry = directory.join("src/index.ts");
    if !entry.is_file() {
        let entry = entry.display();
        bail!(
            "LC0635",
            "{entry} does not exist; a TypeScript module starts there."
        );
    }
    let bundled = run_bundler(directory, options)?;
    imports::check(&bundled.imports, &bundled.exports)?;
    let path = directory.join("dist/bundle.js");
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(directory.join("dist"))?;
        std::fs::write(&path, &bundled.code)
    };
    write().or_cannot("write", &path)?;
    Ok(Built::new(path, HostType::Js))
}

#[cfg(feature = "bundler")]
fn run_bundler(directory: &Path, options: &Options) -> Result<Bundled> {
    bundler::bundle(directory, options.debug)
}

#[cfg(not(feature = "bundler"))]
fn run_bundler(_directory: &Path, _options: &Options) -> Result<Bundled> {
    Err(Error::later(
        "Bundling TypeScript with a `spacetime` that was built without the feature `bundler`",
        "Bundle it with your own tools and publish the file with --js-path.",
    ))
}

/// Runs the project's own `tsc`, whose messages go to the terminal as they are.
fn check_types(directory: &Path) -> Result<()> {
    let Some(tsc) = tsc(directory) else {
        remark!("Could not find TypeScript in node_modules; the types are not checked. `npm install` brings it.");
        return Ok(());
    };
    let status = Command::new(&tsc)
        .arg("--noEmit")
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(output::of_children())
        .status()
        .map_err(caused!("LC0635", "cannot run {}", tsc.display()))?;
    match status.success() {
        true => Ok(()),
        false => Err(Error::of_status(status)),
    }
}

/// The project's compiler, in its directory or above it: an absolute path, because it runs in the project's directory.
pub fn tsc(directory: &Path) -> Option<PathBuf> {
    let name = if cfg!(windows) { "tsc.cmd" } else { "tsc" };
    nearest(directory, Path::new("node_modules/.bin").join(name))
}
