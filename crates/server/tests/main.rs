//! The tests of this crate in one program: each further one takes seconds to link. Tests that need a process of their own are
//! named in `Cargo.toml`.

mod access;
mod answers;
mod auth;
mod backups;
mod changes;
mod collaborators;
mod common;
mod databases;
mod environment;
mod failures;
mod idle;
mod issuers;
mod mcp;
mod mcp_hostile;
mod metrics;
mod migrations;
mod permissions;
mod polls;
mod postgres;
mod postgres_catalogue;
mod postgres_programs;
mod postgres_sessions;
mod postgres_tls;
mod postgres_writes;
mod publishing;
mod restarts;
mod routes;
mod traces;
mod transport;
mod unattended;
mod using;
mod websocket;
