//! The project around the current directory: its configuration, and whether what it is built with fits this program.

use std::path::{Path, PathBuf};

use super::report::Report;
use super::run::version_in;
use crate::build::{self, Language};
use crate::error::Result;
use crate::npm;
use crate::paths::nearest;
use crate::project::{Project, Target};

/// Files of bindings begin with lines of comments; a large file is not read to its end for one of them.
const HEAD_LINES: usize = 12;
const CORRECT: &str = "Correct the file; the message has the place.";
const GENERATED_BY: &str = "spacetimedb cli version ";

/// Which toolchains the project needs, and where.
#[derive(Debug, Default)]
pub(super) struct Needs {
    pub rust: Option<PathBuf>,
    pub node: Option<PathBuf>,
    pub csharp: Option<PathBuf>,
    pub cpp: Option<PathBuf>,
    modules: Vec<PathBuf>,
    root: PathBuf,
}

impl Needs {
    pub fn of(project: Option<&Project>) -> Self {
        let root = project.map_or_else(|| PathBuf::from("."), |p| p.directory.clone());
        let targets = project.and_then(|p| p.targets().ok()).unwrap_or_default();
        let mut modules: Vec<PathBuf> = targets.into_iter().filter_map(|t| t.module_path).collect();
        if modules.is_empty() {
            let usual = [root.join("spacetimedb"), root.clone()];
            modules.extend(usual.into_iter().find(|d| is_module(d)));
        }
        modules.sort();
        modules.dedup();
        let first = |language: Language| {
            let is_it = |d: &&PathBuf| build::language(d) == Some(language);
            modules.iter().find(is_it).cloned()
        };
        let client = Some(root.clone()).filter(|root| root.join("package.json").is_file());
        Self {
            rust: first(Language::Rust),
            csharp: first(Language::CSharp),
            cpp: first(Language::Cpp),
            node: first(Language::TypeScript).or(client),
            modules,
            root,
        }
    }
}

/// A module in the current directory, and not any program that has a Cargo.toml.
fn is_module(directory: &Path) -> bool {
    let manifests = ["Cargo.toml", "package.json"];
    let named = manifests.iter().any(|name| {
        std::fs::read_to_string(directory.join(name))
            .is_ok_and(|text| text.contains("spacetimedb") || text.contains("lightcone"))
    });
    named && build::language(directory).is_some()
}

/// The server of the project's first database.
pub(super) fn server(project: Option<&Project>) -> Option<String> {
    let mut databases = project?.databases().ok()?.into_iter();
    databases.find_map(|database| database.server)
}

pub(super) fn check(report: &mut Report, project: &Result<Option<Project>>, needs: &Needs) {
    const NAME: &str = "spacetime.json";
    let mut targets = Vec::new();
    match project {
        Err(error) => report.error(NAME, error.text(), CORRECT),
        Ok(None) => {
            let text = "none here or above: commands take the database as an argument";
            report.ok(NAME, text);
        }
        Ok(Some(project)) => match project.targets() {
            Ok(found) => {
                report.ok(NAME, project.file_names().join("\n"));
                targets = found;
            }
            Err(error) => report.error(NAME, error.to_string(), CORRECT),
        },
    }
    for module in &needs.modules {
        check_module(report, module);
    }
    check_bindings(report, needs, &targets);
}

fn check_module(report: &mut Report, module: &Path) {
    let shown = module.display();
    let found = match build::language(module) {
        None => {
            let advice =
                "Correct `module-path` in spacetime.json, or start one with `spacetime init`.";
            return report.error("module", format!("{shown} holds no module"), advice);
        }
        Some(Language::TypeScript) if npm::lacks_packages(module).unwrap_or(true) => {
            let advice = format!("npm install --prefix {shown}");
            return report.error("module", format!("{shown} lacks npm packages"), advice);
        }
        Some(Language::TypeScript) => installed_package(module, "spacetimedb"),
        Some(Language::Rust) => locked_crate(module, "spacetimedb"),
        Some(Language::CSharp | Language::Cpp) => None,
    };
    match found {
        Some(version) => {
            let what = format!("{shown}, with spacetimedb {version}");
            compare(report, "module", &what, &version);
        }
        None => report.ok("module", shown.to_string()),
    }
}

/// Is a package of the reference's one that this program follows?
fn compare(report: &mut Report, name: &str, what: &str, version: &str) {
    let (Some(theirs), Some(ours)) = (version_in(version), version_in(crate::COMPATIBLE_VERSION))
    else {
        return report.ok(name, what);
    };
    let (follows, major) = (crate::COMPATIBLE_VERSION, ours.0);
    let advice =
        format!("This program follows {follows}. Use a package {major}.*, or a newer program.");
    if theirs.0 != ours.0 {
        report.warning(name, format!("{what}, of another major version"), advice);
    } else if (theirs.0, theirs.1) > (ours.0, ours.1) {
        report.warning(name, format!("{what}, which is newer"), advice);
    } else {
        report.ok(name, what);
    }
}

/// The version of a crate in the nearest Cargo.lock.
fn locked_crate(directory: &Path, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(nearest(directory, "Cargo.lock")?).ok()?;
    let wanted = format!("name = \"{name}\"");
    let mut lines = text.lines().skip_while(|line| *line != wanted);
    let version = lines.nth(1)?.strip_prefix("version = \"")?;
    Some(version.trim_end_matches('"').to_owned())
}

/// The version of an npm package that is installed for a directory.
fn installed_package(directory: &Path, name: &str) -> Option<String> {
    let manifest = nearest(directory, format!("node_modules/{name}/package.json"))?;
    let manifest = std::fs::read(manifest).ok()?;
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).ok()?;
    Some(manifest.get("version")?.as_str()?.to_owned())
}

fn check_bindings(report: &mut Report, needs: &Needs, targets: &[Target]) {
    let entries = targets.iter().flat_map(|target| &target.generate);
    let mut directories: Vec<PathBuf> = entries.filter_map(|entry| entry.out_dir.clone()).collect();
    if directories.is_empty() {
        directories.extend(["src/module_bindings", "module_bindings"].map(|d| needs.root.join(d)));
    }
    for directory in directories {
        let heads = ["index.ts", "mod.rs"].map(|file| directory.join(file));
        let Some(version) = heads.iter().find_map(|file| generated_by(file)) else {
            continue;
        };
        let (shown, ours) = (directory.display(), crate::COMPATIBLE_VERSION);
        if version == ours {
            report.ok("bindings", format!("{shown}, of version {version}"));
        } else {
            let message = format!("{shown} are of version {version}, this program writes {ours}");
            report.warning("bindings", message, "spacetime generate");
        }
    }
}

/// Which version generated a file, as its first lines say.
fn generated_by(file: &Path) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let mut lines = text.lines().take(HEAD_LINES);
    let (_, version) = lines.find_map(|line| line.split_once(GENERATED_BY))?;
    Some(version.split([' ', ')']).next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::report::State;
    use super::*;

    fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for (name, text) in files {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("created");
            std::fs::write(path, text).expect("written");
        }
        directory
    }

    #[test]
    fn versions_are_read_from_lock_files_and_packages() {
        let made = directory(&[
            ("Cargo.lock", "[[package]]\nname = \"spacetimedb-lib\"\nversion = \"9.0.0\"\n\n[[package]]\nname = \"spacetimedb\"\nversion = \"2.10.1\"\n"),
            ("m/Cargo.toml", ""),
            ("m/node_modules/spacetimedb/package.json", "{\"version\":\"2.11.0\"}"),
        ]);
        let module = made.path().join("m");
        assert_eq!(
            locked_crate(&module, "spacetimedb").as_deref(),
            Some("2.10.1")
        );
        assert_eq!(locked_crate(&module, "nothing"), None);
        assert_eq!(
            installed_package(&module, "spacetimedb").as_deref(),
            Some("2.11.0")
        );
        assert_eq!(installed_package(&module, "nothing"), None);
    }

    #[test]
    fn packages_are_compared() {
        for (version, want) in [
            ("2.10.1", State::Ok),
            ("2.9.0", State::Ok),
            ("2.14.9", State::Ok),
            ("2.15.0", State::Warning),
            ("1.12.0", State::Warning),
            ("odd", State::Ok),
        ] {
            let mut report = Report::default();
            compare(&mut report, "module", "m", version);
            assert_eq!(report.checks[0].state, want, "{version}");
        }
    }

    #[test]
    fn bindings_say_who_wrote_them() {
        let made = directory(&[
            (
                "src/module_bindings/index.ts",
                "// a\n\n// This was generated using spacetimedb cli version 2.9.0 (commit x).\n",
            ),
            (
                "module_bindings/mod.rs",
                &format!(
                    "// This was generated using spacetimedb cli version {} (commit x).\n",
                    crate::COMPATIBLE_VERSION
                ),
            ),
        ]);
        let needs = Needs {
            root: made.path().to_owned(),
            ..Needs::default()
        };
        let mut report = Report::default();
        check_bindings(&mut report, &needs, &[]);
        let states: Vec<State> = report.checks.iter().map(|check| check.state).collect();
        assert_eq!(states, [State::Warning, State::Ok], "{report:?}");
    }

    #[test]
    fn a_module_is_recognised_by_what_it_depends_on() {
        let made = directory(&[
            ("Cargo.toml", "[dependencies]\nserde = \"1\"\n"),
            ("m/Cargo.toml", "[dependencies]\nspacetimedb = \"2\"\n"),
        ]);
        assert!(!is_module(made.path()));
        assert!(is_module(&made.path().join("m")));
    }
}
