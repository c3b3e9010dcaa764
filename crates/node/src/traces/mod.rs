//! Traces of calls for an OpenTelemetry collector: `[tracing]` of `config.toml`. Without it there is none of this.
//!
//! Spans go into a queue that no call waits for; one task sends them, many at a time. Spans that find no room, or cannot be sent,
//! are dropped and counted.

mod export;

use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::Duration;

use lightcone_database::{Span, TraceContext, Tracer};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::config::Tracing;
use crate::error::Error;
use export::Exporter;

pub use export::TraceCounters;

/// Spans that wait to be sent; more are dropped.
const QUEUE_SPANS_MAX: usize = 8192;
/// How long a server that stops waits for the last spans to be sent.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Chooses calls, and takes their spans.
pub struct Traces {
    /// None when the server has stopped.
    spans: Mutex<Option<mpsc::Sender<Span>>>,
    queue: mpsc::WeakSender<Span>,
    /// A call is taken if a random number of 63 bits is below this.
    threshold: u64,
    pub counters: Arc<TraceCounters>,
    exporting: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for Traces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Traces").finish_non_exhaustive()
    }
}

impl Traces {
    /// None where nothing is configured. Inside of a tokio runtime.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn start(config: &Tracing) -> Result<Option<Arc<Traces>>, Error> {
        let Some(endpoint) = &config.otlp_endpoint else {
            return Ok(None);
        };
        let (spans, queue) = mpsc::channel(QUEUE_SPANS_MAX);
        let counters = Arc::<TraceCounters>::default();
        let exporter = Exporter::new(endpoint, config, counters.clone())?;
        let exporting = tokio::runtime::Handle::current().spawn(exporter.run(queue));
        Ok(Some(Arc::new(Traces {
            queue: spans.downgrade(),
            spans: Mutex::new(Some(spans)),
            threshold: threshold(config.sample_ratio),
            counters,
            exporting: Mutex::new(Some(exporting)),
        })))
    }

    /// Drawn for each call. By a caller's own trace id he would decide how much is sent.
    fn is_chosen(&self) -> bool {
        rand::random::<u64>() >> 1 < self.threshold
    }

    /// The context of a request, if it is chosen. A trace that began elsewhere goes on.
    pub fn begin_request(&self, parent: Option<TraceContext>) -> Option<TraceContext> {
        let mut context = self.begin()?;
        if let Some(parent) = parent {
            context.trace_id = parent.trace_id;
        }
        Some(context)
    }

    /// Sends what is left, and no more from now on.
    pub async fn stop(&self) {
        drop(self.spans.lock().take());
        let exporting = self.exporting.lock().take();
        if let Some(exporting) = exporting {
            let _ = tokio::time::timeout(FLUSH_TIMEOUT, exporting).await;
        }
    }
}

impl Tracer for Traces {
    fn begin(&self) -> Option<TraceContext> {
        self.is_chosen().then(|| TraceContext {
            trace_id: rand::random::<u128>().max(1),
            span_id: self.span_id(),
        })
    }

    fn span_id(&self) -> u64 {
        rand::random::<u64>().max(1)
    }

    fn tell(&self, span: Span) {
        let queue = self.queue.upgrade();
        if queue.is_none_or(|queue| queue.try_send(span).is_err()) {
            self.counters.dropped.fetch_add(1, Relaxed);
        }
    }
}

fn threshold(sample_ratio: f64) -> u64 {
    (sample_ratio * (1_u64 << 63) as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traces(sample_ratio: f64) -> Traces {
        let (spans, _queue) = mpsc::channel(1);
        Traces {
            queue: spans.downgrade(),
            spans: Mutex::new(Some(spans)),
            threshold: threshold(sample_ratio),
            counters: Arc::default(),
            exporting: Mutex::new(None),
        }
    }

    #[test]
    fn no_caller_chooses_its_calls() {
        // The lowest and the highest id that there is.
        for trace_id in [1, u128::MAX] {
            let parent = TraceContext {
                trace_id,
                span_id: 7,
            };
            for (ratio, few, many) in [(0.0, 0, 0), (0.5, 350, 650), (1.0, 1000, 1000)] {
                let traces = traces(ratio);
                let chosen: Vec<_> = (0..1000)
                    .filter_map(|_| traces.begin_request(Some(parent)))
                    .collect();
                let count = chosen.len();
                assert!((few..=many).contains(&count), "{count} of {ratio}");
                assert!(chosen.iter().all(|of| of.trace_id == trace_id));
            }
        }
    }
}
