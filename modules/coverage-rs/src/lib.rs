//! A module that uses everything a Rust module can: the server's tests call its reducers one by one.
//!
//! `values` holds every column type, `indexes` every kind of index and scan, `sequences` every width of counter,
//! `context` what a call knows about itself, `faults` everything that can go wrong, `later` what the server does not run yet.

mod context;
mod faults;
mod indexes;
mod later;
mod sequences;
mod values;

/// Ends a check with an error that says what was wanted and what came.
pub(crate) fn expect_eq<T: PartialEq + std::fmt::Debug>(
    what: &str,
    got: T,
    want: T,
) -> Result<(), String> {
    if got == want {
        Ok(())
    } else {
        Err(format!("{what}: got {got:?}, want {want:?}"))
    }
}
