//! The routes of 06 §5.

mod access;
mod backup;
mod body;
mod call;
mod changes;
mod collaborators;
mod confirmation;
mod cors;
mod credentials;
mod dashboard;
mod database;
mod delivery;
mod environment;
mod handlers;
mod identity;
mod logs;
mod mcp;
mod messages;
mod migration;
mod names;
#[cfg(test)]
mod outcome_tests;
mod owner;
mod path;
mod pre_publish;
mod programs;
mod publish;
mod publish_request;
mod query;
mod reset;
mod route;
mod routes;
mod sql;
mod status;
mod traced;
mod traceparent;
mod update;

pub(crate) use delivery::Delivery;
pub use mcp::check_message as check_mcp_message;
pub(crate) use path::DatabasePath;
pub(crate) use query::{wrong as wrong_query, Query};
pub use route::Route;
pub use routes::ROUTES;
pub use routes::{metrics_router, router};
