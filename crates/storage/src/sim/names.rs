//! The simulated directories: the names there are, and those that a power failure leaves.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};

use super::random::below;

#[derive(Clone, Default)]
pub(super) struct Tree {
    pub files: BTreeMap<PathBuf, u64>,
    directories: BTreeSet<PathBuf>,
}

enum NameChange {
    Link(PathBuf, u64),
    Rename(PathBuf, PathBuf, u64),
    Unlink(PathBuf),
    MakeDirectory(PathBuf),
    RemoveDirectory(PathBuf),
}

impl NameChange {
    /// The directory whose sync makes this durable.
    fn directory(&self) -> &Path {
        let (NameChange::Link(path, _)
        | NameChange::Rename(_, path, _)
        | NameChange::Unlink(path)
        | NameChange::MakeDirectory(path)
        | NameChange::RemoveDirectory(path)) = self;
        parent_of(path)
    }
}

impl Tree {
    fn apply(&mut self, change: &NameChange) {
        match change {
            NameChange::Link(path, id) => {
                self.files.insert(path.clone(), *id);
            }
            NameChange::Rename(from, to, id) => {
                self.files.remove(from);
                self.files.insert(to.clone(), *id);
            }
            NameChange::Unlink(path) => {
                self.files.remove(path);
            }
            NameChange::MakeDirectory(path) => {
                self.directories.insert(path.clone());
            }
            NameChange::RemoveDirectory(path) => {
                self.directories.remove(path);
            }
        }
    }

    pub fn is_directory(&self, path: &Path) -> bool {
        is_root(path) || self.directories.contains(path)
    }

    /// Removes what is below missing directories.
    fn drop_unreachable(&mut self) {
        let directories = self.directories.clone();
        let reachable = |path: &Path| {
            path.ancestors()
                .skip(1)
                .all(|above| is_root(above) || directories.contains(above))
        };
        self.directories.retain(|path| reachable(path));
        self.files.retain(|path, _| reachable(path));
    }
}

/// Names as processes see them, and as the disk has them.
#[derive(Default)]
pub(super) struct Names {
    pub cached: Tree,
    stored: Tree,
    /// From the disk's names to the visible ones, in order.
    pending: Vec<NameChange>,
    /// Lost by a failed sync. The next change in the same directory writes it too, as both are in one block.
    forgotten: Vec<NameChange>,
}

impl Names {
    /// The names that a power failure left.
    pub fn stored(tree: Tree) -> Names {
        Names {
            cached: tree.clone(),
            stored: tree,
            pending: Vec::new(),
            forgotten: Vec::new(),
        }
    }

    fn change(&mut self, change: NameChange) {
        self.cached.apply(&change);
        let directory = change.directory();
        let remembered = |old: &mut NameChange| same(old.directory(), directory);
        self.pending
            .extend(self.forgotten.extract_if(.., remembered));
        self.pending.push(change);
    }

    fn require_directory(&self, path: &Path) -> io::Result<()> {
        match self.cached.is_directory(path) {
            true => Ok(()),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub fn file(&self, path: &Path) -> io::Result<u64> {
        let id = self.cached.files.get(path).copied();
        id.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub fn link(&mut self, path: &Path, id: u64) -> io::Result<()> {
        self.require_directory(parent_of(path))?;
        self.change(NameChange::Link(path.to_owned(), id));
        Ok(())
    }

    pub fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        assert_eq!(
            from.parent(),
            to.parent(),
            "no rename leads into another directory"
        );
        let id = self.file(from)?;
        self.change(NameChange::Rename(from.to_owned(), to.to_owned(), id));
        Ok(())
    }

    pub fn unlink(&mut self, path: &Path) -> io::Result<()> {
        self.file(path)?;
        self.change(NameChange::Unlink(path.to_owned()));
        Ok(())
    }

    pub fn make_directory(&mut self, path: &Path) -> io::Result<()> {
        if self.cached.is_directory(path) || self.cached.files.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.require_directory(parent_of(path))?;
        self.change(NameChange::MakeDirectory(path.to_owned()));
        Ok(())
    }

    pub fn remove_directory(&mut self, path: &Path) -> io::Result<()> {
        self.require_directory(path)?;
        let mut inside = self.cached.files.keys().chain(&self.cached.directories);
        if inside.any(|inside| inside.parent() == Some(path)) {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        self.change(NameChange::RemoveDirectory(path.to_owned()));
        Ok(())
    }

    pub fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        self.require_directory(directory)?;
        let paths = self.cached.files.keys().chain(&self.cached.directories);
        let inside = paths.filter(|path| path.parent() == Some(directory));
        Ok(inside
            .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
            .collect())
    }

    pub fn sync(&mut self, directory: &Path) -> io::Result<()> {
        self.require_directory(directory)?;
        let stored = &mut self.stored;
        self.pending.retain(|change| {
            let synced = same(change.directory(), directory);
            if synced {
                stored.apply(change);
            }
            !synced
        });
        Ok(())
    }

    /// The changes stay and wait for the next sync, as with a journal; or a first part of them reaches the disk and the
    /// others are forgotten while processes still see them, as without one.
    pub fn fail_sync(&mut self, directory: &Path, random: &mut u64) {
        if below(random, 2) == 0 {
            return;
        }
        let waiting = self.pending.iter();
        let waiting = waiting.filter(|change| same(change.directory(), directory));
        let reached = below(random, waiting.count() as u64 + 1);
        let tried = |change: &mut NameChange| same(change.directory(), directory);
        for (number, change) in (0..).zip(self.pending.extract_if(.., tried)) {
            match number < reached {
                true => self.stored.apply(&change),
                false => self.forgotten.push(change),
            }
        }
    }

    /// After a power failure some first part of the changes in each directory has happened.
    pub fn after_crash(&self, random: &mut u64) -> Tree {
        let mut tree = self.stored.clone();
        let mut waiting: HashMap<&Path, u64> = HashMap::new();
        for change in &self.pending {
            *waiting.entry(change.directory()).or_default() += 1;
        }
        let mut happen: HashMap<&Path, u64> = HashMap::new();
        for change in &self.pending {
            let directory = change.directory();
            let left = happen
                .entry(directory)
                .or_insert_with(|| below(random, waiting[directory] + 1));
            if *left > 0 {
                *left -= 1;
                tree.apply(change);
            }
        }
        tree.drop_unreachable();
        tree
    }

    /// Puts a file in place, durably, with all its parents.
    pub fn put(&mut self, path: &Path, id: u64) {
        for tree in [&mut self.cached, &mut self.stored] {
            tree.files.insert(path.to_owned(), id);
            for above in path.ancestors().skip(1).filter(|above| !is_root(above)) {
                tree.directories.insert(above.to_owned());
            }
        }
    }
}

fn is_root(path: &Path) -> bool {
    ["", ".", "/"].iter().any(|root| path == Path::new(root))
}

fn same(a: &Path, b: &Path) -> bool {
    a == b || is_root(a) && is_root(b)
}

fn parent_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}
