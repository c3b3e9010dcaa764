//! Subscriptions and queries on the committed state (05 §7, 06 §5.14).

use std::sync::Arc;
use std::time::Duration;

use lightcone_query::{Projection, SelectPlan};
use lightcone_types::ConnectionId;
use lightcone_wire::server;
use tokio::sync::oneshot;

use super::Writer;
use crate::answer::{Answering, DeferredAnswer, Reply};
use crate::error::SqlError;
use crate::evaluate::{Finder, Source};
use crate::fanout::{Answer, Event};
use crate::handle::Caller;
use crate::outgoing::ReadTicket;
use crate::request::CompiledSet;
use crate::writer::Item;

impl Writer {
    pub(super) fn subscribe(
        &mut self,
        connection: u64,
        request_id: u32,
        query_set_id: u32,
        set: Result<CompiledSet, String>,
        ticket: ReadTicket,
    ) {
        let limits = &self.shared.options.limits;
        // A client that is gone needs no rows; its disconnect follows.
        let Some(client) = self.state.clients.get_mut(&connection) else {
            return;
        };
        if client.queue.budget().is_gone() {
            return;
        }
        let set = set.and_then(|set| {
            let queries = client.queries + set.plans.len();
            if client.query_sets.contains_key(&query_set_id) {
                Err(format!("Subscription with id QuerySetId {{ id: {query_set_id} }} already exists for client: ({}, {})", client.sender.identity, client.connection_id))
            } else if client.query_sets.len() >= limits.query_sets_max {
                Err(format!("a connection holds at most {} query sets [LC0704]", limits.query_sets_max))
            } else if queries > limits.queries_per_connection_max {
                Err(format!("a connection holds at most {} queries in all its query sets [LC0705]", limits.queries_per_connection_max))
            } else {
                Ok(set)
            }
        });
        let caller = client.sender.identity;
        let reply = Reply::Subscribed {
            request_id,
            query_set_id,
        };
        match set {
            Err(error) => self.error(connection, reply, &error),
            Ok(set) => {
                let plans = set.plans.clone();
                client.queries += plans.len();
                client.query_sets.insert(query_set_id, set);
                self.watch(&plans, 1);
                let answer = self.evaluate(connection, &plans, reply, ticket);
                self.event(Event::Subscribed {
                    connection,
                    query_set_id,
                    caller,
                    plans,
                    answer,
                });
            }
        }
    }

    fn error(&mut self, connection: u64, reply: Reply, error: &str) {
        self.event(Event::Answered {
            connection,
            answer: Answer::Ready(reply.error(error)),
        });
    }

    pub(super) fn unsubscribe(
        &mut self,
        connection: u64,
        request_id: u32,
        query_set_id: u32,
        ticket: Option<ReadTicket>,
    ) {
        let Some(client) = self.state.clients.get_mut(&connection) else {
            return;
        };
        let reply = Reply::Unsubscribed {
            request_id,
            query_set_id,
        };
        let Some(set) = client.query_sets.remove(&query_set_id) else {
            let error = format!(
                "Subscription not found: ({}, {}, {query_set_id})",
                client.sender.identity, client.connection_id
            );
            return self.error(connection, reply, &error);
        };
        client.queries -= set.plans.len();
        self.watch(&set.plans, -1);
        let answer = match ticket {
            Some(ticket) => self.evaluate(connection, &set.plans, reply, ticket),
            None => {
                let mut message = Vec::new();
                server::unsubscribe_applied_without_rows(&mut message, request_id, query_set_id);
                Answer::Ready(message)
            }
        };
        self.event(Event::Unsubscribed {
            connection,
            query_set_id,
            answer: Some(answer),
        });
    }

    /// Forgets a query set whose first rows the client cannot get.
    pub(super) fn drop_subscription(&mut self, connection: u64, query_set_id: u32) {
        let Some(client) = self.state.clients.get_mut(&connection) else {
            return;
        };
        let Some(set) = client.query_sets.remove(&query_set_id) else {
            return;
        };
        client.queries -= set.plans.len();
        self.watch(&set.plans, -1);
        self.event(Event::Unsubscribed {
            connection,
            query_set_id,
            answer: None,
        });
    }

    pub(super) fn one_off(
        &mut self,
        connection: u64,
        request_id: u32,
        plan: Result<Arc<SelectPlan>, String>,
        ticket: ReadTicket,
    ) {
        let reply = Reply::OneOff { request_id };
        match plan {
            Ok(plan) => {
                let answer = self.evaluate(connection, &[plan], reply, ticket);
                self.event(Event::Answered { connection, answer });
            }
            Err(error) => self.error(connection, reply, &error),
        }
    }

    /// Evaluates plans on the committed state: here if it is cheap, on another thread otherwise.
    fn evaluate(
        &mut self,
        connection: u64,
        plans: &[Arc<SelectPlan>],
        reply: Reply,
        ticket: ReadTicket,
    ) -> Answer {
        let Some(client) = self.state.clients.get(&connection) else {
            return Answer::Nobody;
        };
        let budget = client.queue.budget().clone();
        if budget.is_gone() {
            return Answer::Nobody;
        }
        let datastore = self
            .datastore
            .as_mut()
            .expect("the module gave the datastore back");
        let mut finder = Finder::new(datastore);
        let sources = plans
            .iter()
            .map(|plan| (plan.clone(), finder.find(plan)))
            .collect();
        let answering = Answering::new(sources, reply);
        if !answering.is_deferred() {
            let message = answering.finish();
            return Answer::Ready(message.unwrap_or_else(|error| reply.error(&error.to_string())));
        }
        let failed: Option<Box<dyn FnOnce() + Send>> = match reply {
            Reply::Subscribed { query_set_id, .. } => {
                let shared = self.shared.clone();
                Some(Box::new(move || {
                    // If the database is gone, so is the subscription.
                    let _ = shared.send(Item::SubscriptionFailed {
                        connection,
                        query_set_id,
                    });
                }))
            }
            Reply::Unsubscribed { .. } | Reply::OneOff { .. } => None,
        };
        let (sender, receiver) = oneshot::channel();
        let job = DeferredAnswer {
            answering,
            budget: budget.clone(),
            sender: Some(sender),
            ticket: Some(ticket),
            time_max: self.shared.options.limits.read_time_max,
            spent: Duration::ZERO,
            failed,
        };
        self.shared.read(&budget, Box::new(job));
        Answer::Deferred(receiver)
    }

    /// Counts queries that have come to, or gone from, their tables.
    pub(super) fn watch(&mut self, plans: &[Arc<SelectPlan>], change: isize) {
        for plan in plans {
            let table = plan.table.id;
            let count = self.state.watchers.entry(table).or_default();
            let before = *count;
            *count = before.saturating_add_signed(change);
            let after = *count;
            if (before == 0) != (after == 0) {
                self.datastore().set_watched(table, after > 0);
            }
        }
    }

    pub(super) fn http_query(
        &mut self,
        caller: &Caller,
        connection_id: ConnectionId,
        plan: Result<Arc<SelectPlan>, SqlError>,
    ) -> Result<(Arc<SelectPlan>, Source), SqlError> {
        self.connect(caller.identity, connection_id, &caller.jwt_payload)
            .map_err(|refused| SqlError::ConnectRejected(refused.text()))?;
        let datastore = self
            .datastore
            .as_mut()
            .expect("the module gave the datastore back");
        let found = plan.map(|plan| {
            let source = match &plan.projection {
                // The number is known.
                Projection::Count(_) if plan.predicate.is_none() => {
                    let table = datastore.table(plan.table.id);
                    Source::Count(table.map_or(0, |table| table.rows().row_count()))
                }
                _ => Finder::new(datastore).find(&plan),
            };
            (plan, source)
        });
        self.disconnect(caller.identity, connection_id);
        found
    }
}
