//! Variables of the environment (2.11). All are optional here; `environment-rs` has one that is required.

#![allow(non_snake_case)]

use spacetimedb::{procedure, ProcedureContext};

#[spacetimedb::env]
pub struct Env {
    pub NAME: Option<String>,
    #[env(values("red", "green"))]
    pub COLOUR: Option<String>,
}

#[procedure]
fn variables(ctx: &mut ProcedureContext) -> Vec<Option<String>> {
    vec![ctx.env.NAME(), ctx.env.COLOUR()]
}
