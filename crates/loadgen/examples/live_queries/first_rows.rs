//! The first rows of a large subscription, and what others feel of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lightcone_loadgen::client::{Client, Endpoint};
use lightcone_loadgen::process::Usage;
use lightcone_wire::{ClientMessage, ServerMessage};

use crate::rounds::Rounds;
use crate::{call_args, drive, query_of, Case, Result};

const ROUNDS: usize = 5;

pub fn measure(endpoint: &Endpoint, url: &str, server_pid: u32) -> Result<()> {
    let started = Rounds::read(url)?;
    let quiet = waits_while(endpoint, || {
        std::thread::sleep(Duration::from_secs(2));
        Ok(())
    })?
    .1;
    println!(
        "first-rows: calls one by one, no subscriber: p99 {:?}, longest {:?}; {}",
        quiet.p99,
        quiet.longest,
        Rounds::read(url)?.since(&started)
    );
    for _ in 0..ROUNDS {
        let mut client = Client::open(endpoint, 7)?;
        let held_before = Rounds::read(url)?;
        let before = Usage::of(server_pid)?;
        let ((rows, took), waits) = waits_while(endpoint, || {
            let started = Instant::now();
            client.send(&[ClientMessage::Subscribe {
                request_id: 1,
                query_set_id: 1,
                query_strings: vec![query_of(Case::FirstRows)],
            }])?;
            match client.receive()? {
                ServerMessage::SubscribeApplied { rows, .. } => {
                    let rows: usize = rows.tables.iter().map(|table| table.rows.len()).sum();
                    Ok((rows, started.elapsed()))
                }
                other => Err(format!("not subscribed: {other:?}").into()),
            }
        })?;
        let cpu = Usage::of(server_pid)?.cpu.saturating_sub(before.cpu);
        let held = Rounds::read(url)?.since(&held_before);
        println!(
            "first-rows: {rows} rows in {took:?}: {:.2} million rows/s; the server's processors {cpu:?}; calls one by one meanwhile: {} calls, p99 {:?}, longest {:?}; {held}",
            rows as f64 / took.as_secs_f64() / 1e6, waits.count, waits.p99, waits.longest
        );
        client.close();
    }
    Ok(())
}

struct Waits {
    count: usize,
    p99: Duration,
    longest: Duration,
}

/// Does something, while another connection calls one by one and notes how long each call takes.
fn waits_while<T>(endpoint: &Endpoint, act: impl FnOnce() -> Result<T>) -> Result<(T, Waits)> {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let caller =
            scope.spawn(|| call_until(endpoint, &is_over).map_err(|error| error.to_string()));
        let result = act();
        is_over.store(true, Ordering::Relaxed);
        let waits = caller.join().map_err(|_| "the caller panicked")??;
        Ok((result?, waits))
    })
}

fn call_until(endpoint: &Endpoint, is_over: &AtomicBool) -> Result<Waits> {
    let mut client = Client::open(endpoint, 8)?;
    let mut waits = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let args = call_args(&[1, 1]);
        let started = Instant::now();
        client.send(&[ClientMessage::CallReducer {
            request_id: 1,
            reducer: "set_score",
            args: &args,
        }])?;
        drive::expect_ok(client.receive()?)?;
        waits.push(started.elapsed());
    }
    client.close();
    waits.sort_unstable();
    let at = |share: usize| waits.get(waits.len() * share / 100).copied();
    Ok(Waits {
        count: waits.len(),
        p99: at(99).unwrap_or_default(),
        longest: waits.last().copied().unwrap_or_default(),
    })
}
