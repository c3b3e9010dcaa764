//! Whose turn it is to read the metrics. What a reader gets may have some megabytes, so few get it at a time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinError;

/// Readers of the metrics of all databases at a time; others wait for their turn.
const SCRAPES_MAX: usize = 1;
/// Readers of the metrics of one database at a time, of all databases; others wait for their turn.
const LOOKS_MAX: usize = 1;
/// Those that wait for one database, with the one whose turn it is; more are refused.
const LOOKS_WAITING_MAX: usize = 8;
/// For so long all readers at `metrics.listen` get the same text.
const OPEN_TEXT_TIME: Duration = Duration::from_secs(1);

/// The turns, and the last text for all.
pub struct Scrapes {
    all: Arc<Semaphore>,
    /// Apart from `all`: readers of single databases must not keep the operator waiting.
    of_databases: Arc<Semaphore>,
    open: Mutex<Option<(Instant, Bytes)>>,
}

/// Readers of one database that may wait.
#[derive(Clone, Debug)]
pub struct Looks(Arc<Semaphore>);

impl Default for Looks {
    fn default() -> Looks {
        Looks(Arc::new(Semaphore::new(LOOKS_WAITING_MAX)))
    }
}

/// As many wait for the metrics of a database as may.
#[derive(Debug)]
pub struct TooManyLooks;

impl Default for Scrapes {
    fn default() -> Scrapes {
        Scrapes {
            all: Arc::new(Semaphore::new(SCRAPES_MAX)),
            of_databases: Arc::new(Semaphore::new(LOOKS_MAX)),
            open: Mutex::default(),
        }
    }
}

impl Scrapes {
    /// Looks at every database.
    pub async fn all<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        in_turn(&self.all, read).await
    }

    /// The text for all: `make` makes it anew when it is more than a second old, so that a reader in a loop costs nothing. A
    /// reader that goes away meanwhile leaves the text for the next.
    pub async fn open_text(
        self: &Arc<Self>,
        make: impl FnOnce() -> String + Send + 'static,
    ) -> Result<Bytes, JoinError> {
        let scrapes = self.clone();
        let text = tokio::spawn(async move {
            let mut last = scrapes.open.lock().await;
            let fresh = last.as_ref();
            let fresh = fresh.filter(|(at, _)| at.elapsed() < OPEN_TEXT_TIME);
            if let Some((_, text)) = fresh {
                return Ok(text.clone());
            }
            let text = Bytes::from(scrapes.all(make).await?);
            *last = Some((Instant::now(), text.clone()));
            Ok(text)
        });
        text.await?
    }

    /// Looks at one database.
    pub async fn one<T: Send + 'static>(
        &self,
        looks: &Looks,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Result<T, JoinError>, TooManyLooks> {
        let waiting = looks.0.clone();
        let _waiting = waiting.try_acquire_owned().map_err(|_| TooManyLooks)?;
        Ok(in_turn(&self.of_databases, read).await)
    }
}

async fn in_turn<T: Send + 'static>(
    turns: &Arc<Semaphore>,
    read: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    // Never closed.
    let turn = turns.clone().acquire_owned().await;
    let read = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        read()
    });
    read.await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn few_wait_for_one_database() {
        let (scrapes, looks) = (Arc::new(Scrapes::default()), Looks::default());
        let (go, gate) = std::sync::mpsc::channel::<()>();
        let (scrapes_of, looks_of) = (scrapes.clone(), looks.clone());
        let first = tokio::spawn(async move {
            let read = move || gate.recv();
            scrapes_of.one(&looks_of, read).await.map(|_| ())
        });
        let waits = |looks: &Looks| {
            let (scrapes, looks) = (scrapes.clone(), looks.clone());
            tokio::spawn(async move { scrapes.one(&looks, || ()).await.map(|_| ()) })
        };
        let left = |wanted: usize| {
            let looks = looks.clone();
            let seen = async move {
                while looks.0.available_permits() > wanted {
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(Duration::from_secs(10), seen)
        };
        left(LOOKS_WAITING_MAX - 1).await.expect("the first waits");
        let mut waiting: Vec<_> = (1..LOOKS_WAITING_MAX).map(|_| waits(&looks)).collect();
        left(0).await.expect("the others wait");
        let refused = waits(&looks).await.expect("no panic");
        assert!(refused.is_err());
        // A look at another database waits for its turn; a look at all of them does not.
        waiting.push(waits(&Looks::default()));
        assert_eq!(scrapes.all(|| 7).await.expect("no panic"), 7);
        go.send(()).expect("there is a reader");
        waiting.push(first);
        for look in waiting {
            assert!(look.await.expect("no panic").is_ok());
        }
        assert_eq!(looks.0.available_permits(), LOOKS_WAITING_MAX);
    }
}
