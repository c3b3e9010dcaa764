//! Looks after databases that no client uses: opens those that have something to do, and those whose log failed for a reason that
//! has passed; closes those that have nothing to do.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt as _};
use lightcone_types::{Due, Identity, TimeDuration, Timestamp};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::databases::{Activity, OpenError, Running};
use crate::node::Node;

/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// More often, if databases are closed sooner.
const LOOK_EVERY_MIN: Duration = Duration::from_millis(10);
/// A database is opened so long before its call is due, so that the call is in time.
const OPENED_BEFORE: Duration = Duration::from_secs(2);
/// Databases that are opened at once. Requests open others beside them.
const OPENING_MAX: usize = 2;
/// Databases that are opened between two looks: those that are due meanwhile come before the rest.
const OPENED_PER_LOOK_MAX: usize = 32;
/// An opening that takes longer goes on beside the others, and counts among those of the next looks until it ends.
const OPENING_WAIT_MAX: Duration = Duration::from_secs(5);
/// Databases that are closed at once.
const CLOSING_MAX: usize = 8;
/// A database that says for so long nothing of what it has to do is busy.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(1);
/// The longest pause between two attempts with one database; they begin with [`LOOK_EVERY`] and double.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// When a database is looked at again.
struct Attempt {
    next: Instant,
    pause: Duration,
    /// Of the last one. It ends also if the server stops.
    task: Option<Task>,
}

type Opened = Result<(), OpenError>;
type Task = JoinHandle<Opened>;

impl Attempt {
    fn is_under_way(&self) -> bool {
        let task = self.task.as_ref();
        task.is_some_and(|task| !task.is_finished())
    }
}

/// Runs until `stopped` ends.
pub async fn keep_open(node: Arc<Node>, stopped: impl Future<Output = ()>) {
    let opening = async {
        let mut attempts = Attempts::default();
        loop {
            let are_more = look(&node, &mut attempts).await;
            if !are_more {
                sleep(LOOK_EVERY).await;
            }
        }
    };
    tokio::select! {
        () = opening => {}
        () = close_idle(&node) => {}
        () = stopped => {}
    }
}

#[derive(Default)]
struct Attempts(HashMap<Identity, Attempt>);

impl Attempts {
    fn is_due(&self, identity: &Identity) -> bool {
        self.0
            .get(identity)
            .is_none_or(|attempt| attempt.next <= Instant::now() && !attempt.is_under_way())
    }

    fn under_way(&self) -> usize {
        let attempts = self.0.values();
        attempts.filter(|attempt| attempt.is_under_way()).count()
    }

    fn count(&mut self, identity: Identity, task: Task) {
        let attempt = self.0.entry(identity).or_insert(Attempt {
            next: Instant::now(),
            pause: LOOK_EVERY / 2,
            task: None,
        });
        attempt.task = Some(task);
        attempt.pause = (attempt.pause * 2).min(PAUSE_MAX);
        attempt.next = Instant::now() + attempt.pause;
    }
}

/// True: it is to look again at once.
async fn look(node: &Arc<Node>, attempts: &mut Attempts) -> bool {
    // They take no writes, for a reason that may pass.
    let read_only = |running: &Running| running.handle.may_work_again();
    for identity in node.databases.identities_of(read_only) {
        if attempts.is_due(&identity) {
            let node = node.clone();
            let (_, task) = waited(async move {
                node.databases.reopen(&identity).await;
                Ok(())
            })
            .await;
            attempts.count(identity, task);
        }
    }
    // Those that ended by themselves because of a bug, and may do so again.
    let failed = |running: &Running| !running.handle.is_running();
    let failed = node.databases.identities_of(failed);
    // Those that have something to do, now or soon.
    let until = after(OPENED_BEFORE);
    let mut due = node.databases.due_until(until);
    due.retain(|identity| attempts.is_due(identity));
    let room = OPENED_PER_LOOK_MAX.saturating_sub(attempts.under_way());
    let are_more = due.len() > room && room > 0;
    due.truncate(room);
    let openings = stream::iter(due).map(|identity| {
        let node = node.clone();
        let opening = waited(async move { node.databases.open_due(&identity, until).await });
        async move { (identity, opening.await) }
    });
    let mut openings = openings.buffer_unordered(OPENING_MAX);
    while let Some((identity, (is_open, task))) = openings.next().await {
        // Why one did not open is logged there. It is looked at again later.
        if !is_open || failed.contains(&identity) {
            attempts.count(identity, task);
        }
    }
    // Those that have been well for so long that the next failure is a new one are forgotten.
    let now = Instant::now();
    let attempts = &mut attempts.0;
    attempts.retain(|_, attempt| now < attempt.next + PAUSE_MAX || attempt.is_under_way());
    are_more
}

/// Opens in a task of its own, and waits for a while. Dropping the handle of a task does not end it: an opening that has begun is
/// finished, also when the server stops.
async fn waited(opening: impl Future<Output = Opened> + Send + 'static) -> (bool, Task) {
    let mut task = tokio::spawn(opening);
    let opened = timeout(OPENING_WAIT_MAX, &mut task).await;
    (matches!(opened, Ok(Ok(Ok(())))), task)
}

fn after(time: Duration) -> Timestamp {
    let us = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
    Timestamp::now().saturating_add(TimeDuration(us))
}

/// Closes databases that have not been used for as long as the configuration says. Never, if that is zero, or if they are in memory only.
async fn close_idle(node: &Arc<Node>) {
    let idle_time = node.config.databases.idle_close_after;
    if idle_time.is_zero() || node.databases.are_in_memory() {
        return std::future::pending().await;
    }
    let mut quiet: HashMap<Identity, (Activity, Instant)> = HashMap::new();
    loop {
        sleep((idle_time / 4).clamp(LOOK_EVERY_MIN, LOOK_EVERY)).await;
        let now = Instant::now();
        let unused = node.databases.unused().into_iter();
        let before = std::mem::take(&mut quiet);
        quiet.extend(unused.map(|(identity, activity)| {
            let known = before.get(&identity).copied();
            let known = known.filter(|(before, _)| *before == activity);
            (identity, known.unwrap_or((activity, now)))
        }));
        let idle = quiet
            .iter()
            .filter(|(_, (_, since))| now - *since >= idle_time);
        let idle: Vec<_> = idle
            .map(|(identity, (activity, _))| (*identity, *activity))
            .collect();
        let closings = stream::iter(idle).map(|(identity, activity)| {
            // Also to its end.
            let closing = tokio::spawn(close(node.clone(), identity, activity, idle_time));
            async move { (identity, closing.await) }
        });
        let mut closings = closings.buffer_unordered(CLOSING_MAX);
        while let Some((identity, has_plans)) = closings.next().await {
            let is_asked_later = matches!(has_plans, Ok(true));
            if let Some((_, since)) = quiet.get_mut(&identity).filter(|_| is_asked_later) {
                *since = now;
            }
        }
    }
}

/// Closes a database that has done nothing since, and has nothing to do before it would have been closed for as long. True: it has.
async fn close(node: Arc<Node>, identity: Identity, since: Activity, idle_time: Duration) -> bool {
    let Some(running) = node.databases.running(&identity) else {
        return false;
    };
    let due = timeout(ANSWER_TIME_MAX, running.handle.due()).await;
    drop(running);
    let soon = Due::At(after(idle_time.max(OPENED_BEFORE * 2)));
    let has_plans = !matches!(due, Ok(Some(due)) if due > soon);
    if !has_plans {
        node.databases.close_unused(&identity, since).await;
    }
    has_plans
}
