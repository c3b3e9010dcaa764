//! Moving the clock of a test, and all that is due meanwhile.

use std::time::Duration;

use lightcone_types::{TimeDuration, Timestamp};

use crate::calls::CallError;
use crate::environment::Environment as _;
use crate::handle::DatabaseHandle;
use crate::inbox::Input;
use crate::test_clock::TestClock;

/// So long one request moves a clock: where very much is due, the next one goes on.
const ADVANCE_TIME_MAX: Duration = Duration::from_secs(5);

impl DatabaseHandle {
    /// Moves the clock of a test by so much, and stops at each time for which something is planned: a scheduled call, or the end of a
    /// procedure's sleep. It goes on when what came of that has ended or sleeps. Gives the time that it is then, which is earlier if
    /// there was much to do: the next request goes on. None: the clock is the machine's.
    ///
    /// # Errors
    /// The database has ended.
    pub async fn advance(&self, by: TimeDuration) -> Result<Option<Timestamp>, CallError> {
        let Some(clock) = &self.shared.options.test_clock else {
            return Ok(None);
        };
        let (started, target) = (
            clock.instant(),
            Timestamp(clock.now().0.saturating_add(by.saturating_abs().0)),
        );
        loop {
            // Something may be due for ever at this time.
            let settled = tokio::time::timeout(ADVANCE_TIME_MAX, self.settle(clock)).await;
            let Ok(planned) = settled else {
                return Ok(Some(clock.now()));
            };
            let planned = planned?;
            let next = [planned, clock.next_sleeper()].into_iter().flatten().min();
            let Some(due) = next.filter(|due| *due <= target) else {
                clock.set(target);
                return Ok(Some(target));
            };
            let now = clock.now();
            if clock.instant() - started > ADVANCE_TIME_MAX {
                return Ok(Some(now));
            }
            clock.set(due);
        }
    }

    /// Waits until nothing more happens at this time. Gives the time of the next scheduled call.
    async fn settle(&self, clock: &TestClock) -> Result<Option<Timestamp>, CallError> {
        let shared = &self.shared;
        loop {
            clock.settled().await;
            let permit = shared.inbox.capacity.permit(0).await?;
            let planned = shared.ask(Some(permit), true, Input::Settle).await;
            let planned = planned.map_err(|_| shared.gone())??;
            // What was due may have begun calls.
            if clock.is_settled() {
                return Ok(planned);
            }
        }
    }
}
