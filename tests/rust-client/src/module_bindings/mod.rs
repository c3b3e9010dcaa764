//! What a client of `transfer-rs` needs: its row type, its table, its reducers, and the types the crate
//! `spacetimedb-sdk` is generic over.

use spacetimedb_sdk::__codegen::{self as __sdk, __sats, __ws};

pub mod account_type;
pub mod accounts_table;
pub mod missing_reducer;
pub mod seed_reducer;
pub mod transfer_reducer;

pub use account_type::Account;
pub use accounts_table::*;
pub use missing_reducer::missing;
pub use seed_reducer::seed;
pub use transfer_reducer::transfer;

/// One value for every reducer, with its arguments.
#[derive(Clone, PartialEq, Debug)]
pub enum Reducer {
    Missing { n: u32 },
    Seed { n: u32, initial_balance: i64 },
    Transfer { from: u32, to: u32, amount: i64 },
}

impl __sdk::InModule for Reducer {
    type Module = RemoteModule;
}

impl __sdk::Reducer for Reducer {
    fn reducer_name(&self) -> &'static str {
        match self {
            Reducer::Missing { .. } => "missing",
            Reducer::Seed { .. } => "seed",
            Reducer::Transfer { .. } => "transfer",
        }
    }

    fn args_bsatn(&self) -> Result<Vec<u8>, __sats::bsatn::EncodeError> {
        match self.clone() {
            Reducer::Missing { n } => __sats::bsatn::to_vec(&missing_reducer::MissingArgs { n }),
            Reducer::Seed { n, initial_balance } => {
                __sats::bsatn::to_vec(&seed_reducer::SeedArgs { n, initial_balance })
            }
            Reducer::Transfer { from, to, amount } => {
                __sats::bsatn::to_vec(&transfer_reducer::TransferArgs { from, to, amount })
            }
        }
    }
}

/// The rows of a message, by table.
#[derive(Default, Debug)]
pub struct DbUpdate {
    accounts: __sdk::TableUpdate<Account>,
}

impl TryFrom<__ws::v2::TransactionUpdate> for DbUpdate {
    type Error = __sdk::Error;

    fn try_from(raw: __ws::v2::TransactionUpdate) -> Result<Self, Self::Error> {
        let mut update = DbUpdate::default();
        for table in __sdk::transaction_update_iter_table_updates(raw) {
            match &table.table_name[..] {
                "accounts" => update
                    .accounts
                    .append(accounts_table::parse_table_update(table)?),
                unknown => {
                    return Err(__sdk::InternalError::unknown_name(
                        "table",
                        unknown,
                        "DatabaseUpdate",
                    )
                    .into());
                }
            }
        }
        Ok(update)
    }
}

impl __sdk::InModule for DbUpdate {
    type Module = RemoteModule;
}

impl __sdk::DbUpdate for DbUpdate {
    fn apply_to_client_cache(
        &self,
        cache: &mut __sdk::ClientCache<RemoteModule>,
    ) -> AppliedDiff<'_> {
        AppliedDiff {
            accounts: cache
                .apply_diff_to_table::<Account>("accounts", &self.accounts)
                .with_updates_by_pk(|row| &row.id),
        }
    }

    fn parse_initial_rows(raw: __ws::v2::QueryRows) -> __sdk::Result<Self> {
        let mut update = DbUpdate::default();
        for rows in raw.tables {
            match &rows.table[..] {
                "accounts" => update
                    .accounts
                    .append(__sdk::parse_row_list_as_inserts(rows.rows)?),
                unknown => {
                    return Err(
                        __sdk::InternalError::unknown_name("table", unknown, "QueryRows").into(),
                    );
                }
            }
        }
        Ok(update)
    }

    fn parse_unsubscribe_rows(raw: __ws::v2::QueryRows) -> __sdk::Result<Self> {
        let mut update = DbUpdate::default();
        for rows in raw.tables {
            match &rows.table[..] {
                "accounts" => update
                    .accounts
                    .append(__sdk::parse_row_list_as_deletes(rows.rows)?),
                unknown => {
                    return Err(
                        __sdk::InternalError::unknown_name("table", unknown, "QueryRows").into(),
                    );
                }
            }
        }
        Ok(update)
    }
}

/// What a message changed in the cache.
#[derive(Default)]
pub struct AppliedDiff<'r> {
    accounts: __sdk::TableAppliedDiff<'r, Account>,
}

impl __sdk::InModule for AppliedDiff<'_> {
    type Module = RemoteModule;
}

impl<'r> __sdk::AppliedDiff<'r> for AppliedDiff<'r> {
    fn invoke_row_callbacks(
        &self,
        event: &EventContext,
        callbacks: &mut __sdk::DbCallbacks<RemoteModule>,
    ) {
        callbacks.invoke_table_row_callbacks::<Account>("accounts", &self.accounts, event);
    }
}

/// The module itself, as a type.
#[derive(Debug)]
pub struct RemoteModule;

impl __sdk::InModule for RemoteModule {
    type Module = Self;
}

impl __sdk::SpacetimeModule for RemoteModule {
    type DbConnection = DbConnection;
    type EventContext = EventContext;
    type ReducerEventContext = ReducerEventContext;
    type ProcedureEventContext = ProcedureEventContext;
    type SubscriptionEventContext = SubscriptionEventContext;
    type ErrorContext = ErrorContext;
    type Reducer = Reducer;
    type DbView = RemoteTables;
    type Reducers = RemoteReducers;
    type Procedures = RemoteProcedures;
    type DbUpdate = DbUpdate;
    type AppliedDiff<'r> = AppliedDiff<'r>;
    type SubscriptionHandle = SubscriptionHandle;
    type QueryBuilder = __sdk::QueryBuilder;

    fn register_tables(client_cache: &mut __sdk::ClientCache<Self>) {
        accounts_table::register_table(client_cache);
    }

    const ALL_TABLE_NAMES: &'static [&'static str] = &["accounts"];
}

// What the command writes behind that, for every module the same: here the very text is compiled.
include!("../../../../crates/codegen/src/rust/contexts.rs.txt");
