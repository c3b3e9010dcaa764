//! A cache of native code between runs.
//!
//! Loaded native code runs without further checks. So each file has a hash, keyed with a secret of the data directory, over the
//! code, its program and the settings of its compilation. A file with a wrong hash, by a flipped bit or from another program, is
//! logged and removed, and the program is compiled again. The format is in `docs/on-disk-formats.md`.

use std::fs::{self, File};
use std::hash::Hash as _;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use lightcone_host::HostError;
use rand::TryRng;
use wasmtime::{Engine, Module};

#[derive(Clone, Debug)]
pub struct CodeCacheOptions {
    /// A program that can write here can cause compilations, and nothing else.
    pub directory: PathBuf,
    /// The secret, made if missing. Outside of `directory`, for the server only.
    pub key_file: PathBuf,
    /// For all files; the least recently used ones are removed.
    pub bytes_max: u64,
}

pub const CODE_CACHE_BYTES_MAX: u64 = 1 << 30;

const MAGIC: &[u8; 8] = b"LCCODE01";
const KEY_BYTES: usize = 32;
const HASH_BYTES: usize = 32;
const HEADER_BYTES: usize = MAGIC.len() + HASH_BYTES;
/// Left by a server that ended while it wrote.
const TEMPORARY: &str = ".tmp";
/// An older temporary file belongs to a server that has ended.
const TEMPORARY_AGE: Duration = Duration::from_secs(3600);

pub(crate) struct CodeCache {
    directory: PathBuf,
    bytes_max: u64,
    key: [u8; KEY_BYTES],
}

/// The same for the same program, compiler and settings.
pub(crate) struct CodeId(blake3::Hash);

impl CodeId {
    pub(crate) fn new(engine: &Engine, program: &[u8]) -> CodeId {
        /// Feeds a `Hash` into a hash without collisions.
        struct All(blake3::Hasher);
        impl std::hash::Hasher for All {
            fn write(&mut self, bytes: &[u8]) {
                self.0.update(bytes);
            }
            fn finish(&self) -> u64 {
                unreachable!("only the whole hash is used")
            }
        }
        let mut settings = All(blake3::Hasher::new());
        // With the versions of the compiler and the format, and the CPU's features.
        engine.precompile_compatibility_hash().hash(&mut settings);
        let mut id = blake3::Hasher::new_derive_key("lightcone 2026 native code of a program");
        id.update(settings.0.finalize().as_bytes());
        id.update(blake3::hash(program).as_bytes());
        CodeId(id.finalize())
    }
}

#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error("it is not a whole file of native code")]
    Format,
    #[error("its hash is wrong: it is damaged, or this server did not write it")]
    Hash,
    #[error("the engine refuses it: {0}")]
    Engine(String),
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl CodeCache {
    pub(crate) fn open(options: &CodeCacheOptions) -> Result<CodeCache, HostError> {
        let failed = |path: &Path, error: io::Error| {
            HostError::Engine(format!("cannot set up {}: {error}", path.display()))
        };
        make_private_directory(&options.directory)
            .map_err(|error| failed(&options.directory, error))?;
        let key = load_or_make_key(&options.key_file)
            .map_err(|error| failed(&options.key_file, error))?;
        let cache = CodeCache {
            directory: options.directory.clone(),
            bytes_max: options.bytes_max,
            key,
        };
        cache.clean();
        Ok(cache)
    }

    /// Removes what no server of this version uses.
    fn clean(&self) {
        // Earlier versions kept unchecked code here.
        let unchecked = self.directory.join("modules");
        if unchecked.is_dir() {
            if let Err(error) = fs::remove_dir_all(&unchecked) {
                tracing::warn!(path = %unchecked.display(), %error, "an old cache of native code cannot be removed");
            }
        }
        let now = SystemTime::now();
        for entry in self.entries() {
            let age = now.duration_since(entry.used).unwrap_or_default();
            if entry.is_temporary && age > TEMPORARY_AGE {
                remove(&entry.path);
            }
        }
    }

    fn path(&self, id: &CodeId) -> PathBuf {
        self.directory.join(id.0.to_hex().as_str())
    }

    pub(crate) fn load(&self, engine: &Engine, id: &CodeId) -> Option<Module> {
        let path = self.path(id);
        match self.read(engine, id, &path) {
            Ok(module) => module,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "native code in the cache is not used, and compiled again [LC0340]");
                remove(&path);
                None
            }
        }
    }

    fn read(&self, engine: &Engine, id: &CodeId, path: &Path) -> Result<Option<Module>, Unusable> {
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if file.metadata()?.len() > self.bytes_max {
            return Err(Unusable::Format);
        }
        // Into memory of our own: what was checked cannot change before it is used.
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        let Some((header, code)) = content.split_at_checked(HEADER_BYTES) else {
            return Err(Unusable::Format);
        };
        let (magic, hash) = header.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err(Unusable::Format);
        }
        // Compared in constant time.
        let hash: [u8; HASH_BYTES] = hash.try_into().map_err(|_| Unusable::Format)?;
        if self.hash(id, code) != blake3::Hash::from_bytes(hash) {
            return Err(Unusable::Hash);
        }
        // SAFETY: the bytes are what `Module::serialize` gave, unchanged: their hash is keyed with a secret that only this
        // server has, and covers program, compiler version and settings.
        let module = unsafe { Module::deserialize(engine, code) };
        let module = module.map_err(|error| Unusable::Engine(error.to_string()))?;
        // Orders the files by use. A failure only makes this one go earlier.
        let _ = file.set_modified(SystemTime::now());
        Ok(Some(module))
    }

    fn hash(&self, id: &CodeId, code: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(MAGIC).update(id.0.as_bytes()).update(code);
        hasher.finalize()
    }

    /// A failure costs only time at the next start.
    pub(crate) fn store(&self, id: &CodeId, module: &Module) {
        let stored = module
            .serialize()
            .map_err(io::Error::other)
            .and_then(|code| self.write(id, &code));
        if let Err(error) = stored {
            tracing::warn!(directory = %self.directory.display(), %error, "native code is not kept for the next start");
        }
    }

    fn write(&self, id: &CodeId, code: &[u8]) -> io::Result<()> {
        let bytes = (HEADER_BYTES + code.len()) as u64;
        if bytes > self.bytes_max {
            return Err(io::Error::other("it is larger than the whole cache may be"));
        }
        self.make_room(bytes);
        let path = self.path(id);
        let mut header = MAGIC.to_vec();
        header.extend_from_slice(self.hash(id, code).as_bytes());
        // A file that is torn by a power failure has a wrong hash, so there is nothing to sync.
        write_and_rename(&path, &[&header, code], false)
    }

    /// Removes the least recently used files until so much more fits.
    fn make_room(&self, bytes: u64) {
        let mut entries = self.entries();
        entries.sort_by_key(|entry| entry.used);
        let mut total: u64 = entries.iter().map(|entry| entry.bytes).sum();
        for entry in entries {
            if total.saturating_add(bytes) <= self.bytes_max {
                return;
            }
            remove(&entry.path);
            total -= entry.bytes;
        }
    }

    fn entries(&self) -> Vec<Entry> {
        let Ok(files) = fs::read_dir(&self.directory) else {
            return Vec::new();
        };
        let entry = |file: io::Result<fs::DirEntry>| {
            let file = file.ok()?;
            let metadata = file.metadata().ok().filter(fs::Metadata::is_file)?;
            Some(Entry {
                bytes: metadata.len(),
                used: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                is_temporary: file.file_name().to_string_lossy().ends_with(TEMPORARY),
                path: file.path(),
            })
        };
        files.filter_map(entry).collect()
    }
}

struct Entry {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
    is_temporary: bool,
}

fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        if error.kind() != io::ErrorKind::NotFound {
            tracing::warn!(path = %path.display(), %error, "a file of the cache of native code cannot be removed");
        }
    }
}

/// Leaves the whole new file, which only this user can read, or the old one.
fn write_and_rename(path: &Path, parts: &[&[u8]], sync: bool) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut file = tempfile::Builder::new()
        .prefix(&format!("{name}."))
        .suffix(TEMPORARY)
        .tempfile_in(path.parent().unwrap_or(Path::new("")))?;
    for part in parts {
        file.write_all(part)?;
    }
    if sync {
        file.as_file().sync_all()?;
    }
    file.persist(path)?;
    Ok(())
}

/// The secret in the file, or a new one if there is none or others could have read it.
fn load_or_make_key(path: &Path) -> io::Result<[u8; KEY_BYTES]> {
    match read_key(path) {
        Ok(Some(key)) => return Ok(key),
        Ok(None) => tracing::warn!(
            path = %path.display(),
            "the key of the cache of native code is not a file of 32 bytes that only this user can read; there is a new one, and all programs are compiled again [LC0340]"
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut key = [0; KEY_BYTES];
    (rand::rngs::SysRng.try_fill_bytes(&mut key)).map_err(io::Error::other)?;
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    write_and_rename(path, &[&key], true)?;
    Ok(key)
}

/// The key, if the file is one and a secret.
fn read_key(path: &Path) -> io::Result<Option<[u8; KEY_BYTES]>> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Ok(None);
    }
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(None),
        Err(error) => return Err(error),
    };
    if !is_private(&file.metadata()?) {
        return Ok(None);
    }
    let mut content = Vec::with_capacity(KEY_BYTES + 1);
    Read::by_ref(&mut file)
        .take(KEY_BYTES as u64 + 1)
        .read_to_end(&mut content)?;
    Ok(content.try_into().ok())
}

#[cfg(unix)]
fn is_private(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.mode() & 0o077 == 0
}

#[cfg(not(unix))]
fn is_private(_: &fs::Metadata) -> bool {
    true
}

fn make_private_directory(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(path)
}
