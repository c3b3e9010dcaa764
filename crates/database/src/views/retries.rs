//! Views that fail: what their subscribers are told, and when they are tried again.

use std::time::Instant;

use lightcone_wire::server;

use super::host::{Evaluation, ViewMessage};
use super::Views;
use crate::peer::SetKey;

impl Views {
    /// Tells who is subscribed to an instance that it fails from now on.
    pub(super) fn tell_subscribers(&self, evaluation: &mut Evaluation<'_>, number: u32) {
        let instance = self.instance(number);
        let text = failed_text(&evaluation.host.name(instance.key.table));
        let subscribers = instance.subscribers.iter();
        let messages =
            subscribers.map(|(key, subscriber)| error_message(*key, subscriber.request_id, &text));
        evaluation.messages.extend(messages);
    }

    /// The view has failed for so many, or for so long, that this one waits as if it had, too.
    pub(super) fn wait(&mut self, evaluation: &mut Evaluation<'_>, number: u32) {
        let instance = self.instance_mut(number);
        (instance.is_failing, instance.is_overdue) = (true, true);
        let view = instance.key.table;
        self.failures.push(view, number);
        self.tell_subscribers(evaluation, number);
    }

    pub(super) fn retry_or_wait(&mut self, evaluation: &mut Evaluation<'_>, number: u32) {
        let view = self.instance(number).key.table;
        if self.failures.may_retry(view, evaluation.host.instant()) {
            self.evaluate(evaluation, number);
            return;
        }
        self.try_later(number);
    }

    /// An instance that fails is to be evaluated again when its view may be.
    pub(super) fn try_later(&mut self, number: u32) {
        let instance = self.instance_mut(number);
        let view = instance.key.table;
        if !std::mem::replace(&mut instance.is_overdue, true) {
            self.failures.push(view, number);
        }
    }

    /// When failing views are to be tried again; none if none is.
    pub fn next_retry(&mut self, now: Instant) -> Option<Instant> {
        let Views {
            failures,
            instances,
            ..
        } = self;
        failures.next_retry(now, |view, number| {
            let instance = instances[number as usize].as_ref();
            instance.is_some_and(|instance| {
                // One without subscribers is tried when it is read.
                instance.is_overdue
                    && instance.key.table == view
                    && !instance.subscribers.is_empty()
            })
        })
    }

    /// Tries failing views again, in the open transaction, until the time is over.
    pub fn retry(&mut self, evaluation: &mut Evaluation<'_>, until: Instant) {
        loop {
            let now = evaluation.host.instant();
            if now >= until || self.next_retry(now).is_none_or(|at| at > now) {
                return;
            }
            let Some(number) = self.failures.pop(now) else {
                return;
            };
            let instance = self.instances[number as usize].as_ref();
            if instance.is_some_and(|i| i.is_overdue && !i.subscribers.is_empty()) {
                self.evaluate(evaluation, number);
            }
        }
    }
}

/// What subscribers are told. Why it failed is for the module's owner: the reason may hold what others wrote.
pub(super) fn failed_text(view: &str) -> String {
    format!("the view `{view}` failed: its last rows stand, and the subscription goes on; when the view works again, what has changed is sent [LC0331]")
}

pub(super) fn error_message(key: SetKey, request_id: u32, text: &str) -> ViewMessage {
    let mut message = Vec::new();
    server::subscription_error(&mut message, Some(request_id), key.id, text);
    (key.connection, message)
}
