//! The end of a database, in steps: each waits for what others have to do first.

use lightcone_engine::{ScheduleAt, ST_CLIENT_ID};
use lightcone_log::Log;
use lightcone_types::Due;
use tokio::sync::oneshot::{self, error::TryRecvError};

use super::state::{End, Phase, Stage};
use super::Writer;
use crate::environment::Next;
use crate::events::FanoutItem;
use crate::inbox::Input;
use crate::snapshot;
use crate::status::FAILED_TEXT;

impl Writer {
    /// Lets nothing more in.
    pub(super) fn begin_end(&mut self) {
        self.shared.status.set_stopping(!self.state.failed);
        self.shared.snapshots.cancel();
        self.shared.procedures.stop();
        self.shared.close();
        // Others who want the end hear of it when it is there.
        let taken = self.inputs.close().into_iter();
        let others = taken.filter_map(|input| match input {
            Input::Stop(stop) => Some(stop.done),
            _ => None,
        });
        let others: Vec<_> = others.flatten().collect();
        let (code, reason, is_opened_again, mut done) = match self.state.stop.take() {
            Some(stop) => (stop.code, stop.reason, stop.is_opened_again, stop.done),
            None => (1011, FAILED_TEXT.to_owned(), false, Vec::new()),
        };
        done.extend(others);
        self.end_round();
        self.shared.log.flush();
        self.way_out.log.close();
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
                let log = self.way_out.log.shutdown();
                match &log {
                    Ok(_) if !self.state.failed => self.shared.status.set_due(self.due()),
                    Ok(_) => {}
                    Err(error) => {
                        tracing::error!(database = %self.shared.options.identity, %error, "the log did not end properly")
                    }
                }
                let (done, told) = oneshot::channel();
                let (code, reason) = (end.code, std::mem::take(&mut end.reason));
                let _ = self
                    .way_out
                    .fanout
                    .send(FanoutItem::Stop { code, reason, done });
                Stage::Fanout(log, told)
            }
            Stage::Fanout(log, mut told) => {
                if told.try_recv() == Err(TryRecvError::Empty) {
                    return self.end_later(end, Stage::Fanout(log, told));
                }
                // Fan-out does it, unless it failed.
                self.shared.outbox.end();
                self.way_out.forget_clients();
                let log_bytes = self.log_bytes();
                let log_bytes = log_bytes.saturating_sub(self.state.log_bytes_at_snapshot);
                let deadline =
                    snapshot::time_at_stop(&self.shared, log_bytes, self.snapshot_due_bytes);
                let is_wanted = end.is_opened_again && !self.state.failed;
                match (log, deadline) {
                    (Ok(log), Some(deadline)) if is_wanted => Stage::Turn(log, deadline),
                    (log, _) => return tell_end(*end, log.ok()),
                }
            }
            Stage::Turn(log, deadline) => {
                match snapshot::begin_at_stop(&self.shared, &mut self.datastore, log, deadline) {
                    Ok(written) => Stage::Snapshot(written),
                    Err(log) => return self.end_later(end, Stage::Turn(log, deadline)),
                }
            }
            Stage::Snapshot(mut written) => {
                if written.try_recv() == Err(TryRecvError::Empty) {
                    return self.end_later(end, Stage::Snapshot(written));
                }
                return tell_end(*end, None);
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
        self.way_out.log.has_ended() && self.shared.snapshots.is_idle()
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
