//! How long a publish waits for an update (06 §5.3, 02 §14.1).

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

pub(super) const TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);
pub(super) const TIMEOUT_MAX: Duration = Duration::from_secs(300);
/// The wait for a writer that has much to do, or never comes to it.
const PREPARE_TIMEOUT: Duration = Duration::from_secs(60);
/// How often to look whether the new program is in place; small next to any time that a client may ask for.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// How an update went.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Confirmation<T> {
    /// The update ended. `in_place`: after its transaction was made, so that an error is one of the disk.
    Ended { outcome: T, in_place: bool },
    /// Its transaction was made, but was not durable in time. It is not taken back.
    NotDurable,
    /// It did not even get to its transaction, and will not.
    NotPrepared,
}

/// Waits for `update`. The client's timeout is about durability alone, so it begins when `is_in_place` says that the
/// transaction was made.
pub(super) async fn confirmed<T>(
    update: impl Future<Output = T>,
    is_in_place: impl Fn() -> bool,
    timeout: Duration,
) -> Confirmation<T> {
    let mut update = pin!(update);
    let prepared = async {
        while !is_in_place() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    tokio::select! {
        biased;
        outcome = &mut update => {
            return Confirmation::Ended { outcome, in_place: is_in_place() };
        }
        prepared = tokio::time::timeout(PREPARE_TIMEOUT, prepared) => {
            if prepared.is_err() {
                return Confirmation::NotPrepared;
            }
        }
    }
    match tokio::time::timeout(timeout, update).await {
        Ok(outcome) => Confirmation::Ended {
            outcome,
            in_place: true,
        },
        Err(_) => Confirmation::NotDurable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{sleep, Instant};

    /// An update that compiles and then syncs for so long; how it ends, and when.
    async fn run(
        compile_ms: u64,
        sync_ms: u64,
        timeout_ms: u64,
    ) -> (Confirmation<&'static str>, Duration) {
        let started = Instant::now();
        let in_place = started + Duration::from_millis(compile_ms);
        let update = async {
            sleep(Duration::from_millis(compile_ms + sync_ms)).await;
            "done"
        };
        let timeout = Duration::from_millis(timeout_ms);
        let confirmation = confirmed(update, || Instant::now() >= in_place, timeout).await;
        (confirmation, started.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn the_timeout_is_about_durability() {
        let ended = |in_place| Confirmation::Ended {
            outcome: "done",
            in_place,
        };
        // Compiling may take longer than the timeout.
        assert_eq!(run(60_000, 10, 100).await.0, ended(true));
        let (confirmation, took) = run(0, 10_000, 100).await;
        assert_eq!(confirmation, Confirmation::NotDurable);
        assert!(took < Duration::from_millis(200), "{took:?}");
        let (confirmation, took) = run(20_000, 10_000, 100).await;
        assert_eq!(confirmation, Confirmation::NotDurable);
        assert!(took < Duration::from_millis(20_200), "{took:?}");
        assert_eq!(run(0, 10_000, 300_000).await.0, ended(true));
    }

    #[tokio::test(start_paused = true)]
    async fn an_update_that_ends_without_a_transaction() {
        let refused = confirmed(async { "refused" }, || false, TIMEOUT_DEFAULT).await;
        assert_eq!(
            refused,
            Confirmation::Ended {
                outcome: "refused",
                in_place: false
            }
        );
        let stuck = confirmed(std::future::pending::<()>(), || false, TIMEOUT_DEFAULT).await;
        assert_eq!(stuck, Confirmation::NotPrepared);
    }
}
