//! What one caller sees of a database, as numbered relations: tables, views, indexes, constraints.

use std::sync::Arc;

use lightcone_schema::{
    ColumnDef, IndexDef, ModuleDef, SequenceDef, TableAccess, UniqueConstraintDef,
};
use lightcone_types::ColId;

use lightcone_query::postgresql::quoted_name as quoted;

use super::super::commands::Names;
use crate::database::{Compiler, Rights};

/// Object ids of the kinds of things begin here; they follow in the order of the definition.
const FIRST_TABLE_OID: i64 = 16_384;
const FIRST_VIEW_OID: i64 = 1 << 20;
const FIRST_INDEX_OID: i64 = 2 << 20;
const FIRST_CONSTRAINT_OID: i64 = 3 << 20;
/// The schema of all of them.
pub(super) const PUBLIC_OID: i64 = 2200;
pub(super) const PG_CATALOG_OID: i64 = 11;
pub(super) const INFORMATION_SCHEMA_OID: i64 = 13_000;

/// Tables of PostgreSQL's catalogue whose number questions name.
const CATALOGUE_OIDS: [(&str, i64); 16] = [
    ("pg_am", 2601),
    ("pg_attrdef", 2604),
    ("pg_attribute", 1249),
    ("pg_class", 1259),
    ("pg_constraint", 2606),
    ("pg_database", 1262),
    ("pg_description", 2609),
    ("pg_extension", 3079),
    ("pg_index", 2610),
    ("pg_language", 2612),
    ("pg_namespace", 2615),
    ("pg_proc", 1255),
    ("pg_rewrite", 2618),
    ("pg_tablespace", 1213),
    ("pg_trigger", 2620),
    ("pg_type", 1247),
];

pub(super) struct Seen<'m> {
    pub names: &'m Names,
    pub rights: Rights,
    /// None: no tables of the module are asked for.
    pub compiler: Option<&'m Compiler>,
    pub relations: Vec<SeenRelation<'m>>,
    pub indexes: Vec<SeenIndex<'m>>,
    pub constraints: Vec<SeenConstraint<'m>>,
}

/// A table or a view.
pub(super) struct SeenRelation<'m> {
    pub oid: i64,
    pub name: &'m str,
    pub is_view: bool,
    pub columns: &'m [ColumnDef],
    pub sequences: &'m [SequenceDef],
    pub has_indexes: bool,
}

pub(super) struct SeenIndex<'m> {
    pub oid: i64,
    /// Where its table is among the relations.
    pub of: usize,
    pub index: &'m IndexDef,
    pub is_unique: bool,
    pub is_primary: bool,
}

pub(super) struct SeenConstraint<'m> {
    pub oid: i64,
    pub of: usize,
    pub constraint: &'m UniqueConstraintDef,
    pub is_primary: bool,
    /// Where its index is among the indexes.
    pub index: Option<usize>,
}

impl<'m> Seen<'m> {
    pub fn new(
        module: &'m Arc<ModuleDef>,
        rights: Rights,
        names: &'m Names,
        compiler: Option<&'m Compiler>,
    ) -> Seen<'m> {
        let mut seen = Seen {
            names,
            rights,
            compiler,
            relations: Vec::new(),
            indexes: Vec::new(),
            constraints: Vec::new(),
        };
        let (mut index_oids, mut constraint_oids) = (FIRST_INDEX_OID, FIRST_CONSTRAINT_OID);
        for (oid, table) in (FIRST_TABLE_OID..).zip(&module.tables) {
            let indexes = (index_oids..).zip(&table.indexes);
            let constraints = (constraint_oids..).zip(&table.constraints);
            // Numbers are the same for all callers.
            index_oids += table.indexes.len() as i64;
            constraint_oids += table.constraints.len() as i64;
            if !rights.sees_all_rows() && table.access != TableAccess::Public {
                continue;
            }
            let (of, first_index) = (seen.relations.len(), seen.indexes.len());
            let is_primary =
                |columns: &[ColId]| table.primary_key.is_some_and(|key| *columns == [key]);
            seen.indexes.extend(indexes.map(|(oid, index)| {
                let columns = index.algorithm.columns();
                let mut constraints = table.constraints.iter();
                SeenIndex {
                    oid,
                    of,
                    index,
                    is_unique: constraints.any(|of| *of.columns == *columns),
                    is_primary: is_primary(columns),
                }
            }));
            seen.constraints
                .extend(constraints.map(|(oid, constraint)| {
                    let mut indexes = table.indexes.iter();
                    let of_it =
                        |index: &IndexDef| *index.algorithm.columns() == *constraint.columns;
                    SeenConstraint {
                        oid,
                        of,
                        constraint,
                        is_primary: is_primary(&constraint.columns),
                        index: indexes.position(of_it).map(|index| first_index + index),
                    }
                }));
            seen.relations.push(SeenRelation {
                oid,
                name: &table.name,
                is_view: false,
                columns: &table.columns,
                sequences: &table.sequences,
                has_indexes: !table.indexes.is_empty(),
            });
        }
        for (oid, view) in (FIRST_VIEW_OID..).zip(&module.views) {
            let takes_arguments = !view.params.elements.is_empty();
            if (rights.sees_all_rows() || view.is_public) && !takes_arguments {
                seen.relations.push(SeenRelation {
                    oid,
                    name: &view.name,
                    is_view: true,
                    columns: &view.columns,
                    sequences: &[],
                    has_indexes: false,
                });
            }
        }
        seen
    }

    /// The name of a relation of this number.
    pub fn relation_name(&self, oid: i64) -> Option<String> {
        let mut relations = self.relations.iter();
        let relation = relations.find(|relation| relation.oid == oid);
        let index = || self.index(oid).map(|seen| &*seen.index.name);
        let of_catalogue = || {
            let found = CATALOGUE_OIDS.iter().find(|(_, known)| *known == oid);
            found.map(|(name, _)| *name)
        };
        let name = relation.map(|relation| relation.name);
        name.or_else(index).or_else(of_catalogue).map(quoted)
    }

    /// The number of a relation of this name.
    pub fn relation_oid(&self, name: &str) -> Option<i64> {
        let name = name.strip_prefix("pg_catalog.").unwrap_or(name);
        let name = name.strip_prefix("public.").unwrap_or(name);
        let name = name.strip_prefix("\"public\".").unwrap_or(name);
        let plain = name.trim_matches('"').replace("\"\"", "\"");
        let relations = self.relations.iter().map(|of| (of.name, of.oid));
        let indexes = self.indexes.iter().map(|of| (&*of.index.name, of.oid));
        let mut all = relations.chain(indexes).chain(CATALOGUE_OIDS);
        all.find(|(known, _)| *known == plain).map(|(_, oid)| oid)
    }

    fn index(&self, oid: i64) -> Option<&SeenIndex<'m>> {
        self.indexes.iter().find(|index| index.oid == oid)
    }

    /// `CREATE INDEX …` of an index, or one of its columns.
    pub fn index_definition(&self, oid: i64, column: i64) -> Option<String> {
        let seen = self.index(oid)?;
        let of = &self.relations[seen.of];
        let columns = seen.index.algorithm.columns();
        if column > 0 {
            let id = columns.get(usize::try_from(column - 1).ok()?)?;
            return Some(of.columns[usize::from(id.0)].name.clone());
        }
        Some(format!(
            "CREATE {}INDEX {} ON public.{} USING btree ({})",
            if seen.is_unique { "UNIQUE " } else { "" },
            quoted(&seen.index.name),
            quoted(of.name),
            of.column_names(columns)
        ))
    }

    /// `PRIMARY KEY (id)` of a constraint.
    pub fn constraint_definition(&self, oid: i64) -> Option<String> {
        let seen = self.constraints.iter().find(|seen| seen.oid == oid)?;
        let kind = if seen.is_primary {
            "PRIMARY KEY"
        } else {
            "UNIQUE"
        };
        let columns = self.relations[seen.of].column_names(&seen.constraint.columns);
        Some(format!("{kind} ({columns})"))
    }
}

impl SeenRelation<'_> {
    /// Does the column of this number, counted from 1, have a sequence?
    pub fn is_generated(&self, number: i64) -> bool {
        let mut sequences = self.sequences.iter();
        sequences.any(|sequence| i64::from(sequence.column.0) + 1 == number)
    }

    fn column_names(&self, columns: &[ColId]) -> String {
        let names = columns
            .iter()
            .map(|id| quoted(&self.columns[usize::from(id.0)].name));
        names.collect::<Vec<_>>().join(", ")
    }
}
