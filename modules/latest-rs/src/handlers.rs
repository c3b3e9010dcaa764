//! HTTP handlers and procedures as 2.13 and 2.14 changed them.
