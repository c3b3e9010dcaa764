//! The threads that serve sockets. Each has a runtime of its own, and a connection stays on the thread that it is given at first: a
//! thread that is woken finds its work itself, and wakes no other to look for more, as threads of one runtime do.

use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::watch;

use crate::database::Courier;
use crate::polls::{timed, Polls};

/// Threads that wait for disks and others, for all network threads together.
const BLOCKING_THREADS_MAX: usize = 512;

/// How far a server is with its end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Running,
    Stopping,
    /// Connections that still live are dropped.
    Stopped,
}

/// The network threads of a server. They end when it has stopped, or is gone.
pub(crate) struct Network {
    threads: Vec<Thread>,
    polls: Arc<Polls>,
}

struct Thread {
    runtime: Handle,
    courier: Arc<Courier>,
    /// How many connections it serves.
    connections: Arc<AtomicUsize>,
}

/// Counts a connection until it is dropped.
struct Served(Arc<AtomicUsize>);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
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
            let runtime = Builder::new_current_thread()
                .enable_all()
                .max_blocking_threads(BLOCKING_THREADS_MAX.div_ceil(count))
                .build()?;
            let handle = runtime.handle().clone();
            let courier = Arc::new(Courier::default());
            let (of_thread, polls) = (courier.clone(), polls.clone());
            let stopping = stopping.clone();
            std::thread::Builder::new()
                .name("network".to_owned())
                .spawn(move || run(runtime, of_thread, polls, stopping))?;
            Ok(Thread {
                runtime: handle,
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

    /// Serves an accepted connection on the thread that has the fewest, with its courier.
    pub fn serve<F>(
        &self,
        stream: TcpStream,
        serve: impl FnOnce(TcpStream, Arc<Courier>) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send,
    {
        let thread = self
            .threads
            .iter()
            .min_by_key(|thread| thread.connections.load(Relaxed))
            .expect("there is at least one thread");
        thread.connections.fetch_add(1, Relaxed);
        let served = Served(thread.connections.clone());
        let courier = thread.courier.clone();
        let task = async move {
            let _served = served;
            // The socket leaves the runtime that has accepted it.
            match stream.into_std().and_then(TcpStream::from_std) {
                Ok(stream) => serve(stream, courier).await,
                Err(error) => tracing::warn!(%error, "an accepted connection is lost"),
            }
        };
        thread.runtime.spawn(timed(self.polls.clone(), task));
    }
}

/// A network thread, until the server has stopped.
fn run(
    runtime: Runtime,
    courier: Arc<Courier>,
    polls: Arc<Polls>,
    mut stopping: watch::Receiver<Stage>,
) {
    runtime.block_on(async {
        tokio::select! {
            () = timed(polls, courier.run()) => {}
            _ = stopping.wait_for(|stage| *stage == Stage::Stopped) => {}
        }
    });
    // What still blocks a thread, like a disk, is not waited for here: whoever stops the server looks at what is open.
    runtime.shutdown_background();
}
