//! Reads, and pauses in between.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use lightcone_types::Identity;
use tokio::time::{sleep, sleep_until, Instant};

use crate::metrics::add;
use crate::node::Node;
use crate::scrub::found::Place;

/// A scrub that is to be more frequent, or less, is as frequent as this.
const EVERY_MIN: Duration = Duration::from_millis(10);
const EVERY_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
/// The first scrub begins so long after the server, if they are not more frequent: a start has enough to read.
const FIRST_AFTER_MAX: Duration = Duration::from_secs(600);
/// What was damaged is looked at again so soon: it may have been mended.
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(600);
/// Files that change so often while they are read have to wait for the next scrub.
const ATTEMPTS_MAX: usize = 3;

/// Reads all, each time that it is due, until `stopped` ends.
pub async fn scrub(node: Arc<Node>, stopped: impl Future<Output = ()>) {
    let every = node.config.limits.scrub_every;
    if every.is_zero() || node.databases.are_in_memory() {
        return;
    }
    let every = bounded(every);
    let work = async {
        sleep(every.min(FIRST_AFTER_MAX)).await;
        let mut reader = Reader::new(&node);
        loop {
            let next = Instant::now() + every;
            reader.read_all().await;
            while Instant::now() + AGAIN_AFTER_MAX < next {
                sleep(AGAIN_AFTER_MAX).await;
                reader.read_places(node.scrub.places()).await;
            }
            sleep_until(next).await;
        }
    };
    tokio::select! {
        () = work => {}
        () = stopped => {}
    }
}

/// Moments that are so far away can be told.
fn bounded(every: Duration) -> Duration {
    every.clamp(EVERY_MIN, EVERY_MAX)
}

struct Reader<'n> {
    node: &'n Arc<Node>,
    /// So much may have been read by then.
    due: Instant,
}

impl Reader<'_> {
    fn new(node: &Arc<Node>) -> Reader<'_> {
        Reader {
            node,
            due: Instant::now(),
        }
    }

    async fn read_all(&mut self) {
        let databases = self.node.control.databases().into_iter();
        let databases = databases.map(|record| Some(record.identity));
        self.read_places([None].into_iter().chain(databases)).await;
        add(&self.node.scrub.passes, 1);
    }

    async fn read_places(&mut self, places: impl IntoIterator<Item = Place>) {
        for place in places {
            let texts = match place {
                None => self.read_control().await,
                Some(identity) => self.read_database(&identity).await,
            };
            if let Some(texts) = texts {
                self.node.scrub.note(place, texts);
            }
        }
        let control = &self.node.control;
        let is_there = |identity: &Identity| control.database(identity).is_some();
        self.node.scrub.forget_all_but(is_there);
    }

    /// None: it could not be told.
    async fn read_control(&mut self) -> Option<Vec<String>> {
        let mut texts = Vec::new();
        let mut is_told = true;
        for _ in 0..2 {
            texts.clear();
            is_told = true;
            let control = self.node.control.clone();
            for check in blocking(move || control.checks()).await? {
                let read = match check {
                    Ok(check) => self.read(check, |check| check.step()).await?.map(drop),
                    Err(error) => Err(error),
                };
                if let Err(error) = read {
                    is_told &= !error.is_passing();
                    texts.push(error.to_string());
                }
            }
            if texts.is_empty() {
                break;
            }
        }
        is_told.then_some(texts)
    }

    /// The same of a database; also if it is gone.
    async fn read_database(&mut self, identity: &Identity) -> Option<Vec<String>> {
        let node = self.node;
        let databases = &node.databases;
        let mut failed = None;
        for _ in 0..ATTEMPTS_MAX {
            let (begun, opening) = databases.begin_check(identity).await?;
            let read = match begun {
                Ok(check) => self.read(check, |check| check.step()).await?,
                Err(error) => Err(error),
            };
            let damage = match read {
                Ok(check) => blocking(move || check.damage()).await?,
                Err(error) => Err(error),
            };
            let running = databases.running(identity);
            // One that was opened meanwhile has written where this one has read.
            let is_same = running.as_ref().map(|running| running.handle.number()) == opening;
            match damage {
                Ok(Some(damage)) if damage.is_empty() => return Some(Vec::new()),
                Ok(Some(damage)) if is_same => {
                    let texts = damage.texts();
                    if let Some(running) = running {
                        running.handle.mend(damage);
                    }
                    return Some(texts);
                }
                Ok(_) => failed = None,
                Err(error) if error.is_passing() => failed = None,
                Err(error) => failed = Some(vec![error.to_string()]),
            }
        }
        failed
    }

    /// To the end of a check, not faster than the configuration says. None: it panicked.
    async fn read<C, E>(
        &mut self,
        mut check: C,
        step: fn(&mut C) -> Result<Option<u64>, E>,
    ) -> Option<Result<C, E>>
    where
        C: Send + 'static,
        E: Send + 'static,
    {
        loop {
            let work = move || {
                let read = step(&mut check);
                (check, read)
            };
            let (back, read) = blocking(work).await?;
            check = back;
            match read {
                Ok(Some(bytes)) => self.pause(bytes).await,
                Ok(None) => return Some(Ok(check)),
                Err(error) => return Some(Err(error)),
            }
        }
    }

    async fn pause(&mut self, bytes: u64) {
        add(&self.node.scrub.bytes, bytes);
        let per_second = self.node.config.limits.scrub_bytes_per_second;
        let time = Duration::from_secs_f64(bytes as f64 / per_second as f64);
        self.due = self.due.max(Instant::now()) + time;
        sleep_until(self.due).await;
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_intervals_are_bounded() {
        assert_eq!(bounded(Duration::from_nanos(1)), EVERY_MIN);
        let far = Instant::now().checked_add(bounded(Duration::MAX));
        assert!(far.is_some());
    }
}
