//! Tables of a backfill (02 §14.9): the new ones, which take rows in while the old ones are in use, what was done so far, and the
//! program that does it. They are in the catalog under names that no module can declare, and only the backfill writes to them.
//!
//! | table | rows |
//! |---|---|
//! | `$new.X` | those of the new table X |
//! | `$done.X` | for each row of the old table X that was migrated, its hash, and the values that counters gave for it, if there are counters |
//! | `$again` | how many more times a new row was made than once, by its hash |
//! | `$backfill` | when it began and with which program |
//!
//! A new row has no note of the old one that it is from: a function that depends on its row only says it again when that row goes.

mod made;
mod tables;

pub use tables::{BackfillRecord, BackfillTable, OldRows};
