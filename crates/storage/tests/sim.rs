//! The simulated disk keeps what a real one keeps, and directories are created durably on both.

use std::io::ErrorKind;
use std::path::Path;

use lightcone_storage::sim::{Faults, SimStorage};
use lightcone_storage::{
    read_full_at, write_all_at, DiskStorage, File, FilePosition, OpenMode, Storage,
};

fn create(storage: &SimStorage, path: &str, bytes: &[u8]) -> Box<dyn File> {
    let file = storage.open(Path::new(path), OpenMode::CreateNew).unwrap();
    write_all_at(&*file, &[bytes], FilePosition::START).unwrap();
    file
}

fn fail_next_sync(storage: &SimStorage) {
    storage.set_faults(Faults {
        fail_sync: Some(storage.counts().syncs),
        ..Faults::default()
    });
}

#[test]
fn names_are_durable_after_the_sync_of_their_directory() {
    let (mut kept, mut lost) = (0, 0);
    for seed in 0..50 {
        let storage = SimStorage::new(seed);
        storage.create_directory(Path::new("a/b")).unwrap();
        create(&storage, "a/b/file", b"bytes").sync_data().unwrap();
        match storage.crash(seed).file(Path::new("a/b/file")) {
            Some(_) => kept += 1,
            None => lost += 1,
        }
        // The names above do not count.
        storage.sync_directory(Path::new("a")).unwrap();
        storage.sync_directory(Path::new("a/b")).unwrap();
        let after = storage.crash(seed);
        assert_eq!(after.file(Path::new("a/b/file")).unwrap(), b"bytes");
        storage
            .rename(Path::new("a/b/file"), Path::new("a/b/other"))
            .unwrap();
        assert_eq!(storage.crash(seed).files().len(), 1);
    }
    assert!(kept > 0 && lost > 0, "{kept} {lost}");
}

#[test]
fn a_failed_sync_is_forgotten() {
    let (mut kept, mut lost, mut shown) = (0, 0, 0);
    for seed in 0..50 {
        let storage = SimStorage::new(seed);
        let file = create(&storage, "file", &[0; 8192]);
        file.sync_data().unwrap();
        storage.sync_directory(Path::new(".")).unwrap();
        write_all_at(&*file, &[&[1; 100]], FilePosition::START).unwrap();
        fail_next_sync(&storage);
        assert!(file.sync_data().is_err());
        // Reads show it, and the next sync succeeds and writes only what is new, in another page.
        assert_eq!(storage.file(Path::new("file")).unwrap()[..100], [1; 100]);
        write_all_at(&*file, &[&[2; 100]], FilePosition::new(4096)).unwrap();
        file.sync_data().unwrap();
        let after = storage.crash(seed).file(Path::new("file")).unwrap();
        assert_eq!(after[4096..4196], [2; 100]);
        match after[0] {
            1 => kept += 1,
            _ => lost += 1,
        }
        // Without memory for them, reads show what is on the disk.
        storage.evict(seed);
        let evicted = storage.file(Path::new("file")).unwrap();
        assert_eq!(evicted[4096..], after[4096..]);
        if evicted[0] == 1 && after[0] == 0 {
            shown += 1;
        }
    }
    assert!(
        kept > 0 && lost > 0 && shown > 0 && shown < lost,
        "{kept} {lost} {shown}"
    );
}

#[test]
fn full_disks_failed_reads_and_turned_bits() {
    let storage = SimStorage::new(0);
    let file = create(&storage, "file", &[7; 1000]);
    storage.set_faults(Faults {
        full_at_bytes: Some(1500),
        fail_read: Some(0),
        short_reads: true,
        ..Faults::default()
    });
    let error = write_all_at(&*file, &[&[8; 1000]], FilePosition::new(900)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert_eq!(file.length().unwrap(), 1500);
    let mut buffer = vec![0; 2000];
    assert!(read_full_at(&*file, &mut buffer, FilePosition::START).is_err());
    assert_eq!(
        read_full_at(&*file, &mut buffer, FilePosition::START).unwrap(),
        1500
    );
    assert_eq!(buffer[..900], [7; 900]);
    // A dirty page hides the disk.
    storage.rot(Path::new("file"), 10, 0);
    assert_eq!(storage.file(Path::new("file")).unwrap()[10], 7);
    file.sync_data().unwrap();
    storage.rot(Path::new("file"), 10, 0);
    assert_eq!(storage.file(Path::new("file")).unwrap()[10], 6);
}

/// A process may die or fail at any point of it, and another one tries again: what is created stays.
#[test]
fn created_directories_survive() {
    let path = Path::new("data/replicas/1/log");
    for seed in 0..200 {
        for failing in 0..9u64 {
            let storage = SimStorage::new(seed);
            storage.set_faults(match seed % 2 {
                0 => Faults {
                    fail_sync: Some(failing),
                    ..Faults::default()
                },
                _ => Faults {
                    fail_names_from: Some(failing),
                    ..Faults::default()
                },
            });
            let first = storage.create_directory(path);
            storage.set_faults(Faults::default());
            if first.is_err() || seed % 3 == 0 {
                storage.create_directory(path).unwrap();
            }
            let crashed = storage.crash(seed);
            assert!(
                crashed.is_directory(path).unwrap(),
                "seed {seed}, {failing}"
            );
        }
    }
}

/// A process that died right after it had made a directory leaves a name that is not on the disk.
#[test]
fn directories_that_were_left_behind_are_synced() {
    for seed in 0..50 {
        let storage = SimStorage::new(seed);
        storage
            .create_directory(Path::new("data/replicas"))
            .unwrap();
        storage
            .make_directory(Path::new("data/replicas/1"))
            .unwrap();
        storage
            .create_directory(Path::new("data/replicas/1/log"))
            .unwrap();
        let crashed = storage.crash(seed);
        assert!(crashed
            .is_directory(Path::new("data/replicas/1/log"))
            .unwrap());
    }
}

#[test]
fn directories_on_a_real_disk() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a/b/c");
    for _ in 0..2 {
        DiskStorage.create_directory(&path).unwrap();
        assert!(DiskStorage.is_directory(&path).unwrap());
    }
    std::fs::write(path.join("file"), b"").unwrap();
    let error = DiskStorage
        .create_directory(&path.join("file"))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotADirectory);
    let error = DiskStorage
        .create_directory(&path.join("file/below"))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotADirectory);
}
