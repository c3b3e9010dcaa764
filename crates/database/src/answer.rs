//! Answers to queries of connections: first their size is counted, then their memory is reserved, then they are written.
//!
//! Both walks go page by page over frozen tables, so that they can be done in slices, and end early if the client is gone.

use std::sync::Arc;

use lightcone_types::Encode;
use lightcone_wire::{server, RowListSize, SizedRowList};

use crate::budget::{Charge, ClientBudget};
use crate::error::ReadError;
use crate::evaluate::{Cursor, Source};
use crate::outgoing::{MessageBatch, ReadTicket};
use crate::reads::{Slice, Work};
use lightcone_live::BoundQuery;

/// Which message, or part of one, the rows are for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reply {
    Subscribed {
        request_id: u32,
        query_set_id: u32,
    },
    /// A result behind the [head](Answering::of_batch) of the answer to a batch.
    SetOfBatch {
        query_set_id: u32,
    },
    Unsubscribed {
        request_id: u32,
        query_set_id: u32,
    },
    OneOff {
        request_id: u32,
    },
}

impl Reply {
    /// The message with so many entries, which are appended to it.
    fn begin(self, out: &mut Vec<u8>, entries: u32) {
        match self {
            Reply::Subscribed {
                request_id,
                query_set_id,
            } => server::subscribe_applied(out, request_id, query_set_id, entries),
            Reply::SetOfBatch { query_set_id } => server::set_applied(out, query_set_id, entries),
            Reply::Unsubscribed {
                request_id,
                query_set_id,
            } => server::unsubscribe_applied(out, request_id, query_set_id, entries),
            Reply::OneOff { request_id } => server::one_off_query_ok(out, request_id, entries),
        }
    }

    /// A query over a table without rows has an entry too.
    fn keeps_empty(self) -> bool {
        matches!(self, Reply::OneOff { .. })
    }

    pub fn error(self, out: &mut Vec<u8>, error: &str) {
        match self {
            Reply::Subscribed {
                request_id,
                query_set_id,
            }
            | Reply::Unsubscribed {
                request_id,
                query_set_id,
            } => server::subscription_error(out, Some(request_id), query_set_id, error),
            Reply::SetOfBatch { query_set_id } => server::set_error(out, query_set_id, error),
            Reply::OneOff { request_id } => server::one_off_query_err(out, request_id, error),
        }
    }
}

/// The name that an entry has.
fn table_name(asked: &BoundQuery) -> &str {
    let table = asked.table();
    &table
        .expect("only queries for rows of a table have such answers")
        .name
}

/// Bytes in front of the entries of any part, or of an error, at most.
const HEAD_BYTES: usize = 32;

/// A place in several sources.
#[derive(Clone, Copy, Default)]
struct Place {
    source: usize,
    cursor: Cursor,
}

/// What is to be done if there are no rows but an error, and the writer cannot see it itself.
pub(crate) type Failed = Box<dyn FnOnce() + Send>;

/// The rows for one request, or for one query set of a batch, or why there are none.
pub(crate) struct Part {
    reply: Reply,
    found: Result<Vec<(BoundQuery, Source)>, String>,
    failed: Option<Failed>,
    place: Place,
    /// One for each source that has been walked, or is.
    sizes: Vec<RowListSize>,
    bytes: usize,
    is_begun: bool,
}

impl Part {
    pub fn new(
        reply: Reply,
        found: Result<Vec<(BoundQuery, Source)>, String>,
        failed: Option<Failed>,
    ) -> Part {
        let mut part = Part {
            reply,
            found: Ok(Vec::new()),
            failed,
            place: Place::default(),
            sizes: Vec::new(),
            bytes: HEAD_BYTES,
            is_begun: false,
        };
        match found {
            Ok(mut sources) => {
                sources.retain(|(_, source)| reply.keeps_empty() || !source.table_is_empty());
                let names = sources.iter().map(|(asked, _)| 4 + table_name(asked).len());
                part.bytes += names.sum::<usize>();
                part.found = Ok(sources);
            }
            Err(error) => part.refuse(error),
        }
        part
    }

    /// There are no rows for this reason.
    fn refuse(&mut self, error: String) {
        self.bytes = HEAD_BYTES + error.len();
        self.found = Err(error);
        if let Some(failed) = self.failed.take() {
            failed();
        }
    }

    /// Rather than an error, as far as is known.
    pub fn has_rows(&self) -> bool {
        self.found.is_ok()
    }

    fn is_deferred(&self) -> bool {
        let mut sources = self.found.iter().flatten();
        sources.any(|(_, source)| source.is_deferred())
    }

    /// Counts the next page, behind so many bytes of other parts. False if there is none.
    fn measure(&mut self, budget: &ClientBudget, before: usize) -> Result<bool, ReadError> {
        let Place { source, mut cursor } = self.place;
        let sources = self.found.as_ref().map_or(&[][..], Vec::as_slice);
        let Some((asked, rows)) = sources.get(source) else {
            budget.check_message(before.saturating_add(self.bytes))?;
            return Ok(false);
        };
        if cursor.is_at_start() {
            self.sizes.push(RowListSize::default());
        }
        let size = &mut self.sizes[source];
        let hidden = asked.hidden_bytes();
        let known = match asked {
            // No need to look at the rows.
            BoundQuery::Table(plan) if plan.predicate.is_none() => {
                rows.whole_table().and_then(|table| {
                    let rows = table.rows();
                    Some((rows.row_count() as usize, rows.row_bytes()?))
                })
            }
            _ => None,
        };
        let has_more = match known {
            Some((count, bytes)) => {
                size.add_many(count, bytes);
                false
            }
            None => rows.step(asked, &mut cursor, |row| size.add(row.len() - hidden))?,
        };
        let so_far = self.bytes.saturating_add(size.encoded_bytes());
        budget.check_message(before.saturating_add(so_far))?;
        if !has_more {
            self.bytes = so_far;
        }
        self.go_on(source, cursor, has_more);
        Ok(true)
    }

    /// Evaluates a little of the next source that is still to be evaluated before its size can be counted. False if there is
    /// none.
    fn find_more(&mut self, budget: &Arc<ClientBudget>) -> Result<bool, ReadError> {
        let sources = self.found.as_mut().ok();
        let Some((_, source)) = sources.and_then(|sources| sources.get_mut(self.place.source))
        else {
            return Ok(false);
        };
        source.find_more(budget)
    }

    /// Goes on in a source, or begins the next one.
    fn go_on(&mut self, source: usize, cursor: Cursor, has_more: bool) {
        self.place = match has_more {
            true => Place { source, cursor },
            false => Place {
                source: source + 1,
                cursor: Cursor::default(),
            },
        };
    }

    /// Writes the next page. False if there is none.
    fn write(&mut self, writing: &mut Writing) -> Result<bool, ReadError> {
        let message = &mut writing.message;
        let sources = match &self.found {
            Ok(sources) => sources,
            Err(error) => {
                self.reply.error(message, error);
                return Ok(false);
            }
        };
        if !std::mem::replace(&mut self.is_begun, true) {
            self.reply.begin(message, sources.len() as u32);
            self.place = Place::default();
        }
        let Place { source, mut cursor } = self.place;
        let Some((asked, rows)) = sources.get(source) else {
            return Ok(false);
        };
        let list = match &mut writing.list {
            Some(list) => list,
            list => {
                table_name(asked).encode(message);
                let begun =
                    self.sizes[source]
                        .begin(message)
                        .map_err(|_| ReadError::RowListTooLarge {
                            query: asked.text().to_owned(),
                        })?;
                list.insert(begun)
            }
        };
        let hidden = asked.hidden_bytes();
        let has_more = rows.step(asked, &mut cursor, |row| list.push(message, &row[hidden..]))?;
        if !has_more {
            debug_assert!(list.is_complete(), "frozen rows stay the same");
            writing.list = None;
        }
        self.go_on(source, cursor, has_more);
        Ok(true)
    }
}

/// An answer under construction: one message, of one part or of several.
pub(crate) struct Answering {
    head: Vec<u8>,
    parts: Vec<Part>,
    /// The part that is measured, or written.
    at: usize,
    /// Of the head and what was measured.
    bytes: usize,
    writing: Option<Writing>,
}

struct Writing {
    message: Vec<u8>,
    charge: Charge,
    list: Option<SizedRowList>,
}

impl Writing {
    fn done(self) -> MessageBatch {
        MessageBatch {
            charge: self.charge,
            ..MessageBatch::of(self.message)
        }
    }
}

impl Answering {
    /// One message of one part.
    pub fn new(parts: Vec<Part>) -> Answering {
        debug_assert_eq!(parts.len(), 1);
        Answering::with_head(Vec::new(), parts)
    }

    /// The answer to a batch of query sets, in the order of the parts.
    pub fn of_batch(request_id: u32, parts: Vec<Part>) -> Answering {
        let mut head = Vec::new();
        server::subscribe_batch_applied(&mut head, request_id, parts.len() as u32);
        Answering::with_head(head, parts)
    }

    fn with_head(head: Vec<u8>, parts: Vec<Part>) -> Answering {
        Answering {
            bytes: head.len(),
            head,
            parts,
            at: 0,
            writing: None,
        }
    }

    pub fn is_deferred(&self) -> bool {
        self.parts.iter().any(Part::is_deferred)
    }

    /// For each part, whether it has rows and no error so far.
    pub fn has_rows(&self) -> Vec<bool> {
        self.parts.iter().map(Part::has_rows).collect()
    }

    /// The whole message at once, for what was found on the writer and is small. Its memory is reserved as for any other.
    pub fn finish(&mut self, budget: &Arc<ClientBudget>) -> Result<MessageBatch, ReadError> {
        while self.measure(budget)? {}
        let charge = budget.reserve(self.bytes)?;
        let mut writing = self.begin(charge);
        while self.write(&mut writing)? {}
        Ok(writing.done())
    }

    /// The message if there are no rows at all: all parts say why.
    pub fn refuse(&mut self, error: &str) -> Vec<u8> {
        let mut message = std::mem::take(&mut self.head);
        for part in &mut self.parts {
            part.refuse(error.to_owned());
            part.reply.error(&mut message, error);
        }
        message
    }

    /// Does something to the part under way, which is over when that is false. What is wrong with its query is its own.
    fn part_step(
        &mut self,
        step: impl FnOnce(&mut Part, usize) -> Result<bool, ReadError>,
    ) -> Result<Option<bool>, ReadError> {
        let Some(part) = self.parts.get_mut(self.at) else {
            return Ok(None);
        };
        match step(part, self.bytes) {
            Err(ReadError::Query(refusal)) => {
                part.refuse(refusal.0);
                Ok(Some(true))
            }
            stepped => stepped.map(Some),
        }
    }

    /// Counts the next page. False if there is none.
    fn measure(&mut self, budget: &ClientBudget) -> Result<bool, ReadError> {
        let measured = self.part_step(|part, before| part.measure(budget, before))?;
        if measured == Some(false) {
            self.bytes += self.parts[self.at].bytes;
            self.at += 1;
        }
        Ok(measured.is_some())
    }

    fn find_more(&mut self, budget: &Arc<ClientBudget>) -> Result<bool, ReadError> {
        let found = self.part_step(|part, _| part.find_more(budget))?;
        Ok(found == Some(true))
    }

    /// Starts to write, with the memory for all of it.
    fn begin(&mut self, charge: Charge) -> Writing {
        let mut message = Vec::with_capacity(self.bytes);
        message.extend_from_slice(&self.head);
        self.at = 0;
        Writing {
            message,
            charge,
            list: None,
        }
    }

    /// Writes the next page. False if there is none.
    fn write(&mut self, writing: &mut Writing) -> Result<bool, ReadError> {
        let Some(part) = self.parts.get_mut(self.at) else {
            return Ok(false);
        };
        if !part.write(writing)? {
            self.at += 1;
        }
        Ok(true)
    }

    /// Works until about `until`. None: there is more to do.
    fn step(
        &mut self,
        budget: &Arc<ClientBudget>,
        slice: &Slice<'_>,
    ) -> Result<Option<MessageBatch>, ReadError> {
        loop {
            match self.writing.take() {
                None if self.find_more(budget)? => {}
                None => {
                    if !self.measure(budget)? {
                        let charge = budget.reserve(self.bytes)?;
                        self.writing = Some(self.begin(charge));
                    }
                }
                Some(mut writing) => {
                    if !self.write(&mut writing)? {
                        return Ok(Some(writing.done()));
                    }
                    self.writing = Some(writing);
                }
            }
            if slice.is_over() {
                return Ok(None);
            }
        }
    }
}

/// An answer that is made beside the writer.
pub(crate) struct DeferredAnswer {
    pub answering: Answering,
    pub ticket: Option<ReadTicket>,
}

impl Work for DeferredAnswer {
    type Made = MessageBatch;
    type Reply = MessageBatch;

    fn step(
        &mut self,
        budget: &Arc<ClientBudget>,
        slice: &Slice<'_>,
    ) -> Result<Option<MessageBatch>, ReadError> {
        self.answering.step(budget, slice)
    }

    fn reply(&mut self, made: Result<MessageBatch, ReadError>) -> Option<MessageBatch> {
        let mut batch = made.unwrap_or_else(|error| {
            // The memory of what was written so far is given back first.
            self.answering.writing = None;
            MessageBatch::of(self.answering.refuse(&error.to_string()))
        });
        let ticket = self.ticket.take();
        batch.ticket = ticket.map(|ticket| Box::new(ticket.evaluated()));
        Some(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::MemoryBudget;
    use crate::evaluate::Rows;
    use crate::testing::{machine, Items};
    use lightcone_live::BoundQuery;

    /// 100 rows of 10 KB that were found on the writer.
    fn answering() -> Answering {
        let items = Items::new(0, 0);
        let rows = Rows {
            bytes: vec![0; 1_000_000],
            ends: (1..=100).map(|n| n * 10_000).collect(),
        };
        let source = Source::Rows {
            rows,
            table_is_empty: false,
            limit: Default::default(),
        };
        let plan = BoundQuery::Table(Arc::new(items.plan("id = 1")));
        let reply = Reply::OneOff { request_id: 1 };
        Answering::new(vec![Part::new(reply, Ok(vec![(plan, source)]), None)])
    }

    #[test]
    fn an_answer_that_is_ready_is_in_the_budget() {
        let all = MemoryBudget::new(machine(), 100 << 20);
        let client = ClientBudget::new(&all, 2_500_000);
        let first = answering().finish(&client).expect("there is room");
        assert!(first.bytes.len() > 1_000_000);
        assert!(all.used() > 900_000, "{}", all.used());
        let _second = answering().finish(&client).expect("there is room");
        let third = answering().finish(&client);
        assert!(matches!(third, Err(ReadError::Exceeded(_))));
        drop(first);
        assert!(answering().finish(&client).is_ok());
    }
}
