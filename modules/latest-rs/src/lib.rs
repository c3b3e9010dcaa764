//! A module with each part of the interface that came after 2.10.1, on the newest published crate.

mod environment;
mod handlers;
mod outbox;
mod parameters;
