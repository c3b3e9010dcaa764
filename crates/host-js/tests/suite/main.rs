//! Conformance of the JavaScript host (spec 04), whichever engine this build has:
//! `cargo test -p lightcone-host-js --features v8` or `--features quickjs`.

#![cfg(any(feature = "v8", feature = "quickjs"))]

mod bundles;
mod calls;
mod common;
mod extras;
#[cfg(feature = "v8")]
mod fast_calls;
mod faults;
mod globals;
mod hostile;
mod http_handlers;
mod imports;
mod interrupts;
mod leftovers;
mod legacy;
mod load;
mod procedures;
mod views;
