//! The command line, and what follows from it.

use std::time::Duration;

use clap::{Parser, ValueEnum};
use lightcone_wire::Protocol;

use crate::dialect::postgres::PostgresTransfer;
use crate::Error;

/// Version of the client protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProtocolVersion {
    /// One message per WebSocket message.
    V2,
    /// Many messages per WebSocket message.
    V3,
}

/// What is driven, and how it is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TargetKind {
    /// A module, by the client protocol.
    Websocket,
    /// A module, by POST /v1/database/<database>/call/<reducer>.
    SpacetimeHttp,
    /// A server of the benchmark with POST /rpc.
    Rpc,
    /// The server sqlite_batched_rpc, by its WebSocket /rpc-ws.
    Batched,
    /// A PostgreSQL database, by its own protocol.
    Postgres,
    /// A Convex backend, by POST /api/mutation.
    Convex,
}

impl From<ProtocolVersion> for Protocol {
    fn from(version: ProtocolVersion) -> Self {
        match version {
            ProtocolVersion::V2 => Self::V2,
            ProtocolVersion::V3 => Self::V3,
        }
    }
}

/// Drives transfers between accounts over many connections, and measures.
///
/// Closed loop (the default): every connection keeps --in-flight calls under way. Open loop
/// (--rate): calls start on a schedule, whether or not answers arrive, and latency counts from the
/// scheduled start.
#[derive(Clone, Debug, Parser)]
#[command(name = "lightcone-loadgen", version, args_override_self = true)]
pub struct Options {
    /// What to drive.
    #[arg(long, value_enum, default_value_t = TargetKind::Websocket)]
    pub target: TargetKind,
    /// Server, e.g. ws://127.0.0.1:3000, http://127.0.0.1:4103 or postgres://user:password@host/name.
    #[arg(
        long,
        env = "LIGHTCONE_LOADGEN_URL",
        hide_env_values = true,
        default_value = "ws://127.0.0.1:3000"
    )]
    pub url: String,
    /// Name or identity of the database, for modules.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub database: String,
    /// Connections that call. Over HTTP each has as many sockets as --in-flight says: a request
    /// waits for the answer to the one before.
    #[arg(long, default_value_t = 64)]
    pub connections: usize,
    /// Calls under way per connection, at most.
    #[arg(long, default_value_t = 40)]
    pub in_flight: usize,
    /// Length of the measured window.
    #[arg(long, default_value_t = 10.0)]
    pub seconds: f64,
    /// Load before the measured window.
    #[arg(long, default_value_t = 1.0)]
    pub warmup_seconds: f64,
    /// Version of the client protocol.
    #[arg(long, value_enum, default_value_t = ProtocolVersion::V3)]
    pub protocol: ProtocolVersion,
    /// Answers only after the transaction is durable.
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set)]
    pub confirmed: bool,
    /// Token to connect with; without one every connection is a new identity.
    #[arg(long, env = "LIGHTCONE_LOADGEN_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// Number of accounts; ids are 0 to accounts - 1.
    #[arg(long, default_value_t = 100_000)]
    pub accounts: u32,
    /// Amount of each transfer.
    #[arg(long, default_value_t = 1)]
    pub amount: i64,
    /// Skew of the choice of accounts (exponent of the Zipf distribution); 0 is uniform.
    #[arg(long, default_value_t = 0.0)]
    pub alpha: f64,
    /// Pairs of accounts drawn before the run; each connection starts at another one and wraps.
    #[arg(long, default_value_t = 1_000_000)]
    pub pairs: usize,
    /// --target postgres: one call of a function, created if need be, or an interactive transaction.
    #[arg(long, value_enum, default_value_t = PostgresTransfer::Function)]
    pub postgres_transfer: PostgresTransfer,
    /// Reducer to call, with arguments (from: u32, to: u32, amount: i64).
    #[arg(long, default_value = "transfer")]
    pub reducer: String,
    /// Open loop: calls per second over all connections.
    #[arg(long)]
    pub rate: Option<f64>,
    /// Threads that drive the connections.
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Process id of the server, to measure its CPU time, memory and disk writes.
    #[arg(long)]
    pub server_pid: Option<u32>,
    /// Subscribe to this many single accounts on further connections before the run.
    #[arg(long, default_value_t = 0, value_name = "QUERIES")]
    pub subscribe_each: u32,
    /// Connections that share the queries of --subscribe-each.
    #[arg(long, default_value_t = 100)]
    pub subscribe_connections: u32,
    /// Make the accounts anew before the run; of a module by its reducer seed(accounts, balance).
    #[arg(long)]
    pub seed: bool,
    /// Balance of each account after seeding.
    #[arg(long, default_value_t = 1_000_000_000)]
    pub initial_balance: i64,
    /// After the run, check that the sum of the balances is accounts × initial balance.
    #[arg(long)]
    pub verify: bool,
    /// Read all balances before and after the run, and check each account against the transfers
    /// that were acknowledged.
    #[arg(long)]
    pub verify_strict: bool,
    /// Print the report as JSON.
    #[arg(long)]
    pub json: bool,
    /// Print the start of the measured window, each second as it passes and then the report, each a
    /// line of JSON.
    #[arg(long, conflicts_with = "json")]
    pub json_lines: bool,
    /// Do not print progress.
    #[arg(long, short)]
    pub quiet: bool,
}

/// Connections one process can sensibly drive; more would run into the limits of the system.
const CONNECTIONS_MAX: usize = 60_000;
const IN_FLIGHT_MAX: usize = 1 << 20;

impl Options {
    /// Refuses what cannot be run, with the option to change.
    pub fn check(&self) -> Result<(), Error> {
        use TargetKind::{Convex, Rpc, SpacetimeHttp, Websocket};
        let demand = |is_met: bool, text: &str| match is_met {
            true => Ok(()),
            false => Err(Error::Options(text.to_owned())),
        };
        let demand_count = |option: &str, range: &str, max: usize, given: usize| {
            let text = format!("{option} must be {range}, not {given}");
            demand((1..=max).contains(&given), &text)
        };
        let is_module = matches!(self.target, Websocket | SpacetimeHttp);
        demand(
            !is_module || !self.database.is_empty(),
            "--database is missing: it names the database of the module",
        )?;
        demand(
            is_module || self.subscribe_each == 0,
            "--subscribe-each needs --target websocket or spacetime-http",
        )?;
        demand(
            self.target != Convex || !(self.seed || self.verify || self.verify_strict),
            "--seed, --verify and --verify-strict are not for --target convex: the benchmark suite does them (bench/)",
        )?;
        let sockets = match self.target {
            Rpc | SpacetimeHttp | Convex => self.connections.saturating_mul(self.in_flight),
            _ => self.connections,
        };
        if self.connections <= CONNECTIONS_MAX {
            let text = format!("--connections times --in-flight must be at most {CONNECTIONS_MAX} over HTTP, not {sockets}");
            demand(sockets <= CONNECTIONS_MAX, &text)?;
        }
        let up_to = |max: usize| format!("1 to {max}");
        let range = up_to(CONNECTIONS_MAX);
        demand_count("--connections", &range, CONNECTIONS_MAX, self.connections)?;
        let range = up_to(IN_FLIGHT_MAX);
        demand_count("--in-flight", &range, IN_FLIGHT_MAX, self.in_flight)?;
        let range = format!("1 to the number of connections ({})", self.connections);
        demand_count("--threads", &range, self.connections, self.threads)?;
        let are_seconds = |seconds: f64, min: f64| (min..=86_400.0).contains(&seconds);
        demand(
            are_seconds(self.seconds, 0.1) && are_seconds(self.warmup_seconds, 0.0),
            "--seconds must be 0.1 to 86400, --warmup-seconds 0 to 86400",
        )?;
        demand(self.accounts >= 2, "--accounts must be at least 2")?;
        demand(self.amount > 0, "--amount must be positive")?;
        let is_skew = self.alpha.is_finite() && self.alpha >= 0.0;
        demand(is_skew, "--alpha must be 0 or a positive number")?;
        demand(self.pairs > 0, "--pairs must be at least 1")?;
        let is_rate = self.rate.is_none_or(|rate| rate > 0.0 && rate <= 1e9);
        demand(
            is_rate,
            "--rate must be a positive number of calls per second",
        )?;
        let subscribed = self.subscribe_each;
        demand(
            subscribed <= self.accounts,
            "--subscribe-each must not exceed --accounts",
        )?;
        demand(
            subscribed == 0 || self.subscribe_connections > 0,
            "--subscribe-connections must be at least 1",
        )?;
        if let Some(pid) = self.server_pid {
            crate::process::Usage::of(pid).map_err(|error| {
                Error::Options(format!("--server-pid {pid} cannot be observed: {error}"))
            })?;
        }
        Ok(())
    }

    pub(crate) fn warmup(&self) -> Duration {
        Duration::from_secs_f64(self.warmup_seconds)
    }

    pub(crate) fn window(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }
}
