//! How long a publish waits for an update (06 §5.3, 02 §14.1).

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use tokio::time::Instant;

pub(super) const TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);
pub(super) const TIMEOUT_MAX: Duration = Duration::from_secs(300);
/// The wait for a writer that has much to do, or never comes to it.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(60);
/// How often to look whether the new program is in place; small next to any time that a client may ask for.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// How an update went.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Confirmation<T> {
    /// The update ended. `in_place`: after its transaction was made, so that an error is one of the disk.
    Ended { outcome: T, in_place: bool },
    /// Its transaction was made, but was not durable in time. It is not taken back.
    NotDurable,
    /// The writer did not come to it, and will not.
    NotBegun,
}

/// How far an update is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The writer has other things to do; the update is not made if it is given up now.
    Waiting,
    /// The writer is at it. It has a bound of its own.
    Begun,
    /// Its transaction was made.
    InPlace,
}

/// Waits for `update`. The client's timeout is about durability alone, so it begins when the transaction was made.
pub(super) async fn confirmed<T>(
    update: impl Future<Output = T>,
    progress: impl Fn() -> Progress,
    timeout: Duration,
) -> Confirmation<T> {
    let mut update = pin!(update);
    let begins_until = Instant::now() + BEGIN_TIMEOUT;
    let in_place = async {
        loop {
            match progress() {
                Progress::InPlace => return true,
                Progress::Waiting if Instant::now() >= begins_until => return false,
                Progress::Waiting | Progress::Begun => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
    };
    tokio::select! {
        biased;
        outcome = &mut update => {
            let in_place = progress() == Progress::InPlace;
            return Confirmation::Ended { outcome, in_place };
        }
        in_place = in_place => {
            if !in_place {
                return Confirmation::NotBegun;
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
    use tokio::time::sleep;

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
        let progress = || match Instant::now() >= in_place {
            true => Progress::InPlace,
            false => Progress::Begun,
        };
        let confirmation = confirmed(update, progress, timeout).await;
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
        // And than the wait for the writer, once it has begun.
        assert_eq!(run(200_000, 10, 100).await.0, ended(true));
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
        let waiting = || Progress::Waiting;
        let refused = confirmed(async { "refused" }, waiting, TIMEOUT_DEFAULT).await;
        assert_eq!(
            refused,
            Confirmation::Ended {
                outcome: "refused",
                in_place: false
            }
        );
        let stuck = confirmed(std::future::pending::<()>(), waiting, TIMEOUT_DEFAULT).await;
        assert_eq!(stuck, Confirmation::NotBegun);
    }
}
