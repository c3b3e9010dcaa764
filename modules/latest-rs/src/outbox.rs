//! Outbox tables: calls from one database to another (2.14).
