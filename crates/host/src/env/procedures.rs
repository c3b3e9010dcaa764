//! The host calls of procedures (spec 03 §10), which open and end their transactions themselves.

use super::HostEnv;
use crate::{AbiError, ConsoleLevel, HostTrap};

impl HostEnv {
    /// Whether a procedure or HTTP handler runs.
    pub fn is_procedure(&self) -> bool {
        self.access.is_procedure()
    }

    /// `procedure_start_mut_tx`: opens a transaction and says when, in microseconds since the epoch.
    pub fn procedure_start_mut_tx(&mut self) -> Result<i64, AbiError> {
        let bytes_max = self.config.limits.procedure_bytes_max;
        Ok(self.access.begin(bytes_max)?.0)
    }

    /// `procedure_commit_mut_tx`
    pub fn procedure_commit_mut_tx(&mut self) -> Result<(), AbiError> {
        self.access.commit()?;
        // What they had not read yet belongs to a state that is over.
        self.iterators.clear();
        Ok(())
    }

    /// `procedure_abort_mut_tx`
    pub fn procedure_abort_mut_tx(&mut self) -> Result<(), AbiError> {
        self.access.rollback()?;
        self.iterators.clear();
        Ok(())
    }

    /// Rolls back the transaction that a procedure left open, which is an error of the module (spec 03 §10).
    #[inline]
    pub(super) fn abort_dangling_transaction(&mut self) {
        if self.access.rollback().is_ok() {
            self.report_dangling_transaction();
        }
    }

    #[cold]
    fn report_dangling_transaction(&mut self) {
        let name = self.function.as_deref().unwrap_or_default();
        let message = format!("aborting dangling anonymous transaction in procedure {name}");
        self.log(ConsoleLevel::Error, None, None, None, &message, None);
    }

    /// `procedure_sleep_until`: a wait would keep everybody waiting, so only a time in the past will do.
    pub fn procedure_sleep_until(&mut self, wake_us: i64) -> Result<i64, HostTrap> {
        let now = self.access.may_sleep()?.0;
        if wake_us > now {
            return Err(HostTrap::NotSupported("procedure_sleep_until"));
        }
        Ok(now)
    }

    /// `procedure_http_request`: not supported yet.
    pub fn procedure_http_request(&mut self) -> Result<(), AbiError> {
        self.access.may_request()?;
        Err(HostTrap::NotSupported("procedure_http_request").into())
    }
}
