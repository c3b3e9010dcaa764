//! Names, records and locks; damage to the files; failures of the disk while it changes.

use std::sync::mpsc::channel;
use std::time::Duration;

use lightcone_storage::sim::{FaultyDisk, Operation};
use lightcone_types::{Due, Hash, Timestamp};
use proptest::prelude::*;

use super::state::{FOUNDERS_MAX, FOUNDERS_PER_OWNER_MAX};
use super::*;

pub(super) fn identity(number: u8) -> Identity {
    Identity::from_claims("localhost", &number.to_string())
}

fn name(text: &str) -> DatabaseName {
    DatabaseName::parse(text).expect("valid name")
}

pub(super) fn record(number: u8, owner: u8) -> DatabaseRecord {
    DatabaseRecord {
        id: 0,
        identity: identity(number),
        owner: identity(owner),
        host_type: HostType::Wasm,
        initial_program: Hash::keccak256(b"old module bytes"),
        replica_id: 7,
    }
}

#[test]
fn without_a_token_the_store_can_be_opened_again() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for _ in 0..30 {
        let control = Arc::new(ControlDb::open(dir.path()).expect("closed before"));
        let token = Arc::downgrade(&control.open_token());
        let last = std::thread::spawn(move || drop(control));
        while token.strong_count() > 0 {
            std::hint::spin_loop();
        }
        drop(ControlDb::open(dir.path()).expect("closed"));
        last.join().expect("no panic");
    }
}

#[test]
fn names_belong_to_the_first_who_takes_them() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let control = ControlDb::open(dir.path()).expect("open");
    let (alice, bob, db, other) = (identity(1), identity(2), identity(3), identity(4));
    assert_eq!(
        control
            .register_name(&name("a"), (&alice, &alice), &db)
            .expect("a"),
        Registration::Done
    );
    assert_eq!(control.resolve("a"), Some(db));
    let denied = Registration::PermissionDenied("a".into());
    assert_eq!(
        control
            .register_name(&name("a"), (&bob, &bob), &other)
            .expect("a"),
        denied
    );
    assert_eq!(
        control
            .register_name(&name("a"), (&alice, &alice), &other)
            .expect("a"),
        Registration::InUse("a".into())
    );
    assert_eq!(
        control
            .register_name(&name("b"), (&alice, &alice), &db)
            .expect("b"),
        Registration::Done
    );
    assert_eq!(control.names_of(&db), ["a", "b"]);

    // Renaming frees the old names, but their domains stay with their owner.
    assert_eq!(
        control
            .replace_names(&[name("c")], (&alice, &alice), &db)
            .expect("c"),
        Registration::Done
    );
    assert_eq!(control.resolve("a"), None);
    assert_eq!(control.names_of(&db), ["c"]);
    assert_eq!(
        control
            .register_name(&name("a"), (&bob, &bob), &other)
            .expect("a"),
        denied
    );
    let in_use = Registration::InUse("c".into());
    assert_eq!(
        control
            .replace_names(&[name("d"), name("c")], (&alice, &alice), &db)
            .expect("c"),
        in_use
    );
    assert_eq!(
        control.resolve("d"),
        None,
        "nothing of a refused replacement stays"
    );
    assert_eq!(
        control
            .replace_names(&[], (&alice, &alice), &db)
            .expect("none"),
        Registration::Done
    );
    assert!(control.names_of(&db).is_empty());
}

#[test]
fn roles_are_kept_until_they_are_taken() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let control = ControlDb::open(dir.path()).expect("open");
    let (database, alice, bob) = (identity(1), identity(2), identity(3));
    let early = control.set_role((&database, &alice), Some(Role::Owner), |_, _| true);
    assert!(matches!(early, Err(ControlError::Gone(_))));
    control
        .insert_database(record(1, 9), Due::Open)
        .expect("insert");
    let set = |control: &ControlDb, who: &Identity, role| {
        control.set_role((&database, who), role, |_, _| true)
    };
    set(&control, &alice, Some(Role::Owner)).expect("set");
    set(&control, &bob, Some(Role::Reader)).expect("set");
    assert!(set(&control, &bob, Some(Role::Publisher)).expect("set"));
    assert!(!set(&control, &bob, Some(Role::Publisher)).expect("as it was"));
    // Who may is decided on what is there then.
    let refused = control.set_role((&database, &bob), None, |record, roles| {
        assert_eq!(record.owner, identity(9));
        roles[&bob] == Role::Owner
    });
    assert!(matches!(refused, Err(ControlError::NotAllowed)));
    drop(control);
    let control = ControlDb::open(dir.path()).expect("open again");
    assert_eq!(control.role(&database, &alice), Some(Role::Owner));
    assert_eq!(control.role(&database, &bob), Some(Role::Publisher));
    assert_eq!(control.role(&identity(5), &bob), None);
    set(&control, &bob, None).expect("taken");
    set(&control, &bob, None).expect("twice is once");
    assert_eq!(control.collaborators(&database), [(alice, Role::Owner)]);
    // They do not come back with a database that has the same identity.
    control.delete_database(&database).expect("deleted");
    control
        .insert_database(record(1, 9), Due::Open)
        .expect("insert");
    assert_eq!(control.collaborators(&database), []);
    drop(control);
    let control = ControlDb::open(dir.path()).expect("open again");
    assert_eq!(control.role(&database, &alice), None);
}

#[test]
fn records_survive_a_restart_and_names_survive_a_deletion() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let control = ControlDb::open(dir.path()).expect("open");
    let first = control
        .insert_database(record(1, 9), Due::Open)
        .expect("insert");
    let second = control
        .insert_database(record(2, 9), Due::Open)
        .expect("insert");
    assert!(first.id < second.id);
    control
        .register_name(&name("a"), (&identity(9), &identity(9)), &identity(1))
        .expect("name");
    control.set_lock(&identity(1), true).expect("lock");
    drop(control);
    let control = ControlDb::open(dir.path()).expect("open again");
    assert_eq!(control.databases(), [first.clone(), second]);
    let refused = control.delete_database(&identity(1));
    assert!(matches!(refused, Err(ControlError::Locked(_))));
    control.set_lock(&identity(1), false).expect("unlock");
    control.delete_database(&identity(1)).expect("delete");
    control.set_lock(&identity(1), true).expect("lock");
    assert_eq!(control.database(&identity(1)), None);
    assert_eq!(control.resolve("a"), Some(identity(1)));
    assert!(control.is_locked(&identity(1)));
    assert_eq!(control.last_replica_id(), 0);
    let replica = control.next_replica_id().expect("id");
    assert!(control.next_replica_id().expect("id") > replica);
    assert_eq!(control.last_replica_id(), replica + 1);
}

/// A store with something of everything, in a directory of its own.
fn gold() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("temporary directory");
    let control = ControlDb::open(dir.path()).expect("open");
    for number in 1..4 {
        control
            .insert_database(record(number, 9), Due::Open)
            .expect("insert");
        control
            .register_name(
                &name(&format!("n{number}")),
                (&identity(9), &identity(9)),
                &identity(number),
            )
            .expect("name");
    }
    control.set_lock(&identity(2), true).expect("lock");
    control.delete_database(&identity(3)).expect("delete");
    control.next_replica_id().expect("id");
    dir
}

fn copy(from: &Path, to: &Path) {
    for copy in ["copy-1", "copy-2"] {
        std::fs::create_dir_all(to.join(copy)).expect("created");
        for file in std::fs::read_dir(from.join(copy)).expect("listed") {
            let file = file.expect("entry");
            std::fs::copy(file.path(), to.join(copy).join(file.file_name())).expect("copied");
        }
    }
}

/// The files of both copies.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for copy in ["copy-1", "copy-2"] {
        let entries = std::fs::read_dir(directory.join(copy)).expect("listed");
        files.extend(entries.map(|entry| entry.expect("entry").path()));
    }
    files
}

fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).expect("read");
    bytes[at] ^= 1 << (at % 8);
    std::fs::write(path, bytes).expect("written");
}

#[test]
fn no_flipped_bit_changes_an_answer() {
    let gold = gold();
    let control = ControlDb::open(gold.path()).expect("open");
    let expected = control.state.read().clone();
    drop(control);
    let mut mended = 0;
    for (number, file) in files(gold.path()).iter().enumerate() {
        let length = std::fs::metadata(file).expect("file").len() as usize;
        // A prime, so that all bits have their turn.
        for at in (0..length).step_by(53) {
            let dir = tempfile::tempdir().expect("temporary directory");
            copy(gold.path(), dir.path());
            let flipped = files(dir.path())
                .into_iter()
                .find(|path| path.ends_with(file.strip_prefix(gold.path()).expect("inside")))
                .expect("the same file");
            flip(&flipped, at);
            let control = ControlDb::open(dir.path());
            let control = control.unwrap_or_else(|error| panic!("{number} {at}: {error}"));
            assert_eq!(*control.state.read(), expected, "{} {at}", file.display());
            mended += usize::from(dir.path().join("copy-1.damaged").exists());
            mended += usize::from(dir.path().join("copy-2.damaged").exists());
            control.next_replica_id().expect("changes go on");
            drop(control);
            drop(ControlDb::open(dir.path()).expect("and it opens again"));
        }
    }
    assert!(mended > 0, "flips were found");
}

#[test]
fn beside_a_file_of_a_development_version_nothing_is_begun_anew() {
    for file in ["control.redb", "control.redb.taken-over"] {
        let dir = tempfile::tempdir().expect("temporary directory");
        std::fs::write(dir.path().join(file), b"redb").expect("written");
        let error = ControlDb::open(dir.path()).err().expect("refused");
        assert!(matches!(error, ControlError::OldFile(_)), "{error}");
        let left = std::fs::read_dir(dir.path()).expect("directory").count();
        assert_eq!(left, 1, "nothing was changed");
        // With the journal it is a left-over.
        copy(gold().path(), dir.path());
        let control = ControlDb::open(dir.path()).expect("opens");
        assert!(!control.databases().is_empty());
    }
}

#[test]
fn damage_in_both_copies_is_refused() {
    let gold = gold();
    for place in [4096 + 60, 4096 + 700] {
        let dir = tempfile::tempdir().expect("temporary directory");
        copy(gold.path(), dir.path());
        for file in files(dir.path()) {
            if std::fs::metadata(&file).expect("file").len() > 0 {
                flip(&file, place);
            }
        }
        let error = ControlDb::open(dir.path()).err().expect("refused");
        assert!(error.to_string().contains("LC0546"), "{error}");
    }
}

#[test]
fn a_copy_that_is_gone_or_behind_is_made_again() {
    let gold = gold();
    let expected = ControlDb::open(gold.path())
        .expect("open")
        .state
        .read()
        .clone();
    for name in ["copy-1", "copy-2"] {
        std::fs::remove_dir_all(gold.path().join(name)).expect("removed");
        let control = ControlDb::open(gold.path()).expect("opens");
        assert_eq!(*control.state.read(), expected);
    }
    // A crash between the two: one copy has a record more.
    let older = tempfile::tempdir().expect("temporary directory");
    copy(gold.path(), older.path());
    let control = ControlDb::open(gold.path()).expect("opens");
    let replica = control.next_replica_id().expect("id");
    drop(control);
    std::fs::remove_dir_all(gold.path().join("copy-1")).expect("removed");
    std::fs::rename(older.path().join("copy-1"), gold.path().join("copy-1")).expect("moved");
    let control = ControlDb::open(gold.path()).expect("opens");
    assert!(control.next_replica_id().expect("id") > replica);
}

#[test]
fn a_failed_change_is_not_there_and_the_next_one_opens_the_store_again() {
    let dir = gold();
    let control = ControlDb::open(dir.path()).expect("opens");
    // As after a failed write.
    *control.journal.lock() = None;
    let hidden = dir.path().join("hidden");
    for name in ["copy-1", "copy-2"] {
        std::fs::create_dir_all(&hidden).expect("created");
        std::fs::rename(dir.path().join(name), hidden.join(name)).expect("moved");
        std::fs::write(dir.path().join(name), "no directory").expect("written");
    }
    control.set_lock(&identity(1), true).expect_err("no disk");
    assert!(!control.is_locked(&identity(1)));
    for name in ["copy-1", "copy-2"] {
        std::fs::remove_file(dir.path().join(name)).expect("removed");
        std::fs::rename(hidden.join(name), dir.path().join(name)).expect("moved");
    }
    control
        .set_lock(&identity(1), true)
        .expect("the disk is back");
    assert!(control.is_locked(&identity(1)));
}

#[test]
fn a_long_journal_is_written_anew() {
    let dir = gold();
    let control = ControlDb::open(dir.path()).expect("opens");
    let mut state = control.state.read().clone();
    let mut held = control.journal.lock();
    let journal = held.as_mut().expect("open");
    journal.pretend_long();
    journal.rewrite_if_long(&state).expect("written anew");
    drop(held);
    let replica = control.next_replica_id().expect("id");
    drop(control);
    let control = ControlDb::open(dir.path()).expect("opens");
    state.generation = 2;
    state.last_replica_id = replica;
    assert_eq!(*control.state.read(), state);
}

#[test]
fn a_locked_database_is_neither_deleted_nor_reset() {
    let dir = gold();
    let control = ControlDb::open(dir.path()).expect("opens");
    let locked = control.database(&identity(2));
    let locked = locked.expect("it is there");
    let deleted = control.delete_database(&identity(2));
    assert!(matches!(deleted, Err(ControlError::Locked(_))));
    let reset = control.reset_database(&DatabaseRecord {
        replica_id: 100,
        ..locked.clone()
    });
    assert!(matches!(reset, Err(ControlError::Locked(_))));
    assert_eq!(control.database(&identity(2)), Some(locked));
}

#[test]
fn where_a_name_of_another_leads_only_its_owner_creates_a_database() {
    let dir = gold();
    let control = ControlDb::open(dir.path()).expect("opens");
    // Its name is left of a database that was deleted.
    let (owner, other) = (record(3, 9), record(3, 8));
    let refused = control.insert_database(other.clone(), Due::Open);
    assert!(matches!(refused, Err(ControlError::NameOfAnother(name)) if name == "n3"));
    control.insert_database(owner, Due::Open).expect("his own");
    let refused = control.insert_database(other, Due::Open);
    assert!(matches!(refused, Err(ControlError::Exists(_))));
}

#[test]
fn a_deleted_database_stays_its_founders() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut control = ControlDb::open(dir.path()).expect("open");
    let (database, founder, other) = (identity(1), identity(9), identity(8));
    control
        .may_choose(&database, &other)
        .expect("it has no owner yet");
    control
        .insert_database(record(1, 9), Due::Open)
        .expect("insert");
    control.delete_database(&database).expect("deleted");
    let is_refused = |control: &ControlDb| {
        let chosen = control.may_choose(&database, &other);
        let inserted = control.insert_database(record(1, 8), Due::Open);
        matches!(chosen, Err(ControlError::FoundedByAnother(of)) if of == database)
            && matches!(inserted, Err(ControlError::FoundedByAnother(of)) if of == database)
    };
    assert!(is_refused(&control));
    // Also when the journal is read again, and when it was written anew.
    for _ in 0..2 {
        control
            .journal
            .lock()
            .as_mut()
            .expect("it is open")
            .pretend_long();
        control.next_replica_id().expect("a change");
        drop(control);
        control = ControlDb::open(dir.path()).expect("open again");
        assert!(is_refused(&control));
    }
    control.may_choose(&database, &founder).expect("his own");
    let first = control
        .insert_database(record(1, 9), Due::Open)
        .expect("his own");
    assert!(
        control.state.read().founders.is_empty(),
        "its record says it"
    );
    // What was meant for the one before does not count for the next one.
    control.delete_database(&database).expect("deleted");
    control
        .insert_database(record(1, 9), Due::Open)
        .expect("his own");
    let reset = control.reset_database(&first);
    assert!(matches!(reset, Err(ControlError::Gone(of)) if of == database));
}

/// What is not remembered any more could have had any owner.
#[test]
fn where_founders_may_be_forgotten_no_identity_is_chosen() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let control = ControlDb::open(dir.path()).expect("open");
    control
        .insert_database(record(1, 9), Due::Open)
        .expect("insert");
    control
        .insert_database(record(2, 9), Due::Open)
        .expect("insert");
    control
        .register_name(&name("a"), (&identity(9), &identity(9)), &identity(2))
        .expect("a");
    control.delete_database(&identity(1)).expect("deleted");
    control.fill_founders();
    control.delete_database(&identity(2)).expect("deleted");
    assert_eq!(control.state.read().founders.len(), FOUNDERS_MAX);
    let unknown = control.may_choose(&identity(3), &identity(9));
    assert!(matches!(unknown, Err(ControlError::FoundersForgotten)));
    // What is known to be his is his, and so is what his name leads to.
    for number in [1, 2] {
        let his = control.may_choose(&identity(number), &identity(9));
        his.expect("his own");
    }
    control
        .insert_database(record(4, 8), Due::Open)
        .expect("a new identity");
}

/// No owner fills the memory of all with databases that are made and deleted.
#[test]
fn of_one_owner_the_newest_are_remembered() {
    let mut state = State::default();
    let of_number = |number: usize| {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        Identity::from_le_bytes(bytes)
    };
    let mut gone = |number: usize, owner: u8| {
        let (database, owner) = (of_number(number), identity(owner));
        let change = state::Change::Founder { database, owner };
        state.apply(change).expect("it fits");
        state.founders.len()
    };
    gone(0, 1);
    for number in 1..=FOUNDERS_PER_OWNER_MAX + 2 {
        gone(number, 2);
    }
    assert_eq!(gone(3, 2), FOUNDERS_PER_OWNER_MAX + 1, "once more");
    let again = State::replay(state.records(1).iter().map(Vec::as_slice)).expect("its own");
    assert_eq!(
        (&again.founders, &again.founded),
        (&state.founders, &state.founded)
    );
    for (number, remembered) in [(0, true), (1, false), (2, false), (3, true), (4, true)] {
        let is_remembered = state.founders.contains_key(&of_number(number));
        assert_eq!(is_remembered, remembered, "{number}");
    }
    let newest = state.founded[&identity(2)].back().copied();
    assert_eq!(newest, Some(of_number(3)));
}

#[test]
fn one_owner_has_so_many_databases_and_names() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let control = ControlDb::open(dir.path()).expect("open");
    let control = control.bounded(Bounds {
        databases_max: 4,
        databases_per_owner_max: 2,
        names_max: usize::MAX,
        names_per_owner_max: 2,
        named: [identity(8)].into(),
    });
    for number in [1, 2] {
        control
            .insert_database(record(number, 9), Due::Open)
            .expect("room");
    }
    let third = control.insert_database(record(3, 9), Due::Open);
    assert!(matches!(
        third,
        Err(ControlError::TooManyOfOwner { max: 2, .. })
    ));
    assert!(control.may_have_more(&identity(9)).is_err());
    for number in [3, 4] {
        control
            .insert_database(record(number, 8), Due::Open)
            .expect("room");
    }
    let fifth = control.insert_database(record(5, 7), Due::Open);
    assert!(matches!(fifth, Err(ControlError::TooManyDatabases(4))));
    // Who deletes one may make another.
    control.delete_database(&identity(1)).expect("deleted");
    control
        .insert_database(record(5, 9), Due::Open)
        .expect("room");

    let take = |owner: u8, text: &str| {
        let owner = identity(owner);
        control.register_name(&name(text), (&owner, &owner), &identity(5))
    };
    assert_eq!(take(9, "a").expect("room"), Registration::Done);
    let owner = (&identity(9), &identity(9));
    let both = control.replace_names(&[name("b"), name("c")], owner, &identity(5));
    assert!(matches!(
        both,
        Err(ControlError::TooManyNames { max: 2, .. })
    ));
    let one = control.replace_names(&[name("b"), name("b")], owner, &identity(5));
    assert_eq!(one.expect("room"), Registration::Done);
    assert!(matches!(
        take(9, "c"),
        Err(ControlError::TooManyNames { .. })
    ));
    assert_eq!(take(9, "a").expect("his own"), Registration::Done);
    for text in ["d", "e", "f"] {
        assert_eq!(take(8, text).expect("named"), Registration::Done);
    }
}

/// A copy of a store on a disk that can fail.
fn faulty(gold: &Path) -> (tempfile::TempDir, FaultyDisk, ControlDb) {
    let dir = tempfile::tempdir().expect("temporary directory");
    copy(gold, dir.path());
    let disk = FaultyDisk::default();
    let control = ControlDb::open_on(disk.storage(), dir.path()).expect("opens");
    (dir, disk, control)
}

/// Wherever a change fails, its answer is what all callers see from then on.
#[test]
fn a_change_is_what_its_answer_says_wherever_it_fails() {
    let gold = gold();
    let (mut made, mut refused, mut unknown) = (0, 0, 0);
    for (kind, for_ever) in [Operation::Write, Operation::Sync]
        .into_iter()
        .flat_map(|kind| [(kind, false), (kind, true)])
    {
        for operation in 0.. {
            let (dir, disk, control) = faulty(gold.path());
            disk.fail(kind, operation, for_ever);
            let answer = control.set_lock(&identity(1), true);
            let has_failed = disk.has_failed();
            let is_locked = || control.is_locked(&identity(1));
            match &answer {
                Ok(()) => assert!(is_locked()),
                Err(error) if error.is_unknown() => {
                    unknown += 1;
                    control.settle().expect_err("the disk still fails");
                }
                Err(_) => assert!(!is_locked()),
            }
            disk.mend();
            control.settle().expect("the disk is back");
            let seen = is_locked();
            control.next_replica_id().expect("changes go on");
            drop(control);
            let what = format!("{kind:?} {operation} {for_ever}: {answer:?}");
            for _ in 0..2 {
                let control = ControlDb::open(dir.path()).expect("opens");
                let is_locked = control.is_locked(&identity(1));
                assert_eq!(is_locked, seen, "{what}");
                match &answer {
                    Ok(()) => assert!(is_locked, "{what}"),
                    Err(error) => assert!(error.is_unknown() || !is_locked, "{what}"),
                }
            }
            match answer {
                Ok(()) if !has_failed => break,
                Ok(()) => made += 1,
                Err(_) => refused += 1,
            }
        }
    }
    assert!(
        made > 0 && refused > unknown && unknown > 0,
        "{made} {refused} {unknown}"
    );
}

#[test]
fn what_the_first_copy_has_is_made_though_the_second_fails() {
    let gold = gold();
    let (dir, disk, control) = faulty(gold.path());
    disk.fail_in("copy-2");
    control.set_lock(&identity(1), true).expect("it is made");
    assert!(control.is_locked(&identity(1)));
    // The next one waits for both copies.
    control.set_lock(&identity(3), true).expect_err("one copy");
    assert!(!control.is_locked(&identity(3)));
    // A restart does with the one.
    drop(control);
    let control = ControlDb::open_on(disk.storage(), dir.path()).expect("opens");
    assert!(control.is_locked(&identity(1)));
    disk.mend();
    control.set_lock(&identity(3), true).expect("both copies");
    drop(control);
    std::fs::remove_dir_all(dir.path().join("copy-1")).expect("removed");
    let control = ControlDb::open(dir.path()).expect("opens");
    for number in [1, 3] {
        assert!(control.is_locked(&identity(number)));
    }
}

#[test]
fn a_disk_that_refuses_is_no_damage() {
    let gold = gold();
    let (dir, disk, control) = faulty(gold.path());
    drop(control);
    std::fs::remove_dir_all(dir.path().join("copy-1")).expect("removed");
    disk.fail_in("copy-2");
    let error = ControlDb::open_on(disk.storage(), dir.path()).err();
    let error = error.expect("nothing can be read");
    assert!(matches!(error, ControlError::Log(_)), "{error}");
    disk.mend();
    drop(ControlDb::open_on(disk.storage(), dir.path()).expect("opens"));
}

/// The first copy has a change more; it cannot be read, and not be made again.
#[test]
fn a_copy_that_did_not_count_does_not_come_back() {
    let gold = gold();
    let (dir, disk, control) = faulty(gold.path());
    control.set_lock(&identity(1), true).expect("changed");
    drop(control);
    let second = dir.path().join("copy-2");
    for file in std::fs::read_dir(&second).expect("listed") {
        let file = file.expect("entry").file_name();
        std::fs::copy(gold.path().join("copy-2").join(&file), second.join(&file)).expect("copied");
    }
    disk.break_in("copy-1");
    let control = ControlDb::open_on(disk.storage(), dir.path()).expect("opens");
    assert!(!control.is_locked(&identity(1)));
    drop(control);
    disk.mend();
    let control = ControlDb::open_on(disk.storage(), dir.path()).expect("opens");
    assert!(!control.is_locked(&identity(1)));
    control.next_replica_id().expect("changes go on");
}

/// The first copy may have a change more; it can be read when there is room again.
#[test]
fn a_copy_that_cannot_be_read_for_now_is_waited_for() {
    let gold = gold();
    let (dir, disk, control) = faulty(gold.path());
    drop(control);
    disk.fail_in("copy-1");
    let error = ControlDb::open_on(disk.storage(), dir.path()).err();
    let error = error.expect("not now");
    assert!(matches!(error, ControlError::Log(_)), "{error}");
    disk.mend();
    drop(ControlDb::open_on(disk.storage(), dir.path()).expect("opens"));
    assert!(!dir.path().join("copy-1.damaged").exists());
}

#[test]
fn a_store_opens_though_it_cannot_be_written_anew() {
    let gold = gold();
    let (dir, disk, control) = faulty(gold.path());
    let expected = control.state.read().clone();
    let change = Change::ReplicaId(expected.last_replica_id);
    let filled = control.journal.lock().as_mut().expect("open").fill(&change);
    filled.expect("long");
    drop(control);
    for name in ["copy-1.new", "copy-2.new"] {
        disk.fail_in(name);
        let control = ControlDb::open_on(disk.storage(), dir.path()).expect("opens");
        let mut state = control.state.read().clone();
        state.generation = expected.generation;
        assert_eq!(state, expected);
        disk.mend();
    }
    drop(ControlDb::open(dir.path()).expect("opens, and writes it anew"));
    let control = ControlDb::open(dir.path()).expect("opens");
    assert!(control.state.read().generation > expected.generation);
}

#[test]
fn no_caller_waits_for_a_journal_that_is_written_anew() {
    let gold = gold();
    let (_dir, disk, control) = faulty(gold.path());
    let control = Arc::new(control);
    control
        .journal
        .lock()
        .as_mut()
        .expect("open")
        .pretend_long();
    disk.hold_in("copy-1.new");
    let changing = control.clone();
    let change = std::thread::spawn(move || changing.set_lock(&identity(1), true));
    disk.wait_until_held();
    let (sender, receiver) = channel();
    let reading = control.clone();
    std::thread::spawn(move || sender.send(reading.is_locked(&identity(1))));
    let read = receiver.recv_timeout(Duration::from_secs(60));
    disk.mend();
    change.join().expect("no panic").expect("changed");
    assert!(read.expect("no reader waits"));
}

/// What a store with times of databases is told.
#[derive(Clone, Debug)]
enum Step {
    Insert(u8, Due),
    /// As earlier versions did it: without a time.
    InsertEarlier(u8),
    Note(Vec<(u8, Due)>),
    Delete(u8),
    WriteAnew,
    OpenAgain,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let due = || {
        prop_oneof![
            Just(Due::Open),
            Just(Due::Never),
            (-3..3_i64).prop_map(|us| Due::At(Timestamp(us)))
        ]
    };
    let notes = proptest::collection::vec((0..5_u8, due()), 0..4);
    let step = prop_oneof![
        2 => (0..5_u8, due()).prop_map(|(number, due)| Step::Insert(number, due)),
        1 => (0..5_u8).prop_map(Step::InsertEarlier),
        3 => notes.prop_map(Step::Note),
        1 => (0..5_u8).prop_map(Step::Delete),
        1 => Just(Step::WriteAnew),
        1 => Just(Step::OpenAgain),
    ];
    proptest::collection::vec(step, 0..14)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Against a map, also of a journal that an earlier version began.
    #[test]
    fn times_are_those_that_were_noted_last(steps in steps()) {
        let dir = tempfile::tempdir().expect("temporary directory");
        let mut control = ControlDb::open(dir.path()).expect("open");
        // By the ids of databases, which ascend.
        let mut model: Vec<(u8, Due)> = Vec::new();
        let known = |model: &[(u8, Due)], number: u8| model.iter().any(|(known, _)| *known == number);
        for step in steps {
            match step {
                Step::Insert(number, due) => {
                    let inserted = control.insert_database(record(number, 9), due);
                    prop_assert_eq!(inserted.is_ok(), !known(&model, number));
                    if inserted.is_ok() {
                        model.push((number, due));
                    }
                }
                Step::InsertEarlier(number) if !known(&model, number) => {
                    let id = control.state.read().last_database_id + 1;
                    let change = Change::Database(DatabaseRecord { id, ..record(number, 9) });
                    let written = control.journal.lock().as_mut().expect("open").append(&[change]);
                    written.expect("written");
                    drop(control);
                    control = ControlDb::open(dir.path()).expect("an earlier version's");
                    model.push((number, Due::Open));
                }
                Step::InsertEarlier(_) => {}
                Step::Note(notes) => {
                    let noted: Vec<_> = notes.iter().map(|(number, due)| (identity(*number), *due)).collect();
                    control.note_due(&noted).expect("noted");
                    for (number, due) in notes {
                        for (_, known) in model.iter_mut().filter(|(known, _)| *known == number) {
                            *known = due;
                        }
                    }
                }
                Step::Delete(number) => {
                    control.delete_database(&identity(number)).expect("deleted");
                    model.retain(|(known, _)| *known != number);
                }
                Step::WriteAnew => {
                    control.journal.lock().as_mut().expect("open").pretend_long();
                    control.next_replica_id().expect("a change");
                }
                Step::OpenAgain => {
                    drop(control);
                    control = ControlDb::open(dir.path()).expect("open again");
                }
            }
            for (number, due) in &model {
                prop_assert_eq!(control.due(&identity(*number)), *due);
            }
            for until in -4..4 {
                let until = Timestamp(until);
                let at = |due: &Due| matches!(due, Due::At(at) if *at <= until);
                let mut expected: Vec<_> = model.iter().filter(|(_, due)| at(due)).collect();
                expected.sort_by_key(|(_, due)| *due);
                expected.extend(model.iter().filter(|(_, due)| *due == Due::Open));
                let expected: Vec<_> = expected.into_iter().map(|(number, _)| identity(*number)).collect();
                prop_assert_eq!(control.due_until(until), expected);
            }
        }
    }
}
