//! npm packages of a project, and the program that installs them.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::error::Result;
use crate::output::{self, remark};
use crate::paths::{nearest_that, text_if_there};
use crate::project::parse_json5;

pub const MANAGERS: [&str; 4] = ["npm", "pnpm", "yarn", "bun"];

/// The package manager whose lock file is in the directory; npm if none is.
pub fn manager(directory: &Path) -> &'static str {
    let locks = [
        ("pnpm-lock.yaml", "pnpm"),
        ("yarn.lock", "yarn"),
        ("bun.lock", "bun"),
        ("bun.lockb", "bun"),
    ];
    let is_there = |(lock, _): &&(&str, &str)| directory.join(lock).is_file();
    locks.iter().find(is_there).map_or("npm", |found| found.1)
}

/// The `package.json` of a directory, if it has one.
pub fn manifest(directory: &Path) -> Result<Option<Value>> {
    let path = directory.join("package.json");
    let text = text_if_there(&path)?;
    text.map(|text| parse_json5(&path, &text)).transpose()
}

/// Whether a package that the directory depends on is neither in it nor above, where Node looks for it.
pub fn lacks_packages(directory: &Path) -> Result<bool> {
    let Some(manifest) = manifest(directory)? else {
        return Ok(false);
    };
    let is_there = |name: &str| {
        nearest_that(directory, format!("node_modules/{name}"), Path::exists).is_some()
    };
    let kinds = ["dependencies", "devDependencies"];
    let mut wanted = kinds.iter().filter_map(|kind| manifest[kind].as_object());
    Ok(wanted.any(|packages| packages.keys().any(|name| !is_there(name))))
}

/// Installs the packages of directories in which some are missing.
pub fn install_missing<'a>(directories: impl Iterator<Item = &'a Path>) -> Result<()> {
    for directory in directories {
        if lacks_packages(directory)? {
            install(manager(directory), directory);
        }
    }
    Ok(())
}

/// Installs the packages of a directory; false if that failed, which the user has been told.
pub fn install(manager: &str, directory: &Path) -> bool {
    remark!("Running `{manager} install` in {}", directory.display());
    let status = Command::new(manager)
        .arg("install")
        .current_dir(directory)
        .stdout(output::of_children())
        .status();
    let is_installed = status.is_ok_and(|status| status.success());
    if !is_installed {
        let directory = directory.display();
        remark!("warning: `{manager} install` failed; run it again in {directory}");
    }
    is_installed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_looked_for_as_node_does() {
        let project = tempfile::tempdir().expect("a temporary directory");
        let module = project.path().join("spacetimedb");
        std::fs::create_dir(&module).expect("made");
        assert!(!lacks_packages(&module).expect("no manifest"));
        let manifest = r#"{"dependencies":{"a":"1"},"devDependencies":{"@b/c":"1"}}"#;
        std::fs::write(module.join("package.json"), manifest).expect("written");
        let place = |path: &str| project.path().join(path);
        for (package, lacks) in [
            ("node_modules/a", true),
            ("spacetimedb/node_modules/@b/c", false),
        ] {
            assert!(lacks_packages(&module).expect("readable"));
            std::fs::create_dir_all(place(package)).expect("made");
            assert_eq!(lacks_packages(&module).expect("readable"), lacks);
        }
        assert_eq!(manager(&module), "npm");
        std::fs::write(module.join("bun.lock"), "").expect("written");
        assert_eq!(manager(&module), "bun");
    }
}
