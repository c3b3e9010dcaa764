//! `spacetime backup list`.

use lightcone_backup::{History, Manifest};
use lightcone_types::Timestamp;
use serde_json::json;

use super::place::PlaceOption;
use crate::error::Result;
use crate::output::{print_json, result, result_text, FormatOption};
use crate::table;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    place: PlaceOption,
    #[command(flatten)]
    output: FormatOption,
}

pub async fn run(args: Args) -> Result<()> {
    let store = args.place.place.open()?;
    let manifests = store.readable_manifests().await?;
    let histories = History::all(&manifests);
    let listed = histories.iter().rev().map(Listed::of);
    if args.output.is_json() {
        let backups: Vec<_> = listed.map(|one| one.json()).collect();
        print_json(&json!({ "place": store.shown(""), "backups": backups }));
        return Ok(());
    }
    if manifests.is_empty() {
        result!("No backups found in {}.", store.shown(""));
        return Ok(());
    }
    let header = [
        "Time",
        "Offset",
        "From offset",
        "Bytes",
        "Added bytes",
        "Begins",
    ];
    let rows: Vec<Vec<String>> = listed.map(|one| one.row()).collect();
    result_text!("{}", table::psql(&header, &rows));
    Ok(())
}

struct Listed<'m> {
    manifest: &'m Manifest,
    /// The first place that can be restored with it.
    oldest: Option<u64>,
    /// Of the files that restoring its end reads.
    bytes: Option<u64>,
}

impl<'m> Listed<'m> {
    fn of(history: &History<'m>) -> Listed<'m> {
        let plan = history.plan(history.newest.end.offset);
        let bytes = plan.map(|plan| {
            let log: u64 = plan.log.iter().map(|entry| entry.file.bytes).sum();
            let snapshot = plan.snapshot.map(|one| one.object_bytes + one.file.bytes);
            log + snapshot.unwrap_or(0)
        });
        Listed {
            manifest: history.newest,
            oldest: history.oldest().map(|offset| offset.get()),
            bytes,
        }
    }

    fn row(&self) -> Vec<String> {
        let number = |number: Option<u64>| number.map_or("-".to_owned(), |n| n.to_string());
        vec![
            Timestamp(self.manifest.time).to_rfc3339(),
            self.manifest.end.offset.to_string(),
            number(self.oldest),
            number(self.bytes),
            self.manifest.added_bytes.to_string(),
            self.manifest.begins_because.clone().unwrap_or_default(),
        ]
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "time": Timestamp(self.manifest.time).to_rfc3339(),
            "database": self.manifest.database,
            "offset": self.manifest.end.offset.get(),
            "hash": self.manifest.end.hash.to_string(),
            "oldest_offset": self.oldest,
            "bytes": self.bytes,
            "added_bytes": self.manifest.added_bytes,
            "begins_because": self.manifest.begins_because,
        })
    }
}
