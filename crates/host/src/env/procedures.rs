//! The host calls of procedures (spec 03 §10), which open and end their own transactions.

use lightcone_accounts::Counted;
use lightcone_types::{Encode as _, Timestamp};

use super::HostEnv;
use crate::handles::out_of_memory;
use crate::{
    AbiError, Ask, ConsoleLevel, HostTrap, HttpAnswer, HttpRequest, Interrupt, Transactions,
    Waiting,
};

impl HostEnv {
    pub fn is_procedure(&self) -> bool {
        self.access.is_procedure()
    }

    /// The first part of `procedure_start_mut_tx`: what to wait for.
    pub fn ask_transaction(&mut self) -> Result<Option<Waiting>, AbiError> {
        let bytes_max = self.config.limits.procedure_bytes_max;
        self.access.ask_transaction(bytes_max)
    }

    /// Its second part, after the wait: opens a transaction and returns its time in microseconds since the epoch.
    pub fn open_transaction(&mut self) -> Result<i64, AbiError> {
        Ok(self.access.begin()?.0)
    }

    /// Blocks the thread.
    pub fn block(&mut self, waiting: Option<Waiting>) {
        if let Some(waiting) = waiting {
            // Dropped or sent: the wait is over.
            let _ = waiting.blocking_recv();
        }
    }

    /// Gives a call that may be suspended its transactions.
    pub fn own(&mut self, transactions: Box<dyn Transactions>) {
        self.access.own(transactions);
    }

    /// Takes the transactions back at its end.
    pub fn disown(&mut self) {
        self.access.disown();
    }

    /// Ends the calls of this instance from outside.
    pub fn interrupt(&self) -> &std::sync::Arc<Interrupt> {
        &self.interrupt
    }

    /// Why the running call has to end, if it has.
    pub fn interrupted(&self) -> Option<HostTrap> {
        let reason = self.interrupt.reason()?;
        Some(reason.trap(&self.config.limits))
    }

    fn after_wait(&mut self) -> Result<&mut dyn Transactions, HostTrap> {
        if let Some(trap) = self.interrupted() {
            return Err(trap);
        }
        let transactions = self.access.waits();
        let transactions = transactions.ok_or(HostTrap::AsyncOnly("procedure_sleep_until"))?;
        match transactions.ended() {
            Some(trap) => Err(trap),
            None => Ok(transactions),
        }
    }

    /// The first part of `procedure_commit_mut_tx`: what to wait for.
    pub fn ask_commit(&mut self) -> Result<Option<Waiting>, AbiError> {
        let waiting = self.access.ask_commit()?;
        // Unread rows belong to a state that is over.
        self.iterators.clear();
        self.forget_scratch();
        Ok(waiting)
    }

    /// Its second part, after the wait.
    pub fn commit_transaction(&mut self) -> Result<(), AbiError> {
        self.access.commit()
    }

    /// Both parts, for a call that blocks its thread.
    pub fn procedure_commit_mut_tx(&mut self) -> Result<(), AbiError> {
        let waiting = self.ask_commit()?;
        self.block(waiting);
        self.commit_transaction()
    }

    /// `procedure_abort_mut_tx`
    pub fn procedure_abort_mut_tx(&mut self) -> Result<(), AbiError> {
        self.access.rollback()?;
        self.iterators.clear();
        self.forget_scratch();
        Ok(())
    }

    /// Rolls back a transaction that the procedure left open, which is an error of the module (spec 03 §10).
    #[inline]
    pub(super) fn abort_dangling_transaction(&mut self) {
        if self.access.rollback().is_ok() {
            self.report_dangling_transaction();
        }
    }

    #[cold]
    fn report_dangling_transaction(&mut self) {
        let name = self.function.as_deref().unwrap_or_default();
        let message = format!("aborting dangling anonymous transaction in procedure {name}");
        self.log(ConsoleLevel::Error, None, None, None, &message, None);
    }

    /// The first part of `procedure_sleep_until`: what to wait for; nothing if the time is past.
    pub fn ask_sleep(&mut self, wake_us: i64) -> Result<Option<Waiting>, HostTrap> {
        let now = self.access.may_sleep()?.0;
        if wake_us <= now {
            return Ok(None);
        }
        let transactions = self.access.waits();
        Ok(transactions.and_then(|each| each.ask(Ask::Until(Timestamp(wake_us)))))
    }

    /// Its second part, after the wait: the time.
    pub fn slept(&mut self) -> Result<i64, HostTrap> {
        Ok(self.after_wait()?.now().0)
    }

    pub fn has_transaction(&self) -> bool {
        self.access.has_transaction()
    }

    pub fn may_request(&self) -> Result<(), AbiError> {
        self.access.may_request()
    }

    /// The first part of `procedure_http_request` (spec 03 §13): what to wait for. A body within its bound is copied, and counts
    /// until it is sent.
    pub fn ask_http(
        &mut self,
        request: HttpRequest,
        body: &[u8],
    ) -> Result<Option<Waiting>, AbiError> {
        self.access.may_request()?;
        self.refused_request = None;
        let bytes_max = self.config.limits.http_request_bytes_max;
        let bytes = request.bytes().saturating_add(body.len());
        if bytes > bytes_max {
            self.refused_request = Some(request_too_large(bytes, bytes_max));
            return Ok(None);
        }
        let mut body = Counted::copy_of(body, &self.account).map_err(out_of_memory)?;
        body.add(bytes - body.len()).map_err(out_of_memory)?;
        let transactions = self.access.waits();
        let ask = Ask::Http(Box::new((request, body)));
        Ok(transactions.and_then(|each| each.ask(ask)))
    }

    /// Its second part, after the wait. Any status is a success; a text is for errno 21.
    pub fn http_answer(&mut self) -> Result<HttpAnswer, AbiError> {
        let refused = self.refused_request.take();
        let transactions = self.after_wait()?;
        Ok(match refused {
            Some(text) => Err(text),
            None => transactions.http_answer(),
        })
    }

    /// For WebAssembly: sources of head and body, or of the text of errno 21.
    pub fn http_sources(&mut self, answer: HttpAnswer) -> Result<HttpSources, AbiError> {
        let limits = &self.config.limits;
        let (sources_max, bytes_max) = (limits.sources_max, limits.source_bytes_max);
        Ok(match answer {
            Ok((head, body)) => {
                let head = head.to_vec();
                self.sources.may_hold(head.len() + body.len(), bytes_max)?;
                HttpSources::Response(
                    self.sources.open(&head, sources_max)?,
                    self.sources.open_counted(body, sources_max)?,
                )
            }
            Err(text) => {
                let text = text.to_vec();
                self.sources.may_hold(text.len(), bytes_max)?;
                HttpSources::Failed(self.sources.open(&text, sources_max)?)
            }
        })
    }

    /// `volatile_nonatomic_schedule_immediate`: the call runs soon, even if this one is rolled back (spec 03 §8.9).
    pub fn volatile_nonatomic_schedule_immediate(
        &mut self,
        name: &str,
        args: &[u8],
    ) -> Result<(), AbiError> {
        match &self.config.immediate {
            // A module in its load phase, or in a dry run, has no database.
            None => Ok(()),
            Some(immediate) => Ok(immediate.schedule(name, args)?),
        }
    }
}

#[cold]
fn request_too_large(bytes: usize, bytes_max: usize) -> String {
    format!("the request has {bytes} bytes, and at most {bytes_max} may be sent: limits.http-request-bytes-max")
}

/// The answer to a request, as sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpSources {
    /// Head and body; 0 for an empty body.
    Response(u32, u32),
    Failed(u32),
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use lightcone_accounts::{Account, Kind};
    use lightcone_types::Identity;

    use super::*;
    use crate::{
        HostConfig, HostLimits, HttpMethod, HttpResponse, HttpVersion, InstanceAccounts,
        NullConsole, OpenTransaction,
    };

    /// Keeps the requests that it gets.
    struct Requests(Arc<Mutex<Vec<Ask>>>);

    impl Transactions for Requests {
        fn ask(&mut self, ask: Ask) -> Option<Waiting> {
            self.0.lock().expect("no panic").push(ask);
            None
        }

        fn begin(&mut self) -> Result<OpenTransaction<'_>, HostTrap> {
            Err(HostTrap::Stopping)
        }

        fn commit(&mut self) -> Result<(), HostTrap> {
            Ok(())
        }

        fn rollback(&mut self) {}

        fn now(&self) -> Timestamp {
            Timestamp(0)
        }

        fn committed_bytes(&self) -> usize {
            0
        }
    }

    #[test]
    fn bodies_are_measured_before_they_are_copied_and_count_until_they_are_sent() {
        let account = Account::root(Kind::Procedures, 1 << 20);
        let limits = HostLimits {
            http_request_bytes_max: 800 << 10,
            ..HostLimits::default()
        };
        let mut config = HostConfig::new(Identity::ZERO, Arc::new(NullConsole), limits);
        config.accounts = InstanceAccounts::of(account.clone());
        let mut env = HostEnv::new(config);
        let asked = Arc::<Mutex<Vec<Ask>>>::default();
        env.own(Box::new(Requests(asked.clone())));
        let request = |uri_bytes: usize| HttpRequest {
            method: HttpMethod::Post,
            headers: Vec::new(),
            timeout: None,
            uri: "u".repeat(uri_bytes),
            version: HttpVersion::Http11,
        };
        let body = vec![7; 700 << 10];
        env.ask_http(request(50 << 10), &body).expect("room");
        assert!(account.used() >= 750 << 10, "head and body");
        let error = env.ask_http(request(10), &body).expect_err("too much");
        assert!(error.to_string().contains("[LC0722]"), "{error}");
        assert_eq!(asked.lock().expect("no panic").drain(..).count(), 1);
        assert!(account.used() < 200 << 10, "it is sent");

        let large = vec![7; 900 << 10];
        let asks = env.ask_http(request(10), &large).expect("it fails later");
        assert!(asks.is_none() && asked.lock().expect("no panic").is_empty());
        assert!(account.used() < 200 << 10, "there is no copy");
        let Err(text) = env.http_answer().expect("an answer") else {
            panic!("it was not made");
        };
        assert!(text.contains("limits.http-request-bytes-max"), "{text}");
        // The next request is another one.
        env.ask_http(request(10), b"small").expect("room");
        let Err(text) = env.http_answer().expect("an answer") else {
            panic!("there is no answer");
        };
        assert_eq!(text, crate::HTTP_DISABLED_TEXT);
    }

    #[test]
    fn an_answer_counts_until_it_is_read() {
        let account = Account::root(Kind::Procedures, 1 << 20);
        let mut config =
            HostConfig::new(Identity::ZERO, Arc::new(NullConsole), HostLimits::default());
        config.accounts = InstanceAccounts::of(account.clone());
        let mut env = HostEnv::new(config);
        let head = HttpResponse {
            headers: Vec::new(),
            version: HttpVersion::Http11,
            code: 200,
        };
        let body = Counted::of(vec![1; 500 << 10], env.account()).expect("room");
        let sources = env.http_sources(Ok((head, body)));
        let Ok(HttpSources::Response(_, body)) = sources else {
            panic!("{sources:?}");
        };
        assert!(
            account.used() >= 500 << 10 && account.used() < 900 << 10,
            "once"
        );
        env.source_read(body, &mut vec![0; 500 << 10])
            .expect("read");
        assert!(account.used() < 200 << 10, "{}", account.used());
    }
}
