//! A flood of messages of one kind about one database is left out of the server's log, and counted.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::output::remark;
use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::Context;
use tracing_subscriber::Layer;

/// So many messages of one kind about one database at once, after a pause.
const BURST: u32 = 50;
/// One more is written after this time.
const INTERVAL: Duration = Duration::from_millis(200);
/// How often the log tells what was left out.
const TELL_INTERVAL: Duration = Duration::from_secs(10);
/// Kinds and databases that are remembered; beyond them, all are forgotten.
const KINDS_MAX: usize = 4096;

/// A message in the code, and the database that it is about.
type Kind = (Identifier, u64);

#[derive(Default)]
pub(super) struct LogRate {
    kinds: Arc<Mutex<HashMap<Kind, Bucket>>>,
}

struct Bucket {
    target: &'static str,
    left: u32,
    refilled: Instant,
    left_out: u64,
}

impl LogRate {
    /// With the thread that tells what was left out.
    pub(super) fn start() -> LogRate {
        let rate = LogRate::default();
        let kinds = rate.kinds.clone();
        let thread = std::thread::Builder::new().name("log-rate".to_owned());
        let spawned = thread.spawn(move || loop {
            std::thread::sleep(TELL_INTERVAL);
            for (target, count) in take_left_out(&kinds) {
                tracing::warn!(target: "lightcone_server", of = target, count, "messages were left out of the log: there were too many of one kind");
            }
        });
        if let Err(error) = spawned {
            remark!("no thread for the log: {error}");
        }
        rate
    }

    fn admits(&self, kind: Kind, target: &'static str, now: Instant) -> bool {
        let mut kinds = lock(&self.kinds);
        if kinds.len() >= KINDS_MAX && !kinds.contains_key(&kind) {
            kinds.clear();
        }
        let bucket = kinds.entry(kind).or_insert(Bucket {
            target,
            left: BURST,
            refilled: now,
            left_out: 0,
        });
        let passed = now.saturating_duration_since(bucket.refilled);
        let more = passed.as_millis() / INTERVAL.as_millis();
        if more > 0 {
            let more = u32::try_from(more).unwrap_or(BURST);
            bucket.left = bucket.left.saturating_add(more).min(BURST);
            bucket.refilled = now;
        }
        match bucket.left.checked_sub(1) {
            Some(left) => bucket.left = left,
            None => {
                bucket.left_out += 1;
                return false;
            }
        }
        true
    }
}

fn lock(kinds: &Mutex<HashMap<Kind, Bucket>>) -> MutexGuard<'_, HashMap<Kind, Bucket>> {
    kinds.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What was left out since the last time, by the part of the program.
fn take_left_out(kinds: &Mutex<HashMap<Kind, Bucket>>) -> Vec<(&'static str, u64)> {
    let mut left_out: HashMap<&'static str, u64> = HashMap::new();
    for bucket in lock(kinds).values_mut() {
        let count = std::mem::take(&mut bucket.left_out);
        if count > 0 {
            *left_out.entry(bucket.target).or_default() += count;
        }
    }
    left_out.into_iter().collect()
}

impl<S: Subscriber> Layer<S> for LogRate {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        // A user who asks for these wants all of them.
        if *metadata.level() > Level::INFO {
            return true;
        }
        let mut database = DatabaseField(0);
        event.record(&mut database);
        let kind = (metadata.callsite(), database.0);
        self.admits(kind, metadata.target(), Instant::now())
    }
}

/// A hash of the field `database`, if there is one.
struct DatabaseField(u64);

impl Visit for DatabaseField {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "database" {
            let mut hasher = DefaultHasher::new();
            format!("{value:?}").hash(&mut hasher);
            self.0 = hasher.finish();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use tracing_subscriber::layer::SubscriberExt as _;

    struct Count(Arc<AtomicUsize>);

    impl<S: Subscriber> Layer<S> for Count {
        fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn a_flood_about_one_database_leaves_the_others() {
        let written = Arc::new(AtomicUsize::new(0));
        let rate = LogRate::default();
        let kinds = rate.kinds.clone();
        let subscriber = tracing_subscriber::registry()
            .with(rate)
            .with(Count(written.clone()));
        tracing::subscriber::with_default(subscriber, || {
            let warn = |database: &str| tracing::warn!(%database, "a reducer trapped");
            for _ in 0..10_000 {
                warn("one");
            }
            let of_one = written.load(Relaxed);
            assert!((BURST as usize..5000).contains(&of_one), "{of_one}");
            warn("other");
            tracing::warn!("something else");
            assert_eq!(written.load(Relaxed), of_one + 2);
        });
        let left_out = take_left_out(&kinds);
        assert_eq!(left_out.len(), 1);
        assert_eq!(left_out[0].1 as usize + written.load(Relaxed), 10_002);
        assert!(take_left_out(&kinds).is_empty());
    }
}
