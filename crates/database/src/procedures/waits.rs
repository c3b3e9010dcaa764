//! What a procedure waits for outside of the database: a time, or an answer over HTTP.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lightcone_accounts::{Account, Counted};
use lightcone_host::{
    trap_of, HostTrap, HttpAnswer, HttpMethod, HttpRequest, HttpResponse, HttpVersion, Waiting,
};
use lightcone_outbound::{Bounds, OutboundError, Request};
use lightcone_types::{TimeDuration, Timestamp};
use parking_lot::Mutex;
use tokio::sync::{oneshot, OwnedSemaphorePermit, Semaphore};

use super::Control;
use crate::environment::{Alarm, Environment, Work};
use crate::metrics::Metrics;
use crate::shared::Shared;

/// A request has so long (spec 03 §13.2), or what it asks for up to the second.
const REQUEST_TIME: Duration = Duration::from_secs(30);
const REQUEST_TIME_MAX: Duration = Duration::from_secs(180);
/// So long a call waits for what it has committed to be durable (spec 03 §10): then it ends, as what will become of it is not known.
const DURABLE_TIME_MAX: Duration = Duration::from_secs(5);
/// What a header takes beside its texts.
const HEADER_BYTES: usize = 64;

/// The waits of one call.
pub(super) struct Waits {
    shared: Arc<Shared>,
    control: Arc<Control>,
    place: Arc<Place>,
}

/// What a wait leaves for the call.
struct Place {
    /// The right to compute, given up while the call waits. None: it has a thread of its own.
    running: Mutex<Option<OwnedSemaphorePermit>>,
    outcome: Mutex<Option<Outcome>>,
}

/// How a request ends.
enum Outcome {
    Answered(Answered),
    /// It was not sent, as what the call has done or seen never will be durable.
    NotDurable(Arc<str>),
}

/// What came of a request. It counts as one until the call has taken the answer: answers of calls that wait for their turn are
/// bounded too.
struct Answered {
    answer: HttpAnswer,
    _request: Option<OwnedSemaphorePermit>,
}

impl Outcome {
    /// Nothing was sent in the time of the request.
    fn late(text: &str) -> Outcome {
        Outcome::Answered(Answered {
            answer: Err(text.to_owned()),
            _request: None,
        })
    }
}

/// A request that is counted as failed unless it is answered, also if its call ends first.
struct Reported {
    metrics: Arc<Metrics>,
    answered_bytes: Option<usize>,
}

impl Reported {
    fn begin(metrics: &Arc<Metrics>, body_bytes: usize) -> Reported {
        metrics.outbound.begin(body_bytes);
        Reported {
            metrics: metrics.clone(),
            answered_bytes: None,
        }
    }

    fn answered(&mut self, body_bytes: usize) {
        self.answered_bytes = Some(body_bytes);
    }
}

impl Drop for Reported {
    fn drop(&mut self) {
        self.metrics.outbound.end(self.answered_bytes);
    }
}

impl Waits {
    pub fn new(
        shared: &Arc<Shared>,
        control: &Arc<Control>,
        running: Option<OwnedSemaphorePermit>,
    ) -> Waits {
        Waits {
            shared: shared.clone(),
            control: control.clone(),
            place: Arc::new(Place {
                running: Mutex::new(running),
                outcome: Mutex::default(),
            }),
        }
    }

    pub fn control(&self) -> &Arc<Control> {
        &self.control
    }

    /// Why the call is to end, if it is.
    pub fn ended(&self) -> Option<HostTrap> {
        if let Some(reason) = self.control.reason() {
            return Some(reason.trap(&self.shared.options.limits.host));
        }
        match &*self.place.outcome.lock() {
            Some(Outcome::NotDurable(reason)) => Some(HostTrap::Datastore((&**reason).into())),
            _ => None,
        }
    }

    /// What came of the last request.
    pub fn http_answer(&self) -> Option<HttpAnswer> {
        match self.place.outcome.lock().take()? {
            Outcome::Answered(answered) => Some(answered.answer),
            Outcome::NotDurable(_) => None,
        }
    }

    /// Waits for a time of day.
    pub fn until(&self, time: Timestamp) -> Waiting {
        let environment = self.shared.options.shared_environment();
        self.wait(async move {
            while environment.now() < time {
                rings(|ring| environment.alarm_at(time, ring)).await;
            }
            None
        })
    }

    /// Makes a request of a call that has given back so many transactions to be committed. It leaves when all that the call has
    /// written and read is durable: nothing outside learns of what may be lost. `None`: there are none.
    pub fn http(
        &self,
        (request, body): (HttpRequest, Counted<Vec<u8>>),
        commits: u64,
    ) -> Option<Waiting> {
        let outbound = self.shared.options.commons.outbound.clone()?;
        let limits = &self.shared.options.limits;
        let bounds = Bounds {
            timeout: timeout(request.timeout),
            request_bytes_max: limits.host.http_request_bytes_max,
            response_bytes_max: limits.http_response_bytes_max,
        };
        let requests = self.shared.procedures.requests.clone();
        let share = self.shared.procedures.share.clone();
        let environment = self.shared.options.shared_environment();
        let account = self.shared.procedures.accounts.all.clone();
        let asked = environment.instant();
        let mut reported = Reported::begin(&self.shared.metrics, body.len());
        let (control, shared) = (self.control.clone(), self.shared.clone());
        Some(self.wait(async move {
            let left = || bounds.timeout.saturating_sub(environment.instant() - asked);
            let rests_on_durable = async {
                let rests_on = control.settled(commits).await?;
                let reached = shared.outbox.reach(rests_on).await;
                reached.map_err(|_| not_durable(commits, &shared.status.not_durable()))
            };
            tokio::select! {
                biased;
                settled = rests_on_durable => if let Err(reason) = settled {
                    return Some(Outcome::NotDurable(reason));
                },
                () = sleep(&*environment, left().min(DURABLE_TIME_MAX)) => if !left().is_zero() {
                    return Some(Outcome::NotDurable(DURABLE_LATE_TEXT.into()));
                } else {
                    return Some(Outcome::late("it was not sent, as what the call has written or read was not durable in time"));
                }
            }
            let permit = tokio::select! {
                biased;
                permit = requests.acquire_owned() => permit,
                () = sleep(&*environment, left()) => {
                    return Some(Outcome::late("it waited too long for other requests of the database to end"));
                }
            };
            let bounds = Bounds {
                timeout: left(),
                ..bounds
            };
            let answer = outbound
                .start(plain(request, body, account.clone()), bounds, share)
                .await;
            let answer = match answer {
                Ok(Ok(response)) => {
                    reported.answered(response.body.len());
                    told(response)
                }
                Ok(Err(OutboundError::Memory(exceeded))) => Err(trap_of(exceeded).to_string()),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err("the server is stopping".to_owned()),
            };
            Some(Outcome::Answered(Answered {
                answer,
                _request: permit.ok(),
            }))
        }))
    }

    /// Waits until `work` is done or the call is to end, and then for the right to compute.
    fn wait(
        &self,
        work: impl std::future::Future<Output = Option<Outcome>> + Send + 'static,
    ) -> Waiting {
        let (ready, waiting) = oneshot::channel();
        let (place, control) = (self.place.clone(), self.control.clone());
        let running = self.place.running.lock().take();
        let semaphore: Option<Arc<Semaphore>> = running.map(|permit| permit.semaphore().clone());
        let task = async move {
            // Chance has no say in what comes of it.
            let outcome = tokio::select! {
                biased;
                outcome = work => outcome,
                () = control.ended() => None,
            };
            *place.outcome.lock() = outcome;
            if let Some(semaphore) = semaphore {
                let running = semaphore.acquire_owned().await.ok();
                *place.running.lock() = running;
            }
            // The call that waits may be gone.
            let _ = ready.send(());
        };
        self.shared.environment().spawn_task(Box::pin(task));
        waiting
    }
}

const DURABLE_LATE_TEXT: &str = "durability confirmation timed out; outcome unknown, as what the call has written or read was not durable within 5 s";

/// Why a call that has committed so many transactions ends when the log fails.
fn not_durable(commits: u64, reason: &str) -> Arc<str> {
    match commits {
        0 => reason.into(),
        _ => {
            format!("transaction committed, but durability could not be confirmed; {reason}").into()
        }
    }
}

async fn sleep(environment: &dyn Environment, delay: Duration) {
    rings(|ring| environment.alarm(delay, ring)).await;
}

/// Waits until an alarm rings.
async fn rings(set: impl FnOnce(Work) -> Alarm) {
    let (rung, ring) = oneshot::channel::<()>();
    let alarm = set(Box::new(move || drop(rung)));
    // It rings by being dropped.
    let _ = ring.await;
    drop(alarm);
}

fn timeout(asked: Option<TimeDuration>) -> Duration {
    match asked {
        None => REQUEST_TIME,
        Some(TimeDuration(us)) => Duration::from_micros(us.max(0) as u64).min(REQUEST_TIME_MAX),
    }
}

/// The body counts until the last part of it is sent.
fn plain(request: HttpRequest, body: Counted<Vec<u8>>, account: Arc<Account>) -> Request {
    let headers = request.headers.into_iter();
    Request {
        method: method(&request.method).to_owned(),
        url: request.uri,
        headers: headers.map(|header| (header.name, header.value)).collect(),
        body: Bytes::from_owner(body),
        account,
    }
}

fn method(method: &HttpMethod) -> &str {
    match method {
        HttpMethod::Get => "GET",
        HttpMethod::Head => "HEAD",
        HttpMethod::Post => "POST",
        HttpMethod::Put => "PUT",
        HttpMethod::Delete => "DELETE",
        HttpMethod::Connect => "CONNECT",
        HttpMethod::Options => "OPTIONS",
        HttpMethod::Trace => "TRACE",
        HttpMethod::Patch => "PATCH",
        HttpMethod::Extension(name) => name,
    }
}

/// The answer, which counts until the call has taken all of it.
fn told(response: lightcone_outbound::Response) -> HttpAnswer {
    use lightcone_outbound::Version;
    let version = match response.version {
        Version::HTTP_09 => HttpVersion::Http09,
        Version::HTTP_10 => HttpVersion::Http10,
        Version::HTTP_2 => HttpVersion::Http2,
        Version::HTTP_3 => HttpVersion::Http3,
        _ => HttpVersion::Http11,
    };
    let head_bytes = response.headers.iter();
    let head_bytes = head_bytes.map(|(name, value)| name.len() + value.len() + HEADER_BYTES);
    let (mut body, head_bytes) = (response.body, head_bytes.sum());
    let counted = body.add(head_bytes);
    counted.map_err(|exceeded| trap_of(exceeded).to_string())?;
    let headers = response.headers.into_iter();
    let headers = headers.map(|(name, value)| lightcone_host::HttpHeader { name, value });
    let head = HttpResponse {
        headers: headers.collect(),
        version,
        code: response.status,
    };
    Ok((head, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_requests_are_brought_into_their_bounds() {
        assert_eq!(timeout(None), REQUEST_TIME);
        assert_eq!(timeout(Some(TimeDuration(-5))), Duration::ZERO);
        assert_eq!(
            timeout(Some(TimeDuration(1500))),
            Duration::from_micros(1500)
        );
        assert_eq!(timeout(Some(TimeDuration(i64::MAX))), REQUEST_TIME_MAX);
    }
}
