//! What views are evaluated in, and what comes of it.

use std::sync::Arc;
use std::time::Instant;

use lightcone_engine::{Datastore, ViewInstance};
use lightcone_query::ViewArguments;
use lightcone_schema::ViewSchema;
use lightcone_types::{TableId, Timestamp};

use super::failures::ViewError;
use crate::metrics::{Failure, FunctionKind};
use crate::module::Module;
use crate::peer::ConnectionNumber;
use crate::shared::Shared;
use crate::trace::{SpanName, Traced};

/// No rows, as a BSATN array.
pub(super) const NO_ROWS: &[u8] = &[0; 4];

/// What evaluating a view needs beside the tables.
#[derive(Clone, Copy)]
pub(crate) struct ViewHost<'a> {
    pub shared: &'a Shared,
    pub module: &'a Arc<Module>,
    /// The call inside of which views are evaluated.
    pub traced: Option<&'a Traced>,
}

impl ViewHost<'_> {
    /// An instance of a view was evaluated, or brought up to date.
    pub(super) fn count(&self, table: TableId, started: Instant, result: &Result<(), ViewError>) {
        let Some(function) = self.module.views.get(&table) else {
            return;
        };
        let failure = result.as_ref().err().map(|error| match error.ran_too_long {
            true => Failure::Time,
            false => Failure::Trap,
        });
        let took = self.instant().saturating_duration_since(started);
        let counted = &self.module.counters;
        let counted = counted.function(FunctionKind::View, function.position);
        counted.counters.note(took, failure);
        if let Some(traced) = self.traced {
            let name = SpanName::Function {
                kind: FunctionKind::View,
                name: function.name.clone(),
            };
            let ended = self.shared.environment().now();
            let started = Timestamp(ended.0.saturating_sub(took.as_micros() as i64));
            let error = result.as_ref().err().map(|error| error.reason.clone());
            traced.tell(name, (started, ended), error);
        }
    }

    pub(super) fn instant(&self) -> Instant {
        self.shared.environment().instant()
    }

    pub(super) fn name(&self, table: TableId) -> Arc<str> {
        match self.module.views.get(&table) {
            Some(function) => function.name.clone(),
            None => "".into(),
        }
    }
}

/// A transaction in which views are evaluated, and what comes of it.
pub(crate) struct Evaluation<'a> {
    pub host: ViewHost<'a>,
    pub datastore: &'a mut Datastore,
    /// For subscribers.
    pub messages: Vec<ViewMessage>,
}

impl<'a> Evaluation<'a> {
    pub fn new(host: ViewHost<'a>, datastore: &'a mut Datastore) -> Evaluation<'a> {
        Evaluation {
            host,
            datastore,
            messages: Vec::new(),
        }
    }
}

/// The instance of a view for who looks.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct InstanceKey {
    pub table: TableId,
    pub instance: ViewInstance,
}

/// A view that a query reads.
#[derive(Clone, Debug)]
pub(crate) struct ViewRead {
    /// Where its rows are.
    pub table: TableId,
    pub view: ViewSchema,
    pub arguments: ViewArguments,
}

/// A message for a client about a view.
pub(crate) type ViewMessage = (ConnectionNumber, Vec<u8>);
