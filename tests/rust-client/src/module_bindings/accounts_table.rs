use spacetimedb_sdk::__codegen::{self as __sdk, __ws};

use super::{Account, EventContext, RemoteModule, RemoteTables};

/// The table `accounts` in the client's cache.
pub struct AccountsTableHandle<'ctx> {
    imp: __sdk::TableHandle<Account>,
    ctx: std::marker::PhantomData<&'ctx RemoteTables>,
}

/// Adds `accounts()` to a context's `db`.
pub trait AccountsTableAccess {
    fn accounts(&self) -> AccountsTableHandle<'_>;
}

impl AccountsTableAccess for RemoteTables {
    fn accounts(&self) -> AccountsTableHandle<'_> {
        AccountsTableHandle {
            imp: self.imp.get_table::<Account>("accounts"),
            ctx: std::marker::PhantomData,
        }
    }
}

pub struct AccountsInsertCallbackId(__sdk::CallbackId);
pub struct AccountsDeleteCallbackId(__sdk::CallbackId);
pub struct AccountsUpdateCallbackId(__sdk::CallbackId);

impl<'ctx> __sdk::Table for AccountsTableHandle<'ctx> {
    type Row = Account;
    type EventContext = EventContext;

    fn count(&self) -> u64 {
        self.imp.count()
    }

    fn iter(&self) -> impl Iterator<Item = Account> + '_ {
        self.imp.iter()
    }

    type InsertCallbackId = AccountsInsertCallbackId;

    fn on_insert(
        &self,
        callback: impl FnMut(&EventContext, &Account) + Send + 'static,
    ) -> AccountsInsertCallbackId {
        AccountsInsertCallbackId(self.imp.on_insert(Box::new(callback)))
    }

    fn remove_on_insert(&self, callback: AccountsInsertCallbackId) {
        self.imp.remove_on_insert(callback.0)
    }

    type DeleteCallbackId = AccountsDeleteCallbackId;

    fn on_delete(
        &self,
        callback: impl FnMut(&EventContext, &Account) + Send + 'static,
    ) -> AccountsDeleteCallbackId {
        AccountsDeleteCallbackId(self.imp.on_delete(Box::new(callback)))
    }

    fn remove_on_delete(&self, callback: AccountsDeleteCallbackId) {
        self.imp.remove_on_delete(callback.0)
    }
}

impl<'ctx> __sdk::TableWithPrimaryKey for AccountsTableHandle<'ctx> {
    type UpdateCallbackId = AccountsUpdateCallbackId;

    fn on_update(
        &self,
        callback: impl FnMut(&EventContext, &Account, &Account) + Send + 'static,
    ) -> AccountsUpdateCallbackId {
        AccountsUpdateCallbackId(self.imp.on_update(Box::new(callback)))
    }

    fn remove_on_update(&self, callback: AccountsUpdateCallbackId) {
        self.imp.remove_on_update(callback.0)
    }
}

/// The unique index on `id`.
pub struct AccountsIdUnique<'ctx> {
    imp: __sdk::UniqueConstraintHandle<Account, u32>,
    phantom: std::marker::PhantomData<&'ctx RemoteTables>,
}

impl<'ctx> AccountsTableHandle<'ctx> {
    pub fn id(&self) -> AccountsIdUnique<'ctx> {
        AccountsIdUnique {
            imp: self.imp.get_unique_constraint::<u32>("id"),
            phantom: std::marker::PhantomData,
        }
    }
}

impl<'ctx> AccountsIdUnique<'ctx> {
    /// The subscribed row whose `id` this is.
    pub fn find(&self, id: &u32) -> Option<Account> {
        self.imp.find(id)
    }
}

pub(super) fn register_table(client_cache: &mut __sdk::ClientCache<RemoteModule>) {
    let table = client_cache.get_or_make_table::<Account>("accounts");
    table.add_unique_constraint::<u32>("id", |row| &row.id);
}

pub(super) fn parse_table_update(
    raw: __ws::v2::TableUpdate,
) -> __sdk::Result<__sdk::TableUpdate<Account>> {
    __sdk::TableUpdate::parse_table_update(raw).map_err(|error| {
        __sdk::InternalError::failed_parse("TableUpdate<Account>", "TableUpdate")
            .with_cause(error)
            .into()
    })
}
