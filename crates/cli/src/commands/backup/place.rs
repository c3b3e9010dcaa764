//! Where backups lie: a directory, or a prefix in storage that speaks the protocol of S3. All files are small enough to be held in
//! memory, and each is written at once or not at all.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::SystemTime;

use futures_util::TryStreamExt as _;
use lightcone_backup::{FileEntry, Manifest};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::{ObjectStore as _, ObjectStoreExt as _};

use crate::error::{Error, Result};

/// Files that are being written.
const PART_EXTENSION: &str = "part";

/// Where backups of one database lie.
#[derive(Clone, Debug)]
pub enum BackupPlace {
    Directory(PathBuf),
    S3 {
        url: String,
        bucket: String,
        prefix: String,
    },
}

/// `--place`, which all of them have.
#[derive(Debug, clap::Args)]
pub struct PlaceOption {
    /// Where the backups lie: a directory, or s3://bucket/prefix
    #[arg(long, value_name = "PLACE")]
    pub place: BackupPlace,
}

impl FromStr for BackupPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<BackupPlace, String> {
        if let Some(rest) = text.strip_prefix("s3://") {
            let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
            if bucket.is_empty() {
                return Err("the URL names no bucket; it looks like s3://bucket/prefix".to_owned());
            }
            return Ok(BackupPlace::S3 {
                url: text.to_owned(),
                bucket: bucket.to_owned(),
                prefix: prefix.trim_end_matches('/').to_owned(),
            });
        }
        if text.contains("://") {
            return Err("a directory, or a URL like s3://bucket/prefix is expected".to_owned());
        }
        Ok(BackupPlace::Directory(text.into()))
    }
}

impl std::fmt::Display for BackupPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BackupPlace::Directory(path) => path.display().fmt(f),
            BackupPlace::S3 { url, .. } => f.write_str(url),
        }
    }
}

/// A file of a place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    pub name: String,
    pub bytes: u64,
    /// When it was written, by the clock of the place.
    pub modified: SystemTime,
}

/// A place that is in use.
#[derive(Debug)]
pub enum Store {
    Directory(PathBuf),
    S3 {
        store: AmazonS3,
        url: String,
        prefix: String,
    },
}

impl BackupPlace {
    /// Opens the place. What leads to storage with the protocol of S3 is in the usual variables: `AWS_ACCESS_KEY_ID`,
    /// `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL`, `AWS_ALLOW_HTTP`.
    pub fn open(self) -> Result<Store> {
        match self {
            BackupPlace::Directory(path) => Ok(Store::Directory(path)),
            BackupPlace::S3 {
                url,
                bucket,
                prefix,
            } => {
                let builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
                let store = builder.build().map_err(refused("use", &url))?;
                Ok(Store::S3 { store, url, prefix })
            }
        }
    }
}

pub(super) fn cannot<E: std::error::Error + Send + Sync + 'static>(
    verb: &str,
    what: impl std::fmt::Display,
) -> impl FnOnce(E) -> Error {
    let text = format!("cannot {verb} {what}");
    move |error| Error::caused("LC0888", text, error)
}

/// The same of S3: the error says all of it in one text, and its causes say it again.
pub(super) fn refused(
    verb: &str,
    what: impl std::fmt::Display,
) -> impl FnOnce(object_store::Error) -> Error {
    let text = format!("cannot {verb} {what}");
    move |error| coded!("LC0888", "{text}: {error}")
}

impl Store {
    /// How messages call a file.
    pub fn shown(&self, name: &str) -> String {
        match self {
            Store::Directory(path) if name.is_empty() => path.display().to_string(),
            Store::Directory(path) => path.join(name).display().to_string(),
            Store::S3 { url, .. } if name.is_empty() => url.clone(),
            Store::S3 { url, .. } => format!("{}/{name}", url.trim_end_matches('/')),
        }
    }

    /// Writes a file, durably on return, and for its owner alone to read.
    pub async fn put(&self, name: &str, bytes: Vec<u8>) -> Result<()> {
        let shown = self.shown(name);
        match self {
            Store::Directory(path) => {
                write_file(&path.join(name), &bytes).map_err(cannot("write", shown))
            }
            Store::S3 { store, prefix, .. } => {
                let put = store.put(&object_path(prefix, name), bytes.into()).await;
                put.map(drop).map_err(refused("write", shown))
            }
        }
    }

    /// The bytes of a file. None if there is no such file.
    pub async fn get(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let shown = self.shown(name);
        match self {
            Store::Directory(path) => match fs::read(path.join(name)) {
                Ok(bytes) => Ok(Some(bytes)),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(cannot("read", shown)(error)),
            },
            Store::S3 { store, prefix, .. } => match store.get(&object_path(prefix, name)).await {
                Ok(found) => {
                    let bytes = found.bytes().await.map_err(refused("read", shown))?;
                    Ok(Some(bytes.into()))
                }
                Err(object_store::Error::NotFound { .. }) => Ok(None),
                Err(error) => Err(refused("read", shown)(error)),
            },
        }
    }

    /// A file that must be there, and be what a manifest says.
    pub async fn get_checked(&self, name: &str, entry: &FileEntry) -> Result<Vec<u8>> {
        let bytes = self.get_needed(name).await?;
        let checked = entry.check(&self.shown(name), &bytes);
        checked.map_err(told)?;
        Ok(bytes)
    }

    /// A file that must be there.
    pub async fn get_needed(&self, name: &str) -> Result<Vec<u8>> {
        let bytes = self.get(name).await?;
        bytes.ok_or_else(|| self.damaged(name, "it is missing"))
    }

    /// That a file is damaged.
    pub fn damaged(&self, name: &str, found: impl Into<String>) -> Error {
        told(lightcone_backup::Error::damaged(self.shown(name), found))
    }

    /// Removes files in this order, as far as they are there; durably on return.
    pub async fn remove(&self, names: &[String]) -> Result<()> {
        for name in names {
            let shown = self.shown(name);
            match self {
                Store::Directory(path) => match fs::remove_file(path.join(name)) {
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    removed => removed.map_err(cannot("remove", shown))?,
                },
                Store::S3 { store, prefix, .. } => {
                    match store.delete(&object_path(prefix, name)).await {
                        Err(object_store::Error::NotFound { .. }) => {}
                        removed => removed.map_err(refused("remove", shown))?,
                    }
                }
            }
        }
        if let Store::Directory(path) = self {
            let directories = names.iter().filter_map(|name| Path::new(name).parent());
            for directory in directories.collect::<BTreeSet<_>>() {
                let directory = path.join(directory);
                let synced = File::open(&directory).and_then(|directory| directory.sync_all());
                synced.map_err(cannot("sync", directory.display()))?;
            }
        }
        Ok(())
    }

    /// All files in a directory of the place, in the order of their names.
    pub async fn list(&self, directory: &str) -> Result<Vec<Found>> {
        let shown = self.shown(directory);
        let mut found = match self {
            Store::Directory(path) => {
                list_files(&path.join(directory)).map_err(cannot("list", shown))?
            }
            Store::S3 { store, prefix, .. } => {
                let path = object_path(prefix, directory);
                let objects: Vec<_> = store
                    .list(Some(&path))
                    .try_collect()
                    .await
                    .map_err(refused("list", shown))?;
                let named = objects.into_iter().filter_map(|object| {
                    let below = object.location.prefix_match(&path)?.count();
                    // The list has what is in directories below too.
                    (below == 1).then_some(())?;
                    Some(Found {
                        name: object.location.filename()?.to_owned(),
                        bytes: object.size,
                        modified: object.last_modified.into(),
                    })
                });
                named.collect()
            }
        };
        found.sort();
        for file in &mut found {
            file.name = format!("{directory}/{}", file.name);
        }
        Ok(found)
    }

    /// All files that backups are made of, and others that are beside them.
    pub async fn list_all(&self) -> Result<Vec<Found>> {
        let mut files = Vec::new();
        for directory in ["objects", "snapshots", "log", "manifests"] {
            files.extend(self.list(directory).await?);
        }
        Ok(files)
    }

    /// All manifests, oldest first, and what is wrong with others.
    pub async fn manifests(&self) -> Result<(Vec<Manifest>, Vec<Error>)> {
        let (mut manifests, mut wrong) = (Vec::new(), Vec::new());
        for Found { name, .. } in self.list("manifests").await? {
            if !name.ends_with(".json") {
                continue;
            }
            let Some(bytes) = self.get(&name).await? else {
                // It was removed meanwhile.
                continue;
            };
            match Manifest::decode(&self.shown(&name), &bytes) {
                Ok(manifest) => manifests.push(manifest),
                Err(error) => wrong.push(told(error)),
            }
        }
        Ok((manifests, wrong))
    }

    /// The same for who cannot do without one: those that cannot be read are told of, and passed over.
    pub async fn readable_manifests(&self) -> Result<Vec<Manifest>> {
        let (manifests, wrong) = self.manifests().await?;
        for error in wrong {
            crate::output::remark!("warning: {error}");
        }
        Ok(manifests)
    }
}

/// The error of a command, with the code that the text has.
pub fn told(error: lightcone_backup::Error) -> Error {
    Error::plain(error.to_string())
}

pub(super) fn object_path(prefix: &str, name: &str) -> object_store::path::Path {
    let parts = prefix.split('/').chain(name.split('/'));
    parts.filter(|part| !part.is_empty()).collect()
}

/// A file is under its name as a whole or not at all, also after a power failure.
fn write_file(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    create_directory(directory)?;
    // Two commands may write the same file at a time.
    let number = rand::random::<u64>();
    let part = path.with_extension(format!("{number:016x}.{PART_EXTENSION}"));
    let written = write_new(&part, bytes).and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written?;
    File::open(directory)?.sync_all()
}

fn write_new(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = create_new(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// A new file, for its owner alone.
pub fn create_new(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The directory, and those above it that are missing, for their owner alone. The entry of each is durable in the one above it.
pub fn create_directory(path: &Path) -> std::io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    let above = path.parent().unwrap_or(Path::new(""));
    create_directory(above)?;
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(path) {
        // Another command was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => {}
        created => created?,
    }
    let is_here = above.as_os_str().is_empty();
    File::open(if is_here { Path::new(".") } else { above })?.sync_all()
}

fn list_files(path: &Path) -> std::io::Result<Vec<Found>> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let metadata = match entry.metadata() {
            // It was removed meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            metadata => metadata?,
        };
        if metadata.is_file() {
            found.push(Found {
                name: entry.file_name().to_string_lossy().into_owned(),
                bytes: metadata.len(),
                modified: metadata.modified()?,
            });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_directories_or_buckets() {
        let place = |text: &str| text.parse::<BackupPlace>();
        assert!(
            matches!(place("a/b"), Ok(BackupPlace::Directory(path)) if path == Path::new("a/b"))
        );
        let parsed = place("s3://bucket/a/b/").expect("a place");
        assert!(
            matches!(&parsed, BackupPlace::S3 { bucket, prefix, .. } if bucket == "bucket" && prefix == "a/b")
        );
        assert!(
            matches!(place("s3://bucket"), Ok(BackupPlace::S3 { prefix, .. }) if prefix.is_empty())
        );
        for text in ["s3://", "s3:///x", "http://x/y"] {
            assert!(place(text).is_err(), "{text}");
        }
    }

    #[test]
    fn files_are_for_their_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("a/b/c.json");
        for bytes in [b"one".as_slice(), b"two"] {
            write_file(&path, bytes).expect("written");
            assert_eq!(fs::read(&path).expect("read"), bytes);
        }
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(
            (mode(&path), mode(&root.path().join("a/b"))),
            (0o600, 0o700)
        );
        let files = list_files(&root.path().join("a/b")).expect("listed");
        let files: Vec<_> = files.iter().map(|f| (&*f.name, f.bytes)).collect();
        assert_eq!(files, [("c.json", 3)]);
    }
}
