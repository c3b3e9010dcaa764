//! The real disk and the simulated one keep the same promises; the simulated one breaks those that a real
//! one breaks too.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::mpsc;

use lightcone_storage::sim::{Faults, SimStorage};
use lightcone_storage::{
    read_exact_at, read_full_at, write_all_at, write_zeros, DiskStorage, FilePosition, OpenMode,
    Storage,
};

fn promises(storage: &dyn Storage, directory: &Path) {
    storage.create_directory(directory).unwrap();
    storage.create_directory(directory).unwrap();
    let path = directory.join("file");
    let missing = |mode| storage.open(&path, mode).err().map(|error| error.kind());
    assert_eq!(missing(OpenMode::Read), Some(ErrorKind::NotFound));
    assert_eq!(missing(OpenMode::ReadWrite), Some(ErrorKind::NotFound));
    let file = storage.open(&path, OpenMode::CreateNew).unwrap();
    assert_eq!(missing(OpenMode::CreateNew), Some(ErrorKind::AlreadyExists));
    // More parts than one system call takes, some of them empty.
    let pieces: Vec<Vec<u8>> = (0..3000u32)
        .map(|piece| vec![piece as u8; piece as usize % 5])
        .collect();
    let parts: Vec<&[u8]> = pieces.iter().map(|piece| &piece[..]).collect();
    write_all_at(&*file, &parts, FilePosition::new(10)).unwrap();
    file.sync_data().unwrap();
    storage.sync_directory(directory).unwrap();
    let mut bytes = vec![1; 20_000];
    let read = read_full_at(&*file, &mut bytes, FilePosition::START).unwrap();
    assert_eq!(read as u64, file.length().unwrap());
    assert_eq!(bytes[..10], [0; 10]);
    assert_eq!(bytes[10..read], parts.concat());
    write_zeros(&*file, FilePosition::new(5), FilePosition::new(1_000_000)).unwrap();
    assert_eq!(file.length().unwrap(), 1_000_000);
    file.set_length(100).unwrap();
    assert_eq!(
        read_exact_at(&*file, &mut bytes, FilePosition::START)
            .unwrap_err()
            .kind(),
        ErrorKind::UnexpectedEof
    );
    let moved = directory.join("moved");
    storage.rename(&path, &moved).unwrap();
    assert_eq!(storage.list(directory).unwrap(), ["moved"]);
    let reader = storage.open(&moved, OpenMode::Read).unwrap();
    assert!(write_all_at(&*reader, &[b"x"], FilePosition::START).is_err());
    storage.remove(&moved).unwrap();
    assert_eq!(
        storage.remove(&moved).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    assert!(storage.list(directory).unwrap().is_empty());
    // Open files outlive their names.
    assert_eq!(reader.length().unwrap(), 100);
    let lock = storage.lock(&directory.join("lock")).unwrap();
    let second = storage.lock(&directory.join("lock")).err();
    assert_eq!(
        second.map(|error| error.kind()),
        Some(ErrorKind::WouldBlock)
    );
    drop(lock);
    storage.lock(&directory.join("lock")).unwrap();
    let (sender, receiver) = mpsc::channel();
    storage
        .run_in_background("task", Box::new(move || sender.send(7).unwrap()))
        .unwrap();
    assert_eq!(receiver.recv().unwrap(), 7);
    assert_ne!(storage.random_u64(), storage.random_u64());
}

#[test]
fn real_disk() {
    let directory = tempfile::tempdir().unwrap();
    promises(&DiskStorage, &directory.path().join("a/b/c"));
}

#[test]
fn simulated_disk() {
    let storage = SimStorage::new(1);
    promises(&storage, Path::new("d"));
    storage.set_faults(Faults {
        short_writes: true,
        ..Faults::default()
    });
    promises(&storage, Path::new("e"));
}

#[test]
fn a_crash_takes_only_what_was_not_synced() {
    let directory = Path::new("d");
    let path = directory.join("file");
    let (mut kept_all, mut kept_none, mut kept_some, mut name_lost) = (0, 0, 0, 0);
    for seed in 0..300 {
        let storage = SimStorage::new(0);
        storage.create_directory(directory).unwrap();
        let file = storage.open(&path, OpenMode::CreateNew).unwrap();
        write_all_at(&*file, &[&[1; 2000]], FilePosition::START).unwrap();
        file.sync_data().unwrap();
        if storage.crash(seed).file(&path).is_none() {
            name_lost += 1;
        }
        storage.sync_directory(directory).unwrap();
        write_all_at(&*file, &[&[2; 2000]], FilePosition::START).unwrap();
        write_all_at(&*file, &[&[3; 2000]], FilePosition::new(2000)).unwrap();
        let bytes = storage.crash(seed).file(&path).unwrap();
        assert!(bytes.len() >= 2000);
        assert!(bytes[..2000].iter().all(|byte| [1, 2].contains(byte)));
        assert!(bytes[2000..].iter().all(|byte| [0, 3].contains(byte)));
        match bytes.iter().filter(|byte| [2, 3].contains(*byte)).count() {
            0 => kept_none += 1,
            4000 => kept_all += 1,
            _ => kept_some += 1,
        }
        file.sync_data().unwrap();
        assert_eq!(
            storage.crash(seed).file(&path).unwrap(),
            storage.file(&path).unwrap()
        );
    }
    assert!(kept_all > 0 && kept_none > 0 && kept_some > 100 && name_lost > 50);
}

#[test]
fn faults_come_when_asked() {
    let storage = SimStorage::new(0);
    let file = storage
        .open(Path::new("file"), OpenMode::CreateNew)
        .unwrap();
    storage.sync_directory(Path::new("")).unwrap();
    storage.set_faults(Faults {
        fail_sync: Some(1),
        ..Faults::default()
    });
    write_all_at(&*file, &[b"lost"], FilePosition::START).unwrap();
    assert!(file.sync_data().is_err());
    // The next sync claims success, but the bytes are gone all the same.
    file.sync_data().unwrap();
    assert_eq!(storage.file(Path::new("file")).unwrap(), b"lost");
    assert_eq!(storage.crash(0).file(Path::new("file")).unwrap(), b"");
    let counts = storage.counts();
    assert_eq!((counts.writes, counts.syncs, counts.names), (1, 3, 1));
    storage.set_faults(Faults {
        tear_write: Some(1),
        ..Faults::default()
    });
    assert!(write_all_at(&*file, &[&[9; 100]], FilePosition::START).is_err());
    let torn = storage.file(Path::new("file")).unwrap();
    assert!(torn.len() < 100 && torn[0] == 9);
    storage.set_faults(Faults {
        fail_writes_from: Some(0),
        fail_names_from: Some(0),
        ..Faults::default()
    });
    assert!(write_all_at(&*file, &[b"x"], FilePosition::START).is_err());
    assert!(storage
        .rename(Path::new("file"), Path::new("other"))
        .is_err());
    assert!(storage.open(Path::new("new"), OpenMode::CreateNew).is_err());
}
