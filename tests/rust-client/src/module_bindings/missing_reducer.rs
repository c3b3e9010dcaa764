use spacetimedb_sdk::__codegen::{self as __sdk, __lib};

use super::{Reducer, ReducerEventContext, RemoteModule, RemoteReducers};

#[derive(__lib::ser::Serialize, __lib::de::Deserialize, Clone, Debug, PartialEq)]
#[sats(crate = __lib)]
pub(super) struct MissingArgs {
    pub n: u32,
}

// The module has no such reducer: outdated bindings look like this.
impl From<MissingArgs> for Reducer {
    fn from(args: MissingArgs) -> Self {
        Self::Missing { n: args.n }
    }
}

impl __sdk::InModule for MissingArgs {
    type Module = RemoteModule;
}

/// Adds `missing` to a context's `reducers`.
#[allow(non_camel_case_types)]
pub trait missing {
    /// Calls the reducer and does not wait for its outcome.
    fn missing(&self, n: u32) -> __sdk::Result<()> {
        self.missing_then(n, |_, _| {})
    }

    /// Calls the reducer; `callback` gets its outcome.
    fn missing_then(
        &self,
        n: u32,
        callback: impl FnOnce(&ReducerEventContext, Result<Result<(), String>, __sdk::InternalError>)
        + Send
        + 'static,
    ) -> __sdk::Result<()>;
}

impl missing for RemoteReducers {
    fn missing_then(
        &self,
        n: u32,
        callback: impl FnOnce(&ReducerEventContext, Result<Result<(), String>, __sdk::InternalError>)
        + Send
        + 'static,
    ) -> __sdk::Result<()> {
        self.imp
            .invoke_reducer_with_callback::<MissingArgs>(MissingArgs { n }, callback)
    }
}
