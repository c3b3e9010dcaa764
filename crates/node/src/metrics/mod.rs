//! Counters of the server, of its databases and of their modules, and the text form in which Prometheus reads them (06 §5.21).

mod counters;
mod databases;
mod exposition;
mod fold;
mod functions;
mod history;
mod json;
mod process;
mod recorder;
mod scrapes;
mod shown;
mod sizes;
mod text;

pub use self::counters::{add, DatabaseCounters, Gauge, ServerCounters};
pub use self::exposition::{all_as_json, one_as_json, render};
pub use self::history::History;
pub use self::recorder::keep_history;
pub use self::scrapes::{Looks, Scrapes, TooManyLooks};
pub use self::shown::{Detail, Left};
pub use self::sizes::SizesSeen;
