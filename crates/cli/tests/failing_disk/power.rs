//! What a power failure does to the files that a killed server has left: layer.c has noted what was not synced.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use super::Random;

const PAGE_BYTES: u64 = 4096;
/// Written as a unit.
const SECTOR_BYTES: u64 = 512;
const NUMBERS: usize = 8;

/// An entry of the journal, as layer.c writes it.
struct Entry {
    kind: u64,
    number: u64,
    inode: u64,
    position: u64,
    bytes: u64,
    length_before: u64,
    first: PathBuf,
    second: Vec<u8>,
}

const WRITTEN: u64 = 1;
const CUT: u64 = 2;
const SYNCED: u64 = 3;
const SYNC_FAILED: u64 = 4;
const CREATED: u64 = 5;
const RENAMED: u64 = 6;
const REMOVED: u64 = 7;
const DIRECTORY_MADE: u64 = 8;
const DIRECTORY_SYNCED: u64 = 9;

/// Bytes as they were before a write.
struct Before {
    number: u64,
    position: u64,
    old: Vec<u8>,
}

/// A page is dirty from a write until the next sync, whether that succeeds or not. What a failed sync has left is not written by later ones.
#[derive(Default)]
struct Page {
    is_dirty: bool,
    writes: Vec<Before>,
}

/// What of a file is not on the disk for sure.
#[derive(Default)]
struct Unsynced {
    pages: BTreeMap<u64, Page>,
    /// Lengths before a change, with the bytes that a cut took away.
    lengths: Vec<Before>,
}

impl Unsynced {
    fn write(&mut self, entry: &Entry) {
        let mut old = entry.second.clone();
        old.resize(entry.bytes as usize, 0);
        let end = entry.position + entry.bytes;
        for number in entry.position / PAGE_BYTES..end.div_ceil(PAGE_BYTES) {
            let start = (number * PAGE_BYTES).max(entry.position);
            let stop = ((number + 1) * PAGE_BYTES).min(end);
            let part = (start - entry.position) as usize..(stop - entry.position) as usize;
            let page = self.pages.entry(number).or_default();
            page.is_dirty = true;
            page.writes.push(Before {
                number: entry.number,
                position: start,
                old: old[part].to_vec(),
            });
        }
        if end > entry.length_before {
            self.change_length(entry, Vec::new());
        }
    }

    fn change_length(&mut self, entry: &Entry, old: Vec<u8>) {
        self.lengths.push(Before {
            number: entry.number,
            position: entry.length_before,
            old,
        });
    }

    fn sync(&mut self, until: u64) {
        for page in self.pages.values_mut().filter(|page| page.is_dirty) {
            page.writes.retain(|write| write.number > until);
            page.is_dirty = !page.writes.is_empty();
        }
        self.lengths.retain(|change| change.number > until);
    }

    fn fail_sync(&mut self) {
        for page in self.pages.values_mut() {
            page.is_dirty = false;
        }
    }

    /// Takes each sector back to what it was before one of the writes, or to none.
    fn lose(&self, file: &File, mood: Mood, random: &mut Random) -> std::io::Result<u64> {
        let mut lost = 0;
        let length = file.metadata()?.len();
        for (number, page) in &self.pages {
            for sector in 0..PAGE_BYTES / SECTOR_BYTES {
                let start = number * PAGE_BYTES + sector * SECTOR_BYTES;
                let end = (start + SECTOR_BYTES).min(length);
                let from = mood.first_lost(page.writes.len(), random);
                for write in page.writes[from..].iter().rev() {
                    let begin = write.position.max(start);
                    let stop = (write.position + write.old.len() as u64).min(end);
                    if begin < stop {
                        let part =
                            (begin - write.position) as usize..(stop - write.position) as usize;
                        file.write_all_at(&write.old[part], begin)?;
                        lost += stop - begin;
                    }
                }
            }
        }
        let from = mood.first_lost(self.lengths.len(), random);
        for change in self.lengths[from..].iter().rev() {
            file.set_len(change.position)?;
            file.write_all_at(&change.old, change.position - change.old.len() as u64)?;
        }
        Ok(lost)
    }
}

/// By single sectors, a long write would never be lost or kept as a whole.
#[derive(Clone, Copy)]
enum Mood {
    Loses,
    Keeps,
    Mixes,
}

impl Mood {
    fn draw(random: &mut Random) -> Mood {
        [Mood::Loses, Mood::Keeps, Mood::Mixes, Mood::Mixes][random.below(4) as usize]
    }

    /// Of so many changes the first one that did not reach the disk.
    fn first_lost(self, changes: usize, random: &mut Random) -> usize {
        match self {
            Mood::Loses => 0,
            Mood::Keeps => changes,
            Mood::Mixes => random.below(changes as u64 + 1) as usize,
        }
    }
}

/// The power fails: of what was not synced below a directory any part is lost. Returns how many bytes and names.
pub fn lose_power(below: &Path, side: &Path, random: &mut Random) -> (u64, usize) {
    let mut files: HashMap<u64, Unsynced> = HashMap::new();
    let mut names: BTreeMap<PathBuf, Vec<Entry>> = BTreeMap::new();
    let journal = side.join("journal");
    for entry in entries(&fs::read(&journal).expect("the journal")) {
        let file = files.entry(entry.inode).or_default();
        match entry.kind {
            WRITTEN => file.write(&entry),
            CUT => file.change_length(&entry, entry.second.clone()),
            SYNCED => file.sync(entry.position),
            SYNC_FAILED => file.fail_sync(),
            DIRECTORY_SYNCED => {
                let of_directory = names.entry(entry.first.clone()).or_default();
                of_directory.retain(|change| change.number > entry.position);
            }
            CREATED | RENAMED | REMOVED | DIRECTORY_MADE => {
                // Another file had the number before.
                if entry.kind == CREATED {
                    *file = Unsynced::default();
                }
                let directory = entry.first.parent().expect("a name is in a directory");
                names.entry(directory.to_owned()).or_default().push(entry);
            }
            kind => panic!("an entry of kind {kind}"),
        }
    }
    let mood = Mood::draw(random);
    let mut bytes = 0;
    let saved = side.join("saved");
    for path in files_below(below).into_iter().chain(files_below(&saved)) {
        let inode = fs::metadata(&path).expect("a file").ino();
        if let Some(unsynced) = files.get(&inode) {
            let file = OpenOptions::new().read(true).write(true).open(&path);
            let lost = unsynced.lose(&file.expect("a file"), mood, random);
            bytes += lost.expect("written");
        }
    }
    let mut undone: Vec<&Entry> = Vec::new();
    for changes in names.values() {
        undone.extend(&changes[mood.first_lost(changes.len(), random)..]);
    }
    undone.sort_by_key(|change| std::cmp::Reverse(change.number));
    for change in &undone {
        undo(change, &saved);
    }
    let undone = undone.len();
    for path in files_below(&saved) {
        fs::remove_file(path).expect("removed");
    }
    File::create(journal).expect("emptied");
    (bytes, undone)
}

/// Takes back a change of names. What later changes took away is not there any more.
fn undo(change: &Entry, saved: &Path) {
    let saved = saved.join(change.number.to_string());
    let second = PathBuf::from(String::from_utf8_lossy(&change.second).into_owned());
    let _ = match change.kind {
        CREATED => fs::remove_file(&change.first),
        DIRECTORY_MADE => fs::remove_dir_all(&change.first),
        REMOVED => fs::rename(saved, &change.first),
        _ => fs::rename(&second, &change.first).and_then(|()| match saved.exists() {
            true => fs::rename(saved, &second),
            false => Ok(()),
        }),
    };
}

/// The whole entries of a journal.
fn entries(journal: &[u8]) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut rest = journal;
    while let Some((head, behind)) = rest.split_at_checked(NUMBERS * 8) {
        let number =
            |of: usize| u64::from_le_bytes(head[of * 8..][..8].try_into().expect("8 bytes"));
        let Some((first, behind)) = behind.split_at_checked(number(6) as usize) else {
            break;
        };
        let Some((second, behind)) = behind.split_at_checked(number(7) as usize) else {
            break;
        };
        entries.push(Entry {
            kind: number(0),
            number: number(1),
            inode: number(2),
            position: number(3),
            bytes: number(4),
            length_before: number(5),
            first: PathBuf::from(String::from_utf8_lossy(first).into_owned()),
            second: second.to_vec(),
        });
        rest = behind;
    }
    entries
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let files = paths.map(|path| match path.is_dir() {
        true => files_below(&path),
        false => vec![path],
    });
    files.flatten().collect()
}
