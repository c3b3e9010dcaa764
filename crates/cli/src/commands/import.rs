//! `spacetime import` (07 §5.21): a new database out of what `spacetime export` has written. Its log is made here, before anything is
//! sent, and a server takes it as it takes a backup: nothing of the module runs, and a half of it becomes no database.

use std::ffi::OsStr;
use std::fs::{symlink_metadata, File};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures_util::stream;
use lightcone_database::{HostKind, Import};
use lightcone_types::Timestamp;

use super::export::{module_file, Export, ExportedTable, FORMAT, LINE_BYTES_MAX, SCHEMA_FILE};
use super::{Auth, Context};
use crate::build::HostType;
use crate::definition;
use crate::error::{FileResult as _, Result};
use crate::http::{encode, parse_json, success_text};
use crate::output::{remark, result};

/// The log is sent in parts of this size.
const PART_BYTES: usize = 1 << 20;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The directory that `spacetime export` has written
    directory: PathBuf,
    /// The name of the new database
    name: String,
    /// The nickname, host name or URL of the server
    #[arg(short, long, value_name = "SERVER")]
    server: Option<String>,
    /// Ask nothing: answer yes to every question, and log in with the target server if need be
    #[arg(short, long)]
    yes: bool,
}

pub async fn run(context: &mut Context, args: Args) -> Result<()> {
    let export = read(&args.directory)?;
    let client = context
        .client(args.server.as_deref(), Auth::new(false, args.yes))
        .await?;
    let mut log =
        tempfile::tempfile().map_err(caused!("LC0619", "cannot make a temporary file"))?;
    let (head, last, rows) = fill(&export, &args.directory, &mut log)?;
    log.rewind().map_err(in_log)?;
    let parts = [head]
        .into_iter()
        .map(Ok)
        .chain(Parts(log))
        .chain([Ok(last)]);
    let body = reqwest::Body::wrap_stream(stream::iter(parts.map(|part| part.map(Bytes::from))));
    let path = format!("/v1/database/{}/restore", encode(&args.name));
    let response = client.send(client.post(&path).body(body)).await?;
    let answer = parse_json(&success_text(response).await?)?;
    let identity = answer["Success"]["database_identity"].as_str();
    result!(
        "Imported {}: {rows} rows of {} tables, with identity {}.",
        args.name,
        export.tables.len(),
        identity.unwrap_or("?")
    );
    Ok(())
}

fn in_log(cause: std::io::Error) -> crate::error::Error {
    caused!("LC0619", "cannot use a temporary file")(cause)
}

fn read(directory: &Path) -> Result<Export> {
    let path = directory.join(SCHEMA_FILE);
    let text = std::fs::read_to_string(&path).or_cannot("read", &path)?;
    let export: Export = serde_json::from_str(&text).map_err(caused!(
        "LC0893",
        "{} is not what `spacetime export` writes",
        path.display()
    ))?;
    match export.format {
        FORMAT => Ok(export),
        other => bail!(
            "LC0893",
            "{} has format {other}, and this version knows {FORMAT}: a later one has written it",
            path.display()
        ),
    }
}

/// Writes the log of the database but for its first and last bytes. Gives these, and the number of rows.
fn fill(export: &Export, directory: &Path, log: &mut File) -> Result<(Vec<u8>, Vec<u8>, u64)> {
    let (host_type, kind) = match export.module == module_file(HostType::Js) {
        true => (HostType::Js, HostKind::Js),
        false => (HostType::Wasm, HostKind::Wasm),
    };
    let path = directory.join(module_file(host_type));
    let def = definition::of_program(&path, host_type)?;
    let program = std::fs::read(&path).or_cannot("read", &path)?;
    let failed =
        |error: lightcone_database::Error| coded!("LC0894", "the database cannot be made: {error}");
    let (mut import, first) = Import::new(&def, program, kind, Timestamp::now()).map_err(failed)?;
    log.write_all(&first).map_err(in_log)?;
    let mut rows = 0;
    for table in &export.tables {
        rows += table_rows(&mut import, table, directory, log)?;
    }
    let (head, last) = import.finish().map_err(failed)?;
    Ok((head, last, rows))
}

fn table_rows(
    import: &mut Import,
    table: &ExportedTable,
    directory: &Path,
    log: &mut File,
) -> Result<u64> {
    let ExportedTable { name, file, rows } = table;
    let Some(into) = import.table(name) else {
        if *rows > 0 {
            remark!("warning: {rows} rows of {name} are left out: the module has no such table, or it holds messages to other databases, which would be sent again");
        }
        return Ok(0);
    };
    let path = directory.join(file);
    let is_name = Path::new(file).file_name() == Some(OsStr::new(file)) && !file.starts_with('.');
    if !is_name || !symlink_metadata(&path).or_cannot("read", &path)?.is_file() {
        bail!(
            "LC0893",
            "{file} in {SCHEMA_FILE} is not the name of a file beside it"
        );
    }
    let mut lines = Lines::open(&path, LINE_BYTES_MAX)?;
    while let Some(line) = lines.next()? {
        let inserted = import.insert(&into, line);
        let frame = inserted.map_err(|error| coded!("LC0894", "{}: {error}", lines.place()))?;
        log.write_all(&frame.unwrap_or_default()).map_err(in_log)?;
    }
    let count = lines.count;
    match count == *rows {
        true => Ok(count),
        false => bail!(
            "LC0893",
            "{} has {count} rows, and {SCHEMA_FILE} says that there are {rows}",
            path.display()
        ),
    }
}

/// The lines of a file.
struct Lines<'f> {
    path: &'f Path,
    file: BufReader<File>,
    bytes_max: usize,
    line: Vec<u8>,
    count: u64,
}

impl Lines<'_> {
    fn open(path: &Path, bytes_max: usize) -> Result<Lines<'_>> {
        Ok(Lines {
            path,
            file: BufReader::new(File::open(path).or_cannot("read", path)?),
            bytes_max,
            line: Vec::new(),
            count: 0,
        })
    }

    /// The next one; none at the end.
    fn next(&mut self) -> Result<Option<&str>> {
        self.line.clear();
        let mut file = (&mut self.file).take(self.bytes_max as u64 + 1);
        let read = file.read_until(b'\n', &mut self.line);
        if read.or_cannot("read", self.path)? == 0 {
            return Ok(None);
        }
        self.count += 1;
        if self.line.len() > self.bytes_max {
            let (place, bytes_max) = (self.place(), self.bytes_max);
            bail!(
                "LC0893",
                "{place}: the line has more than {bytes_max} bytes"
            );
        }
        match std::str::from_utf8(&self.line) {
            Ok(line) => Ok(Some(line.trim_end_matches(['\n', '\r']))),
            Err(_) => bail!("LC0893", "{}: the line is not UTF-8", self.place()),
        }
    }

    fn place(&self) -> String {
        format!("{}:{}", self.path.display(), self.count)
    }
}

/// A file in parts.
struct Parts(File);

impl Iterator for Parts {
    type Item = std::io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut part = Vec::with_capacity(PART_BYTES);
        match (&mut self.0).take(PART_BYTES as u64).read_to_end(&mut part) {
            Ok(0) => None,
            Ok(_) => Some(Ok(part)),
            Err(error) => Some(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_a_bound() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("t.ndjson");
        let refused = |text: &[u8]| {
            std::fs::write(&path, text).expect("written");
            let mut lines = Lines::open(&path, 8).expect("opened");
            assert_eq!(lines.next().expect("a line"), Some("[1]"));
            let why = lines.next().map(|line| line.map(str::to_owned));
            why.map_err(|why| why.to_string())
        };
        assert_eq!(refused(b"[1]\r\n1234567\n"), Ok(Some("1234567".to_owned())));
        assert_eq!(refused(b"[1]\n12345678"), Ok(Some("12345678".to_owned())));
        assert_eq!(refused(b"[1]\n"), Ok(None));
        // Of the last one, half a character is read.
        for long in ["12345678\n", "123456789", "12345678\u{e4}"] {
            let why = refused(format!("[1]\n{long}").as_bytes()).expect_err("it is long");
            assert!(
                why.ends_with("t.ndjson:2: the line has more than 8 bytes [LC0893]"),
                "{why}"
            );
        }
        let why = refused(b"[1]\n\xff\n").expect_err("it is no text");
        assert!(why.ends_with(":2: the line is not UTF-8 [LC0893]"), "{why}");
    }
}
