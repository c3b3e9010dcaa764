//! Calls in WebAssembly: fibers, which run on the thread that polls them. The writer runs their transactions, and brief calls as a
//! whole; threads that all databases share do the rest. One that waits has no thread, so thousands need no more than there are
//! processors.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{Control, Ended, LeaseRequest};
use crate::metrics::FunctionCounters;
use crate::pace::Pace;

/// A call from its turn to its end.
pub(crate) struct Fiber {
    pub(super) running: Pin<Box<dyn Future<Output = Ended> + Send>>,
    pub(super) asks: Asks,
    pub(super) control: Arc<Control>,
    /// Of its function.
    pub counters: Arc<FunctionCounters>,
}

/// What a fiber wants that was suspended. Without it, it gives others their turn.
pub(crate) enum FiberRequest {
    Tables(Box<LeaseRequest>),
    /// Its transaction is given back. To be told when it is committed.
    Commit(oneshot::Sender<()>),
    /// It waits for something outside.
    Else,
}

/// Where a fiber says what it wants.
#[derive(Clone, Default)]
pub(super) struct Asks(Arc<Mutex<Option<FiberRequest>>>);

impl Asks {
    pub fn set(&self, asked: FiberRequest) {
        *self.0.lock() = Some(asked);
    }

    pub fn take(&self) -> Option<FiberRequest> {
        self.0.lock().take()
    }
}

/// A fiber that asks for the tables.
pub(crate) struct Body {
    pub fiber: Fiber,
    pub request: LeaseRequest,
}

impl Fiber {
    /// Runs it on this thread until it is suspended.
    pub fn poll(&mut self) -> Poll<Ended> {
        let context = &mut Context::from_waker(Waker::noop());
        self.running.as_mut().poll(context)
    }

    /// What it was suspended for.
    pub fn asked(&self) -> Option<FiberRequest> {
        self.asks.take()
    }

    pub fn control(&self) -> &Control {
        &self.control
    }

    pub fn pace(&self) -> &Pace {
        &self.counters.pace
    }
}
