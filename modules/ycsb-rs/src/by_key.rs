//! The index of the primary key as an ordered one: what the crate gives for a unique column only finds single rows, although
//! its index is a B-tree. A second index on the same column would cost every insertion.

use std::sync::OnceLock;

use spacetimedb::sys;
use spacetimedb::table::{Index, IndexId, IndexIsRanged};
use spacetimedb::RangedIndex;

use crate::usertable__TableHandle;

pub struct ByKey;

impl Index for ByKey {
    const NUM_COLS_INDEXED: usize = 1;

    fn index_id() -> IndexId {
        static ID: OnceLock<IndexId> = OnceLock::new();
        *ID.get_or_init(|| {
            sys::index_id_from_name("usertable_ycsb_key_idx_btree")
                .expect("a primary key has an index")
        })
    }
}

impl IndexIsRanged for ByKey {}

/// Only to be used inside of a transaction.
pub const BY_KEY: RangedIndex<usertable__TableHandle, (String,), ByKey> = RangedIndex::__NEW;
