//! Answers that a client must take: slowly, but not for ever.
//!
//! An answer holds its share of the memory for all clients until it is taken: that of what made it for a client, or else, so that
//! no answer is without one, that of its connection. A client that takes too little, or that is given
//! up for others' sake, loses its connection. A body is not asked for its next part while the client gives no room for it
//! (HTTP/2), so a task of its own watches the time.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{ready, Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{header, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use hyper::body::{Frame, SizeHint};
use lightcone_database::{HeldBytes, HeldMemory, Holder, SqlError};
use lightcone_node::databases::Databases;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{sleep_until, Instant};

use crate::gateway::Gateway;
use crate::pace::{Pace, Patience};
use crate::reply::{self, Failure};

/// Parts of this size are handed to the connection, so that progress is seen.
const PART_BYTES_MAX: usize = 256 * 1024;
/// Over HTTP/1, where there is one answer at a time, the socket's buffer and `StallGuard` are enough for less.
const UNWATCHED_BYTES_MAX: u64 = 64 * 1024;

/// Longest time between two looks at a client.
const LOOK_AGAIN: Duration = Duration::from_secs(3600);

/// The bytes of an answer are counted already, and whom they are held for, as an extension of the answer.
#[derive(Clone)]
struct Counted(Option<Holder>);

/// Says whom the bytes of an answer are held for.
pub(super) fn hold(response: &mut Response, holder: Option<Holder>) {
    if holder.is_some() {
        response.extensions_mut().insert(Counted(holder));
    }
}

/// An answer of bytes that count as those of the client that they were made for.
pub(super) fn held(content_type: HeaderValue, bytes: HeldBytes) -> Response {
    let holder = bytes.holder();
    let mut response = reply::with_type(content_type, Bytes::from_owner(bytes));
    hold(&mut response, holder);
    response
}

/// Says that the bytes of an answer are there in any case, and counted.
pub(super) fn shared(mut response: Response) -> Response {
    response.extensions_mut().insert(Counted(None));
    response
}

/// Whom the bytes of an answer are held for.
pub(super) fn holder(response: &Response) -> Option<Holder> {
    let counted = response.extensions().get::<Counted>();
    counted.and_then(|counted| counted.0.clone())
}

/// Makes an answer that may be large where no task waits for the thread. Few are made at a time, and each is counted before the
/// next one is made.
pub(super) async fn made(
    state: &Gateway,
    make: impl FnOnce() -> Result<Vec<u8>, Failure> + Send + 'static,
) -> Result<HeldBytes, Failure> {
    let turn = state.making.clone().acquire_owned().await;
    let holder = state.node.databases.holder();
    let made = reply::blocking(move || {
        let _turn = turn;
        let mut bytes = make()?;
        bytes.shrink_to_fit();
        Ok(holder.hold(bytes)?)
    });
    made.await?
}

/// What ends a connection from within one of its answers.
#[derive(Clone)]
pub(crate) struct Delivery {
    pace: Pace,
    cut: Arc<Notify>,
    is_http2: bool,
    databases: Arc<Databases>,
    /// Whom answers are held for that have no owner yet, from the first one on.
    holder: Arc<OnceLock<Holder>>,
}

impl Delivery {
    pub(crate) fn new(state: &Gateway, is_http2: bool) -> Delivery {
        Delivery {
            pace: Pace::of(&state.node.config.limits),
            cut: Arc::default(),
            is_http2,
            databases: state.node.databases.clone(),
            holder: Arc::default(),
        }
    }

    /// Waits until the client is to be cut off.
    ///
    /// Cancel safe.
    pub(crate) async fn failed(&self) {
        self.cut.notified().await;
    }

    /// Sees to it that an answer is taken.
    pub(crate) fn watch(&self, mut response: Response) -> Response {
        let counted = response.extensions_mut().remove::<Counted>();
        let hint = response.body().size_hint();
        let size = hint.upper();
        let is_small = size.is_some_and(|bytes| match self.is_http2 {
            true => bytes == 0,
            false => bytes <= UNWATCHED_BYTES_MAX,
        });
        if is_small {
            return response;
        }
        let (holder, memory) = match counted {
            Some(Counted(holder)) => (holder, None),
            None => {
                let holder = self.holder.get_or_init(|| self.databases.holder()).clone();
                let bytes = usize::try_from(size.unwrap_or(hint.lower()));
                let mut memory = holder.memory();
                if let Err(error) = memory.set(bytes.unwrap_or(usize::MAX)) {
                    return instead_of(response, error);
                }
                (Some(holder), Some(memory))
            }
        };
        let taken = Arc::new(Mutex::new(Progress {
            patience: Patience::new(self.pace),
            offered: None,
        }));
        let given_up = async move {
            match holder {
                Some(holder) => holder.left().await,
                None => std::future::pending().await,
            }
        };
        let watcher = tokio::spawn(watch(taken.clone(), given_up, self.cut.clone()));
        response.map(|inner| {
            Body::new(Watched {
                inner,
                rest: Bytes::new(),
                taken,
                watcher: watcher.abort_handle(),
                _memory: memory,
            })
        })
    }
}

/// The answer when there is no memory for the one that there was.
fn instead_of(response: Response, error: SqlError) -> Response {
    let refusal = Failure::from(error).into_response();
    let (mut head, _) = response.into_parts();
    let (refused, body) = refusal.into_parts();
    head.status = refused.status;
    head.headers.remove(header::CONTENT_LENGTH);
    head.headers.extend(refused.headers);
    Response::from_parts(head, body)
}

struct Progress {
    patience: Patience,
    /// Since when the client has so many bytes to take; None while the server has nothing for it.
    offered: Option<(Instant, usize)>,
}

impl Progress {
    /// The connection asks for more: what it had is on its way.
    fn asked(&mut self) {
        if let Some((since, bytes)) = self.offered.take() {
            self.patience.moved(since.elapsed(), bytes);
        }
    }

    /// When to look again; None when the client's time is over.
    fn deadline(&self) -> Option<Instant> {
        let wait = self.patience.wait_max();
        let since = self.offered.map_or_else(Instant::now, |(since, _)| since);
        let deadline = since + wait.min(LOOK_AGAIN);
        (deadline > Instant::now()).then_some(deadline)
    }
}

/// Ends with the body, which aborts it.
async fn watch(taken: Arc<Mutex<Progress>>, given_up: impl Future<Output = ()>, cut: Arc<Notify>) {
    let too_slow = async {
        loop {
            let deadline = taken.lock().deadline();
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => return,
            }
        }
    };
    tokio::select! {
        () = too_slow => {}
        () = given_up => {}
    }
    cut.notify_one();
}

struct Watched {
    inner: Body,
    /// Of a part that was larger than what is handed on at once.
    rest: Bytes,
    taken: Arc<Mutex<Progress>>,
    watcher: AbortHandle,
    /// Of the whole answer.
    _memory: Option<HeldMemory>,
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.taken.lock().asked();
        if self.rest.is_empty() {
            let Some(frame) = ready!(Pin::new(&mut self.inner).poll_frame(context)) else {
                return Poll::Ready(None);
            };
            match frame?.into_data() {
                Ok(data) => self.rest = data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        let length = self.rest.len().min(PART_BYTES_MAX);
        let part = self.rest.split_to(length);
        self.taken.lock().offered = Some((Instant::now(), length));
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let hint = self.inner.size_hint();
        let rest = self.rest.len() as u64;
        match hint.exact() {
            Some(bytes) => SizeHint::with_exact(bytes + rest),
            None => SizeHint::default(),
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use tokio::time::timeout;

    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    /// Of a server that lets a client make such pauses.
    fn delivery(pause_ms: u64, is_http2: bool) -> Delivery {
        let directory = tempfile::tempdir().expect("a directory");
        let node = crate::gateway::node_for_tests(directory.path());
        let state = Gateway::new(Arc::new(node));
        Delivery {
            pace: Pace {
                pause_max: Duration::from_millis(pause_ms),
                total_max: Duration::from_secs(60),
            },
            ..Delivery::new(&state, is_http2)
        }
    }

    async fn is_cut(delivery: &Delivery) -> bool {
        timeout(SOON, delivery.failed()).await.is_ok()
    }

    #[tokio::test]
    async fn an_answer_comes_whole_and_in_parts() {
        let delivery = delivery(60_000, true);
        let bytes: Vec<u8> = (0..3 * PART_BYTES_MAX + 1).map(|n| n as u8).collect();
        let mut response = delivery.watch(Response::new(Body::from(bytes.clone())));
        let size = response.body().size_hint().exact();
        assert_eq!(size, Some(bytes.len() as u64));
        let mut taken = Vec::new();
        while let Some(frame) = response.body_mut().frame().await {
            let part = frame.expect("a part").into_data().expect("data");
            assert!(part.len() <= PART_BYTES_MAX);
            taken.extend_from_slice(&part);
            let left = response.body().size_hint().exact();
            assert_eq!(left, Some((bytes.len() - taken.len()) as u64));
        }
        assert_eq!(taken, bytes);
    }

    #[tokio::test]
    async fn who_takes_nothing_is_cut_off() {
        let delivery = delivery(50, true);
        let mut response = delivery.watch(Response::new(Body::from(vec![0; 2 * PART_BYTES_MAX])));
        assert!(response.body_mut().frame().await.is_some());
        assert!(is_cut(&delivery).await);
    }

    /// A client that waits for the server has nothing to take.
    #[tokio::test]
    async fn a_server_that_has_nothing_cuts_no_client_off() {
        let delivery = delivery(50, false);
        let (sender, receiver) = tokio::sync::oneshot::channel::<Bytes>();
        let body = Body::from_stream(futures_util::stream::once(receiver));
        let mut response = delivery.watch(Response::new(body));
        let reading = tokio::spawn(async move { response.body_mut().frame().await.is_some() });
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(timeout(Duration::ZERO, delivery.failed()).await.is_err());
        sender.send("late".into()).expect("it listens");
        assert!(reading.await.expect("no panic"));
    }

    #[tokio::test]
    async fn who_is_given_up_is_cut_off() {
        let delivery = delivery(60_000, false);
        let taken = Arc::new(Mutex::new(Progress {
            patience: Patience::new(delivery.pace),
            offered: None,
        }));
        watch(taken, std::future::ready(()), delivery.cut.clone()).await;
        assert!(is_cut(&delivery).await);
    }
}
