//! The host calls of procedures (spec 03 §10), which open and end their transactions themselves.

use lightcone_engine::Datastore;
use lightcone_types::Timestamp;

use super::HostEnv;
use crate::{AbiError, ConsoleLevel, Errno, HostTrap, ProcedureScope};

impl HostEnv {
    /// Makes the call that begins next one of a procedure, whose transactions are those of `scope`.
    pub fn begin_procedure(&mut self, scope: Option<ProcedureScope>) {
        self.procedure = scope;
    }

    /// Ends the transaction that a procedure left open, which is an error of the module (spec 03 §10), and gives the scope
    /// back. Comes before [`HostEnv::end_call`] or [`HostEnv::end_script_call`].
    pub fn end_procedure(&mut self) -> Option<ProcedureScope> {
        let mut scope = self.procedure.take()?;
        if let Some(datastore) = self.datastore.take() {
            scope.abort(datastore);
            let name = self.function.as_deref().unwrap_or_default();
            let message = format!("aborting dangling anonymous transaction in procedure {name}");
            self.log(ConsoleLevel::Error, None, None, None, &message, None);
        }
        Some(scope)
    }

    /// Whether a procedure runs.
    pub fn is_procedure(&self) -> bool {
        self.procedure.is_some()
    }

    /// `procedure_start_mut_tx`: opens a transaction and says when, in microseconds since the epoch. Reducers have one
    /// already, and the load phase may have none.
    pub fn procedure_start_mut_tx(&mut self) -> Result<i64, AbiError> {
        if self.datastore.is_some() {
            return Err(Errno::WOULD_BLOCK_TRANSACTION.into());
        }
        let Some(scope) = &mut self.procedure else {
            return Err(HostTrap::AsyncOnly("procedure_start_mut_tx").into());
        };
        self.datastore = Some(scope.start(self.config.limits.procedure_bytes_max)?);
        Ok(Timestamp::now().0)
    }

    /// `procedure_commit_mut_tx`: a reducer's transaction is not the module's to end.
    pub fn procedure_commit_mut_tx(&mut self) -> Result<(), AbiError> {
        self.end_mut_tx(ProcedureScope::commit)
    }

    /// `procedure_abort_mut_tx`
    pub fn procedure_abort_mut_tx(&mut self) -> Result<(), AbiError> {
        self.end_mut_tx(ProcedureScope::abort)
    }

    fn end_mut_tx(
        &mut self,
        end: impl FnOnce(&mut ProcedureScope, Box<Datastore>),
    ) -> Result<(), AbiError> {
        let (Some(scope), Some(_)) = (&mut self.procedure, &self.datastore) else {
            return Err(Errno::TRANSACTION_NOT_ANONYMOUS.into());
        };
        let datastore = self.datastore.take().expect("just seen");
        end(scope, datastore);
        // What they had not read yet belongs to a state that is over.
        self.iterators.clear();
        Ok(())
    }

    /// `procedure_sleep_until`: a wait would keep everybody waiting, so only a time in the past will do.
    pub fn procedure_sleep_until(&mut self, wake_us: i64) -> Result<i64, AbiError> {
        if self.procedure.is_none() || self.datastore.is_some() {
            return Err(HostTrap::AsyncOnly("procedure_sleep_until").into());
        }
        let now = Timestamp::now().0;
        if wake_us > now {
            return Err(HostTrap::NotSupported("procedure_sleep_until").into());
        }
        Ok(now)
    }

    /// `procedure_http_request`: refused in a transaction (§13), and elsewhere not supported yet.
    pub fn procedure_http_request(&mut self) -> Result<(), AbiError> {
        if self.datastore.is_some() {
            return Err(Errno::WOULD_BLOCK_TRANSACTION.into());
        }
        match self.procedure {
            Some(_) => Err(HostTrap::NotSupported("procedure_http_request").into()),
            None => Err(HostTrap::AsyncOnly("procedure_http_request").into()),
        }
    }
}
