//! The threads that serve sockets. Each has a runtime of its own, and a connection stays on the thread that it is given at first: a
//! thread that is woken finds its work itself, and wakes no other to look for more, as threads of one runtime do.

use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{mpsc, Arc};

use lightcone_database::Courier;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::watch;

use super::polls::{timed, Polls};

/// How far a server is with its end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Running,
    Stopping,
    /// Connections that still live are dropped.
    Stopped,
}

/// The network threads of a server. They end when its handle is gone.
pub struct Network {
    threads: Vec<Thread>,
    polls: Arc<Polls>,
}

struct Thread {
    runtime: Handle,
    courier: Arc<Courier>,
    /// How many connections it serves.
    connections: Arc<AtomicUsize>,
}

/// The place of a connection on its thread. It counts there until this is dropped.
pub struct Place {
    connections: Arc<AtomicUsize>,
    /// Of the thread.
    pub courier: Arc<Courier>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.fetch_sub(1, Relaxed);
    }
}

impl Network {
    /// Starts `count` threads. Each runs a courier beside its connections.
    ///
    /// # Errors
    /// The system has no threads or descriptors for them.
    pub fn start(
        count: usize,
        polls: &Arc<Polls>,
        stopping: &watch::Receiver<Stage>,
    ) -> io::Result<Network> {
        let start = |_| {
            let courier = Arc::new(Courier::default());
            let (of_thread, polls) = (courier.clone(), polls.clone());
            let stopping = stopping.clone();
            let (started, starting) = mpsc::sync_channel(1);
            // A runtime must not be dropped where this is called, so the thread makes its own.
            let work = move || match Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => {
                    let _ = started.send(Ok(runtime.handle().clone()));
                    run(runtime, of_thread, polls, stopping);
                }
                Err(error) => drop(started.send(Err(error))),
            };
            let thread = std::thread::Builder::new().name("network".to_owned());
            thread.spawn(work)?;
            let runtime = starting.recv().map_err(io::Error::other)??;
            Ok(Thread {
                runtime,
                courier,
                connections: Arc::default(),
            })
        };
        let threads = (0..count).map(start).collect::<io::Result<_>>()?;
        Ok(Network {
            threads,
            polls: polls.clone(),
        })
    }

    /// Serves an accepted connection on the thread that has the fewest. It counts there as long as its place is kept.
    pub fn serve<F>(
        &self,
        stream: TcpStream,
        serve: impl FnOnce(TcpStream, Place) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send,
    {
        let threads = self.threads.iter();
        let thread = threads.min_by_key(|thread| thread.connections.load(Relaxed));
        let thread = thread.expect("there is at least one thread");
        thread.connections.fetch_add(1, Relaxed);
        let place = Place {
            connections: thread.connections.clone(),
            courier: thread.courier.clone(),
        };
        let task = async move {
            // The socket leaves the runtime that has accepted it.
            match stream.into_std().and_then(TcpStream::from_std) {
                Ok(stream) => serve(stream, place).await,
                Err(error) => tracing::warn!(%error, "an accepted connection is lost"),
            }
        };
        thread.runtime.spawn(timed(self.polls.clone(), task));
    }
}

/// A network thread, until the handle of the server has gone: what has to be ended after its connections still runs here.
fn run(
    runtime: Runtime,
    courier: Arc<Courier>,
    polls: Arc<Polls>,
    mut stopping: watch::Receiver<Stage>,
) {
    runtime.block_on(async {
        tokio::select! {
            () = timed(polls, courier.run()) => {}
            _ = stopping.wait_for(|_| false) => {}
        }
    });
    // What still blocks a thread, like a disk, is not waited for here: the code that stops the server looks at what is open.
    runtime.shutdown_background();
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    /// Also when the task that was started for it has ended, as that of a WebSocket's HTTP connection does.
    #[tokio::test]
    async fn connections_are_shared_out_as_long_as_they_last() {
        let (_running, stopping) = watch::channel(Stage::Running);
        let network = Network::start(2, &Arc::default(), &stopping).expect("threads");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
        let address = listener.local_addr().expect("an address");
        let (places, mut served) = unbounded_channel();
        let mut kept = Vec::new();
        for _ in 0..10 {
            let _client = TcpStream::connect(address).await.expect("connected");
            let (stream, _) = listener.accept().await.expect("accepted");
            let places = places.clone();
            network.serve(stream, |_, place| async move {
                let _ = places.send(place);
            });
            kept.push(served.recv().await.expect("served"));
        }
        let counts = || network.threads.iter().map(|t| t.connections.load(Relaxed));
        assert_eq!(counts().collect::<Vec<_>>(), [5, 5]);
        kept.clear();
        assert_eq!(counts().sum::<usize>(), 0);
    }
}
