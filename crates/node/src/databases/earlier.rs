//! The programs that a database has run before, so that its publishers can go back to one.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use lightcone_control::HostType;
use lightcone_database::{HostKind, ProgramBytes};
use lightcone_storage::DiskReserve;
use lightcone_types::Hash;

/// So many are kept of a database; when there are more, the one that ended first goes.
const EARLIER_MAX: usize = 5;
pub(super) const DIRECTORY: &str = "programs";

/// A program that ran before.
pub struct EarlierProgram {
    pub hash: Hash,
    pub host_type: HostType,
    pub bytes: u64,
    /// When another one took its place.
    pub until: SystemTime,
    path: PathBuf,
}

impl EarlierProgram {
    /// None: it is no such file.
    fn of(entry: &std::fs::DirEntry) -> Option<EarlierProgram> {
        let path = entry.path();
        let metadata = entry.metadata().ok()?;
        let hash = Hash::from_hex(path.file_stem()?.to_str()?).ok()?;
        let host_type = match path.extension()?.to_str()? {
            "js" => HostType::Js,
            "wasm" => HostType::Wasm,
            _ => return None,
        };
        Some(EarlierProgram {
            hash,
            host_type,
            bytes: metadata.len(),
            until: metadata.modified().ok()?,
            path,
        })
    }

    /// The program. None: the file has rotted, or is gone. Blocks.
    pub fn read(&self) -> Option<ProgramBytes> {
        let program = ProgramBytes::new(std::fs::read(&self.path).ok()?);
        (program.hash() == self.hash).then_some(program)
    }
}

/// The newest first.
pub(super) fn programs_in(directory: &Path) -> Vec<EarlierProgram> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut programs: Vec<_> = entries
        .filter_map(|entry| EarlierProgram::of(&entry))
        .collect();
    programs.sort_by_key(|program| std::cmp::Reverse(program.until));
    programs
}

/// Keeps a program whole or not at all.
pub(super) fn keep(
    directory: &Path,
    disk: &DiskReserve,
    (program, kind): (ProgramBytes, HostKind),
) -> io::Result<()> {
    if !disk.has_room_for(program.len() as u64) {
        return Err(io::ErrorKind::StorageFull.into());
    }
    lightcone_storage::disk().create_directory(directory)?;
    let extension = match kind {
        HostKind::Js => "js",
        HostKind::Wasm => "wasm",
    };
    let new = directory.join("new.tmp");
    std::fs::write(&new, &*program)?;
    let name = format!("{}.{extension}", program.hash().to_hex());
    std::fs::rename(new, directory.join(name))?;
    for old in programs_in(directory).iter().skip(EARLIER_MAX) {
        std::fs::remove_file(&old.path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_kept_whole() {
        let directory = tempfile::tempdir().expect("a directory");
        let directory = directory.path().join(DIRECTORY);
        assert!(programs_in(&directory).is_empty());
        let program = |number: usize| ProgramBytes::new(vec![number as u8; 10]);
        for number in 0..EARLIER_MAX + 2 {
            let kept = (program(number), HostKind::Wasm);
            keep(&directory, &DiskReserve::default(), kept).expect("kept");
            // Files of one moment have no order.
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        std::fs::write(directory.join("other.txt"), "not ours").expect("written");
        let kept = programs_in(&directory);
        let hashes: Vec<Hash> = kept.iter().map(|one| one.hash).collect();
        let newest: Vec<Hash> = (2..EARLIER_MAX + 2).map(|n| program(n).hash()).collect();
        assert!(hashes.iter().eq(newest.iter().rev()));
        assert_eq!(kept[0].read().map(|one| one.to_vec()), Some(vec![6; 10]));
        std::fs::write(&kept[0].path, "rotten").expect("written");
        assert!(kept[0].read().is_none());
    }
}
