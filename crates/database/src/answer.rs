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

/// Which message the rows are for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reply {
    Subscribed { request_id: u32, query_set_id: u32 },
    Unsubscribed { request_id: u32, query_set_id: u32 },
    OneOff { request_id: u32 },
}

impl Reply {
    /// The message with so many entries, which are appended to it.
    fn begin(self, out: &mut Vec<u8>, entries: u32) {
        match self {
            Reply::Subscribed {
                request_id,
                query_set_id,
            } => server::subscribe_applied(out, request_id, query_set_id, entries),
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

    pub fn error(self, error: &str) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Reply::Subscribed {
                request_id,
                query_set_id,
            }
            | Reply::Unsubscribed {
                request_id,
                query_set_id,
            } => server::subscription_error(&mut out, Some(request_id), query_set_id, error),
            Reply::OneOff { request_id } => {
                server::one_off_query_err(&mut out, request_id, error);
            }
        }
        out
    }
}

/// The name that an entry has.
fn table_name(asked: &BoundQuery) -> &str {
    let table = asked.table();
    &table
        .expect("only queries for rows of a table have such answers")
        .name
}

/// Bytes in front of the entries of any of these messages, at most.
const HEAD_BYTES: usize = 32;

/// A place in several sources.
#[derive(Clone, Copy, Default)]
struct Place {
    source: usize,
    cursor: Cursor,
}

/// An answer under construction.
pub(crate) struct Answering {
    sources: Vec<(BoundQuery, Source)>,
    reply: Reply,
    place: Place,
    /// One for each source that has been walked, or is.
    sizes: Vec<RowListSize>,
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
    pub fn new(sources: Vec<(BoundQuery, Source)>, reply: Reply) -> Answering {
        let sources: Vec<_> = sources
            .into_iter()
            .filter(|(_, source)| reply.keeps_empty() || !source.table_is_empty())
            .collect();
        let names = sources.iter().map(|(asked, _)| 4 + table_name(asked).len());
        Answering {
            bytes: HEAD_BYTES + names.sum::<usize>(),
            sizes: Vec::with_capacity(sources.len()),
            sources,
            reply,
            place: Place::default(),
            writing: None,
        }
    }

    pub fn is_deferred(&self) -> bool {
        self.sources.iter().any(|(_, source)| source.is_deferred())
    }

    /// The whole message at once, for what was found on the writer and is small. Its memory is reserved as for any other.
    pub fn finish(mut self, budget: &Arc<ClientBudget>) -> Result<MessageBatch, ReadError> {
        while self.measure(budget)? {}
        let charge = budget.reserve(self.bytes)?;
        let mut writing = self.begin(charge);
        while self.write(&mut writing)? {}
        Ok(writing.done())
    }

    /// Counts the next page. False if there is none.
    fn measure(&mut self, budget: &ClientBudget) -> Result<bool, ReadError> {
        let Place { source, mut cursor } = self.place;
        let Some((asked, rows)) = self.sources.get(source) else {
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
        budget.check_message(so_far)?;
        if !has_more {
            self.bytes = so_far;
        }
        self.go_on(source, cursor, has_more);
        Ok(true)
    }

    /// Evaluates a little of the next source that is still to be evaluated before its size can be counted. False if there is
    /// none.
    fn find_more(&mut self, budget: &Arc<ClientBudget>) -> Result<bool, ReadError> {
        let Some((_, source)) = self.sources.get_mut(self.place.source) else {
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

    /// Starts to write, with the memory for all of it.
    fn begin(&mut self, charge: Charge) -> Writing {
        let mut message = Vec::with_capacity(self.bytes);
        self.reply.begin(&mut message, self.sources.len() as u32);
        self.place = Place::default();
        Writing {
            message,
            charge,
            list: None,
        }
    }

    /// Writes the next page. False if there is none.
    fn write(&mut self, writing: &mut Writing) -> Result<bool, ReadError> {
        let Place { source, mut cursor } = self.place;
        let Some((asked, rows)) = self.sources.get(source) else {
            return Ok(false);
        };
        let message = &mut writing.message;
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
    /// What is to be done if there is no answer but an error.
    pub failed: Option<Box<dyn FnOnce() + Send>>,
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
            if let Some(failed) = self.failed.take() {
                failed();
            }
            MessageBatch::of(self.answering.reply.error(&error.to_string()))
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
        Answering::new(vec![(plan, source)], Reply::OneOff { request_id: 1 })
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
