use spacetimedb_sdk::__codegen::{self as __sdk, __lib};

use super::{Reducer, ReducerEventContext, RemoteModule, RemoteReducers};

#[derive(__lib::ser::Serialize, __lib::de::Deserialize, Clone, Debug, PartialEq)]
#[sats(crate = __lib)]
pub(super) struct SeedArgs {
    pub n: u32,
    pub initial_balance: i64,
}

impl From<SeedArgs> for Reducer {
    fn from(args: SeedArgs) -> Self {
        Self::Seed {
            n: args.n,
            initial_balance: args.initial_balance,
        }
    }
}

impl __sdk::InModule for SeedArgs {
    type Module = RemoteModule;
}

/// Adds `seed` to a context's `reducers`.
#[allow(non_camel_case_types)]
pub trait seed {
    /// Calls the reducer and does not wait for its outcome.
    fn seed(&self, n: u32, initial_balance: i64) -> __sdk::Result<()> {
        self.seed_then(n, initial_balance, |_, _| {})
    }

    /// Calls the reducer; `callback` gets its outcome.
    fn seed_then(
        &self,
        n: u32,
        initial_balance: i64,
        callback: impl FnOnce(&ReducerEventContext, Result<Result<(), String>, __sdk::InternalError>)
        + Send
        + 'static,
    ) -> __sdk::Result<()>;
}

impl seed for RemoteReducers {
    fn seed_then(
        &self,
        n: u32,
        initial_balance: i64,
        callback: impl FnOnce(&ReducerEventContext, Result<Result<(), String>, __sdk::InternalError>)
        + Send
        + 'static,
    ) -> __sdk::Result<()> {
        self.imp
            .invoke_reducer_with_callback::<SeedArgs>(SeedArgs { n, initial_balance }, callback)
    }
}
