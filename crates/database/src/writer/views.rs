//! Where views meet the order of transactions: before first rows, before commits, and when failing ones are tried again.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use lightcone_schema::TableSchema;
use lightcone_types::Identity;

use super::answers::ready;
use super::rounds::RoundTransactions;
use super::timers::Timer;
use super::Writer;
use crate::error::{Refusal, UpdateError};
use crate::events::Event;
use crate::module::Module;
use crate::peer::{ConnectionNumber, SetKey};
use crate::views::{Evaluation, ViewMessage, ViewRead, Views};
use lightcone_live::BoundQuery;
use lightcone_live::LiveQuery;

/// Failing views are tried again for so long between two looks at the inbox.
const RETRY_ROUND_MAX: Duration = Duration::from_millis(10);

/// The views that a query reads, each once.
pub(super) fn views_of(asked: &BoundQuery) -> Vec<ViewRead> {
    let arguments = asked.view_arguments();
    let mut reads: Vec<ViewRead> = Vec::new();
    let mut read = |table: &TableSchema| {
        let is_new = reads.iter().all(|read| read.table != table.id);
        if let (Some(view), true) = (table.view, is_new) {
            reads.push(ViewRead {
                table: table.id,
                view,
                arguments: arguments.clone(),
            });
        }
    };
    match asked {
        BoundQuery::Table(plan) => read(&plan.table),
        BoundQuery::Tables(query, _) => query.read_tables().for_each(|table| read(table)),
        BoundQuery::Window(rows) => rows.query.read_tables().for_each(|table| read(table)),
    }
    reads
}

/// Those of the queries of a set.
pub(super) fn views_of_set(queries: &[Arc<LiveQuery>]) -> Vec<ViewRead> {
    queries
        .iter()
        .flat_map(|query| views_of(&query.query))
        .collect()
}

impl RoundTransactions<'_> {
    pub(super) fn tell(&mut self, messages: Vec<ViewMessage>) {
        for (connection, message) in messages {
            let answer = ready(
                &self.state.clients,
                self.views_host.shared,
                connection,
                message,
            );
            let events = &mut self.state.effects.batch.events;
            events.push(Event::Answered { connection, answer });
        }
    }

    /// Does something to views in a transaction of its own.
    fn change_views<R>(&mut self, change: impl FnOnce(&mut Views, &mut Evaluation<'_>) -> R) -> R {
        self.datastore.begin();
        let (result, messages) = self.evaluate(change);
        let changes = match self.commit() {
            Ok(committed) => committed.changes,
            Err(error) => {
                // It has changed rows of views only, which are in no record.
                tracing::error!(database = %self.views_host.shared.options.identity, %error, "rows of views were taken back");
                0..0
            }
        };
        self.tell(messages);
        if !changes.is_empty() {
            let events = &mut self.state.effects.batch.events;
            events.push(Event::Committed { ops: changes });
        }
        result
    }

    /// The same in the open transaction, with what subscribers are to be told.
    fn evaluate<R>(
        &mut self,
        change: impl FnOnce(&mut Views, &mut Evaluation<'_>) -> R,
    ) -> (R, Vec<ViewMessage>) {
        let mut evaluation = Evaluation::new(self.views_host, self.datastore);
        let result = change(&mut self.state.views, &mut evaluation);
        (result, evaluation.messages)
    }
}

impl Writer {
    /// Makes sure that the rows of these views are there for who looks at them, or is about to subscribe to them.
    pub(super) fn materialise(
        &mut self,
        caller: Identity,
        subscriber: Option<ConnectionNumber>,
        reads: &[ViewRead],
    ) -> Result<(), Refusal> {
        if reads.is_empty() {
            return Ok(());
        }
        let mut round = self.transactions();
        let caller = (caller, subscriber);
        round.change_views(|views, evaluation| views.materialise(evaluation, caller, reads))
    }

    /// Counts a query set that reads views. Returns what its client is to be told of them behind its first rows.
    pub(super) fn subscribe_to_views(
        &mut self,
        caller: Identity,
        reads: &[ViewRead],
        set: SetKey,
        request_id: u32,
    ) -> Vec<ViewMessage> {
        let round = self.transactions();
        let host = round.views_host;
        let views = &mut round.state.views;
        views.subscribe(host, caller, reads, set, request_id)
    }

    /// A query set is gone.
    pub(super) fn unsubscribe_from_views(
        &mut self,
        caller: Identity,
        reads: &[ViewRead],
        set: SetKey,
    ) {
        if reads.is_empty() {
            return;
        }
        let round = self.transactions();
        let host = round.views_host;
        round.state.views.unsubscribe(host, caller, reads, set);
    }

    /// At the end of a round: tries failing views again that something has changed for, and has itself woken for the rest.
    pub(super) fn retry_views(&mut self) {
        let now = self.now.instant;
        let ends = self.state.stop.is_some() || self.state.failed;
        let mut next = match ends {
            true => None,
            false => self.state.views.next_retry(now),
        };
        if next.is_some_and(|next| next <= now) {
            let until = self.clock() + RETRY_ROUND_MAX;
            let mut round = self.transactions();
            round.change_views(|views, evaluation| views.retry(evaluation, until));
            self.end_round();
            self.state.has_worked = true;
            next = self.state.views.next_retry(now);
        }
        self.state.timers.set(Timer::FailingViews, next);
    }

    /// Commits the transaction in which a program takes over, or gets another environment, with the rows that its views have. Returns
    /// the changes. `failed` says what became of it if a view fails, for this reason.
    ///
    /// # Errors
    /// A view that has subscribers fails, or the record is too large. The old one is in its place
    /// again, and views are to be [rebuilt](Self::rebuild_views).
    pub(super) fn commit_program(
        &mut self,
        module: Arc<Module>,
        failed: impl FnOnce(Refusal) -> String,
    ) -> Result<Range<usize>, UpdateError> {
        let old = std::mem::replace(&mut self.module, module);
        let (replaced, messages) = self.transactions().evaluate(Views::replace_program);
        if let Err(reason) = replaced {
            self.datastore.rollback();
            self.module = old;
            return Err(UpdateError::Refused(failed(reason)));
        }
        let committed = self.transactions().commit();
        let committed = committed.map_err(|error| {
            self.module = old;
            UpdateError::Refused(error.to_string())
        })?;
        self.transactions().tell(messages);
        Ok(committed.changes)
    }

    /// Evaluates the views that are in use anew. Who is subscribed hears of what that changes.
    pub(super) fn rebuild_views(&mut self) {
        self.transactions().change_views(Views::rebuild);
    }
}
