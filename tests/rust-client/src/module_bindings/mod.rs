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

macro_rules! remote {
    ($($(#[$doc:meta])* $name:ident),*) => {$(
        $(#[$doc])*
        pub struct $name {
            #[allow(dead_code)]
            imp: __sdk::DbContextImpl<RemoteModule>,
        }

        impl __sdk::InModule for $name {
            type Module = RemoteModule;
        }
    )*};
}

remote! {
    /// The methods of the module's reducers.
    RemoteReducers,
    /// The methods of the module's procedures: there are none.
    RemoteProcedures,
    /// The tables of the cache.
    RemoteTables
}

/// A subscription, to end it and to ask after it.
#[derive(Clone)]
pub struct SubscriptionHandle {
    imp: __sdk::SubscriptionHandleImpl<RemoteModule>,
}

impl __sdk::InModule for SubscriptionHandle {
    type Module = RemoteModule;
}

impl __sdk::SubscriptionHandle for SubscriptionHandle {
    fn new(imp: __sdk::SubscriptionHandleImpl<RemoteModule>) -> Self {
        Self { imp }
    }

    fn is_ended(&self) -> bool {
        self.imp.is_ended()
    }

    fn is_active(&self) -> bool {
        self.imp.is_active()
    }

    fn unsubscribe_then(self, on_end: __sdk::OnEndedCallback<RemoteModule>) -> __sdk::Result<()> {
        self.imp.unsubscribe_then(Some(on_end))
    }

    fn unsubscribe(self) -> __sdk::Result<()> {
        self.imp.unsubscribe_then(None)
    }
}

/// What all connections and contexts have in common.
macro_rules! context {
    ($name:ident) => {
        impl __sdk::InModule for $name {
            type Module = RemoteModule;
        }

        impl __sdk::DbContext for $name {
            type DbView = RemoteTables;
            type Reducers = RemoteReducers;
            type Procedures = RemoteProcedures;
            type SubscriptionBuilder = __sdk::SubscriptionBuilder<RemoteModule>;

            fn db(&self) -> &RemoteTables {
                &self.db
            }

            fn reducers(&self) -> &RemoteReducers {
                &self.reducers
            }

            fn procedures(&self) -> &RemoteProcedures {
                &self.procedures
            }

            fn is_active(&self) -> bool {
                self.imp.is_active()
            }

            fn disconnect(&self) -> __sdk::Result<()> {
                self.imp.disconnect()
            }

            fn subscription_builder(&self) -> Self::SubscriptionBuilder {
                __sdk::SubscriptionBuilder::new(&self.imp)
            }

            fn try_identity(&self) -> Option<__sdk::Identity> {
                self.imp.try_identity()
            }

            fn connection_id(&self) -> __sdk::ConnectionId {
                self.imp.connection_id()
            }

            fn try_connection_id(&self) -> Option<__sdk::ConnectionId> {
                self.imp.try_connection_id()
            }
        }
    };
}

/// A connection to a remote database.
pub struct DbConnection {
    pub db: RemoteTables,
    pub reducers: RemoteReducers,
    pub procedures: RemoteProcedures,
    imp: __sdk::DbContextImpl<RemoteModule>,
}

context!(DbConnection);

impl __sdk::DbConnection for DbConnection {
    fn new(imp: __sdk::DbContextImpl<RemoteModule>) -> Self {
        Self {
            db: RemoteTables { imp: imp.clone() },
            reducers: RemoteReducers { imp: imp.clone() },
            procedures: RemoteProcedures { imp: imp.clone() },
            imp,
        }
    }
}

impl DbConnection {
    pub fn builder() -> __sdk::DbConnectionBuilder<RemoteModule> {
        __sdk::DbConnectionBuilder::new()
    }

    /// Handles messages in a thread of its own until the connection ends.
    pub fn run_threaded(&self) -> std::thread::JoinHandle<()> {
        self.imp.run_threaded()
    }
}

/// A context of callbacks, with the event that it is about.
macro_rules! event_context {
    ($name:ident, $event:ty) => {
        pub struct $name {
            pub db: RemoteTables,
            pub reducers: RemoteReducers,
            pub procedures: RemoteProcedures,
            pub event: $event,
            imp: __sdk::DbContextImpl<RemoteModule>,
        }

        context!($name);

        impl __sdk::AbstractEventContext for $name {
            type Event = $event;

            fn event(&self) -> &Self::Event {
                &self.event
            }

            fn new(imp: __sdk::DbContextImpl<RemoteModule>, event: Self::Event) -> Self {
                Self {
                    db: RemoteTables { imp: imp.clone() },
                    reducers: RemoteReducers { imp: imp.clone() },
                    procedures: RemoteProcedures { imp: imp.clone() },
                    event,
                    imp,
                }
            }
        }
    };
}

event_context!(EventContext, __sdk::Event<Reducer>);
event_context!(ReducerEventContext, __sdk::ReducerEvent<Reducer>);
event_context!(ProcedureEventContext, ());
event_context!(SubscriptionEventContext, ());
event_context!(ErrorContext, Option<__sdk::Error>);

impl __sdk::EventContext for EventContext {}
impl __sdk::ReducerEventContext for ReducerEventContext {}
impl __sdk::ProcedureEventContext for ProcedureEventContext {}
impl __sdk::SubscriptionEventContext for SubscriptionEventContext {}
impl __sdk::ErrorContext for ErrorContext {}
