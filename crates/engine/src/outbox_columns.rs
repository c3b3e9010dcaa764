//! Where key and target lie in the rows of outbox tables (02 §8.7a).

use lightcone_schema::TableSchema;
use lightcone_table::Table;
use lightcone_types::{AlgebraicType, Identity};

/// Where key and target lie in the rows of an outbox table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutboxColumns {
    key: usize,
    target: usize,
    /// Position of the primary key's index.
    pub index: usize,
}

impl OutboxColumns {
    /// None for tables without an outbox, or with one that the rules for definitions do not allow: a catalog from a disk is not
    /// trusted.
    pub fn of(schema: &TableSchema) -> Option<OutboxColumns> {
        let outbox = schema.outbox.as_ref()?;
        let key = schema.primary_key?;
        let is_key = schema.column(key)?.ty == AlgebraicType::U64;
        let target = &schema.column(outbox.target_column)?.ty;
        let is_target = *target == AlgebraicType::U256 || target.special_product().is_some();
        let have_arguments = outbox
            .arg_columns
            .iter()
            .all(|&id| schema.column(id).is_some());
        let mut indexes = schema.indexes.iter();
        let index = indexes.position(|index| index.unique && index.algorithm.columns() == [key])?;
        (is_key && is_target && have_arguments && !schema.is_event).then_some(OutboxColumns {
            key: usize::from(key.0),
            target: usize::from(outbox.target_column.0),
            index,
        })
    }

    pub fn key(&self, table: &Table, row: &[u8]) -> u64 {
        let bytes = table.layout().column(row, self.key);
        u64::from_le_bytes(bytes.try_into().expect("the key is a u64"))
    }

    /// None: the special type is not an identity.
    pub fn target(&self, table: &Table, row: &[u8]) -> Option<Identity> {
        let bytes = table.layout().column(row, self.target);
        bytes.try_into().ok().map(Identity::from_le_bytes)
    }
}
