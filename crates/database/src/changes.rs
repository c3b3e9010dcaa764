//! The changes of a database for others: its durable transactions in order and without a gap, as events of `text/event-stream` with
//! JSON in them (06 §5.13a).
//!
//! A stream reads the log beside its writer, and needs no tables: only the [`Catalog`] follows, from the newest snapshot before the
//! first transaction that is wanted.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use base64::engine::general_purpose::STANDARD as BASE64;
use base64::Engine as _;
use lightcone_engine::record::{Group, GroupKind, Record, Records};
use lightcone_engine::{is_hidden, Catalog, Change, RecoveryError};
use lightcone_log::{LogError, LogFeed, LogHash, LogOffset, LogReader};
use lightcone_schema::{ColumnSchema, TableSchema};
use lightcone_snapshot::SnapshotStore;
use lightcone_types::bsatn::decode_value;
use lightcone_types::json::{product_type_to_json, value_to_json_named, write_string};
use lightcone_types::{AlgebraicType, AlgebraicValue, DecodeError, ProductType, Reader, Typespace};
use tokio::sync::{OwnedSemaphorePermit, TryAcquireError};

use crate::budget::{HeldBytes, HeldMemory, Holder};
use crate::error::{ChangesError, Exceeded, Refusal};
use crate::handle::DatabaseHandle;
use crate::shared::Shared;

/// A text is handed on when it has so many bytes.
const TEXT_BYTES: usize = 64 << 10;
/// So much of the log is read at a time, also if none of it is told.
const READ_BYTES: usize = 4 << 20;

/// A place in the history of a database, between two transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Of the transaction behind it.
    offset: LogOffset,
    /// Of the frame with the transaction before it: another history has another one.
    hash: Option<LogHash>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.offset)?;
        self.hash.map_or(Ok(()), |hash| write!(f, "-{hash}"))
    }
}

impl FromStr for Place {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Place, Refusal> {
        let (offset, hash) = match text.split_once('-') {
            Some((offset, hash)) => (offset, Some(hash)),
            None => (text, None),
        };
        let hash = hash.map(|digits| match digits.len() {
            32 => u128::from_str_radix(digits, 16).ok(),
            _ => None,
        });
        match (offset.parse(), hash) {
            (Ok(offset), None | Some(Some(_))) => Ok(Place {
                offset: LogOffset::new(offset),
                hash: hash
                    .flatten()
                    .map(|hash| LogHash::from_le_bytes(hash.to_le_bytes())),
            }),
            _ => {
                let text = "expected the number of a transaction, or the id of an event";
                Err(Refusal(text.to_owned()))
            }
        }
    }
}

/// How a stream has rows and keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowForm {
    /// Each as an object.
    #[default]
    Json,
    /// The BSATN array of all that one change has, in base64.
    Bsatn,
}

/// A stream of changes.
pub struct Changes {
    catalog: Catalog,
    /// Of the catalog, as it was when it was looked at last.
    catalog_bytes: usize,
    reader: LogReader,
    frame: Frame,
    /// What was told so far, and is in the catalog.
    place: Place,
    /// Where the stream ends, if it does not follow.
    end: Option<LogOffset>,
    tables: Tables,
    form: RowForm,
    /// Why nothing comes behind what was told.
    failed: Option<ChangesError>,
    memory: HeldMemory,
    holder: Holder,
    _turn: OwnedSemaphorePermit,
    _user: Arc<()>,
}

/// The frame of the log that is being told.
#[derive(Default)]
struct Frame {
    payload: Vec<u8>,
    /// For what the client may have: its rows are not told, and it counts as nothing.
    is_too_large: bool,
    /// Of the next record.
    position: usize,
    offset: LogOffset,
    hash: LogHash,
    /// When the next transaction was committed, in microseconds.
    committed: i64,
}

/// The tables that are told of; all if there are none.
struct Tables(Vec<String>);

impl Tables {
    fn contain(&self, schema: &TableSchema) -> bool {
        let is_wanted = self.0.is_empty() || self.0.contains(&schema.name);
        is_wanted && schema.view.is_none() && !is_hidden(&schema.name)
    }
}

impl DatabaseHandle {
    /// Opens a stream of the changes from a place on, or from now on; of these tables, or of all. If it does not follow, it ends with
    /// what is durable now.
    ///
    /// # Errors
    /// The place is not in the log any more, there is no such table, or no room for one more stream.
    pub async fn changes(
        &self,
        from: Option<Place>,
        tables: Vec<String>,
        follows: bool,
    ) -> Result<Changes, ChangesError> {
        let turn = self.stream_turn()?;
        let (shared, holder) = (self.shared.clone(), self.holder());
        let open = move || Changes::open(&shared, (from, follows), Tables(tables), holder, turn);
        let opened = self.shared.elsewhere(open).await;
        opened.unwrap_or(Err(ChangesError::Gone))
    }

    /// The place of one stream of the log, a backup among them.
    pub(crate) fn stream_turn(&self) -> Result<OwnedSemaphorePermit, ChangesError> {
        let turn = self.shared.changes.clone().try_acquire_owned();
        turn.map_err(|error| match error {
            TryAcquireError::Closed => ChangesError::Gone,
            TryAcquireError::NoPermits => ChangesError::TooMany {
                max: self.shared.options.limits.change_streams_max,
            },
        })
    }
}

impl Changes {
    fn open(
        shared: &Shared,
        (from, follows): (Option<Place>, bool),
        tables: Tables,
        holder: Holder,
        turn: OwnedSemaphorePermit,
    ) -> Result<Changes, ChangesError> {
        let (options, feed) = (&shared.options, shared.status.feed());
        let feed = feed.ok_or(ChangesError::Gone)?;
        let end = feed.durable_offset();
        let from = from.unwrap_or(Place {
            offset: end,
            hash: None,
        });
        let left_behind = |oldest| LogError::LeftBehind {
            wanted: from.offset,
            oldest,
        };
        if options.in_memory {
            return Err(left_behind(end).into());
        }
        let from = checked(feed, from)?;
        let directory = options.snapshots_directory();
        let mut snapshots = SnapshotStore::beside(options.storage.clone(), &directory)?;
        let (catalog, offset) = Catalog::until(&mut snapshots, from.offset)?;
        let reader = match feed.read(offset) {
            // There is no snapshot before the place.
            Err(LogError::OutOfRange { .. }) => {
                let oldest = snapshots.offsets()?.first().copied();
                return Err(left_behind(oldest.unwrap_or(end)).into());
            }
            reader => reader?,
        };
        let mut changes = Changes {
            catalog_bytes: catalog.heap_bytes(),
            catalog,
            reader,
            frame: Frame::default(),
            place: Place { offset, hash: None },
            end: (!follows).then_some(end),
            tables,
            form: RowForm::default(),
            failed: None,
            memory: holder.memory(),
            holder,
            _turn: turn,
            _user: shared.users.clone(),
        };
        while changes.place.offset < from.offset && changes.step(None)? {}
        changes.place = from;
        changes.check_tables(shared)?;
        Ok(changes)
    }

    /// A name that is neither that of a table there nor that of one now is a mistake.
    fn check_tables(&self, shared: &Shared) -> Result<(), ChangesError> {
        let module = shared.module();
        let is_there = |name: &String| {
            let mut schemas = self.catalog.schemas();
            schemas.any(|schema| schema.name == *name && self.tables.contain(schema))
                || module.def().table(name).is_some()
        };
        let unknown = self.tables.0.iter().find(|name| !is_there(name));
        unknown.map_or(Ok(()), |name| Err(ChangesError::NoSuchTable(name.clone())))
    }

    /// With rows in this form.
    pub fn in_form(self, form: RowForm) -> Changes {
        Changes { form, ..self }
    }

    /// Up to where everything was told.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Whom what is told counts as.
    pub fn holder(&self) -> Holder {
        self.holder.clone()
    }

    /// The first event: where the stream begins, and what the tables are there.
    pub fn beginning(&self) -> String {
        let place = self.place;
        let mut out = format!("id: {place}\nevent: begin\ndata: {{\"id\":\"{place}\",\"tables\":[");
        let mut schemas: Vec<_> = self.catalog.schemas().collect();
        schemas.retain(|schema| self.tables.contain(schema));
        schemas.sort_by(|a, b| a.name.cmp(&b.name));
        for (nth, schema) in schemas.into_iter().enumerate() {
            out.push_str(if nth > 0 { "," } else { "" });
            write_table(&schema.name, Some(schema), &mut out);
            out.push('}');
        }
        out + "]}\n\n"
    }

    /// Events of the next transactions, and whether these are all that are durable now, or that the stream has. Blocks for a bounded
    /// piece of work.
    ///
    /// # Errors
    /// The log, or the memory of the client. All before it was told.
    pub fn read(&mut self) -> Result<(HeldBytes, bool), ChangesError> {
        let (mut out, mut bytes, mut is_all) = (String::new(), 0, false);
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        while out.len() < TEXT_BYTES && bytes < READ_BYTES && !is_all {
            if self.end.is_some_and(|end| self.place.offset >= end) {
                is_all = true;
                break;
            }
            let position = self.frame.position;
            match self.step(Some(&mut out)) {
                Ok(goes_on) => is_all = !goes_on,
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
            }
            bytes += self.frame.position.saturating_sub(position);
        }
        out.shrink_to_fit();
        self.catalog_bytes = self.catalog.heap_bytes();
        if let Err(exceeded) = self.count() {
            self.failed.get_or_insert(exceeded.into());
        }
        match self.failed.take() {
            Some(error) if out.is_empty() => return Err(error),
            failed => self.failed = failed,
        }
        Ok((
            HeldBytes::new(out.into_bytes(), self.holder.budget())?,
            is_all,
        ))
    }

    /// Waits until there is more.
    ///
    /// # Errors
    /// Nothing more comes.
    pub async fn ready(&mut self) -> Result<(), ChangesError> {
        Ok(self.reader.ready().await?)
    }

    fn bytes(&self) -> usize {
        let frame = match self.frame.is_too_large {
            true => 0,
            false => self.frame.payload.capacity(),
        };
        self.catalog_bytes + frame
    }

    /// Counts the frame, or finds it too large for the client: it must not keep him from what is behind it.
    fn count(&mut self) -> Result<(), Exceeded> {
        match self.memory.count(self.bytes()) {
            Err(Exceeded::Client { .. }) if !self.frame.is_too_large => {
                self.frame.is_too_large = true;
                self.memory.count(self.bytes())
            }
            counted => counted,
        }
    }

    /// Goes on by one record, and appends its event, if it is wanted. False: all that is durable was read.
    fn step(&mut self, out: Option<&mut String>) -> Result<bool, ChangesError> {
        if self.frame.position == self.frame.payload.len() && !self.read_frame()? {
            return Ok(false);
        }
        // What is only passed over counts as nothing.
        if out.is_some() {
            self.count()?;
        }
        let bytes = self.bytes();
        let Changes {
            catalog,
            frame,
            place,
            tables,
            form,
            memory,
            ..
        } = self;
        let offset = frame.offset;
        let mut records = Records::new(&frame.payload[frame.position..]);
        let record = records.next().transpose();
        let record = record.map_err(|error| RecoveryError::Record {
            offset,
            detail: error.to_string(),
        })?;
        frame.position = frame.payload.len() - records.rest().len();
        let Some(record) = record else {
            return Ok(true);
        };
        if let Record::Clock(micros) = record {
            frame.committed = micros;
            return Ok(true);
        }
        frame.offset += 1;
        if offset < place.offset {
            return Ok(true);
        }
        *place = Place {
            offset: frame.offset,
            hash: Some(frame.hash),
        };
        let Some(out) = out else {
            catalog.follow(offset, &record, |_, _| Ok::<_, RecoveryError>(()))?;
            return Ok(true);
        };
        let head = (offset, *place, frame.committed);
        let count = |text: usize| memory.count(bytes + text);
        let mut event = Event::begin(out, tables, head, count);
        (event.form, event.is_short) = (*form, frame.is_too_large);
        let told = catalog.follow(offset, &record, |catalog, change| {
            event.tell(catalog, change)
        });
        event.end(told.is_ok());
        told.map(|()| true)
    }

    fn read_frame(&mut self) -> Result<bool, ChangesError> {
        self.frame.payload = Vec::new();
        self.frame.position = 0;
        let Some(frame) = self.reader.next()? else {
            return Ok(false);
        };
        self.frame = Frame {
            payload: frame.payload.to_vec(),
            is_too_large: false,
            position: 0,
            offset: frame.first_offset,
            hash: frame.hash,
            committed: self.frame.committed,
        };
        Ok(true)
    }
}

/// The place with the hash that it has in this log.
fn checked(feed: &LogFeed, from: Place) -> Result<Place, LogError> {
    let offset = from.offset;
    match feed.hash_behind(offset) {
        Ok(hash) if from.hash.is_none() || from.hash == hash => Ok(Place { offset, hash }),
        Ok(_) => Err(LogError::CutAway { offset }),
        Err(LogError::OutOfRange { wanted, oldest, .. }) if wanted < oldest => {
            Err(LogError::LeftBehind { wanted, oldest })
        }
        // It was in another history, which went further.
        Err(LogError::OutOfRange { .. }) if from.hash.is_some() => {
            Err(LogError::CutAway { offset })
        }
        Err(error) => Err(error),
    }
}

/// The event of one transaction.
struct Event<'e, Count> {
    out: &'e mut String,
    tables: &'e Tables,
    offset: LogOffset,
    form: RowForm,
    start: usize,
    /// Where its changes begin; of rows with their table.
    changes: Vec<(usize, Option<Arc<TableSchema>>)>,
    /// Rows are more than the client may have: only their tables are told.
    is_short: bool,
    /// What the text takes, as far as it is counted.
    counted: usize,
    count: Count,
}

impl<'e, Count: FnMut(usize) -> Result<(), Exceeded>> Event<'e, Count> {
    fn begin(
        out: &'e mut String,
        tables: &'e Tables,
        (offset, place, committed): (LogOffset, Place, i64),
        count: Count,
    ) -> Event<'e, Count> {
        let start = out.len();
        out.push_str(&format!("id: {place}\ndata: {{\"id\":\"{place}\",\"offset\":{offset},\"committed_micros\":{committed},\"changes\":["));
        Event {
            out,
            tables,
            offset,
            form: RowForm::default(),
            start,
            changes: Vec::new(),
            is_short: false,
            counted: 0,
            count,
        }
    }

    /// Without a change that is told, or not whole, it is none.
    fn end(self, is_whole: bool) {
        match !self.changes.is_empty() && is_whole {
            true => self.out.push_str("]}\n\n"),
            false => self.out.truncate(self.start),
        }
    }

    fn tell(&mut self, catalog: &Catalog, change: Change<'_>) -> Result<(), ChangesError> {
        match change {
            Change::Rows(schema, group) if self.tables.contain(schema) => self.rows(schema, group),
            Change::Rows(..) => Ok(()),
            Change::Table {
                before,
                now,
                copied,
            } => {
                let copied = copied
                    .as_ref()
                    .map(|(from, suffix)| (from.as_ref(), *suffix));
                self.table(catalog, before.as_deref(), now.as_deref(), copied)
            }
        }
    }

    /// Begins a change, which is of rows of this table.
    fn next(&mut self, rows_of: Option<&Arc<TableSchema>>) {
        let is_first = self.changes.is_empty();
        self.out.push_str(if is_first { "" } else { "," });
        self.changes.push((self.out.len(), rows_of.cloned()));
    }

    /// Leaves out all rows.
    fn shorten(&mut self) {
        self.is_short = true;
        let told = std::mem::take(self.out);
        let changes = std::mem::take(&mut self.changes);
        let head = changes.first().map_or(told.len(), |(start, _)| *start);
        self.out.push_str(&told[..head]);
        for (nth, (start, rows_of)) in changes.iter().enumerate() {
            if let Some(schema) = rows_of {
                self.unknown_rows(schema);
                continue;
            }
            // A comma is before the next one.
            let end = changes.get(nth + 1).map_or(told.len(), |next| next.0 - 1);
            self.next(None);
            self.out.push_str(&told[*start..end]);
        }
    }

    /// Says once of a table that its rows are not told.
    fn unknown_rows(&mut self, schema: &Arc<TableSchema>) {
        let mut tables = self.changes.iter().filter_map(|(_, table)| table.as_ref());
        if !tables.any(|table| table.id == schema.id) {
            self.next(Some(schema));
            write_table(&schema.name, Some(schema), self.out);
            self.out.push_str(",\"rows\":\"unknown\"}");
        }
    }

    fn rows(&mut self, schema: &Arc<TableSchema>, group: &Group<'_>) -> Result<(), ChangesError> {
        if self.is_short {
            self.unknown_rows(schema);
            return Ok(());
        }
        let keys = group.key_columns(schema).unwrap_or_default();
        let keys: Vec<&ColumnSchema> = keys.iter().filter_map(|key| schema.column(*key)).collect();
        let all = || schema.columns.iter().collect();
        let (kind, columns, has_key) = match group.kind {
            GroupKind::DeleteByKey => ("delete", keys.clone(), true),
            GroupKind::DeleteRow => ("delete", all(), false),
            GroupKind::Put => ("put", all(), true),
            GroupKind::Event => ("event", all(), false),
            _ => ("insert", all(), false),
        };
        self.next(Some(schema));
        write_table(&schema.name, None, self.out);
        if has_key {
            self.out.push_str(",\"key\":[");
            for (nth, key) in keys.iter().enumerate() {
                self.out.push_str(if nth > 0 { "," } else { "" });
                write_string(&key.name, self.out);
            }
            self.out.push(']');
        }
        self.out.push_str(&format!(",\"{kind}\":"));
        if self.form == RowForm::Bsatn {
            return self.rows_in_bsatn(group);
        }
        self.out.push('[');
        let ty = AlgebraicType::Product(row_type(columns));
        for (nth, row) in group.entries(schema).enumerate() {
            let row = AlgebraicValue::Product(row.map_err(|error| self.wrong(error))?);
            self.out.push_str(if nth > 0 { "," } else { "" });
            value_to_json_named(&Typespace::default(), &ty, &row, self.out);
            if !self.count_text(self.out.capacity())? {
                return Ok(());
            }
        }
        self.out.push_str("]}");
        Ok(())
    }

    fn rows_in_bsatn(&mut self, group: &Group<'_>) -> Result<(), ChangesError> {
        let text_bytes = (group.rows.len() + 6).div_ceil(3) * 4;
        if !self.count_text(self.out.len() + text_bytes)? {
            return Ok(());
        }
        self.out.reserve_exact(text_bytes + 3);
        // The count and two bytes are eight digits, so that the rest needs no copy.
        let (first, rest) = group.rows.split_at(group.rows.len().min(2));
        let head = [&group.row_count.to_le_bytes(), first].concat();
        self.out.push('"');
        BASE64.encode_string(head, self.out);
        BASE64.encode_string(rest, self.out);
        self.out.push_str("\"}");
        Ok(())
    }

    /// Counts what the text takes. False: it is more than the client may have, so rows are left out.
    fn count_text(&mut self, bytes: usize) -> Result<bool, Exceeded> {
        if bytes <= self.counted {
            return Ok(true);
        }
        self.counted = bytes;
        match (self.count)(bytes) {
            Err(Exceeded::Client { .. }) => {
                self.shorten();
                Ok(false)
            }
            counted => counted.map(|()| true),
        }
    }

    fn table(
        &mut self,
        catalog: &Catalog,
        before: Option<&TableSchema>,
        now: Option<&TableSchema>,
        copied: Option<(&TableSchema, &[u8])>,
    ) -> Result<(), ChangesError> {
        let tables = self.tables;
        let was = before.filter(|schema| tables.contain(schema));
        let Some(schema) = now.filter(|schema| tables.contain(schema)) else {
            // Another table may have taken its name, which was told.
            let has_name = |was: &str| {
                let mut schemas = catalog.schemas();
                schemas.any(|schema| schema.name == was && tables.contain(schema))
            };
            if let Some(was) = was.filter(|was| !has_name(&was.name)) {
                self.next(None);
                write_table(&was.name, None, self.out);
                self.out.push_str(",\"schema\":null}");
            }
            return Ok(());
        };
        if copied.is_none() && was.is_some_and(|was| is_told_alike(was, schema)) {
            return Ok(());
        }
        let (old, rows) = match (copied, before) {
            (Some((from, _)), None) if tables.contain(from) => (Some(from), "kept"),
            (None, None) => (None, "none"),
            (None, Some(_)) if was.is_some() => (was, "kept"),
            // They are those of a table that is not told of.
            _ => (None, "unknown"),
        };
        self.next(None);
        write_table(&schema.name, Some(schema), self.out);
        self.out.push_str(&format!(",\"rows\":\"{rows}\""));
        if let Some(old) = old.filter(|old| old.name != schema.name) {
            self.out.push_str(",\"was\":");
            write_string(&old.name, self.out);
        }
        if let Some((from, suffix)) = copied.filter(|_| old.is_some()) {
            let columns = schema.columns.iter().skip(from.columns.len());
            let ty = AlgebraicType::Product(row_type(columns));
            let added = decode_value(&Typespace::default(), &ty, &mut Reader::new(suffix));
            let added = added.map_err(|error| self.wrong(error))?;
            self.out.push_str(",\"added\":");
            value_to_json_named(&Typespace::default(), &ty, &added, self.out);
        }
        self.out.push('}');
        Ok(())
    }

    fn wrong(&self, error: DecodeError) -> RecoveryError {
        RecoveryError::Record {
            offset: self.offset,
            detail: error.to_string(),
        }
    }
}

pub(crate) fn row_type<'c>(columns: impl IntoIterator<Item = &'c ColumnSchema>) -> ProductType {
    let columns = columns.into_iter();
    ProductType::new(columns.map(|column| (column.name.as_str(), column.ty.clone())))
}

/// Whether readers know the one table by what they know of the other.
fn is_told_alike(a: &TableSchema, b: &TableSchema) -> bool {
    let key = |schema: &TableSchema| schema.primary_key;
    a.name == b.name && row_type(&a.columns) == row_type(&b.columns) && key(a) == key(b)
}

/// Begins the object of a table, with its schema as the answer to SQL has it.
fn write_table(name: &str, schema: Option<&TableSchema>, out: &mut String) {
    out.push_str("{\"table\":");
    write_string(name, out);
    let Some(schema) = schema else { return };
    out.push_str(",\"schema\":");
    product_type_to_json(&row_type(&schema.columns), out);
    out.push_str(",\"primary_key\":");
    match schema.primary_key.and_then(|key| schema.column(key)) {
        Some(key) => write_string(&key.name, out),
        None => out.push_str("null"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_a_text() {
        for text in ["0", "17", "17-000000000000000000000000000000ff"] {
            let place: Place = text.parse().expect("a place");
            assert_eq!(place.to_string(), text);
        }
        for text in ["", "-", "x", "1-", "1-ff", "-1", "18446744073709551616"] {
            assert!(text.parse::<Place>().is_err(), "{text}");
        }
    }
}
