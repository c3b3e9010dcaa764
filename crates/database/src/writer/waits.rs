//! What a thread waits for that steps nothing but a writer. In all other files of the writer nothing blocks but module code and the disk
//! (`scripts/check-machine.py`).

use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use lightcone_host::InterruptReason;
use tokio::sync::oneshot;

use super::state::{Phase, Stage};
use super::Writer;
use crate::procedures::{Control, Returned};

/// So often a database that stops looks whether it is its turn to write a snapshot.
const TURN_LOOK: Duration = Duration::from_millis(5);
/// Why the tables are there after a loan.
pub(super) const GIVEN_BACK: &str = "a lease gives the tables back whatever happens";

impl Writer {
    /// Waits until a step has something to do.
    pub fn wait(&mut self) {
        let has_failed_log = self.has_failed_log();
        match &mut self.phase {
            Phase::Ends(end) => match &mut end.stage {
                Stage::Log => {}
                Stage::Fanout(_, told) => return wait_for(told),
                Stage::Turn(..) => return std::thread::sleep(TURN_LOOK),
                Stage::Snapshot(written) => return wait_for(written),
            },
            Phase::Recovers(recovered) => return wait_for(recovered),
            _ if has_failed_log => {}
            _ if self.state.is_held => {
                return match self.guest.awaited() {
                    Some(made) => wait_for(made),
                    None => {
                        self.way_out.wait_for_room();
                        self.shared.copy_room.wait();
                    }
                };
            }
            _ => return self.inputs.wait(),
        }
        // Until the log has ended, and nothing else has its files.
        self.way_out.log.wait_ended();
        drop(self.shared.snapshots.hold());
    }

    /// Waits for tables that were lent to a call on another thread.
    pub(super) fn wait_for_tables(&self, control: &Control) -> Returned {
        let returned = &self.state.loans.returned;
        let ms_max = self.shared.options.limits.host.procedure_transaction_ms_max;
        let mut back = returned.recv_timeout(Duration::from_millis(ms_max));
        if matches!(back, Err(RecvTimeoutError::Timeout)) {
            control.end(InterruptReason::TransactionTime);
            // Its code is stopped at the next tick, and all that the host does for it is bounded.
            back = returned.recv().map_err(|_| RecvTimeoutError::Disconnected);
        }
        back.expect(GIVEN_BACK)
    }
}

/// Waits until there is something to take, or never will be.
fn wait_for<T>(awaited: &mut oneshot::Receiver<T>) {
    let (put_back, again) = oneshot::channel();
    if let Ok(done) = std::mem::replace(awaited, again).blocking_recv() {
        // Its receiver is in the place of the other.
        let _ = put_back.send(done);
    }
}
