//! Installing a version, and choosing one.

use std::path::{Path, PathBuf};

use super::installed::{directory_of, numbers_of};
use crate::error::{Error, FileResult as _, Result};
use crate::output::{remark, result};
use crate::paths::{program_file, this_program, Paths};
use crate::prompt;

/// The command and the server program, as they are called in the directory of a version.
const PROGRAMS: [&str; 2] = ["spacetime", "spacetimedb-standalone"];

/// Copies the programs of a directory, or this one's, to the directory of a version: all of them, or none.
pub(super) fn install(paths: &Paths, version: &str, from: Option<&Path>, yes: bool) -> Result<()> {
    check_name(version)?;
    let own = env!("CARGO_PKG_VERSION");
    let source = match from {
        Some(directory) => directory.to_owned(),
        None if version == own => {
            let this = this_program()?;
            this.parent().unwrap_or(Path::new(".")).to_owned()
        }
        None => bail!(
            "LC0883",
            "this program is version {own}, and there is no place that version {version} is downloaded from. Get or build its two \
             programs, then `spacetime version install {version} --from DIR`.",
        ),
    };
    let programs = find_programs(&source)?;
    let target = paths.bin_dir.join(version);
    if target.exists() {
        let question = format!("Version {version} is installed already. Replace it?");
        if !prompt::confirm(&question, yes) {
            return Err(kept(version));
        }
    }
    copy(&programs, &paths.bin_dir, &target)?;
    result!("Installed version {version} in {}.", target.display());
    Ok(())
}

fn check_name(version: &str) -> Result<()> {
    match numbers_of(version) {
        Some(_) => Ok(()),
        None => bail!(
            "LC0882",
            "`{version}` is not the name of a version; it looks like 2.10.1 or 2.10.1-mine."
        ),
    }
}

/// Lets a version be what is in a directory, also when that changes.
pub(super) fn link_to(paths: &Paths, version: &str, directory: &Path, yes: bool) -> Result<()> {
    check_name(version)?;
    let directory = std::fs::canonicalize(directory).or_cannot("find", directory)?;
    // By these names they are run.
    let is_missing = |name: &&str| !directory.join(program_file(name)).is_file();
    if let Some(name) = PROGRAMS.into_iter().find(is_missing) {
        return Err(no_program(&directory, name));
    }
    let target = paths.bin_dir.join(version);
    match std::fs::symlink_metadata(&target) {
        Ok(there) if there.is_symlink() => {
            let question = format!("Version {version} is a link already. Lead it elsewhere?");
            if !prompt::confirm(&question, yes) {
                return Err(kept(version));
            }
        }
        Ok(_) => {
            bail!(
                "LC0882",
                "version {version} is installed and is no link. Take another name, like {version}-mine, or remove it first: \
                 `spacetime version uninstall {version}`.",
            )
        }
        Err(_) => {}
    }
    std::fs::create_dir_all(&paths.bin_dir).or_cannot("create", &paths.bin_dir)?;
    link(&directory, &target)?;
    result!("Version {version} is what is in {}.", directory.display());
    Ok(())
}

fn kept(version: &str) -> Error {
    coded!(
        "LC0882",
        "version {version} was kept as it is. --yes replaces it."
    )
}

fn no_program(directory: &Path, name: &str) -> Error {
    let directory = directory.display();
    coded!(
        "LC0882",
        "{directory} has no program `{name}`. Both programs belong to a version."
    )
}

/// The files to copy, with their names there. Other builds call the command `spacetimedb-cli`.
fn find_programs(directory: &Path) -> Result<Vec<(PathBuf, &'static str)>> {
    let find = |name: &'static str| {
        let candidates = match name == PROGRAMS[0] {
            true => &[name, "spacetimedb-cli"][..],
            false => &[name],
        };
        let mut files = candidates
            .iter()
            .map(|name| directory.join(program_file(name)));
        let file = files.find(|file| file.is_file());
        Ok((file.ok_or_else(|| no_program(directory, name))?, name))
    };
    PROGRAMS.into_iter().map(find).collect()
}

/// Fills a directory beside the wanted one and gives it its name at the end, so that there is never half a version.
fn copy(programs: &[(PathBuf, &str)], bin_dir: &Path, target: &Path) -> Result<()> {
    let cannot = |e: std::io::Error| Error::file("write", target, e);
    std::fs::create_dir_all(bin_dir).map_err(cannot)?;
    let temporary = |prefix: &str| tempfile::Builder::new().prefix(prefix).tempdir_in(bin_dir);
    let staging = temporary(".installing-").map_err(cannot)?;
    for (source, name) in programs {
        let file = program_file(name);
        std::fs::copy(source, staging.path().join(&file)).or_cannot("copy", source)?;
        if *name == PROGRAMS[0] {
            // The name that the reference's version manager runs.
            link(&file, &staging.path().join("spacetimedb-cli"))?;
        }
    }
    make_readable(staging.path())?;
    let old = temporary(".replaced-").map_err(cannot)?;
    let away = old.path().join("old");
    // Renamed away first: a directory that has files cannot be replaced.
    let is_replaced = target.exists();
    if is_replaced {
        std::fs::rename(target, &away).map_err(cannot)?;
    }
    let Err(failed) = std::fs::rename(staging.path(), target) else {
        return Ok(());
    };
    // Better the old one than none.
    if is_replaced && std::fs::rename(&away, target).is_err() {
        // It goes with its directory otherwise.
        let (target, kept) = (target.display(), old.keep().join("old"));
        let kept = kept.display();
        let text = format!(
            "cannot write {target}; the version that was there is kept in {kept}, rename it back"
        );
        return Err(Error::caused("LC0619", text, failed));
    }
    Err(cannot(failed))
}

/// Temporary directories are their owner's alone, programs are not.
fn make_readable(directory: &Path) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(directory, mode).or_cannot("write", directory)?;
    }
    #[cfg(not(unix))]
    let _ = directory;
    Ok(())
}

/// Lets `current` lead to a version, and `spacetime` in the user's directory of programs to `current`.
pub(super) fn choose(paths: &Paths, version: &str) -> Result<()> {
    let directory = directory_of(&paths.bin_dir, version)?;
    find_programs(&directory)?;
    let current = paths.bin_dir.join("current");
    link(version, &current)?;
    result!("Version {version} is used from now on.");
    let program = current.join(program_file(PROGRAMS[0]));
    let file = &paths.bin_file;
    if std::fs::symlink_metadata(file).is_ok_and(|metadata| !metadata.is_symlink()) {
        let file = file.display();
        remark!("warning: {file} is a program of its own and was left alone. Remove it and repeat this command to have it follow.");
        return Ok(());
    }
    let parent = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).or_cannot("create", parent)?;
    link(&program, file)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|directory| directory == parent) {
        let parent = parent.display();
        remark!("Put it on your path: export PATH=\"{parent}:$PATH\"");
    }
    Ok(())
}

/// Makes or replaces a symbolic link in one step.
#[cfg(unix)]
fn link(target: impl AsRef<Path>, path: &Path) -> Result<()> {
    let cannot = |e: std::io::Error| Error::file("write", path, e);
    let parent = path.parent().unwrap_or(Path::new("."));
    let staging = tempfile::Builder::new()
        .prefix(".link-")
        .tempdir_in(parent)
        .map_err(cannot)?;
    let made = staging.path().join("link");
    std::os::unix::fs::symlink(target, &made).map_err(cannot)?;
    std::fs::rename(&made, path).map_err(cannot)
}

#[cfg(not(unix))]
fn link(_: impl AsRef<Path>, _: &Path) -> Result<()> {
    Err(Error::later(
        "Choosing versions on this system",
        "Put the directory of the version that you want into PATH.",
    ))
}
