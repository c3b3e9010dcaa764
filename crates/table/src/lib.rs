//! Pages, rows and indexes of one table: the only home of `unsafe` row code.
//!
//! A row is stored as its BSATN encoding. What a client sends, a module reads, the log keeps and a subscriber gets are
//! the same bytes, so scans and point reads are memory copies. A [`Table`] knows nothing of transactions: the engine
//! keeps the undo log and calls the primitive operations here.
//!
//! `unsafe` is in `page`, in its two callers that take a promise, `words` and `rows/dense`, and in `index/tree`, which shares nodes
//! as pages are shared; it is refused anywhere else.

#![deny(unsafe_code)]

mod delta;
mod error;
mod id_table;
mod index;
pub mod key;
mod layout;
#[allow(unsafe_code)]
mod page;
mod read_set;
mod row_id;
mod rows;
mod seed;
mod table;
mod tables;
#[allow(unsafe_code)]
mod words;

pub use delta::{DeltaBatch, DeltaKind, DeltaOp, RowAt};
pub use error::Error;
pub use index::{Index, PointKey, RangeBounds};
pub use key::KeyRange;
pub use layout::RowLayout;
pub use page::{FrozenPage, PageHash};
pub use read_set::{ReadSet, TableReads, READS_MAX};
pub use row_id::RowId;
pub use rows::RowStore;
pub use table::alter::{AlterError, Altered, Clashes, Tick, CLASHES_MAX};
pub use table::held::IndexChanges;
pub use table::hold::IndexBuild;
pub use table::{InsertError, Inserted, PartBuild, Table, TablePart, TableSnapshot, TableView};
pub use tables::{CurrentTables, Tables};
