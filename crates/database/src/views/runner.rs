//! Calling the functions of views.

use lightcone_engine::Datastore;
use lightcone_host::{HostEnv, ModuleInstance, ReadView, ViewCall, ViewOutcome};
use lightcone_table::ReadSet;
use lightcone_types::{Identity, TableId};

use super::failures::ViewError;
use super::host::ViewHost;

/// What a view returned.
pub(super) enum Returned {
    /// A BSATN array.
    Rows(Vec<u8>),
    /// The text of a query.
    Query(String),
}

/// An instance of the module that runs views only: a view may run inside of a procedure's commit, whose own instance is busy
/// then, and one that traps costs reducers nothing. Made for the first call.
#[derive(Default)]
pub(super) struct Runner(Option<Box<dyn ModuleInstance>>);

impl Runner {
    /// Calls a view, in the open transaction.
    ///
    /// # Errors
    /// It failed; the text says why.
    pub fn call(
        &mut self,
        host: ViewHost<'_>,
        datastore: &mut Datastore,
        table: TableId,
        sender: Option<Identity>,
        reads: &mut ReadSet,
    ) -> Result<Returned, ViewError> {
        let Some(function) = host.module.views.get(&table) else {
            return Err("the module has no such view any more".into());
        };
        let instance = match &mut self.0 {
            Some(instance) => instance,
            none => none.insert(make(host)?),
        };
        let call = ViewCall {
            id: function.id,
            name: &function.name,
            sender,
        };
        let outcome = instance.call_view(ReadView::of(datastore), &call, reads);
        if instance.is_poisoned() {
            // What making another one takes is the failing view's, not the next one's.
            self.0 = make(host).ok();
        }
        let limits = &host.shared.options.limits;
        match outcome {
            ViewOutcome::Rows(rows) if rows.len() > limits.view_bytes_max => Err(format!(
                "its rows have {} bytes, and limits.view-bytes-max is {}",
                rows.len(),
                limits.view_bytes_max
            )
            .into()),
            ViewOutcome::Rows(rows) => Ok(Returned::Rows(rows)),
            ViewOutcome::Query(text) => Ok(Returned::Query(text)),
            ViewOutcome::Failed { message } => Err(message.into()),
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

fn make(host: ViewHost<'_>) -> Result<Box<dyn ModuleInstance>, String> {
    let mut config = host.shared.host_config();
    config.limits.call_ms_max = host.shared.options.limits.view_ms_max;
    let loaded = &host.module.program.loaded;
    let instance = loaded.instantiate(HostEnv::new(config));
    instance.map_err(|error| format!("the module cannot be instantiated: {error}"))
}
