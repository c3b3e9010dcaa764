//! The end of a database, in steps: each waits for what others have to do first.

use std::sync::mpsc::{sync_channel, TryRecvError};
use std::sync::Arc;
use std::time::Duration;

use lightcone_engine::{ScheduleAt, ST_CLIENT_ID};
use lightcone_log::Log;
use lightcone_types::Due;
use parking_lot::Mutex;

use super::state::{End, Phase, Stage};
use super::Writer;
use crate::environment::Next;
use crate::events::FanoutItem;
use crate::fanout::Fanout;
use crate::inbox::Input;
use crate::snapshot;
use crate::status::FAILED_TEXT;

/// So often a database that stops looks whether it is its turn to write a snapshot.
const TURN_LOOK: Duration = Duration::from_millis(5);

impl Writer {
    /// Lets nothing more in.
    pub(super) fn begin_end(&mut self) {
        self.shared.status.set_stopping(!self.state.failed);
        self.shared.snapshots.cancel();
        self.shared.procedures.stop();
        self.inbox.close();
        self.shared.close();
        // Others who want the end hear of it when it is there.
        let others = self.inputs.drain(..).filter_map(|input| match input {
            Input::Stop(stop) => Some(stop.done),
            _ => None,
        });
        let others: Vec<_> = others.flatten().collect();
        let (code, reason, is_opened_again, mut done) = match self.state.stop.take() {
            Some(stop) => (stop.code, stop.reason, stop.is_opened_again, stop.done),
            None if self.state.failed => (1011, FAILED_TEXT.to_owned(), false, Vec::new()),
            None => (1001, "module exited".to_owned(), false, Vec::new()),
        };
        done.extend(others);
        self.end_round();
        self.shared.log.flush();
        self.committer.close();
        self.phase = Phase::Ends(Box::new(End {
            is_opened_again,
            code,
            reason,
            done,
            stage: Stage::Log,
        }));
    }

    pub(super) fn go_on_ending(&mut self, mut end: Box<End>) -> Next {
        end.stage = match std::mem::replace(&mut end.stage, Stage::Log) {
            Stage::Log if !self.has_log_ended() => return self.end_later(end, Stage::Log),
            Stage::Log => {
                let log = self.committer.shutdown();
                match &log {
                    Ok(_) if !self.state.failed => self.shared.status.set_due(self.due()),
                    Ok(_) => {}
                    Err(error) => {
                        tracing::error!(database = %self.shared.options.identity, %error, "the log did not end properly")
                    }
                }
                let (done, told) = sync_channel(1);
                let (code, reason) = (end.code, std::mem::take(&mut end.reason));
                let _ = self.fanout.send(FanoutItem::Stop { code, reason, done });
                Stage::Fanout(log, told)
            }
            Stage::Fanout(log, told) => {
                if told.try_recv() == Err(TryRecvError::Empty) {
                    return self.end_later(end, Stage::Fanout(log, told));
                }
                // Fan-out does it, unless it failed.
                let outbox = self.shared.outbox.clone();
                outbox.end();
                // No client is connected any more.
                let fanout = Fanout::new(outbox, self.shared.status.fanout.clone());
                self.fanout_machine = Arc::new(Mutex::new(fanout));
                let log_bytes = self.log_bytes();
                let log_bytes = log_bytes.saturating_sub(self.state.log_bytes_at_snapshot);
                let deadline = snapshot::time_at_stop(&self.shared, log_bytes);
                let is_wanted = end.is_opened_again && !self.state.failed;
                match (log, deadline) {
                    (Ok(log), Some(deadline)) if is_wanted => Stage::Turn(log, deadline),
                    (log, _) => return tell_end(*end, log.ok()),
                }
            }
            Stage::Turn(mut log, deadline) => {
                let state = || self.datastore.snapshot();
                if !snapshot::write_at_stop(&self.shared, state, log.as_mut(), deadline) {
                    return self.end_later(end, Stage::Turn(log, deadline));
                }
                return tell_end(*end, Some(log));
            }
        };
        self.phase = Phase::Ends(end);
        Next::More
    }

    /// Clients are there, or have gone a moment ago.
    pub(super) fn has_client_rows(&self) -> bool {
        let clients = self.datastore.table(ST_CLIENT_ID);
        clients.is_some_and(|table| table.rows().row_count() > 0)
    }

    /// What there is still to do without a request. The points of an interval are not on the disk, so a database that has
    /// one stays open.
    pub(super) fn due(&self) -> Due {
        let datastore = &self.datastore;
        let leaves = self.has_client_rows() && self.module.def().on_disconnect.is_some();
        if leaves || datastore.outbound_count() > 0 || datastore.has_backfill_tables() {
            return Due::Open;
        }
        let planned = datastore.schedules().into_iter();
        let planned = planned.map(|change| match change.at {
            Some(ScheduleAt::Time(time)) => Due::At(time),
            Some(ScheduleAt::Interval(_)) => Due::Open,
            None => Due::Never,
        });
        planned.min().unwrap_or(Due::Never)
    }

    fn end_later(&mut self, mut end: Box<End>, stage: Stage) -> Next {
        end.stage = stage;
        self.phase = Phase::Ends(end);
        Next::Waits
    }

    /// Whether the log has ended, and nothing else has its files.
    pub(super) fn has_log_ended(&self) -> bool {
        self.committer.has_ended() && self.shared.snapshots.is_idle()
    }

    /// Waits until it has.
    pub(super) fn wait_for_log_end(&self) {
        self.committer.wait_ended();
        drop(self.shared.snapshots.hold());
    }

    pub(super) fn wait_for_end(&self, end: &End) {
        match &end.stage {
            Stage::Log => self.wait_for_log_end(),
            // Its sender goes then.
            Stage::Fanout(_, told) => drop(told.recv()),
            Stage::Turn(..) => std::thread::sleep(TURN_LOOK),
        }
    }
}

fn tell_end(end: End, log: Option<Box<dyn Log>>) -> Next {
    // From here on others may open it.
    drop(log);
    for done in end.done {
        let _ = done.send(());
    }
    Next::Ended
}
