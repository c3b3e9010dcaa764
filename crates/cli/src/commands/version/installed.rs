//! The versions that are installed.

use std::path::{Path, PathBuf};

use crate::error::Result;

pub(super) fn directory_of(bin_dir: &Path, version: &str) -> Result<PathBuf> {
    let known: Vec<String> = installed(bin_dir)
        .into_iter()
        .map(|found| found.0)
        .collect();
    if known.iter().any(|known| known == version) {
        return Ok(bin_dir.join(version));
    }
    let known = match known.is_empty() {
        true => "none".to_owned(),
        false => known.join(", "),
    };
    bail!("LC0882", "version `{version}` is not installed. Installed: {known}. `spacetime version install` installs one.");
}

/// Where a version is that `link` has made.
pub(super) fn linked_to(bin_dir: &Path, version: &str) -> Option<PathBuf> {
    std::fs::read_link(bin_dir.join(version)).ok()
}

/// The version that `current` points to.
pub(super) fn current(bin_dir: &Path) -> Option<String> {
    let target = std::fs::read_link(bin_dir.join("current")).ok()?;
    Some(target.file_name()?.to_string_lossy().into_owned())
}

/// The numbers at the beginning of a version: three at least, or it is none.
pub(super) fn numbers_of(version: &str) -> Option<Vec<u64>> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+');
    let parts = version.split(['.', '-', '+']);
    let numbers: Vec<u64> = parts.map_while(|part| part.parse().ok()).collect();
    (numbers.len() >= 3 && version.chars().all(is_word)).then_some(numbers)
}

/// The version directories, newest first, and which of them `current` points to.
pub(super) fn installed(bin_dir: &Path) -> Vec<(String, bool)> {
    let current = current(bin_dir);
    let entries = std::fs::read_dir(bin_dir).into_iter().flatten().flatten();
    let versions = entries.filter_map(|entry| {
        let kind = entry.file_type().ok()?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_version = kind.is_dir() || kind.is_symlink();
        Some((numbers_of(&name).filter(|_| is_version)?, name))
    });
    let mut versions: Vec<(Vec<u64>, String)> = versions.collect();
    versions.sort();
    let newest_first = versions.into_iter().rev();
    let marked = newest_first.map(|(_, name)| {
        let is_current = current.as_ref() == Some(&name);
        (name, is_current)
    });
    marked.collect()
}

#[cfg(test)]
mod tests {
    use super::{installed, numbers_of};

    #[test]
    fn newest_first_with_the_current_one_marked() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for name in ["2.9.0", "2.10.1", "notes"] {
            std::fs::create_dir(directory.path().join(name)).expect("created");
        }
        std::os::unix::fs::symlink("2.9.0", directory.path().join("current")).expect("linked");
        let linked = directory.path().join("2.10.2-mine");
        std::os::unix::fs::symlink("notes", linked).expect("linked");
        assert_eq!(
            installed(directory.path()),
            [
                ("2.10.2-mine".to_owned(), false),
                ("2.10.1".to_owned(), false),
                ("2.9.0".to_owned(), true)
            ]
        );
    }

    #[test]
    fn versions_are_no_paths() {
        assert_eq!(numbers_of("2.10.1-rc.1"), Some(vec![2, 10, 1]));
        for version in ["", "2.10", "current", "../1.2.3", "1.2.3/x", "1.2.3 "] {
            assert_eq!(numbers_of(version), None, "{version}");
        }
    }
}
