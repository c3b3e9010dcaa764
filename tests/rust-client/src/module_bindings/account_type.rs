use spacetimedb_sdk::__codegen::{self as __sdk, __lib};

#[derive(
    __lib::ser::Serialize, __lib::de::Deserialize, Clone, Debug, PartialEq, Eq, PartialOrd, Ord,
)]
#[sats(crate = __lib)]
pub struct Account {
    pub id: u32,
    pub balance: i64,
}

impl __sdk::InModule for Account {
    type Module = super::RemoteModule;
}
