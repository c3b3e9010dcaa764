//! Names of log files: the day, and the number of a full one.

use std::path::{Path, PathBuf};

const DATE_BYTES: usize = "YYYY-MM-DD".len();

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub path: PathBuf,
    /// `YYYY-MM-DD`, by which days sort.
    pub date: String,
    /// Days since 1970-01-01.
    pub day: i64,
    /// None for the file that is written to.
    pub number: Option<u64>,
}

impl Part {
    fn of(path: PathBuf, prefix: &str) -> Option<Part> {
        let name = path.file_name()?.to_str()?;
        let name = name.strip_prefix(prefix)?.strip_suffix(".log")?;
        let (date, rest) = name.split_at_checked(DATE_BYTES)?;
        let number = match rest {
            "" => None,
            rest => Some(rest.strip_prefix('.')?.parse().ok()?),
        };
        Some(Part {
            date: date.to_owned(),
            day: day_number(date)?,
            number,
            path,
        })
    }

    fn order(&self) -> (i64, u64) {
        (self.day, self.number.unwrap_or(u64::MAX))
    }
}

/// All files of a log, oldest first. A directory that cannot be read has none.
pub(super) fn parts(directory: &Path, prefix: &str) -> Vec<Part> {
    known_parts(directory, prefix).unwrap_or_default()
}

/// All files of a log, or an error if the directory cannot be read.
pub(super) fn known_parts(directory: &Path, prefix: &str) -> std::io::Result<Vec<Part>> {
    let mut parts = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        parts.extend(Part::of(entry?.path(), prefix));
    }
    parts.sort_by_key(Part::order);
    Ok(parts)
}

/// Days from 1970-01-01 to a date (`YYYY-MM-DD`).
pub(super) fn day_number(date: &str) -> Option<i64> {
    let mut parts = date.splitn(3, '-').map(str::parse::<i64>);
    let mut next = || parts.next()?.ok();
    let (year, month, day) = (next()?, next()?, next()?);
    if !(0..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years begin in March here, so that the leap day is the last one.
    let (year, month) = match month > 2 {
        true => (year, month - 3),
        false => (year - 1, month + 9),
    };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * month + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted() {
        for (date, number) in [
            ("1970-01-01", 0),
            ("1969-12-31", -1),
            ("2000-02-29", 11_016),
            ("2000-03-01", 11_017),
            ("2026-11-23", 20_780),
        ] {
            assert_eq!(day_number(date), Some(number), "{date}");
        }
        for date in ["", "2026", "2026-13-01", "x-y-z", "2026-01-32"] {
            assert_eq!(day_number(date), None, "{date}");
        }
    }

    #[test]
    fn names_say_the_order() {
        let directory = tempfile::tempdir().expect("a directory");
        let names = [
            "2026-11-22.000002.log",
            "2026-11-22.000010.log",
            "2026-11-22.log",
            "2026-11-23.1000000.log",
            "2026-11-23.log",
        ];
        for name in names.iter().rev().chain(&[
            "notes.log",
            "2026-11-23.log.gz",
            "2026-11-23.x.log",
            "2026-13-23.log",
            "2026-11-é.log",
        ]) {
            std::fs::write(directory.path().join(name), "").expect("written");
        }
        let found: Vec<_> = parts(directory.path(), "")
            .into_iter()
            .map(|part| part.path.file_name().map(|name| name.to_owned()))
            .collect();
        assert_eq!(found, names.map(|name| Some(name.into())));
    }
}
