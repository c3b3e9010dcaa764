//! All levels of a module as one, for languages whose bindings have no namespaces: names of a submodule `lib` begin with `Lib` or
//! `lib_`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use lightcone_types::{AlgebraicType, TypeRef, Typespace};

use super::{Function, Level, Module, Table, Types};
use crate::error::{Error, Result};

impl Module {
    pub fn flattened(self) -> Result<Level> {
        let mut flat = Level {
            path: Vec::new(),
            types: Types {
                typespace: Arc::new(Typespace::new(Vec::new())),
                names: HashMap::new(),
                sorted: BTreeMap::new(),
            },
            tables: Vec::new(),
            reducers: Vec::new(),
            procedures: Vec::new(),
        };
        let mut types = Vec::new();
        for level in self.levels {
            add(&mut flat, &mut types, level)?;
        }
        flat.types.typespace = Arc::new(Typespace::new(types));
        Ok(flat)
    }
}

/// Moves the content of a level; its types get the next indexes.
fn add(flat: &mut Level, types: &mut Vec<AlgebraicType>, level: Level) -> Result<()> {
    let pascal_prefix = level.pascal_prefix();
    let prefix: String = level.path.iter().map(|ns| format!("{ns}_")).collect();
    let offset = types.len() as u32;
    let moved = |ty: &TypeRef| TypeRef(ty.0 + offset);
    for ty in &level.types.typespace.types {
        let mut ty = ty.clone();
        shift(&mut ty, offset);
        types.push(ty);
    }
    for (ty, name) in &level.types.names {
        let name = format!("{pascal_prefix}{name}");
        flat.types.names.insert(moved(ty), name);
    }
    for (name, ty) in &level.types.sorted {
        let name = format!("{pascal_prefix}{name}");
        if flat.types.sorted.insert(name.clone(), moved(ty)).is_some() {
            return Err(Error::SameName(name));
        }
    }
    let renamed_function = |mut function: Function| {
        function.accessor.insert_str(0, &prefix);
        for (_, ty) in &mut function.params {
            shift(ty, offset);
        }
        shift(&mut function.return_type, offset);
        function
    };
    let renamed_table = |mut table: Table| {
        table.accessor.insert_str(0, &prefix);
        table.row_type = moved(&table.row_type);
        for column in &mut table.columns {
            shift(&mut column.ty, offset);
        }
        table
    };
    flat.tables
        .extend(level.tables.into_iter().map(renamed_table));
    flat.reducers
        .extend(level.reducers.into_iter().map(renamed_function));
    flat.procedures
        .extend(level.procedures.into_iter().map(renamed_function));
    Ok(())
}

/// Adds `offset` to the refs of a type.
fn shift(ty: &mut AlgebraicType, offset: u32) {
    match ty {
        AlgebraicType::Ref(reference) => reference.0 += offset,
        AlgebraicType::Array(element) => shift(element, offset),
        AlgebraicType::Product(product) => product
            .elements
            .iter_mut()
            .for_each(|element| shift(&mut element.algebraic_type, offset)),
        AlgebraicType::Sum(sum) => sum
            .variants
            .iter_mut()
            .for_each(|variant| shift(&mut variant.algebraic_type, offset)),
        _ => {}
    }
}
