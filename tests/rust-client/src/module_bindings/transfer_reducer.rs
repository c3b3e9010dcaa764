use spacetimedb_sdk::__codegen::{self as __sdk, __lib};

use super::{Reducer, ReducerEventContext, RemoteModule, RemoteReducers};

#[derive(__lib::ser::Serialize, __lib::de::Deserialize, Clone, Debug, PartialEq)]
#[sats(crate = __lib)]
pub(super) struct TransferArgs {
    pub from: u32,
    pub to: u32,
    pub amount: i64,
}

impl From<TransferArgs> for Reducer {
    fn from(args: TransferArgs) -> Self {
        Self::Transfer {
            from: args.from,
            to: args.to,
            amount: args.amount,
        }
    }
}

impl __sdk::InModule for TransferArgs {
    type Module = RemoteModule;
}

/// Adds `transfer` to a context's `reducers`.
#[allow(non_camel_case_types)]
pub trait transfer {
    /// Calls the reducer and does not wait for its outcome.
    fn transfer(&self, from: u32, to: u32, amount: i64) -> __sdk::Result<()> {
        self.transfer_then(from, to, amount, |_, _| {})
    }

    /// Calls the reducer; `callback` gets its outcome.
    fn transfer_then(
        &self,
        from: u32,
        to: u32,
        amount: i64,
        callback: impl FnOnce(&ReducerEventContext, Result<Result<(), String>, __sdk::InternalError>)
        + Send
        + 'static,
    ) -> __sdk::Result<()>;
}

impl transfer for RemoteReducers {
    fn transfer_then(
        &self,
        from: u32,
        to: u32,
        amount: i64,
        callback: impl FnOnce(&ReducerEventContext, Result<Result<(), String>, __sdk::InternalError>)
        + Send
        + 'static,
    ) -> __sdk::Result<()> {
        self.imp.invoke_reducer_with_callback::<TransferArgs>(
            TransferArgs { from, to, amount },
            callback,
        )
    }
}
