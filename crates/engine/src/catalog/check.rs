//! What the rest of the engine relies on in a catalog that was read from a disk.

use lightcone_schema::{IndexAlgorithm, IndexSchema, SequenceSchema, TableSchema};
use lightcone_types::{AlgebraicType, ColId, IntegerType};

/// Ids are given out one by one, so a larger one is nonsense; tables are found by their ids in vectors.
const ID_MAX: u32 = 1 << 24;
/// The largest constant part of a row in bytes.
const FIXED_BYTES_MAX: usize = 1 << 20;

/// Checks a table read from the catalog.
pub(super) fn check_schema(schema: &TableSchema) -> Result<(), String> {
    let ids = schema
        .indexes
        .iter()
        .map(|index| index.id.0)
        .chain([schema.id.0]);
    if let Some(id) = ids.max().filter(|&id| id > ID_MAX) {
        return Err(format!("the id {id} is too large"));
    }
    if schema.view.is_some() {
        let by_hash = schema
            .indexes
            .first()
            .map(|index| index.algorithm.columns());
        let has_hash =
            schema.columns.first().map(|column| &column.ty) == Some(&AlgebraicType::HASH);
        if !has_hash || by_hash != Some(&[ColId(0)]) {
            return Err("it is of a view, and does not begin with a hash and its index".to_owned());
        }
    }
    let mut fixed_bytes = 0;
    for column in &schema.columns {
        fixed_bytes += constant_bytes(&column.ty)
            .map_err(|error| format!("column `{}` {error}", column.name))?;
    }
    if fixed_bytes > FIXED_BYTES_MAX {
        return Err(format!(
            "a row has {fixed_bytes} bytes of constant size, the limit is {FIXED_BYTES_MAX}"
        ));
    }
    schema
        .indexes
        .iter()
        .try_for_each(|index| check_index(schema, index))?;
    schema
        .sequences
        .iter()
        .try_for_each(|sequence| check_sequence(schema, sequence))
}

fn column_type(schema: &TableSchema, column: ColId) -> Result<&AlgebraicType, String> {
    let found = schema.columns.get(usize::from(column.0));
    found
        .map(|column| &column.ty)
        .ok_or_else(|| format!("column {} does not exist", column.0))
}

fn check_index(schema: &TableSchema, index: &IndexSchema) -> Result<(), String> {
    if index.algorithm.columns().is_empty() {
        return Err(format!("index `{}` has no columns", index.name));
    }
    for &column in index.algorithm.columns() {
        column_type(schema, column)?;
    }
    if let IndexAlgorithm::Direct(column) = index.algorithm {
        let ty = column_type(schema, column)?;
        if !ty.integer().is_some_and(IntegerType::fits_u64) && !ty.is_simple_enum() {
            return Err(format!(
                "index `{}` is direct on a column that holds no small number",
                index.name
            ));
        }
    }
    Ok(())
}

fn check_sequence(schema: &TableSchema, sequence: &SequenceSchema) -> Result<(), String> {
    if !column_type(schema, sequence.column)?.is_integer() {
        return Err(format!(
            "sequence `{}` is on a column that holds no integer",
            sequence.name
        ));
    }
    let range = sequence.min_value..=sequence.max_value;
    if range.is_empty() || !range.contains(&sequence.start) {
        return Err(format!(
            "sequence `{}` starts outside its range",
            sequence.name
        ));
    }
    Ok(())
}

/// An upper bound of the bytes of a value without its lists; an error if the type holds a reference.
fn constant_bytes(ty: &AlgebraicType) -> Result<usize, String> {
    use AlgebraicType as T;
    match ty {
        T::Ref(_) => Err("has a type that is not resolved".to_owned()),
        T::Product(_) | T::Sum(_) => {
            let tag = usize::from(matches!(ty, T::Sum(_)));
            ty.parts().try_fold(tag, |bytes: usize, (_, part)| {
                Ok(bytes.saturating_add(constant_bytes(part)?))
            })
        }
        T::Array(element) => constant_bytes(element).map(|_| 4),
        scalar => Ok(lightcone_types::bsatn::fixed_size(scalar).unwrap_or(4)),
    }
}
