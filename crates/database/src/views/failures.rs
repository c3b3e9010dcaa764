//! Views that fail: when they are tried again, and what that may take of the writer's time.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use lightcone_engine::DatastoreError;
use lightcone_types::TableId;
use rustc_hash::FxHashMap;

use crate::error::Refusal;

/// After an evaluation that failed, a view that fails waits for so many times as long as it took: it gets a hundredth of the time.
const FAILED_TIMES: u32 = 100;
/// It waits no longer than this.
const FAILED_WAIT_MAX: Duration = Duration::from_secs(60);
/// What the evaluations of one view that fail may take of one transaction, together: then its other instances wait, too.
const FAILED_PER_REFRESH_MAX: Duration = Duration::from_millis(20);
/// What first evaluations of one view may take in vain for those who are not subscribed, less a hundredth of the time since:
/// beyond it, the next ones have no rows until it works for others.
const FIRST_FAILED_MAX: Duration = Duration::from_secs(1);

/// Why an evaluation failed.
pub(super) struct ViewError {
    pub reason: String,
    /// It may go well the next time, though nothing has changed that the view reads.
    pub may_pass: bool,
    /// It was stopped.
    pub ran_too_long: bool,
}

impl From<Refusal> for ViewError {
    fn from(Refusal(reason): Refusal) -> ViewError {
        ViewError {
            reason,
            may_pass: false,
            ran_too_long: false,
        }
    }
}

impl From<DatastoreError> for ViewError {
    /// A transaction that is too large may be so for other changes than the view's.
    fn from(error: DatastoreError) -> ViewError {
        ViewError {
            reason: error.to_string(),
            may_pass: matches!(error, DatastoreError::TransactionTooLarge { .. }),
            ran_too_long: false,
        }
    }
}

/// What is known of the views that fail, or did.
#[derive(Default)]
pub(super) struct Failures(FxHashMap<TableId, OfView>);

#[derive(Default)]
struct OfView {
    /// Until then, none of its failing instances is tried.
    resume_at: Option<Instant>,
    /// Instances that are to be evaluated again, oldest first.
    overdue: VecDeque<u32>,
    /// What evaluations that failed have taken of the transaction that is refreshed.
    of_refresh: Duration,
    /// What first evaluations have taken in vain, less what is forgiven.
    of_first: Duration,
    forgiven_at: Option<Instant>,
}

impl OfView {
    fn forgive(&mut self, now: Instant) {
        let since = self.forgiven_at.replace(now).unwrap_or(now);
        let forgiven = now.saturating_duration_since(since) / FAILED_TIMES;
        self.of_first = self.of_first.saturating_sub(forgiven);
    }
}

impl Failures {
    /// Whether a failing instance of the view may be tried.
    pub fn may_retry(&self, view: TableId, now: Instant) -> bool {
        let of_view = self.0.get(&view);
        of_view.is_none_or(|of_view| of_view.resume_at.is_none_or(|at| at <= now))
    }

    /// Whether the view may be evaluated for a caller for whom it was not.
    pub fn may_begin(&mut self, view: TableId, now: Instant) -> bool {
        self.0.get_mut(&view).is_none_or(|of_view| {
            of_view.forgive(now);
            of_view.of_first < FIRST_FAILED_MAX
        })
    }

    /// An evaluation failed. Those without a subscriber do not keep the others waiting.
    pub fn failed(&mut self, view: TableId, took: Duration, is_subscribed: bool, now: Instant) {
        let of_view = self.0.entry(view).or_default();
        of_view.of_refresh += took;
        if is_subscribed {
            let wait = took.saturating_mul(FAILED_TIMES).min(FAILED_WAIT_MAX);
            of_view.resume_at = Some(now + wait);
        } else {
            of_view.forgive(now);
            of_view.of_first += took;
        }
    }

    /// Whether the evaluations of the view have failed for so long in this transaction that the next ones wait.
    pub fn have_taken_long(&self, view: TableId) -> bool {
        let of_view = self.0.get(&view);
        of_view.is_some_and(|of_view| of_view.of_refresh >= FAILED_PER_REFRESH_MAX)
    }

    /// Views are brought up to date for another transaction.
    pub fn begin_refresh(&mut self) {
        for of_view in self.0.values_mut() {
            of_view.of_refresh = Duration::ZERO;
        }
    }

    /// An instance is to be evaluated again.
    pub fn push(&mut self, view: TableId, instance: u32) {
        let of_view = self.0.entry(view).or_default();
        of_view.overdue.push_back(instance);
    }

    /// When instances are to be tried again; none if there are none. Those that `is_overdue` does not know are forgotten.
    pub fn next_retry(
        &mut self,
        now: Instant,
        is_overdue: impl Fn(TableId, u32) -> bool,
    ) -> Option<Instant> {
        let waiting = self.0.iter_mut().filter_map(|(view, of_view)| {
            while let Some(first) = of_view.overdue.front() {
                if is_overdue(*view, *first) {
                    return Some(of_view.resume_at.unwrap_or(now));
                }
                of_view.overdue.pop_front();
            }
            None
        });
        waiting.min()
    }

    /// Takes an instance that may be tried now.
    pub fn pop(&mut self, now: Instant) -> Option<u32> {
        let mut views = self.0.values_mut();
        let of_view = views.find(|of_view| {
            !of_view.overdue.is_empty() && of_view.resume_at.is_none_or(|at| at <= now)
        });
        of_view?.overdue.pop_front()
    }

    /// No instance waits any more.
    pub fn resume_all(&mut self) {
        for of_view in self.0.values_mut() {
            of_view.resume_at = None;
        }
    }
}
