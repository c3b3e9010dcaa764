//! Waits for changes of the module's sources.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use notify::event::ModifyKind;
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;

use super::session::Session;
use crate::error::{Error, Result};

/// Editors write a file in several steps: a change counts when nothing more has come for so long.
const QUIET: Duration = Duration::from_millis(150);

/// Directories of version control, builds, packages and editors, and the bindings.
const IGNORED: &str = ".git .hg .svn target build bin obj node_modules dist .next .nuxt .output __pycache__ .venv venv .vs \
                       .idea module_bindings";

/// The changes to come.
pub struct Changes {
    events: mpsc::UnboundedReceiver<PathBuf>,
    /// Watches as long as it lives.
    _watcher: RecommendedWatcher,
}

pub fn watch(session: &Session) -> Result<Changes> {
    let cannot =
        |e: notify::Error| Error::caused("LC0638", "cannot watch the module's directory", e);
    let mut roots: Vec<PathBuf> = session.targets.iter().map(|t| t.module.clone()).collect();
    roots.sort();
    roots.dedup();
    let filter = Filter::new(&session.directory, &roots);
    let (sender, events) = mpsc::unbounded_channel();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // An overflow of the system's queue has no paths: better one round too many than one too few.
        let Ok(event) = event else {
            return;
        };
        let is_change = match event.kind {
            EventKind::Create(_) | EventKind::Remove(_) => true,
            EventKind::Modify(ModifyKind::Metadata(_)) => false,
            EventKind::Modify(_) => true,
            EventKind::Access(_) | EventKind::Any | EventKind::Other => false,
        };
        let paths = event.paths.into_iter().filter(|_| is_change);
        for path in paths.filter(|path| filter.admits(path)) {
            // The receiver goes away when the command ends.
            let _ = sender.send(path);
        }
    })
    .map_err(cannot)?;
    for root in &roots {
        watcher
            .watch(root, RecursiveMode::Recursive)
            .map_err(cannot)?;
    }
    Ok(Changes {
        events,
        _watcher: watcher,
    })
}

impl Changes {
    /// The next change, when it is complete; `None` if no more can come.
    pub async fn next(&mut self) -> Option<PathBuf> {
        let first = self.events.recv().await?;
        while let Ok(Some(_)) = tokio::time::timeout(QUIET, self.events.recv()).await {}
        Some(first)
    }
}

/// Which paths matter.
struct Filter {
    roots: Vec<PathBuf>,
    ignore: Vec<Gitignore>,
}

impl Filter {
    fn new(project: &Path, roots: &[PathBuf]) -> Self {
        let mut ignore = vec![Gitignore::global().0];
        for directory in roots.iter().map(PathBuf::as_path).chain([project]) {
            let mut builder = GitignoreBuilder::new(directory);
            // A file that cannot be read ignores nothing.
            let _ = builder.add(directory.join(".gitignore"));
            ignore.extend(builder.build());
        }
        Self {
            roots: roots.to_vec(),
            ignore,
        }
    }

    fn admits(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.unwrap_or_default();
        let is_layer = name.starts_with("spacetime.") && name.ends_with(".local.json");
        if name == ".env.local" || is_layer {
            return true;
        }
        // The build itself writes this one.
        if name == "Cargo.lock" {
            return false;
        }
        let mut roots = self.roots.iter();
        let relative = roots.find_map(|root| path.strip_prefix(root).ok());
        let mut parts = relative.unwrap_or(path).components();
        let is_ignored = |part: &str| IGNORED.split(' ').any(|ignored| ignored == part);
        let in_ignored = parts.any(|part| part.as_os_str().to_str().is_some_and(is_ignored));
        let is_ignored_by = |rules: &Gitignore| {
            path.starts_with(rules.path())
                && rules.matched_path_or_any_parents(path, false).is_ignore()
        };
        !in_ignored && !self.ignore.iter().any(is_ignored_by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_builds_write_does_not_count() {
        let project = tempfile::tempdir().expect("a temporary directory");
        let module = project.path().join("spacetimedb");
        std::fs::create_dir(&module).expect("created");
        std::fs::write(project.path().join(".gitignore"), "*.tmp\n").expect("written");
        std::fs::write(module.join(".gitignore"), "secret\n").expect("written");
        let filter = Filter::new(project.path(), std::slice::from_ref(&module));
        for (path, want) in [
            ("src/index.ts", true),
            ("package.json", true),
            (".env.local", true),
            ("spacetime.dev.local.json", true),
            ("dist/bundle.js", false),
            ("node_modules/x/y.js", false),
            ("target/release/x", false),
            ("Cargo.lock", false),
            ("src/a.tmp", false),
            ("secret", false),
        ] {
            assert_eq!(filter.admits(&module.join(path)), want, "{path}");
        }
    }
}
