//! Calling the functions of views.

use lightcone_host::{HostConfig, ModuleInstance, ReadView, ViewCall, ViewOutcome};
use lightcone_query::ViewArguments;
use lightcone_table::ReadSet;
use lightcone_types::{Identity, TableId};

use super::failures::ViewError;
use super::host::{Evaluation, ViewHost};
use crate::error::Refusal;
use crate::guest::Guest;

/// What a view returned.
pub(super) enum Returned {
    /// A BSATN array.
    Rows(Vec<u8>),
    /// The text of a query.
    Query(String),
}

/// An instance of the module that runs views only: one that traps costs reducers nothing. Made for the first call.
#[derive(Default)]
pub(super) struct Runner(Option<Guest>);

impl Runner {
    /// Calls a view, in the open transaction.
    ///
    /// # Errors
    /// It failed; the text says why.
    pub fn call(
        &mut self,
        evaluation: &mut Evaluation<'_>,
        table: TableId,
        (sender, arguments): (Option<Identity>, &ViewArguments),
        reads: &mut ReadSet,
    ) -> Result<Returned, ViewError> {
        let host = evaluation.host;
        let Some(function) = host.module.views.get(&table) else {
            let text = "the module has no such view any more";
            return Err(Refusal(text.to_owned()).into());
        };
        let guest = match &mut self.0 {
            Some(guest) => guest,
            none => none.insert(Guest::new(make(host)?)),
        };
        let call = ViewCall {
            id: function.id,
            name: &function.name,
            sender,
            args: arguments.as_deref().unwrap_or_default(),
        };
        guest.make_ready(host.shared, host.module, || config(host));
        let view = ReadView::of(evaluation.datastore);
        let outcome = guest.instance.call_view(view, &call, reads);
        if guest.instance.is_poisoned() {
            guest.replace(host.shared, host.module, config(host));
        }
        let limits = &host.shared.options.limits;
        match outcome {
            ViewOutcome::Rows(rows) if rows.len() > limits.view_bytes_max => Err(Refusal(format!(
                "its rows have {} bytes, and limits.view-bytes-max is {}",
                rows.len(),
                limits.view_bytes_max
            ))
            .into()),
            ViewOutcome::Rows(rows) => Ok(Returned::Rows(rows)),
            ViewOutcome::Query(text) => Ok(Returned::Query(text)),
            ViewOutcome::Failed { message } => Err(Refusal(message).into()),
            ViewOutcome::TimedOut { .. } => Err(ViewError {
                reason: format!(
                    "it ran longer than limits.view-ms-max, which is {}, and was stopped",
                    limits.view_ms_max
                ),
                may_pass: true,
                ran_too_long: true,
            }),
        }
    }
}

fn make(host: ViewHost<'_>) -> Result<Box<dyn ModuleInstance>, Refusal> {
    Ok(host.module.program.instantiate(config(host))?)
}

fn config(host: ViewHost<'_>) -> HostConfig {
    let mut config = host.shared.config.clone();
    config.limits.call_ms_max = host.shared.options.limits.view_ms_max;
    config
}
