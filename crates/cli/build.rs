//! Finds out which commit the programs are built from, for `spacetime version`.
//!
//! Packagers without a repository say it with LIGHTCONE_COMMIT. Nothing here fails: without either it is "unknown". Cargo
//! runs this again when the commit changes, and not for every build.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=LIGHTCONE_COMMIT");
    let given = std::env::var("LIGHTCONE_COMMIT").unwrap_or_default();
    let given = given.trim();
    let commit = match given {
        "" | "unknown" => commit_of_repository(),
        given => Some(given.to_owned()),
    };
    let commit = commit.unwrap_or_else(|| "unknown".to_owned());
    println!("cargo:rustc-env=LIGHTCONE_COMMIT={commit}");
}

/// The commit that is checked out, if these sources are a repository of their own.
fn commit_of_repository() -> Option<String> {
    let package = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR")?);
    let root = package.join("../..").canonicalize().ok()?;
    // Sources that a user has put into another repository are not at one of its commits.
    let top = git(&root, &["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root {
        return None;
    }
    watch(&root);
    git(&root, &["rev-parse", "HEAD"])
}

/// Names the files that change with the commit. Only such as exist: cargo takes a missing one for changed.
fn watch(root: &Path) {
    let mut names = vec!["HEAD".to_owned(), "packed-refs".to_owned()];
    // A reference that is packed gets a file of its own with the next commit; until then its directory is watched.
    if let Some(reference) = git(root, &["symbolic-ref", "--quiet", "HEAD"]) {
        let path = path_of(root, &reference);
        match (path, reference.rsplit_once('/')) {
            (Some(path), _) if path.exists() => names.push(reference),
            (_, Some((directory, _))) => names.push(directory.to_owned()),
            _ => {}
        }
    }
    for path in names.iter().filter_map(|name| path_of(root, name)) {
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
}

fn path_of(root: &Path, name: &str) -> Option<PathBuf> {
    git(root, &["rev-parse", "--git-path", name]).map(|path| root.join(path))
}

fn git(root: &Path, args: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(args)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
