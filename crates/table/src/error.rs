//! Errors of this crate.

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

impl Error {
    pub(crate) fn bad_page(table: &str, detail: String) -> Error {
        Error::BadPage {
            table: table.to_owned(),
            detail,
        }
    }
}
