//! Tables with their columns, indexes, constraints, sequences and defaults (02 §8.6).

use std::collections::HashSet;

use lightcone_types::bsatn::{self, Reader};
use lightcone_types::{
    AlgebraicType, ColId, IntegerType, ProductType, TypeError, TypeRef, Typespace,
};

use super::names::{check_given_name, check_names};
use super::state::Level;
use super::types::type_parts;
use crate::def::{ColumnDef, IndexDef, SequenceDef, TableDef, UniqueConstraintDef};
use crate::error::{clip, TypeLocation, ValidationError};
use crate::name::IDENTIFIER_BYTES_MAX;
use crate::raw::*;
use crate::sequence::check_options;
use crate::table::{column_set, IndexAlgorithm, TableKind};

/// Column ids are 16-bit.
const COLUMNS_MAX: usize = 1 << 16;

impl<'a> Level<'a> {
    pub(super) fn table(&mut self, raw: RawTableDefV10) -> Option<TableDef> {
        let name = self.rules.table(&raw.source_name);
        check_names(self.cx, &raw.source_name, &name);
        self.claim(&name, Some(&raw.source_name));
        if raw.table_type == TableKind::System {
            let table = clip(&name);
            self.cx.push(ValidationError::SystemTable { table });
        } else {
            self.check_reserved(&name);
        }
        let columns = self.columns("table", &name, raw.product_type_ref)?;

        let mut table = TableValidator {
            level: self,
            name: &name,
            columns: &columns,
        };
        let constraints = table.constraints(raw.constraints);
        let unique_sets: HashSet<&[ColId]> = constraints.iter().map(|c| &c.columns[..]).collect();
        let primary_key = table.primary_key(&raw.primary_key, &unique_sets);
        let indexes = table.indexes(raw.product_type_ref, raw.indexes, &unique_sets);
        table.check_constraints_have_indexes(&constraints, &indexes);
        let sequences = table.sequences(raw.sequences);
        let defaults = table.defaults(raw.default_values);
        let mut columns = columns;
        for (column, value) in defaults {
            columns[column.index()].default = Some(value);
        }
        Some(TableDef {
            name,
            source_name: raw.source_name,
            row_type: raw.product_type_ref,
            columns,
            primary_key,
            indexes,
            constraints,
            sequences,
            schedule: None,
            outbox: None,
            access: raw.table_access,
            is_event: raw.is_event,
        })
    }

    /// Tables of the system, which come in these names, are not for modules.
    pub(super) fn check_reserved(&mut self, name: &str) {
        if name.starts_with("st_") {
            let name = clip(name);
            self.cx.push(ValidationError::TableNameReserved { name });
        }
    }

    /// The columns of a table or view, from the product its rows have.
    pub(super) fn columns(
        &mut self,
        entity: &'static str,
        name: &str,
        row_type: TypeRef,
    ) -> Option<Vec<ColumnDef>> {
        let (source, converted) = self.row_product(entity, name, row_type)?;
        let mut columns = Vec::with_capacity(source.elements.len());
        let mut names = HashSet::new();
        for (position, (source, converted)) in
            source.elements.iter().zip(&converted.elements).enumerate()
        {
            let (Some(source_name), Some(column)) = (source.name(), converted.name()) else {
                self.cx.push(ValidationError::UnnamedColumn {
                    entity,
                    name: clip(name),
                    position,
                });
                return None;
            };
            if !self.cx.charge_name(source_name.len() + column.len()) {
                return None;
            }
            // The parts of a declared type had their names and types checked with it.
            if !self.uses.is_declared(row_type) {
                self.cx.check_identifier(source_name);
                if let Err(reason) = self.uses.check(&source.algebraic_type) {
                    let location = TypeLocation::Column {
                        entity,
                        name: clip(name),
                        column: clip(column),
                    };
                    self.cx.push(ValidationError::TypeUse { location, reason });
                }
            }
            if column != source_name {
                self.cx.check_identifier(column);
            }
            if !names.insert(column) {
                self.cx.push(ValidationError::DuplicateColumnName {
                    entity,
                    name: clip(name),
                    column: clip(column),
                });
            }
            let ty = self.converted.resolve(&converted.algebraic_type);
            let ty = ty.unwrap_or_else(|reason| {
                // A ref out of bounds has been reported as a bad type use.
                if !matches!(reason, TypeError::InvalidRef(_)) {
                    self.cx.push(ValidationError::ColumnType {
                        entity,
                        name: clip(name),
                        column: clip(column),
                        reason,
                    });
                }
                AlgebraicType::unit()
            });
            if !self.cx.charge_type(type_parts(&ty)) {
                return None;
            }
            columns.push(ColumnDef {
                name: column.to_owned(),
                source_name: source_name.to_owned(),
                ty,
                default: None,
            });
        }
        Some(columns)
    }

    /// The product that rows have, as sent and with its names converted.
    fn row_product(
        &mut self,
        entity: &'static str,
        name: &str,
        row_type: TypeRef,
    ) -> Option<(&'a ProductType, &'a ProductType)> {
        let product = |typespace: &'a Typespace| typespace.get(row_type)?.as_product();
        let (Some(source), Some(converted)) = (product(self.source), product(self.converted))
        else {
            let entity = if entity == "view" { "View" } else { "Table" };
            self.cx.push(ValidationError::InvalidProductTypeRef {
                entity,
                name: clip(name),
                ty: row_type,
            });
            return None;
        };
        if source.elements.len() > COLUMNS_MAX {
            self.cx.push(ValidationError::TooLarge {
                what: "columns of a table",
                limit: COLUMNS_MAX,
            });
            return None;
        }
        Some((source, converted))
    }
}

struct TableValidator<'a, 'b> {
    level: &'a mut Level<'b>,
    name: &'a str,
    columns: &'a [ColumnDef],
}

impl TableValidator<'_, '_> {
    fn column(&self, column: ColId) -> Option<&ColumnDef> {
        self.columns.get(column.index())
    }

    fn column_name(&self, column: ColId) -> String {
        self.column(column)
            .map_or_else(|| format!("col_{column}"), |c| c.name.clone())
    }

    fn version(&self) -> RawVersion {
        self.level.cx.version
    }

    /// `error` gets the name of the table, for the message.
    fn push(&mut self, error: impl FnOnce(String) -> ValidationError) {
        self.level.cx.push(error(clip(self.name)));
    }

    /// The given name, or `{table}_{columns joined by _}_{suffix}`; `None` once derived names pass their limit.
    fn name(&mut self, given: Option<String>, columns: &[ColId], suffix: &str) -> Option<String> {
        if given.is_some() {
            return given;
        }
        let mut name = self.name.to_owned();
        for column in columns {
            if name.len() > COLUMNS_MAX && !self.level.cx.charge_name(name.len()) {
                return None;
            }
            name.push('_');
            name.push_str(&self.column_name(*column));
        }
        name.push('_');
        name.push_str(suffix);
        self.level.cx.charge_name(name.len()).then_some(name)
    }

    fn column_not_found(&mut self, def: &str, column: ColId) {
        let def = clip(def);
        self.push(|table| ValidationError::ColumnNotFound { table, def, column });
    }

    /// Checks the column list of an index or constraint.
    fn check_columns(&mut self, def: &str, columns: &[ColId]) -> bool {
        let def_name = clip(def);
        if columns.is_empty() {
            let def = def_name;
            self.push(|table| ValidationError::EmptyColumnList { table, def });
            return false;
        }
        let mut seen = HashSet::new();
        for &column in columns {
            if self.column(column).is_none() {
                self.column_not_found(def, column);
                return false;
            }
            if !seen.insert(column) {
                let def = def_name;
                self.push(|table| ValidationError::DuplicateColumns { table, def, column });
                return false;
            }
        }
        true
    }

    fn primary_key(&mut self, raw: &[ColId], unique_sets: &HashSet<&[ColId]>) -> Option<ColId> {
        let column = match raw {
            [] => return None,
            [column] => *column,
            _ => {
                self.push(|table| ValidationError::RepeatedPrimaryKey { table });
                return None;
            }
        };
        if self.column(column).is_none() {
            self.column_not_found("primary key", column);
        } else if !unique_sets.contains(&[column][..]) {
            let column = clip(&self.column_name(column));
            self.push(|table| ValidationError::MissingPrimaryKeyUniqueConstraint { table, column });
        }
        Some(column)
    }

    fn constraints(&mut self, raw: Vec<RawConstraintDefV10>) -> Vec<UniqueConstraintDef> {
        let mut constraints = Vec::with_capacity(raw.len());
        for raw in raw {
            let RawConstraintData::Unique(RawUniqueConstraintData { columns }) = raw.data;
            // Version 10 ignores a given name.
            let given = raw.source_name.filter(|_| self.version() == RawVersion::V9);
            let Some(name) = self.name(given, &columns, "key") else {
                return constraints;
            };
            check_given_name(self.level.cx, &name);
            self.level.claim(&name, None);
            if self.check_columns(&name, &columns) {
                constraints.push(UniqueConstraintDef {
                    name,
                    columns: column_set(&columns),
                });
            }
        }
        constraints
    }

    fn indexes(
        &mut self,
        row_type: TypeRef,
        raw: Vec<RawIndexDefV10>,
        unique_sets: &HashSet<&[ColId]>,
    ) -> Vec<IndexDef> {
        let mut indexes = Vec::with_capacity(raw.len());
        for (position, raw) in raw.into_iter().enumerate() {
            let suffix = format!("idx_{}", raw.algorithm.suffix());
            let given = match (self.version(), &raw.source_name) {
                (RawVersion::V9, name) => name.clone(),
                (RawVersion::V10, Some(source_name)) => self.level.rules.index(source_name),
                (RawVersion::V10, None) => {
                    self.push(|table| ValidationError::IndexWithoutSourceName { table, position });
                    continue;
                }
            };
            let Some(name) = self.name(given, raw.algorithm.columns(), &suffix) else {
                return indexes;
            };
            let source_name = raw.source_name.unwrap_or_else(|| name.clone());
            check_given_name(self.level.cx, &source_name);
            self.level.claim(&name, Some(&source_name));
            if !self.check_columns(&name, raw.algorithm.columns()) {
                continue;
            }
            match self.version() {
                // Generated names may be longer than a name that someone gives.
                RawVersion::V10 if name.len() > IDENTIFIER_BYTES_MAX => {}
                RawVersion::V10 => self.level.cx.check_identifier(&name),
                RawVersion::V9 => check_given_name(self.level.cx, &name),
            }
            if let IndexAlgorithm::Direct(column) = raw.algorithm {
                self.check_direct(&name, row_type, column);
            }
            let unique = unique_sets.contains(&raw.algorithm.column_set()[..]);
            let accessor_name = raw.accessor_name;
            if let Some(accessor) = &accessor_name {
                check_given_name(self.level.cx, accessor);
            }
            indexes.push(IndexDef {
                name,
                source_name,
                accessor_name,
                algorithm: raw.algorithm,
                unique,
            });
        }
        indexes
    }

    /// The column of a direct index is a small unsigned integer or an enum without data, which may
    /// stand behind one ref.
    fn check_direct(&mut self, index: &str, row_type: TypeRef, column: ColId) {
        let types = self.level.converted;
        let row = types.get(row_type).and_then(AlgebraicType::as_product);
        let Some(element) = row.and_then(|row| row.elements.get(column.index())) else {
            return;
        };
        let ty = match &element.algebraic_type {
            AlgebraicType::Ref(target) => types.get(*target).filter(|ty| ty.as_sum().is_some()),
            ty => Some(ty),
        };
        let good = ty.is_some_and(|ty| {
            ty.integer().is_some_and(IntegerType::fits_u64) || ty.is_simple_enum() || ty.is_never()
        });
        if !good {
            self.level.cx.push(ValidationError::DirectIndexOnBadType {
                index: clip(index),
                column: clip(&self.column_name(column)),
                ty: clip(&element.algebraic_type.type_name()),
            });
        }
    }

    fn check_constraints_have_indexes(
        &mut self,
        constraints: &[UniqueConstraintDef],
        indexes: &[IndexDef],
    ) {
        let sets = indexes.iter().map(|index| index.algorithm.column_set());
        let indexed: HashSet<Vec<ColId>> = sets.collect();
        for unique in constraints {
            if !indexed.contains(&unique.columns) {
                let (constraint, columns) = (clip(&unique.name), unique.columns.iter().copied());
                let columns = columns.collect();
                self.push(|_| ValidationError::UniqueConstraintWithoutIndex {
                    constraint,
                    columns,
                });
            }
        }
    }

    fn sequences(&mut self, raw: Vec<RawSequenceDefV10>) -> Vec<SequenceDef> {
        let mut sequenced = HashSet::new();
        let mut sequences = Vec::with_capacity(raw.len());
        for mut raw in raw {
            let given = raw.source_name.take();
            let Some(name) = self.name(given, &[raw.column], "seq") else {
                return sequences;
            };
            check_given_name(self.level.cx, &name);
            self.level.claim(&name, None);
            let Some(column) = self.column(raw.column) else {
                self.column_not_found(&name, raw.column);
                continue;
            };
            let (is_integer, ty) = (column.ty.is_integer(), clip(&column.ty.type_name()));
            let column = clip(&column.name);
            if !is_integer {
                let (sequence, column) = (clip(&name), column.clone());
                self.push(|table| ValidationError::InvalidSequenceColumnType {
                    sequence,
                    table,
                    column,
                    ty,
                });
            }
            if !sequenced.insert(raw.column) {
                self.push(|table| ValidationError::OneAutoInc { table, column });
            }
            self.level.cx.check(check_options(&name, &raw));
            sequences.push(SequenceDef {
                name,
                column: raw.column,
            });
        }
        sequences
    }

    fn defaults(&mut self, raw: Vec<RawColumnDefaultValueV10>) -> Vec<(ColId, Vec<u8>)> {
        let mut seen = HashSet::new();
        let mut defaults = Vec::with_capacity(raw.len());
        for raw in raw {
            let Some(column) = self.column(raw.col_id) else {
                self.column_not_found("default value", raw.col_id);
                continue;
            };
            let mut reader = Reader::new(&raw.value);
            match bsatn::validate(Typespace::EMPTY, &column.ty, &mut reader) {
                // Bytes behind the value are ignored.
                Ok(()) => defaults.push((raw.col_id, raw.value[..reader.position()].to_vec())),
                Err(reason) => {
                    let column = clip(&column.name);
                    self.push(|table| ValidationError::ColumnDefaultValueMalformed {
                        table,
                        column,
                        reason,
                    });
                }
            }
            // In version 10 the last entry counts.
            if !seen.insert(raw.col_id) && self.version() == RawVersion::V9 {
                let column = raw.col_id;
                self.push(|table| ValidationError::MultipleColumnDefaultValues { table, column });
            }
        }
        defaults
    }
}
