//! The part of `latest-rs` about outbox tables, as a module of its own.

#[path = "../../latest-rs/src/outbox.rs"]
mod outbox;
