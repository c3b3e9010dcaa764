//! Where things are installed and kept (07 §3).

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::error::{Error, FileResult as _, Result};

/// The directories of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    pub config_dir: PathBuf,
    pub bin_dir: PathBuf,
    pub data_dir: PathBuf,
    /// What a shell finds as `spacetime`, where versions are managed.
    pub bin_file: PathBuf,
    pub home: PathBuf,
}

impl Paths {
    /// Everything below `root`, or at the places that the XDG variables name.
    pub fn new(root: Option<&Path>, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let home = variable("HOME").filter(|home| !home.is_empty());
        let home = PathBuf::from(home.unwrap_or_else(|| ".".into()));
        let windows = variable("LocalAppData").filter(|_| cfg!(windows));
        let windows = windows.map(|data| PathBuf::from(data).join("SpacetimeDB"));
        if let Some(root) = root.or(windows.as_deref()) {
            return Self {
                config_dir: root.join("config"),
                bin_dir: root.join("bin"),
                data_dir: root.join("data"),
                bin_file: root.join(program_file("spacetime")),
                home,
            };
        }
        // The XDG specification: a relative path is invalid and ignored.
        let xdg = |name: &str, default: &str| {
            let named = variable(name).map(PathBuf::from);
            let named = named.filter(|path| path.is_absolute());
            named.unwrap_or_else(|| home.join(default))
        };
        let data = xdg("XDG_DATA_HOME", ".local/share").join("spacetime");
        Self {
            config_dir: xdg("XDG_CONFIG_HOME", ".config").join("spacetime"),
            bin_dir: data.join("bin"),
            data_dir: data.join("data"),
            bin_file: xdg("XDG_BIN_HOME", ".local/bin").join(program_file("spacetime")),
            home,
        }
    }

    /// The file with servers and tokens.
    pub fn cli_toml(&self) -> PathBuf {
        self.config_dir.join("cli.toml")
    }
}

/// For messages: `.` does not tell the user where that is.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The text of a file, if it is there.
pub fn text_if_there(path: &Path) -> Result<Option<String>> {
    if_there(path, std::fs::read_to_string(path))
}

/// The entries of a directory, if it is there.
pub fn entries_if_there(path: &Path) -> Result<Option<std::fs::ReadDir>> {
    if_there(path, std::fs::read_dir(path))
}

/// All files below a directory, if it is there, without those behind links to other directories.
pub fn files_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in entries_if_there(directory)?.into_iter().flatten() {
        let entry = entry.or_cannot("read", directory)?;
        let kind = entry.file_type().or_cannot("read", directory)?;
        match kind.is_dir() {
            true => files.extend(files_below(&entry.path())?),
            false => files.push(entry.path()),
        }
    }
    Ok(files)
}

/// A file in a directory, or else in the nearest one above it that has it.
pub fn nearest(directory: &Path, name: impl AsRef<Path>) -> Option<PathBuf> {
    nearest_that(directory, name, Path::is_file)
}

/// The same of what `is_there` says yes to.
pub fn nearest_that(
    directory: &Path,
    name: impl AsRef<Path>,
    is_there: fn(&Path) -> bool,
) -> Option<PathBuf> {
    let directory = std::path::absolute(directory).ok()?;
    let mut paths = directory.ancestors().map(|above| above.join(&name));
    paths.find(|path| is_there(path))
}

/// What a program is called on this system.
pub fn program_file(name: &str) -> String {
    format!("{name}{}", std::env::consts::EXE_SUFFIX)
}

fn if_there<T>(path: &Path, read: std::io::Result<T>) -> Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::file("read", path, error)),
    }
}

/// The first file of a program's name in the directories of PATH.
pub fn in_path(name: &str, path: &OsStr) -> Option<PathBuf> {
    let mut files = std::env::split_paths(path).map(|place| place.join(program_file(name)));
    files.find(|file| file.is_file())
}

/// The file of this program.
pub fn this_program() -> Result<PathBuf> {
    std::env::current_exe()
        .and_then(std::fs::canonicalize)
        .map_err(caused!("LC0620", "cannot find out where this program is"))
}

/// A program in the directory of this one (07 §1): never one that happens to be in the PATH.
pub fn beside_this_program(name: &str) -> Result<PathBuf> {
    let program = this_program()?.with_file_name(program_file(name));
    if !program.is_file() {
        let program = program.display();
        bail!(
            "LC0620",
            "{program} is missing: the server program belongs beside `spacetime`. Install both."
        );
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xdg_variables_and_the_root_directory() {
        let variable = |name: &str| match name {
            "HOME" => Some("/home/ann".into()),
            "XDG_CONFIG_HOME" => Some("/etc/ann".into()),
            "XDG_DATA_HOME" => Some("relative".into()),
            _ => None,
        };
        let paths = Paths::new(None, variable);
        assert_eq!(paths.cli_toml(), Path::new("/etc/ann/spacetime/cli.toml"));
        assert_eq!(
            paths.data_dir,
            Path::new("/home/ann/.local/share/spacetime/data")
        );
        assert_eq!(
            paths.bin_dir,
            Path::new("/home/ann/.local/share/spacetime/bin")
        );
        assert_eq!(paths.bin_file, Path::new("/home/ann/.local/bin/spacetime"));

        let paths = Paths::new(Some(Path::new("/r")), variable);
        assert_eq!(paths.cli_toml(), Path::new("/r/config/cli.toml"));
        assert_eq!(paths.data_dir, Path::new("/r/data"));
        assert_eq!(paths.bin_file, Path::new("/r/spacetime"));
    }
}
