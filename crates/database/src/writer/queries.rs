//! Subscriptions and queries on the committed state (05 §7, 06 §5.14).

use std::sync::Arc;

use lightcone_query::SelectPlan;
use lightcone_types::{ConnectionId, Encode, TableId};
use lightcone_wire::server;
use tokio::sync::oneshot;

use super::Writer;
use crate::error::SqlError;
use crate::evaluate::{find, Source};
use crate::fanout::{Answer, Event};
use crate::handle::Caller;

impl Writer {
    pub(super) fn subscribe(
        &mut self,
        connection: u64,
        request_id: u32,
        query_set_id: u32,
        plans: Result<Vec<Arc<SelectPlan>>, String>,
    ) {
        let query_sets_max = self.shared.options.limits.query_sets_max;
        let Some(client) = self.state.clients.get(&connection) else {
            return;
        };
        let plans = plans.and_then(|plans| {
            if client.query_sets.contains_key(&query_set_id) {
                Err(format!("Subscription with id QuerySetId {{ id: {query_set_id} }} already exists for client: ({}, {})", client.sender.identity, client.connection_id))
            } else if client.query_sets.len() >= query_sets_max {
                Err(format!("a connection holds at most {query_sets_max} query sets [LC0704]"))
            } else {
                Ok(plans)
            }
        });
        let caller = client.sender.identity;
        match plans {
            Err(error) => self.subscription_error(connection, request_id, query_set_id, &error),
            Ok(plans) => {
                let answer = self.evaluate(&plans, move |message, rows| {
                    let mut entries = server::subscribe_applied(message, request_id, query_set_id);
                    entries.encoded(&rows.entries, rows.count);
                });
                for plan in &plans {
                    self.watch(plan.table.id, 1);
                }
                let client = self.state.clients.get_mut(&connection).expect("just seen");
                client.query_sets.insert(query_set_id, plans.clone());
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

    fn subscription_error(
        &mut self,
        connection: u64,
        request_id: u32,
        query_set_id: u32,
        error: &str,
    ) {
        let mut answer = Vec::new();
        server::subscription_error(&mut answer, Some(request_id), query_set_id, error);
        self.event(Event::Answered {
            connection,
            answer: Answer::Ready(answer),
        });
    }

    pub(super) fn unsubscribe(
        &mut self,
        connection: u64,
        request_id: u32,
        query_set_id: u32,
        send_dropped_rows: bool,
    ) {
        let Some(client) = self.state.clients.get_mut(&connection) else {
            return;
        };
        let Some(plans) = client.query_sets.remove(&query_set_id) else {
            let error = format!(
                "Subscription not found: ({}, {}, {query_set_id})",
                client.sender.identity, client.connection_id
            );
            return self.subscription_error(connection, request_id, query_set_id, &error);
        };
        for plan in &plans {
            self.watch(plan.table.id, -1);
        }
        let answer = if send_dropped_rows {
            self.evaluate(&plans, move |message, rows| {
                server::unsubscribe_applied(message, request_id, query_set_id)
                    .encoded(&rows.entries, rows.count);
            })
        } else {
            let mut message = Vec::new();
            server::unsubscribe_applied_without_rows(&mut message, request_id, query_set_id);
            Answer::Ready(message)
        };
        self.event(Event::Unsubscribed {
            connection,
            query_set_id,
            answer,
        });
    }

    pub(super) fn one_off(
        &mut self,
        connection: u64,
        request_id: u32,
        plan: Result<Arc<SelectPlan>, String>,
    ) {
        let answer = match plan {
            Ok(plan) => self.evaluate_with(&[plan], true, move |message, rows| {
                server::one_off_query_ok(message, request_id).encoded(&rows.entries, rows.count);
            }),
            Err(error) => {
                let mut message = Vec::new();
                server::one_off_query_err(&mut message, request_id, &error);
                Answer::Ready(message)
            }
        };
        self.event(Event::Answered { connection, answer });
    }

    fn evaluate(
        &mut self,
        plans: &[Arc<SelectPlan>],
        write: impl FnOnce(&mut Vec<u8>, Entries) + Send + 'static,
    ) -> Answer {
        self.evaluate_with(plans, false, write)
    }

    /// Evaluates plans on the committed state: here if it is cheap, on another thread otherwise.
    fn evaluate_with(
        &mut self,
        plans: &[Arc<SelectPlan>],
        keep_empty: bool,
        write: impl FnOnce(&mut Vec<u8>, Entries) + Send + 'static,
    ) -> Answer {
        let datastore = self
            .datastore
            .as_mut()
            .expect("the module gave the datastore back");
        let sources: Vec<_> = plans
            .iter()
            .map(|plan| (plan.clone(), find(datastore, plan)))
            .collect();
        let deferred = sources.iter().any(|(_, source)| source.is_deferred());
        let make = move || {
            let mut entries = Entries::default();
            for (plan, source) in &sources {
                if keep_empty || !source.table_is_empty() {
                    entries.push(plan, source);
                }
            }
            let mut message = Vec::new();
            write(&mut message, entries);
            message
        };
        if !deferred {
            return Answer::Ready(make());
        }
        let (sender, receiver) = oneshot::channel();
        let scans = self.shared.scans.clone();
        self.shared.runtime.spawn(async move {
            let permit = scans.acquire_owned().await;
            tokio::task::spawn_blocking(move || {
                // The connection may be gone by now.
                let _ = sender.send(make());
                drop(permit);
            });
        });
        Answer::Deferred(receiver)
    }

    pub(super) fn watch(&mut self, table: TableId, change: isize) {
        let count = self.state.watchers.entry(table).or_default();
        let before = *count;
        *count = before.saturating_add_signed(change);
        let after = *count;
        if (before == 0) != (after == 0) {
            self.datastore().set_watched(table, after > 0);
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
            let source = find(datastore, &plan);
            (plan, source)
        });
        self.disconnect(caller.identity, connection_id);
        found
    }
}

/// `SingleTableRows` entries, encoded.
#[derive(Default)]
struct Entries {
    entries: Vec<u8>,
    count: u32,
}

impl Entries {
    fn push(&mut self, plan: &SelectPlan, source: &Source) {
        plan.table.name.encode(&mut self.entries);
        if let Err(error) = source.write_row_list(plan, &mut self.entries) {
            tracing::error!(query = plan.text, %error, "the result of a query is too large for the protocol");
        }
        self.count += 1;
    }
}
