//! Subscriptions and queries on the committed state (05 §7, 06 §5.14).

use std::sync::Arc;

use lightcone_query::{Projection, SelectPlan};
use lightcone_schema::TableSchema;
use lightcone_types::Identity;
use lightcone_wire::server;
use tokio::sync::oneshot;

use super::state::SetCounts;
use super::views::{views_of, views_of_set};
use super::{QuerySet, Writer};
use crate::answer::{Answering, DeferredAnswer, Failed, Part, Reply};
use crate::error::{Refusal, SqlError};
use crate::evaluate::{Allowance, Finder, Source};
use crate::events::{Answer, Event};
use crate::inbox::{FoundQuery, HttpQuery, Input, QueryTurn};
use crate::outgoing::{Delivery, ReadTicket};
use crate::peer::{ConnectionNumber, SetKey};
use crate::request::{CompiledSet, RequestedSet};
use crate::rights::Rights;
use crate::row_limit;
use crate::views::{ViewMessage, ViewRead};
use lightcone_live::{BoundQuery, Holder, IndexUser, LiveQuery};

/// A connection with so few queries, and this part of the steps it may have, is let in however many steps others have: a few
/// connections must not keep all others from a table.
const MODEST_QUERIES_MAX: usize = 16;
const MODEST_PART: usize = 64;
const MODEST_JOINS_MAX: usize = 4;

/// So much of a view's time counts as one row that is looked at.
const ROW_NANOS: u64 = 100;

/// Queries with what they read, or why there is nothing for them.
type Found = Result<Vec<(BoundQuery, Source)>, String>;

impl Writer {
    /// Lets query sets in, with one answer for all of them. No update of theirs comes before it.
    pub(super) fn subscribe(
        &mut self,
        connection: ConnectionNumber,
        (request_id, is_batch): (u32, bool),
        mut sets: Vec<RequestedSet>,
        ticket: ReadTicket,
    ) {
        // A client that is gone needs no rows; its disconnect follows.
        let Some(client) = self.state.clients.get(&connection) else {
            return;
        };
        if client.queue.budget().is_gone() {
            return;
        }
        let identity = client.peer.identity;
        if self.waits_with_windows(&sets, &ticket) {
            return ticket.give_back();
        }
        if let Some(index) = self.check_sets(connection, &mut sets, &ticket) {
            return ticket.wait_for(index);
        }
        // Making rows of views is a transaction, of which the first rows must not know less than others.
        let messages = self.open_views((connection, identity), request_id, &mut sets);
        self.end_failed_windows();
        let mut left = Allowance::default();
        let (mut parts, mut live) = (Vec::with_capacity(sets.len()), Vec::new());
        let mut sets = sets.into_iter();
        while let Some(RequestedSet { id, compiled }) = sets.next() {
            let key = SetKey { connection, id };
            let reply = match is_batch {
                true => Reply::SetOfBatch { query_set_id: id },
                false => Reply::Subscribed {
                    request_id,
                    query_set_id: id,
                },
            };
            let part = match compiled {
                Ok(set) => self.add_set((key, identity), reply, set, &ticket, &mut left),
                Err(Refusal(error)) => Some(Part::new(reply, Err(error), None)),
            };
            let Some(part) = part else {
                for key in live.into_iter().flatten() {
                    self.unregister(key, None);
                }
                for set in sets {
                    let (id, views) = (set.id, views_of_set(set.queries()));
                    self.unsubscribe_from_views(identity, &views, SetKey { connection, id });
                }
                return ticket.give_back();
            };
            live.push(part.has_rows().then_some(key));
            parts.push(part);
        }
        let answering = match is_batch {
            true => Answering::of_batch(request_id, parts),
            false => Answering::new(parts),
        };
        let (answer, has_rows) = self.make(connection, answering, ticket);
        let mut told = Vec::new();
        for ((key, has_rows), messages) in live.into_iter().zip(has_rows).zip(messages) {
            match (key, has_rows) {
                (Some(_), true) => told.extend(messages),
                (Some(key), false) => self.unregister(key, None),
                (None, _) => {}
            }
        }
        self.event(Event::Answered { connection, answer });
        self.transactions().tell(told);
    }

    /// Checks sets before work is done for them; those that are refused say why. Some: they wait for an index.
    fn check_sets(
        &mut self,
        connection: ConnectionNumber,
        sets: &mut [RequestedSet],
        ticket: &ReadTicket,
    ) -> Option<oneshot::Receiver<()>> {
        let ticket = (ticket, sets.len());
        let (mut index, mut coming) = (None, Vec::new());
        for set in sets {
            let Ok(compiled) = &set.compiled else {
                continue;
            };
            let checked = self
                .check_row_limit(connection, compiled)
                .and_then(|()| self.prepare_indexes(compiled, connection, ticket, &mut coming));
            match checked {
                Ok(wanted) => index = index.or(wanted),
                Err(refusal) => set.compiled = Err(refusal),
            }
        }
        index
    }

    /// Makes sure that the rows of the sets' views are known, and stay: each set counts as subscribed to them. Returns what is to be
    /// told of the views of each set. What it takes is the client's.
    fn open_views(
        &mut self,
        (connection, client): (ConnectionNumber, Identity),
        request_id: u32,
        sets: &mut [RequestedSet],
    ) -> Vec<Vec<ViewMessage>> {
        let opened = sets.iter_mut().map(|set| {
            let views = views_of_set(set.queries());
            if views.is_empty() {
                return Vec::new();
            }
            let id = set.id;
            match self.materialise_for((Some(connection), client), &views) {
                Ok(()) => {
                    let key = SetKey { connection, id };
                    self.subscribe_to_views(client, &views, key, request_id)
                }
                Err(refusal) => {
                    set.compiled = Err(refusal);
                    Vec::new()
                }
            }
        });
        opened.collect()
    }

    fn materialise_for(
        &mut self,
        (subscriber, client): (Option<ConnectionNumber>, Identity),
        views: &[ViewRead],
    ) -> Result<(), Refusal> {
        if views.is_empty() {
            return Ok(());
        }
        self.may_find_first_rows(client)?;
        let started = self.clock();
        let opened = self.materialise(client, subscriber, views);
        let took = self.clock().saturating_duration_since(started);
        self.spend_first_rows(client, took.as_nanos() as u64 / ROW_NANOS);
        opened
    }

    /// Makes sure that the rows of a set's windows are known.
    fn open_windows_for(
        &mut self,
        (connection, client): (ConnectionNumber, Identity),
        queries: &[Arc<LiveQuery>],
    ) -> Result<(), Refusal> {
        if queries.iter().all(|query| query.window().is_none()) {
            return Ok(());
        }
        // With views, it was asked before.
        if views_of_set(queries).is_empty() {
            self.may_find_first_rows(client)?;
        }
        let opened = self.open_windows(connection, queries);
        self.spend_first_rows(client, self.state.windows.rows_looked_at() as u64);
        opened
    }

    fn may_find_first_rows(&self, client: Identity) -> Result<(), Refusal> {
        let rate = self.shared.options.limits.live_rows_per_second;
        let now = self.now.instant;
        match self.state.first_rows.may_begin(&client, rate, now) {
            true => Ok(()),
            false => Err(Refusal(format!("finding the first rows of views and windows (ORDER BY … LIMIT) for this client took more of the database's time than limits.live-rows-per-second allows ({rate} rows looked at): try again in a few seconds [LC0730]"))),
        }
    }

    fn spend_first_rows(&mut self, client: Identity, rows: u64) {
        let rate = self.shared.options.limits.live_rows_per_second;
        let now = self.now.instant;
        self.state.first_rows.spend(client, rows, rate, now);
    }

    /// Makes a set, whose views are [open](Self::open_views), a live one and finds its first rows, or says why not. None: that needs a
    /// permit of the database.
    fn add_set(
        &mut self,
        (key, client): (SetKey, Identity),
        reply: Reply,
        set: CompiledSet,
        ticket: &ReadTicket,
        left: &mut Allowance,
    ) -> Option<Part> {
        let connection = key.connection;
        let mut added = self.admit(key, &set);
        if added.is_ok() {
            added = self.open_windows_for((connection, client), &set.queries);
            if added.is_err() {
                self.state.query_load.remove(&set.queries);
            }
        }
        let found = match added {
            Ok(()) => {
                let found = self.find(connection, plans_of(&set), ticket, left);
                if !matches!(found, Some(Ok(_))) {
                    self.close_windows(&set.queries);
                    self.state.query_load.remove(&set.queries);
                }
                found
            }
            Err(Refusal(error)) => Some(Err(error)),
        };
        let Some(Ok(sources)) = found else {
            self.unsubscribe_from_views(client, &views_of_set(&set.queries), key);
            return found.map(|refused| Part::new(reply, refused, None));
        };
        self.state.query_sets += 1;
        let number = self.state.query_sets;
        let shared = self.shared.clone();
        let failed: Failed = Box::new(move || {
            // If the database is gone, so is the subscription.
            let failed = Input::SubscriptionFailed { set: key, number };
            let _ = shared.inbox.send(failed);
        });
        self.register(key, QuerySet { number, set });
        Some(Part::new(reply, Ok(sources), Some(failed)))
    }

    /// Whether other queries of a request may need a permit that it does not have: new windows would be filled in vain, and again.
    fn waits_with_windows(&self, sets: &[RequestedSet], ticket: &ReadTicket) -> bool {
        let mut queries = sets.iter().flat_map(RequestedSet::queries);
        let is_new = |query: &Arc<LiveQuery>| {
            let window = query.window();
            window.is_some_and(|window| !self.state.windows.has(window))
        };
        ticket.first_try.is_some()
            && queries.clone().any(is_new)
            && queries.any(|query| query.window().is_none())
    }

    /// Checks the row limit for those queries of a set that are not held yet (08 §16).
    fn check_row_limit(
        &self,
        connection: ConnectionNumber,
        set: &CompiledSet,
    ) -> Result<(), Refusal> {
        let client = self.state.clients.get(&connection);
        let rights = client.map_or_else(Rights::default, |client| client.peer.rights);
        let new = set
            .queries
            .iter()
            .filter(|query| !self.state.query_load.has(query));
        row_limit::check(&self.datastore, rights, new.map(|query| &query.query))
    }

    /// Checks that a client may have one more set, and counts what the set's queries cost.
    fn admit(&mut self, key: SetKey, set: &CompiledSet) -> Result<(), Refusal> {
        let limits = &self.shared.options.limits;
        let Some(client) = self.state.clients.get(&key.connection) else {
            return Err(Refusal("the client is gone".to_owned()));
        };
        let (id, of_set) = (key.id, SetCounts::of(&set.queries));
        let queries = client.counts.queries + of_set.queries;
        let steps = client.counts.steps + of_set.steps;
        let refusal = if client.query_sets.contains_key(&id) {
            Some(format!("Subscription with id QuerySetId {{ id: {id} }} already exists for client: ({}, {})", client.peer.identity, client.id.connection_id))
        } else if client.query_sets.len() >= limits.query_sets_max {
            Some(format!(
                "a connection holds at most {} query sets [LC0704]",
                limits.query_sets_max
            ))
        } else if queries > limits.queries_per_connection_max {
            Some(format!(
                "a connection holds at most {} queries in all its query sets [LC0705]",
                limits.queries_per_connection_max
            ))
        } else if steps > limits.query_steps_per_connection_max {
            Some(format!("checking a changed row against the queries of this connection would take {steps} steps, and limits.query-steps-per-connection-max is {} [LC0710]", limits.query_steps_per_connection_max))
        } else {
            None
        };
        if let Some(refusal) = refusal {
            return Err(Refusal(refusal));
        }
        let now = self.now.instant;
        let joins = set.queries.iter().flat_map(|query| query.joins());
        let columns = joins.flat_map(|(shape, _)| shape.looked_up_by());
        let user = IndexUser::Client(&self.module.catalog.rule_columns);
        self.state
            .views
            .indexes
            .check(&self.datastore, columns, user, now)?;
        // Joins look rows up, which costs more than the steps of their conditions.
        let is_modest = queries <= MODEST_QUERIES_MAX
            && set
                .queries
                .iter()
                .filter(|query| query.shape_id().is_some())
                .count()
                <= MODEST_JOINS_MAX
            && steps <= limits.query_steps_per_connection_max / MODEST_PART;
        let steps_max = match is_modest {
            true => usize::MAX,
            false => limits.query_steps_per_table_max,
        };
        let counted = self.state.query_load.add(&set.queries, steps_max);
        counted.map_err(|query| Refusal(format!("checking a changed row of `{}` against the queries of all clients would take more than the {steps_max} steps of limits.query-steps-per-table-max [LC0711]", query.table.name)))
    }

    /// Makes an admitted set a live one.
    fn register(&mut self, key: SetKey, set: QuerySet) {
        let queries = set.set.queries.clone();
        if let Some(client) = self.state.clients.get_mut(&key.connection) {
            client.counts.add(&queries);
            client.query_sets.insert(key.id, set);
        }
        self.watch(&queries, 1);
        self.event(Event::Subscribed { set: key, queries });
    }

    /// Ends a live set, and tells fan-out, and the client what it is not told yet.
    fn unregister(&mut self, key: SetKey, answer: Answer) {
        if let Some(client) = self.state.clients.get_mut(&key.connection) {
            if let Some(QuerySet { set, .. }) = client.query_sets.remove(&key.id) {
                client.counts.remove(&set.queries);
                let identity = client.peer.identity;
                self.release_queries(identity, key, &set.queries);
            }
        }
        self.event(Event::Unsubscribed { set: key, answer });
    }

    /// Gives back all that the queries of a live set hold, however the set has ended.
    pub(super) fn release_queries(
        &mut self,
        identity: Identity,
        set_key: SetKey,
        queries: &[Arc<LiveQuery>],
    ) {
        self.unsubscribe_from_views(identity, &views_of_set(queries), set_key);
        self.state.query_load.remove(queries);
        self.close_windows(queries);
        self.watch(queries, -1);
    }

    pub(super) fn unsubscribe(&mut self, key: SetKey, request_id: u32, ticket: Option<ReadTicket>) {
        let (connection, query_set_id) = (key.connection, key.id);
        let reply = Reply::Unsubscribed {
            request_id,
            query_set_id,
        };
        self.end_failed_windows();
        let Some(client) = self.state.clients.get(&connection) else {
            return;
        };
        let Some(live) = client.query_sets.get(&query_set_id) else {
            let error = format!(
                "Subscription not found: ({}, {}, {query_set_id})",
                client.peer.identity, client.id.connection_id
            );
            let answer = match ticket {
                Some(ticket) => {
                    let answering = Answering::new(vec![Part::new(reply, Err(error), None)]);
                    self.make(connection, answering, ticket).0
                }
                None => {
                    let mut message = Vec::new();
                    reply.error(&mut message, &error);
                    self.ready(connection, message)
                }
            };
            return self.event(Event::Answered { connection, answer });
        };
        let answer = match ticket {
            Some(ticket) => {
                let plans = plans_of(&live.set);
                let found = self.find(connection, plans, &ticket, &mut Allowance::default());
                let Some(found) = found else {
                    return ticket.give_back();
                };
                let answering = Answering::new(vec![Part::new(reply, found, None)]);
                self.make(connection, answering, ticket).0
            }
            None => {
                let mut message = Vec::new();
                server::unsubscribe_applied_without_rows(&mut message, request_id, query_set_id);
                self.ready(connection, message)
            }
        };
        self.unregister(key, answer);
    }

    /// Forgets a query set whose first rows the client cannot get, unless the client has done so and uses its id again.
    pub(super) fn drop_subscription(&mut self, key: SetKey, number: u64) {
        let client = self.state.clients.get(&key.connection);
        let live = client.and_then(|client| client.query_sets.get(&key.id));
        if live.is_some_and(|live| live.number == number) {
            self.unregister(key, None);
        }
    }

    pub(super) fn one_off(
        &mut self,
        connection: ConnectionNumber,
        request_id: u32,
        plan: Result<BoundQuery, Refusal>,
        ticket: ReadTicket,
    ) {
        let reply = Reply::OneOff { request_id };
        // A client that is gone needs no rows.
        let Some(client) = self.state.clients.get(&connection) else {
            return;
        };
        let peer = client.peer;
        let plan = plan.and_then(|plan| {
            row_limit::check(&self.datastore, peer.rights, [&plan])?;
            self.materialise_for((None, peer.identity), &views_of(&plan))?;
            Ok(plan)
        });
        let found = match plan {
            Ok(plan) => self.find(connection, vec![plan], &ticket, &mut Allowance::default()),
            Err(Refusal(error)) => Some(Err(error)),
        };
        let Some(found) = found else {
            return ticket.give_back();
        };
        let answering = Answering::new(vec![Part::new(reply, found, None)]);
        let (answer, _) = self.make(connection, answering, ticket);
        self.event(Event::Answered { connection, answer });
    }

    /// Finds what queries read in the committed state, here if it is cheap. None: it was tried without a permit of the database, and
    /// needs one.
    fn find(
        &mut self,
        connection: ConnectionNumber,
        plans: Vec<BoundQuery>,
        ticket: &ReadTicket,
        left: &mut Allowance,
    ) -> Option<Found> {
        let Some(client) = self.state.clients.get(&connection) else {
            return Some(Ok(Vec::new()));
        };
        let budget = client.queue.budget().clone();
        let mut plans_of_rules = plans.iter().filter(|plan| plan.has_rules());
        let row_limit = match plans_of_rules.next() {
            Some(_) => row_limit::of(&self.datastore, client.peer.rights),
            None => None,
        };
        let mut finder = self.finder(ticket.first_try.is_none(), row_limit, left);
        let mut found = Vec::with_capacity(plans.len());
        for plan in plans {
            let source = match &plan {
                BoundQuery::Window(window) => match finder.find_window(window, &budget) {
                    Ok(source) => source,
                    Err(exceeded) => return Some(Err(exceeded.to_string())),
                },
                _ => finder.find(&plan)?,
            };
            found.push((plan, source));
        }
        Some(Ok(found))
    }

    /// Makes an answer: here if that is cheap, on another thread otherwise. Returns it with whether each part of it has rows, as far as
    /// that is known.
    fn make(
        &mut self,
        connection: ConnectionNumber,
        mut answering: Answering,
        ticket: ReadTicket,
    ) -> (Answer, Vec<bool>) {
        let client = self.state.clients.get(&connection);
        let budget = client.map(|client| client.queue.budget().clone());
        let Some(budget) = budget.filter(|budget| !budget.is_gone()) else {
            return (None, answering.has_rows());
        };
        if answering.is_deferred() {
            // What is only to be written needs no permit: nothing is frozen for it.
            let ticket = match ticket.first_try.is_some() {
                true => ticket.evaluated(),
                false => ticket.settled(),
            };
            let has_rows = answering.has_rows();
            let answer = DeferredAnswer {
                answering,
                ticket: Some(ticket),
            };
            let answer = Delivery::Deferred(self.shared.read_for(&budget, answer));
            return (Some(Box::new(answer)), has_rows);
        }
        let mut answer = match answering.finish(&budget) {
            Ok(message) => Some(Box::new(Delivery::Messages(message))),
            Err(error) => self.ready(connection, answering.refuse(&error.to_string())),
        };
        if let Some(Delivery::Messages(message)) = answer.as_deref_mut() {
            message.ticket = Some(Box::new(ticket.evaluated()));
        }
        (answer, answering.has_rows())
    }

    fn finder<'f>(
        &'f mut self,
        may_freeze: bool,
        row_limit: Option<u64>,
        left: &'f mut Allowance,
    ) -> Finder<'f> {
        let (datastore, state) = (&mut self.datastore, &mut self.state);
        Finder::new(
            datastore,
            &mut state.frozen,
            &state.windows,
            may_freeze,
            row_limit,
            left,
        )
    }

    /// Counts queries that have come to, or gone from, their tables.
    pub(super) fn watch(&mut self, queries: &[Arc<LiveQuery>], change: isize) {
        for query in queries {
            for table in query.tables() {
                let count = self.state.watchers.entry(table).or_default();
                let before = *count;
                *count = before.saturating_add_signed(change);
                let after = *count;
                if (before == 0) != (after == 0) {
                    self.datastore.set_watched(table, after > 0);
                }
            }
            for join in query.joins() {
                let (views, datastore) = (&mut self.state.views, &mut self.datastore);
                match change > 0 {
                    true => {
                        let joins = &mut views.joins;
                        joins.add((datastore, &mut views.indexes), join, Holder::Set);
                    }
                    false => views.joins.remove(datastore, join, Holder::Set),
                }
            }
        }
    }

    /// Ends the query sets with joins that were too much for a transaction. Their clients are told.
    #[cold]
    pub(super) fn drop_failed_joins(&mut self) {
        self.state.has_failed_joins = false;
        let joins = &self.state.views.joins;
        let failed = self.sets_with(|query| {
            let mut shapes = query.joins().map(|(shape, _)| shape);
            shapes.any(|shape| joins.has_failed(shape))
        });
        let partners_max = self.shared.options.limits.join_partners_max;
        let error = format!("a transaction changed too much in a join of this subscription (limits.join-partners-max allows {partners_max} partners for each changed row on average, and a transaction has a limit in all): the subscription has ended [LC0714]");
        self.end_sets(failed, &error);
    }

    /// The query sets that have such a query.
    pub(super) fn sets_with(&self, is_it: impl Fn(&LiveQuery) -> bool) -> Vec<SetKey> {
        let has_it = |set: &QuerySet| set.set.queries.iter().any(|query| is_it(query));
        let mut found = Vec::new();
        for (&connection, client) in &self.state.clients {
            let sets = client.query_sets.iter().filter(|(_, set)| has_it(set));
            found.extend(sets.map(|(&id, _)| SetKey { connection, id }));
        }
        found
    }

    /// Ends query sets that cannot be kept up to date. Their clients are told why.
    pub(super) fn end_sets(&mut self, sets: Vec<SetKey>, error: &str) {
        for key in sets {
            let mut message = Vec::new();
            server::subscription_error(&mut message, None, key.id, error);
            let answer = self.ready(key.connection, message);
            self.unregister(key, answer);
        }
    }

    /// That a statement was compiled for the tables as they are.
    ///
    /// # Errors
    /// One has changed since, with the module.
    pub(super) fn require_current<'t>(
        &self,
        tables: impl IntoIterator<Item = &'t Arc<TableSchema>>,
    ) -> Result<(), SqlError> {
        let is_current = |table: &Arc<TableSchema>| {
            let now = self.datastore.schema(table.id);
            now.is_some_and(|now| Arc::ptr_eq(now, table) || now == table)
        };
        match tables.into_iter().all(is_current) {
            true => Ok(()),
            false => Err(SqlError::Busy("the module was updated while the statement was under way, and a table of it has changed: send it again [LC0232]".to_owned())),
        }
    }

    pub(super) fn http_query(&mut self, query: HttpQuery) -> Result<FoundQuery, SqlError> {
        let HttpQuery {
            caller,
            connection_id,
            plans,
            turn,
        } = query;
        let client = caller.client(connection_id);
        if turn != QueryTurn::Second {
            self.connect(client, Some(&caller.jwt_payload))?;
        }
        let rights = self.shared.rights_of(&caller.identity, caller.rights);
        let plans = plans.and_then(|plans| {
            self.require_current(plans.iter().flat_map(BoundQuery::read_tables))?;
            row_limit::check(&self.datastore, rights, &plans)?;
            // At once: making the rows of one view may drop those of another.
            let views: Vec<_> = plans.iter().flat_map(views_of).collect();
            self.materialise_for((None, caller.identity), &views)?;
            Ok(plans)
        });
        let row_limit = row_limit::of(&self.datastore, rights);
        let mut left = Allowance::default();
        let mut finder = self.finder(turn != QueryTurn::First, row_limit, &mut left);
        let find = |plan: &BoundQuery| match plan {
            BoundQuery::Table(plan) if is_row_count(plan) => Some(finder.count(plan)),
            plan => finder.find(plan),
        };
        let found = plans.map(|plans| {
            let sources = plans.iter().map(find).collect();
            (plans, sources)
        });
        if turn != QueryTurn::Second {
            self.disconnect(client);
        }
        found
    }
}

/// Is the result a number that the table knows?
fn is_row_count(plan: &SelectPlan) -> bool {
    matches!(plan.projection, Projection::Count(_)) && plan.predicate.is_none()
}

fn plans_of(set: &CompiledSet) -> Vec<BoundQuery> {
    set.queries
        .iter()
        .map(|query| query.query.clone())
        .collect()
}
