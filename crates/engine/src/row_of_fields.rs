//! Rows of the catalog, written field by field.

/// Fields one behind the other.
macro_rules! row {
    ($($field:expr),* $(,)?) => {{
        let mut row = Vec::new();
        $( $field.encode(&mut row); )*
        row
    }};
}
