//! Pages, rows and indexes of one table: the only home of `unsafe` row code.
//!
//! A row is stored as its BSATN encoding. What a client sends, a module reads, the log keeps and a subscriber gets are
//! the same bytes, so scans and point reads are memory copies. A [`Table`] knows nothing of transactions: the engine
//! keeps the undo log and calls the primitive operations here.
//!
//! `unsafe` is in `page`, in its two callers that take a promise, `words` and `rows/dense`, and in `index/tree`, which shares nodes
//! as pages are shared; it is refused anywhere else.

#![deny(unsafe_code)]

mod id_table;
mod index;
pub mod key;
mod layout;
#[allow(unsafe_code)]
mod page;
mod row_id;
mod rows;
mod seed;
mod table;
#[allow(unsafe_code)]
mod words;

pub use index::{Index, PointKey, RangeBounds};
pub use key::KeyRange;
pub use layout::RowLayout;
pub use row_id::RowId;
pub use rows::RowStore;
pub use table::{
    AlterError, Altered, Clashes, IndexBuild, IndexChanges, InsertError, Inserted, Table,
    TableSnapshot, TableView, Tick, CLASHES_MAX,
};

/// What can be wrong with the input of this crate.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// Row or key bytes do not decode as the table's or index's type (01 §1.5.1).
    #[error(transparent)]
    Decode(#[from] lightcone_types::bsatn::DecodeError),
    /// A range scan on an index without order (03 §5, errno 10).
    #[error("the index does not support range scans")]
    NotOrdered,
    /// `prefix_elems` leaves no column for the bounds (03 §8.3).
    #[error("a prefix of {prefix_columns} columns leaves no column of the index for the bounds")]
    PrefixTooLong { prefix_columns: usize },
    /// The table holds as many rows as row ids can name.
    #[error("table `{table}` is full: it holds {rows_max} rows [LC0701]")]
    TableFull { table: String, rows_max: u32 },
    /// A page image read from a snapshot does not fit the table.
    #[error("page image of table `{table}` is invalid: {detail} [LC0535]")]
    BadPage { table: String, detail: String },
}
