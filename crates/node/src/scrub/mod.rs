//! The scrub: reads all that recoveries of this server's databases would need, slowly and again and again, so that damage is known
//! before a start needs the files.
//!
//! It reads the files of open and closed databases alike, and opens none. What it finds counts when it is found twice, since files
//! change meanwhile.

mod found;
mod job;

pub use self::found::Scrub;
pub use self::job::scrub;
