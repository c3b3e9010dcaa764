//! The indexes of primary keys as ordered ones: what the crate gives for a unique column only finds single rows, although its
//! index is a B-tree. To be used inside of a transaction.

use std::sync::OnceLock;

use spacetimedb::sys;
use spacetimedb::table::{Index, IndexId, IndexIsRanged};
use spacetimedb::RangedIndex;

use crate::schema::*;

macro_rules! ordered_by_id {
    ($constant:ident, $index:ident, $table:ident, $name:literal) => {
        pub struct $index;

        impl Index for $index {
            const NUM_COLS_INDEXED: usize = 1;

            fn index_id() -> IndexId {
                static ID: OnceLock<IndexId> = OnceLock::new();
                *ID.get_or_init(|| {
                    sys::index_id_from_name($name).expect("a primary key has an index")
                })
            }
        }

        impl IndexIsRanged for $index {}

        pub const $constant: RangedIndex<$table, (u64,), $index> = RangedIndex::__NEW;
    };
}

ordered_by_id!(NOTES, Notes, note__TableHandle, "note_id_idx_btree");
ordered_by_id!(
    COMPANIES,
    Companies,
    bench_crm_company__TableHandle,
    "bench_crm_company_id_idx_btree"
);
ordered_by_id!(
    CONTACTS,
    Contacts,
    bench_crm_contact__TableHandle,
    "bench_crm_contact_id_idx_btree"
);
ordered_by_id!(
    DEALS,
    Deals,
    bench_crm_deal__TableHandle,
    "bench_crm_deal_id_idx_btree"
);
