//! Spans of the writer's work. For a call that is not traced, each of these is one comparison.

use std::sync::Arc;

use lightcone_types::Timestamp;

use super::measure::Measured;
use super::{Origin, Writer};
use crate::error::NotDurable;
use crate::events::{CallResult, Event};
use crate::metrics::FunctionKind;
use crate::trace::{SpanName, Traced};

impl Writer {
    fn traced_of(&self, origin: &Origin) -> Option<Traced> {
        let context = origin.trace?;
        Some(Traced {
            tracer: self.shared.options.commons.tracer()?.clone(),
            context,
            database: self.shared.options.identity,
        })
    }

    /// A call of a reducer begins. Gives the time, if it is traced.
    #[inline]
    pub(super) fn begin_traced(&mut self, origin: &Origin) -> Option<Timestamp> {
        origin.trace?;
        self.traced = self.traced_of(origin);
        let started = self.time();
        if let Some(traced) = &self.traced {
            traced.tell(SpanName::Wait, (origin.timestamp, started), None);
        }
        Some(started)
    }

    /// It has ended, and so has its transaction.
    pub(super) fn end_traced(
        &mut self,
        reducer: u32,
        started: Option<Timestamp>,
        measured: &Measured,
        result: &CallResult,
    ) {
        let Some(started) = started else { return };
        let Some(traced) = self.traced.take() else {
            return;
        };
        let name = SpanName::Function {
            kind: FunctionKind::Reducer,
            name: self.module.reducer(reducer).name.clone(),
        };
        let error = result.as_ref().err();
        let error = error.map(|failure| failure.of_reducer().into_owned());
        let ended = self.time();
        traced.tell(name, (started, ended), error);
        if measured.has_record(self.next_offset) {
            self.when_durable(move |now, error| {
                traced.tell(SpanName::Durable, (ended, now), error);
            });
        }
    }

    /// A procedure has ended, or was never begun.
    pub(super) fn trace_procedure(&self, name: &Arc<str>, origin: &Origin, failure: Option<&str>) {
        if let Some(traced) = self.traced_of(origin) {
            let name = SpanName::Function {
                kind: FunctionKind::Procedure,
                name: name.clone(),
            };
            let error = failure.map(str::to_owned);
            traced.tell(name, (origin.timestamp, self.time()), error);
        }
    }

    /// A client's call is answered: its trace has all that it will have.
    pub(super) fn trace_answer(&mut self, origin: &Origin) {
        if let Some(traced) = self.traced_of(origin) {
            let received = origin.timestamp;
            self.when_durable(move |now, _| {
                traced.tell_whole(SpanName::WebSocketCall, (received, now));
            });
        }
    }

    /// Does something when all that was committed so far is durable, or never will be.
    fn when_durable(&mut self, act: impl FnOnce(Timestamp, Option<String>) + Send + 'static) {
        let shared = self.shared.clone();
        self.event(Event::Release {
            confirmed: true,
            action: Box::new(move |durable| {
                let error = durable.err().map(|NotDurable(reason)| reason);
                act(shared.environment().now(), error);
            }),
        });
    }
}
