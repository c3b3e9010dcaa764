//! `spacetime export` (07 §5.20): the rows of all tables as lines of JSON, and the module. It asks as any client does, so it exports from
//! every server that answers SQL over HTTP.

mod answer;

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use lightcone_types::json::{parse, value_from_node, write_string, Node};
use lightcone_types::{AlgebraicType, AlgebraicValue, Identity, Typespace};
use reqwest::{Response, StatusCode};
use serde::Deserialize;

use self::answer::Rows;
pub(super) use self::answer::LINE_BYTES_MAX;
use super::backup::place::{create_directory, create_new};
use super::logs::each_line_of;
use super::{Common, Context};
use crate::build::HostType;
use crate::error::{FileResult as _, Result};
use crate::http::{body_text, encode, refusal, success_text, Client};
use crate::output::{remark, result};
use crate::schema::{self, Schema};

/// The version of the layout.
pub(super) const FORMAT: u32 = 1;
/// Rows of a page, where a table is more than the server answers with at once. Of one that is too much, this part is asked for.
const PAGE_ROWS: u64 = 1 << 18;
const PAGE_PART: u64 = 4;

/// Written last: without it an export is not whole.
pub(super) const SCHEMA_FILE: &str = "schema.json";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The name or identity of the database
    database: Option<String>,
    /// A new or empty directory for the files
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// Read the tables one after the other, each as it is then, in place of all as they were at one moment
    #[arg(long)]
    table_by_table: bool,
    #[command(flatten)]
    common: Common,
}

/// What `schema.json` says to who imports it. More is in it for others: the identity of the database, the transaction before which the
/// state is, of each table the type of its rows, and the definition of the module.
#[derive(Debug, Deserialize)]
pub(super) struct Export {
    pub format: u32,
    /// The file with the program.
    pub module: String,
    pub tables: Vec<ExportedTable>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ExportedTable {
    pub name: String,
    pub file: String,
    pub rows: u64,
}

pub async fn run(context: &mut Context, args: Args) -> Result<()> {
    let (client, identity, name) = args.common.reach(context, args.database).await?;
    make_empty(&args.out)?;
    let schema = Schema::fetch(&client, &identity).await?;
    let as_of = match args.table_by_table {
        true => None,
        false => offset(&client, &identity).await.map_err(|error| {
            error.with_note("With `--table-by-table` it reads no state of the past, but each table as it is then.")
        })?,
    };
    let exporting = Exporting {
        client: &client,
        path: format!("/v1/database/{identity}/sql"),
        as_of: as_of.map(|offset| format!(" AS OF {offset}")),
        directory: &args.out,
    };
    let module = exporting.module().await?;
    let (mut tables, mut rows) = (Vec::new(), 0);
    for table in schema.tables.iter().filter(|table| table.is_stored) {
        let (text, count) = exporting.table(table).await?;
        rows += count;
        tables.push(text);
    }
    if Schema::fetch(&client, &identity).await?.json != schema.json {
        bail!("LC0892", "the module of {name} was updated meanwhile, so that rows and definition may not fit together. Remove {} and export again", args.out.display());
    }
    let as_of = as_of.map_or("null".to_owned(), |offset| offset.to_string());
    let text = format!(
        "{{\"format\":{FORMAT},\"database\":\"{}\",\"as_of\":{as_of},\"module\":\"{module}\",\"tables\":[{}],\"definition\":{}}}\n",
        identity.to_hex(),
        tables.join(","),
        schema.json,
    );
    write(&args.out.join(SCHEMA_FILE), text.as_bytes())?;
    let count = tables.len();
    result!(
        "Exported {name} to {}: {rows} rows of {count} tables.",
        args.out.display()
    );
    Ok(())
}

/// Files of two exports must not be mixed.
fn make_empty(directory: &Path) -> Result<()> {
    create_directory(directory).or_cannot("create", directory)?;
    let mut entries = std::fs::read_dir(directory).or_cannot("read", directory)?;
    match entries.next() {
        None => Ok(()),
        Some(_) => bail!(
            "LC0892",
            "{} is not empty: an export needs a directory of its own",
            directory.display()
        ),
    }
}

/// Rows of one table must not end up in the file of another.
fn create(path: &Path) -> Result<File> {
    match create_new(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => bail!(
            "LC0892",
            "{} is there already: the server names a table twice, or this disk takes the names of two tables for one",
            path.display()
        ),
        created => created.or_cannot("create", path),
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    create(path)?.write_all(bytes).or_cannot("write", path)
}

/// The first transaction that is not there yet. None if the server has no states of the past, or not for this caller.
async fn offset(client: &Client, database: &Identity) -> Result<Option<u64>> {
    let path = format!("/v1/database/{database}/changes?follow=false");
    let response = client.send(client.get(&path)).await?;
    let status = response.status();
    if !status.is_success() {
        let error = refusal(status, &body_text(response).await?);
        let has_none = matches!(
            status,
            StatusCode::NOT_FOUND | StatusCode::FORBIDDEN | StatusCode::METHOD_NOT_ALLOWED
        );
        if !has_none && !error.to_string().contains("[LC0554]") {
            return Err(error);
        }
        remark!("warning: the tables are read one after the other, each as it is then, as this server does not tell you of states of the past: {error}");
        return Ok(None);
    }
    let mut found = None;
    each_line_of(client, response, |line| {
        let id = line
            .strip_prefix("id: ")
            .and_then(|id| id.split('-').next());
        found = id.and_then(|offset| offset.parse().ok());
        Ok(false)
    })
    .await?;
    let found = found.ok_or_else(|| coded!("LC0616", "the server does not say where its log ends"));
    found.map(Some)
}

struct Exporting<'e> {
    client: &'e Client,
    path: String,
    /// The clause that all queries have.
    as_of: Option<String>,
    directory: &'e Path,
}

impl Exporting<'_> {
    /// The answer to `SELECT <columns> FROM <table> <rest>`.
    async fn ask(&self, columns: &str, table: &str, rest: &str) -> Result<Response> {
        let as_of = self.as_of.as_deref().unwrap_or_default();
        let table = table.replace('"', "\"\"");
        let query = format!("SELECT {columns} FROM \"{table}\"{as_of}{rest}");
        self.client
            .send(self.client.post(&self.path).body(query))
            .await
    }

    /// Writes the program, and gives the name of its file.
    async fn module(&self) -> Result<String> {
        let answer = self
            .ask("program_kind, program_bytes", "st_module", "")
            .await?;
        let text = success_text(answer).await?;
        let no_program = || {
            coded!("LC0892", "the server does not tell you the program of the database: that is for those who may read all of its tables")
        };
        let root = parse(&text).map_err(caused!("LC0616", "the server's answer is not JSON"))?;
        let rows = root
            .as_array()
            .and_then(|answers| answers.first()?.get("rows")?.as_array());
        let row = rows.and_then(|rows| rows.first()?.as_array());
        let [kind, program] = row.ok_or_else(no_program)? else {
            return Err(no_program());
        };
        let program = value_from_node(&Typespace::default(), &AlgebraicType::bytes(), program);
        let Ok(AlgebraicValue::Bytes(program)) = program else {
            return Err(no_program());
        };
        let file = match Node::as_u64(kind) {
            Some(1) => module_file(HostType::Js),
            _ => module_file(HostType::Wasm),
        };
        write(&self.directory.join(file), &program)?;
        Ok(file.to_owned())
    }

    /// Writes the rows of a table, one at a time. Gives what `schema.json` says of it, and how many there are.
    async fn table(&self, table: &schema::Rows) -> Result<(String, u64)> {
        let name = &table.name;
        // Names may have characters that names of files have not.
        let file = format!("{}.ndjson", encode(name));
        let path = self.directory.join(&file);
        let mut out = BufWriter::new(create(&path)?);
        // In pages only of one state.
        let mut rows = Rows::with_key(table.key.clone().filter(|_| self.as_of.is_some()));
        let (mut page, mut clause) = (u64::MAX, String::new());
        let row_type = loop {
            let (before, answer) = (rows.count, self.ask("*", name, &clause).await?);
            let status = answer.status();
            let next = if status.is_success() {
                let row_type = self.rows(answer, &mut rows, &mut out, &path).await?;
                if rows.count - before < page {
                    break row_type;
                }
                let goes_on = rows.page(page).is_some_and(|next| next != clause);
                // Rows that made it small may be behind.
                page = (page * PAGE_PART).min(PAGE_ROWS);
                rows.page(page).filter(|_| goes_on).ok_or_else(|| {
                    coded!(
                        "LC0616",
                        "the server's answer does not go on behind its last row"
                    )
                })
            } else {
                page = (page / PAGE_PART).min(PAGE_ROWS);
                let error = refusal(status, &body_text(answer).await?);
                let text = error.to_string();
                if text.contains("[LC0419]") {
                    let directory = self.directory.display();
                    return Err(error.with_note(&format!("The server has dropped the state that is exported. Remove {directory} and export again.")));
                }
                if page == 0 || !is_too_large(&text) {
                    return Err(error);
                }
                rows.page(page).ok_or(error)
            };
            clause = next?;
        };
        out.flush().or_cannot("write", &path)?;
        let rows = rows.count;
        let mut text = "{\"name\":".to_owned();
        write_string(name, &mut text);
        text.push_str(&format!(
            ",\"file\":\"{file}\",\"rows\":{rows},\"type\":{row_type}}}"
        ));
        Ok((text, rows))
    }

    /// Writes the rows of an answer. Gives their type.
    async fn rows(
        &self,
        mut answer: Response,
        rows: &mut Rows,
        out: &mut impl Write,
        path: &Path,
    ) -> Result<String> {
        while let Some(part) = answer
            .chunk()
            .await
            .map_err(|e| self.client.unreachable(e))?
        {
            let lines = rows.take(&part).map_err(|why| {
                coded!(
                    "LC0616",
                    "the server's answer is not one this program can read: {why}"
                )
            })?;
            out.write_all(&lines).or_cannot("write", path)?;
        }
        let base = self.client.base();
        let row_type = rows.end();
        row_type.ok_or_else(|| coded!("LC0602", "the answer of the server at {base} broke off"))
    }
}

/// Of all rows at once, or of what the server keeps to sort them.
fn is_too_large(refusal: &str) -> bool {
    ["[LC0706]", "[LC0410]"]
        .iter()
        .any(|code| refusal.contains(code))
}

/// The name says in which language the program is.
pub(super) fn module_file(host_type: HostType) -> &'static str {
    match host_type {
        HostType::Wasm => "module.wasm",
        HostType::Js => "module.js",
    }
}
