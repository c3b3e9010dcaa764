//! Where things are installed and kept (07 §3).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The directories of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    pub config_dir: PathBuf,
    pub bin_dir: PathBuf,
    pub data_dir: PathBuf,
    pub home: PathBuf,
}

impl Paths {
    /// Everything below `root`, or at the places that the XDG variables name.
    pub fn new(root: Option<&Path>, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let home = variable("HOME")
            .filter(|h| !h.is_empty())
            .map_or_else(|| PathBuf::from("."), PathBuf::from);
        if let Some(root) = root {
            return Self {
                config_dir: root.join("config"),
                bin_dir: root.join("bin"),
                data_dir: root.join("data"),
                home,
            };
        }
        // The XDG specification: a relative path is invalid and ignored.
        let xdg = |name: &str, default: &str| {
            variable(name)
                .map(PathBuf::from)
                .filter(|p| p.is_absolute())
                .unwrap_or_else(|| home.join(default))
        };
        let data = xdg("XDG_DATA_HOME", ".local/share").join("spacetime");
        Self {
            config_dir: xdg("XDG_CONFIG_HOME", ".config").join("spacetime"),
            bin_dir: data.join("bin"),
            data_dir: data.join("data"),
            home,
        }
    }

    /// The file with servers and tokens.
    pub fn cli_toml(&self) -> PathBuf {
        self.config_dir.join("cli.toml")
    }
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

        let paths = Paths::new(Some(Path::new("/r")), variable);
        assert_eq!(paths.cli_toml(), Path::new("/r/config/cli.toml"));
        assert_eq!(paths.data_dir, Path::new("/r/data"));
    }
}
