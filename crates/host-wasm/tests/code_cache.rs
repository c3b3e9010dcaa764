//! Compiled code that is kept between runs: used as it was written, or not at all.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::common::*;
use lightcone_host::{HostLimits, ModuleEngine};
use lightcone_host_wasm::{WasmEngine, CODE_CACHE_BYTES_MAX};

/// A module whose definition is this text: what it describes shows which code ran.
fn program(text: &str) -> Vec<u8> {
    let length = text.len();
    wat::parse_str(format!(
        r#"(module
            (import "spacetime_10.0" "bytes_sink_write" (func $write (param i32 i32 i32) (result i32)))
            (memory (export "memory") 1)
            (data (i32.const 64) "{text}")
            (func (export "__describe_module__") (param $sink i32)
                (i32.store (i32.const 16) (i32.const {length}))
                (drop (call $write (local.get $sink) (i32.const 64) (i32.const 16))))
            (func (export "__call_reducer__") (param i32 i64 i64 i64 i64 i64 i64 i64 i32 i32) (result i32) i32.const 0))"#
    ))
    .unwrap()
}

fn described(engine: &WasmEngine, program: &[u8]) -> String {
    let config = config(HostLimits::default(), Arc::default());
    let module = engine
        .load(program, &config)
        .unwrap_or_else(|error| panic!("{error}"));
    String::from_utf8(module.describe().to_vec()).unwrap()
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory.join("code-cache")).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// The only file of code.
fn only_file(directory: &Path) -> PathBuf {
    let files = files(directory);
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

#[test]
fn code_is_kept_and_used_again() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let program = program("first");
    let engine = cached_engine(directory, CODE_CACHE_BYTES_MAX);
    assert_eq!(described(&engine, &program), "first");
    let file = only_file(directory);
    let written = fs::metadata(&file).unwrap();
    assert_eq!(written.mode() & 0o777, 0o600);
    let old = SystemTime::now() - Duration::from_secs(1000);
    fs::File::open(&file).unwrap().set_modified(old).unwrap();
    // By the same process, and by another one.
    for engine in [engine, cached_engine(directory, CODE_CACHE_BYTES_MAX)] {
        assert_eq!(described(&engine, &program), "first");
        let used = fs::metadata(only_file(directory)).unwrap();
        assert_eq!(used.ino(), written.ino(), "it was compiled again");
        assert!(used.modified().unwrap() > old, "its use was noted");
    }
}

/// Wherever a bit of the file flips, the program is compiled again and the file is whole afterwards.
#[test]
fn flipped_bits_are_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let program = program("flipped");
    let engine = cached_engine(directory, CODE_CACHE_BYTES_MAX);
    assert_eq!(described(&engine, &program), "flipped");
    let file = only_file(directory);
    let whole = fs::read(&file).unwrap();
    let bits = whole.len() * 8;
    // The header densely, the rest in steps that meet every position of a bit.
    let steps = (0..40 * 8)
        .step_by(7)
        .chain((40 * 8..bits).step_by((bits / 400) | 1));
    for bit in steps {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        fs::write(&file, &damaged).unwrap();
        assert_eq!(described(&engine, &program), "flipped", "bit {bit}");
        assert_eq!(only_file(directory), file);
        assert!(
            fs::read(&file).unwrap() == whole,
            "bit {bit} is still wrong"
        );
    }
    for length in [0, 1, 8, 39, 40, 41, whole.len() / 2, whole.len() - 1] {
        fs::write(&file, &whole[..length]).unwrap();
        assert_eq!(described(&engine, &program), "flipped", "{length} bytes");
        assert!(fs::read(&file).unwrap() == whole, "{length} bytes");
    }
}

/// Code by a program that can write to the cache, but cannot read the key.
#[test]
fn planted_code_is_not_run() {
    let directories = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let [ours, theirs] = [directories[0].path(), directories[1].path()];
    let (good, evil) = (program("good"), program("evil"));
    let engine = cached_engine(ours, CODE_CACHE_BYTES_MAX);
    assert_eq!(described(&engine, &good), "good");
    let file = only_file(ours);
    let good_code = fs::read(&file).unwrap();
    // Good code of the same server, but of another program.
    assert_eq!(described(&engine, &evil), "evil");
    let other = files(ours)
        .into_iter()
        .find(|other| *other != file)
        .unwrap();
    let evil_code = fs::read(&other).unwrap();
    fs::write(&file, &evil_code).unwrap();
    assert_eq!(described(&engine, &good), "good");
    assert!(fs::read(&file).unwrap() == good_code);
    // Code with the hash of another server.
    let foreign = cached_engine(theirs, CODE_CACHE_BYTES_MAX);
    assert_eq!(described(&foreign, &good), "good");
    let foreign_code = fs::read(only_file(theirs)).unwrap();
    assert!(foreign_code != good_code);
    fs::write(&file, &foreign_code).unwrap();
    assert_eq!(described(&engine, &good), "good");
    assert!(fs::read(&file).unwrap() == good_code);
}

#[test]
fn the_key_is_a_secret() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let program = program("secret");
    let key = directory.join("code-cache.key");
    let mode = || fs::metadata(&key).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        described(&cached_engine(directory, CODE_CACHE_BYTES_MAX), &program),
        "secret"
    );
    let first = fs::read(&key).unwrap();
    assert_eq!((first.len(), mode()), (32, 0o600));
    let written = fs::read(only_file(directory)).unwrap();
    // A key that others could read is worth nothing, nor is what was written with it.
    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(
        described(&cached_engine(directory, CODE_CACHE_BYTES_MAX), &program),
        "secret"
    );
    let second = fs::read(&key).unwrap();
    assert!(second != first && mode() == 0o600);
    assert!(
        fs::read(only_file(directory)).unwrap() != written,
        "written again, with the new key"
    );
    for wrong in [&b""[..], &[7; 31], &[7; 33]] {
        fs::write(&key, wrong).unwrap();
        assert_eq!(
            described(&cached_engine(directory, CODE_CACHE_BYTES_MAX), &program),
            "secret"
        );
        assert_eq!((fs::read(&key).unwrap().len(), mode()), (32, 0o600));
    }
    fs::remove_file(&key).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &key).unwrap();
    assert_eq!(
        described(&cached_engine(directory, CODE_CACHE_BYTES_MAX), &program),
        "secret"
    );
    assert!(fs::symlink_metadata(&key).unwrap().is_file());
}

#[test]
fn the_cache_is_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let engine = cached_engine(directory, CODE_CACHE_BYTES_MAX);
    assert_eq!(described(&engine, &program("0")), "0");
    let size = fs::metadata(only_file(directory)).unwrap().len();
    let engine = cached_engine(directory, size * 3 + size / 2);
    for number in 1..6 {
        // The first one is used all the time, so it stays.
        let old = SystemTime::now() - Duration::from_secs(1000 - number);
        for file in files(directory) {
            fs::File::open(file).unwrap().set_modified(old).unwrap();
        }
        let first = program("0");
        assert_eq!(described(&engine, &first), "0");
        let text = number.to_string();
        assert_eq!(described(&engine, &program(&text)), text);
        let total: u64 = files(directory)
            .iter()
            .map(|file| fs::metadata(file).unwrap().len())
            .sum();
        assert!(total <= size * 3 + size / 2, "{total} of {size} each");
    }
    assert_eq!(files(directory).len(), 3);
    // Nothing is kept that does not fit at all.
    let engine = cached_engine(directory, size / 2);
    assert_eq!(described(&engine, &program("large")), "large");
}

#[test]
fn unused_files_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let cache = directory.join("code-cache");
    let old = cache.join("modules/wasmtime-1.2.3");
    fs::create_dir_all(&old).unwrap();
    fs::write(old.join("code"), b"unchecked").unwrap();
    fs::write(cache.join("a.1.tmp"), b"torn").unwrap();
    fs::write(cache.join("a.2.tmp"), b"another server writes it now").unwrap();
    let long_ago = SystemTime::now() - Duration::from_secs(7200);
    fs::File::open(cache.join("a.1.tmp"))
        .unwrap()
        .set_modified(long_ago)
        .unwrap();
    cached_engine(directory, CODE_CACHE_BYTES_MAX);
    assert_eq!(files(directory), [cache.join("a.2.tmp")]);
}

/// A cache that cannot be written is a slower start.
#[test]
fn a_cache_without_a_directory_costs_nothing_but_time() {
    let directory = tempfile::tempdir().unwrap();
    let engine = cached_engine(directory.path(), CODE_CACHE_BYTES_MAX);
    fs::remove_dir(directory.path().join("code-cache")).unwrap();
    assert_eq!(described(&engine, &program("slow")), "slow");
}
