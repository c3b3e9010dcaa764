//! One connection that calls reducers, many at a time, and what the server's processors took for it.

use std::time::Instant;

use lightcone_loadgen::client::{Client, Endpoint};
use lightcone_loadgen::process::Usage;
use lightcone_wire::{ClientMessage, ReducerOutcome, ServerMessage};

use crate::Result;

pub struct Call {
    pub reducer: &'static str,
    pub args: Vec<u8>,
}

pub struct Drive {
    client: Client,
    server_pid: u32,
    in_flight: u32,
}

pub struct Measured {
    pub cpu_us: f64,
    pub calls_per_second: f64,
}

pub fn expect_ok(message: ServerMessage) -> Result<()> {
    match message {
        ServerMessage::ReducerResult { result, .. } => match result {
            ReducerOutcome::Ok { .. } | ReducerOutcome::OkEmpty => Ok(()),
            ReducerOutcome::Err(bytes) => Err(ReducerOutcome::error_text(&bytes).into()),
            ReducerOutcome::InternalError(text) => Err(text.into()),
        },
        other => Err(format!("not the answer of a call: {other:?}").into()),
    }
}

impl Drive {
    pub fn new(endpoint: &Endpoint, server_pid: u32, in_flight: u32) -> Result<Drive> {
        Ok(Drive {
            client: Client::open(endpoint, 1 << 40)?,
            server_pid,
            in_flight,
        })
    }

    /// Calls so often, with `in_flight` calls under way.
    pub fn call_each(&mut self, count: u32, call: impl Fn(u32) -> Call) -> Result<()> {
        let (mut sent, mut done) = (0, 0);
        while done < count {
            let until = count.min(done + self.in_flight);
            let calls: Vec<Call> = (sent..until).map(&call).collect();
            sent = until;
            let messages: Vec<_> = calls
                .iter()
                .map(|call| ClientMessage::CallReducer {
                    request_id: 1,
                    reducer: call.reducer,
                    args: &call.args,
                })
                .collect();
            self.client.send(&messages)?;
            let half = (sent - done).div_ceil(2);
            for _ in 0..half {
                expect_ok(self.client.receive()?)?;
            }
            done += half;
        }
        Ok(())
    }

    /// The same, after a tenth as many calls for warming up.
    pub fn measure(&mut self, count: u32, call: impl Fn(u32) -> Call) -> Result<Measured> {
        self.call_each(count / 10, |number| call(count + number))?;
        let (before, started) = (Usage::of(self.server_pid)?, Instant::now());
        self.call_each(count, call)?;
        let (after, took) = (Usage::of(self.server_pid)?, started.elapsed());
        let cpu = after.cpu.saturating_sub(before.cpu);
        Ok(Measured {
            cpu_us: cpu.as_secs_f64() * 1e6 / f64::from(count),
            calls_per_second: f64::from(count) / took.as_secs_f64(),
        })
    }
}
