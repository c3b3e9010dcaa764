//! A whole run: connect, load, measure, verify.

use std::sync::mpsc::{channel, Receiver};
use std::time::{Duration, Instant};

use crate::ledger::Ledger;
use crate::load::{Cursor, LoadConnection};
use crate::measure::Interval;
use crate::process::{own_cpu, Usage};
use crate::report::{Report, SecondPoint, ServerUse, Subscriptions};
use crate::target::Target;
use crate::worker::{Schedule, Update};
use crate::{pairs, worker, Error, Options};

/// Threads that open connections; most of that time is waiting for the server.
const OPENING_THREADS: usize = 16;
/// From the last preparation to the first call, so that all workers begin together.
const START_DELAY: Duration = Duration::from_millis(20);

/// What a run tells while it goes on.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// Something has happened.
    Line(&'a str),
    /// The window has begun.
    Started,
    /// A second of the window has passed.
    Second(&'a SecondPoint),
}

/// Runs what the options say.
pub fn run(options: &Options, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Report, Error> {
    options.check()?;
    let mut say = |line: &str| progress(Progress::Line(line));
    raise_file_limit();
    if options.alpha > 3.0 {
        say("alpha above 3: many pairs are an account and itself, and are not sent");
    }
    if options.accounts > 100_000 && options.alpha > 0.0 {
        say("above 100,000 accounts the published figures use another distribution");
    }
    let accounts = options.accounts;
    let pairs = pairs::draw(accounts, options.alpha, options.pairs)?;
    let target = Target::new(options)?;
    if options.seed {
        let start = Instant::now();
        target.seed(accounts)?;
        let seconds = start.elapsed().as_secs_f64();
        say(&format!("seeded {accounts} accounts in {seconds:.2} s"));
    }
    target.prepare()?;

    let mut groups: Vec<Vec<LoadConnection>> = (0..options.threads).map(|_| Vec::new()).collect();
    let subscriptions = open_subscribers(options, &target, &mut groups)?;
    if let Some(subscriptions) = &subscriptions {
        say(&format!(
            "subscribed to {} accounts on {} connections in {:.2} s",
            subscriptions.queries, subscriptions.connections, subscriptions.seconds
        ));
    }
    open_callers(options, &target, &mut groups)?;
    let how = match options.rate {
        Some(rate) => format!("open loop at {rate}/s"),
        None => "closed loop".to_owned(),
    };
    let (connections, in_flight) = (options.connections, options.in_flight);
    let described = target.describe();
    say(&format!(
        "{connections} connections × {in_flight} in flight, {how}, {described}"
    ));

    let read_balances = || target.read_balances(accounts);
    let before = options.verify_strict.then(read_balances).transpose()?;
    let mut report = drive(options, &pairs, groups, progress)?;
    report.target = described;
    report.subscriptions = subscriptions.map(|subscriptions| Subscriptions {
        updates: report.total.updates,
        update_rows: report.total.update_rows,
        ..subscriptions
    });
    if let (Some(before), Some(ledger)) = (&before, &report.ledger) {
        let outcome = read_balances().and_then(|after| ledger.check(before, &after));
        report.strict = Some(outcome.map_err(|error| error.to_string()));
    }
    if options.verify {
        report.verification = Some(target.verify()?);
    }
    Ok(report)
}

/// Opens the connections that call and spreads them over the threads.
fn open_callers(
    options: &Options,
    target: &Target,
    groups: &mut [Vec<LoadConnection>],
) -> Result<(), Error> {
    let first = u64::from(options.subscribe_connections) + 1;
    let (sockets, in_flight) = match target.has_socket_per_call() {
        true => (options.in_flight, 1),
        false => (1, options.in_flight),
    };
    let opened = open_many(options.connections * sockets, |number| {
        target.open(first + number as u64)
    })?;
    let stride = (options.pairs / options.connections).max(1);
    let mut opened = opened.into_iter();
    for number in 0..options.connections {
        let cursor = Cursor::new(number * stride % options.pairs);
        for (stream, dialect) in opened.by_ref().take(sockets) {
            let connection = LoadConnection::caller(stream, dialect, in_flight, cursor.clone());
            groups[number % options.threads].push(connection);
        }
    }
    Ok(())
}

fn raise_file_limit() {
    use rustix::process::{getrlimit, setrlimit, Resource};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If it fails, opening many connections fails later and says so.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Makes connections 0 to `count` - 1, several at a time.
fn open_many<T: Send>(
    count: usize,
    open: impl Fn(usize) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let (numbers, open): (Vec<usize>, _) = ((0..count).collect(), &open);
    std::thread::scope(|scope| {
        let parts = numbers.chunks(count.div_ceil(OPENING_THREADS).max(1));
        let open_part = |part: &[usize]| -> Result<Vec<T>, Error> {
            part.iter().map(|number| open(*number)).collect()
        };
        let threads: Vec<_> = parts
            .map(|part| scope.spawn(move || open_part(part)))
            .collect();
        let mut opened = Vec::with_capacity(count);
        for thread in threads {
            opened.extend(
                thread
                    .join()
                    .expect("opening a connection does not panic")?,
            );
        }
        Ok(opened)
    })
}

/// Opens the connections of `--subscribe-each` and spreads them over the threads. The accounts are
/// spread evenly over all.
fn open_subscribers(
    options: &Options,
    target: &Target,
    groups: &mut [Vec<LoadConnection>],
) -> Result<Option<Subscriptions>, Error> {
    let queries = options.subscribe_each;
    if queries == 0 {
        return Ok(None);
    }
    let start = Instant::now();
    let connections = options.subscribe_connections.min(queries) as usize;
    let ids: Vec<u32> = (0..u64::from(queries))
        .map(|query| (query * u64::from(options.accounts) / u64::from(queries)) as u32)
        .collect();
    let opened = open_many(connections, |number| {
        let own = ids.iter().copied().skip(number).step_by(connections);
        target.open_subscriber(number as u64, &own.collect::<Vec<_>>())
    })?;
    let seconds = start.elapsed().as_secs_f64();
    for (number, (stream, dialect)) in opened.into_iter().enumerate() {
        groups[number % groups.len()].push(LoadConnection::subscriber(stream, dialect));
    }
    Ok(Some(Subscriptions {
        queries,
        connections,
        seconds,
        updates: 0,
        update_rows: 0,
    }))
}

/// CPU and other use at one moment.
#[derive(Clone, Copy)]
struct Sample {
    at: Instant,
    client_cpu: Duration,
    server: Option<Usage>,
}

impl Sample {
    fn take(server_pid: Option<u32>) -> Self {
        Self {
            at: Instant::now(),
            client_cpu: own_cpu(),
            server: server_pid.and_then(|pid| Usage::of(pid).ok()),
        }
    }
}

/// Runs the workers and collects what they measure.
fn drive(
    options: &Options,
    pairs: &[(u32, u32)],
    groups: Vec<Vec<LoadConnection>>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Report, Error> {
    let base = Instant::now() + START_DELAY;
    let threads = groups.len() as f64;
    let window_start = base + options.warmup();
    let window_end = window_start + options.window();
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        for (number, connections) in groups.into_iter().enumerate() {
            let call_every_ns = options.rate.map(|rate| threads * 1e9 / rate);
            let schedule = Schedule {
                base,
                window_start_ns: (window_start - base).as_nanos() as u64,
                window_end_ns: (window_end - base).as_nanos() as u64,
                call_every_ns,
                first_call_ns: call_every_ns.unwrap_or(0.0) * number as f64 / threads,
            };
            let sender = sender.clone();
            let ledger =
                (options.verify_strict).then(|| Ledger::new(options.accounts, options.amount));
            scope.spawn(move || {
                std::thread::sleep(base.saturating_duration_since(Instant::now()));
                worker::run(connections, pairs, schedule, ledger, &sender);
            });
        }
        drop(sender);
        // The sampler waits for a moment of the schedule, or for the run to end before it.
        let (run_ended, until_run_ends) = channel::<()>();
        let sampler = scope.spawn(move || {
            [window_start, window_end].map(|at| {
                let wait = at.saturating_duration_since(Instant::now());
                let _ = until_run_ends.recv_timeout(wait);
                Sample::take(options.server_pid)
            })
        });
        let (total, series, ledger) = collect(&receiver, threads as usize, progress)?;
        let ended_early = Instant::now() < window_end;
        drop(run_ended);
        let [before, after] = sampler.join().expect("sampling does not panic");
        let seconds = match ended_early {
            true => (after.at - before.at).as_secs_f64().max(0.001),
            false => options.seconds,
        };
        let mut report = report(seconds, total, before, after);
        (report.series, report.ledger) = (series, ledger);
        Ok(report)
    })
}

/// Adds up the intervals of all workers until all have ended.
fn collect(
    updates: &Receiver<Update>,
    workers: usize,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(Interval, Vec<SecondPoint>, Option<Ledger>), Error> {
    let mut total = Interval::default();
    let mut seconds: Vec<(usize, Interval)> = Vec::new();
    let mut series = Vec::new();
    let mut ledger: Option<Ledger> = None;
    let mut running = workers;
    let mut has_started = false;
    while running > 0 {
        match updates.recv() {
            Ok(Update::Started) if has_started => {}
            Ok(Update::Started) => {
                has_started = true;
                progress(Progress::Started);
            }
            Ok(Update::Second(second, interval)) => {
                if seconds.len() <= second {
                    seconds.resize_with(second + 1, Default::default);
                }
                let (reported, sum) = &mut seconds[second];
                *reported += 1;
                sum.add(&interval);
                if *reported == workers {
                    let point = SecondPoint::new(second + 1, sum);
                    progress(Progress::Second(&point));
                    series.push(point);
                    total.add(sum);
                    seconds[second].1 = Interval::default();
                }
            }
            Ok(Update::Done(interval, part)) => {
                total.add(&*interval?);
                match (&mut ledger, part) {
                    (Some(ledger), Some(part)) => ledger.add(&part),
                    (ledger, part) => *ledger = part.map(|part| *part),
                }
                running -= 1;
            }
            Err(_) => break,
        }
    }
    // Seconds that some worker did not live to report.
    for (_, interval) in &seconds {
        total.add(interval);
    }
    Ok((total, series, ledger))
}

fn report(seconds: f64, total: Interval, before: Sample, after: Sample) -> Report {
    let calls = total.succeeded().max(1) as f64;
    let micros_per_call = |cpu: Duration| cpu.as_secs_f64() * 1e6 / calls;
    let client_cpu = after.client_cpu - before.client_cpu;
    let server = before.server.zip(after.server).map(|(before, after)| {
        let cpu = after.cpu.saturating_sub(before.cpu);
        ServerUse {
            cpu_seconds: cpu.as_secs_f64(),
            cpu_us_per_transfer: micros_per_call(cpu),
            storage_bytes_per_transfer: before
                .device_written_bytes
                .zip(after.device_written_bytes)
                .map(|(before, after)| after.saturating_sub(before) as f64 / calls),
            resident_bytes: after.resident_bytes,
        }
    });
    Report {
        target: String::new(),
        seconds,
        client_cpu_seconds: client_cpu.as_secs_f64(),
        client_cpu_us_per_transfer: micros_per_call(client_cpu),
        total,
        series: Vec::new(),
        server,
        subscriptions: None,
        verification: None,
        ledger: None,
        strict: None,
    }
}
