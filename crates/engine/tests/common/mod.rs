//! Definitions, rows and comparisons for the tests.
#![allow(dead_code)] // every test file uses its own part

use std::collections::BTreeMap;

use lightcone_engine::{Datastore, DatastoreError, RowBuffer};
use lightcone_schema::raw::{RawModuleDef, RawModuleDefV10};
use lightcone_schema::{
    ColumnDef, IndexAlgorithm, IndexDef, ModuleDef, ScheduleDef, SequenceDef, TableAccess,
    TableDef, UniqueConstraintDef,
};
use lightcone_types::bsatn::encode_value;
use lightcone_types::{AlgebraicType as T, AlgebraicValue as V, ColId, IndexId, TableId, TypeRef};
use proptest::test_runner::Config;

/// Cases per property; few, so that the tests stay fast. `PROPTEST_CASES` overrides it.
pub fn config(cases: u32) -> Config {
    let cases = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(cases);
    Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    }
}

/// A table definition under construction.
pub struct Def(TableDef);

pub fn table(name: &str, columns: &[(&str, T)]) -> Def {
    Def(TableDef {
        name: name.into(),
        source_name: name.into(),
        row_type: TypeRef(0),
        columns: columns
            .iter()
            .map(|(name, ty)| ColumnDef {
                name: (*name).into(),
                source_name: (*name).into(),
                ty: ty.clone(),
                default: None,
            })
            .collect(),
        primary_key: None,
        indexes: Vec::new(),
        constraints: Vec::new(),
        sequences: Vec::new(),
        schedule: None,
        outbox: None,
        access: TableAccess::Public,
        is_event: false,
    })
}

impl Def {
    fn joined(&self, columns: &[u16]) -> String {
        let names: Vec<_> = columns
            .iter()
            .map(|&c| self.0.columns[usize::from(c)].name.clone())
            .collect();
        format!("{}_{}", self.0.name, names.join("_"))
    }

    fn index(mut self, algorithm: IndexAlgorithm, unique: bool) -> Def {
        let columns: Vec<u16> = algorithm.columns().iter().map(|c| c.0).collect();
        let name = format!("{}_idx_{}", self.joined(&columns), algorithm.suffix());
        let index = IndexDef {
            source_name: name.clone(),
            name,
            accessor_name: None,
            algorithm,
            unique,
        };
        if unique {
            let constraint = UniqueConstraintDef {
                name: format!("{}_key", self.joined(&columns)),
                columns: index.algorithm.column_set(),
            };
            self.0.constraints.push(constraint);
        }
        self.0.indexes.push(index);
        self
    }

    pub fn btree(self, columns: &[u16], unique: bool) -> Def {
        self.index(
            IndexAlgorithm::BTree(columns.iter().map(|&c| ColId(c)).collect()),
            unique,
        )
    }

    pub fn hash(self, columns: &[u16], unique: bool) -> Def {
        self.index(
            IndexAlgorithm::Hash(columns.iter().map(|&c| ColId(c)).collect()),
            unique,
        )
    }

    pub fn direct(self, column: u16, unique: bool) -> Def {
        self.index(IndexAlgorithm::Direct(ColId(column)), unique)
    }

    pub fn primary_key(mut self, column: u16) -> Def {
        self.0.primary_key = Some(ColId(column));
        self
    }

    pub fn sequence(self, column: u16) -> Def {
        let name = format!("{}_seq", self.joined(&[column]));
        self.named_sequence(column, name)
    }

    pub fn named_sequence(mut self, column: u16, name: String) -> Def {
        self.0.sequences.push(SequenceDef {
            name,
            column: ColId(column),
        });
        self
    }

    pub fn schedule(mut self, name: &str, function_name: &str, at_column: u16) -> Def {
        self.0.schedule = Some(ScheduleDef {
            name: name.into(),
            function_name: function_name.into(),
            function_kind: lightcone_schema::ScheduledFunctionKind::Reducer,
            at_column: ColId(at_column),
        });
        self
    }

    pub fn done(self) -> TableDef {
        self.0
    }

    pub fn event(mut self) -> Def {
        self.0.is_event = true;
        self
    }
}

/// A module with these tables, which come in order of names.
pub fn module(tables: Vec<Def>) -> ModuleDef {
    let raw = RawModuleDef::V10(RawModuleDefV10 {
        sections: Vec::new(),
    });
    let mut def = ModuleDef::validate(raw).expect("an empty module is valid");
    def.tables = tables.into_iter().map(|def| def.0).collect();
    def.tables.sort_by(|a, b| a.name.cmp(&b.name));
    def
}

/// A new database with these tables in an open transaction.
pub fn creating(def: &ModuleDef) -> Datastore {
    let mut datastore = Datastore::new();
    datastore.begin();
    datastore.bootstrap();
    datastore.create_tables(def).expect("names are free");
    datastore
}

pub fn row(values: &[V]) -> Vec<u8> {
    let mut bytes = Vec::new();
    values
        .iter()
        .for_each(|value| encode_value(value, &mut bytes));
    bytes
}

pub fn table_id(datastore: &Datastore, name: &str) -> TableId {
    datastore
        .table_id_from_name(name)
        .expect("the table exists")
}

pub fn index_id(datastore: &Datastore, name: &str) -> IndexId {
    datastore
        .index_id_from_name(name)
        .expect("the index exists")
}

pub fn insert(
    datastore: &mut Datastore,
    table: &str,
    values: &[V],
) -> Result<Vec<u8>, DatastoreError> {
    let mut generated = Vec::new();
    datastore.insert(table_id(datastore, table), &row(values), &mut generated)?;
    Ok(generated)
}

/// The rows of a table, sorted; outside transactions too.
pub fn rows(datastore: &Datastore, table: TableId) -> Vec<Vec<u8>> {
    let mut rows = Vec::new();
    datastore
        .table(table)
        .expect("the table exists")
        .rows()
        .for_each(|_, row| rows.push(row.to_vec()));
    rows.sort();
    rows
}

/// All rows of all tables, by table name.
pub fn state(datastore: &Datastore) -> BTreeMap<String, Vec<Vec<u8>>> {
    datastore
        .schemas()
        .map(|schema| (schema.name.clone(), rows(datastore, schema.id)))
        .collect()
}

/// That two databases hold the same tables with the same schemas and rows, and equal indexes over them.
pub fn assert_same(a: &Datastore, b: &Datastore) {
    assert_eq!(state(a), state(b));
    for schema in a.schemas() {
        let other = b.schema(schema.id).expect("the same tables");
        assert_eq!(
            schema, other,
            "the catalog holds all there is to know about a table"
        );
        for database in [a, b] {
            let table = database.table(schema.id).expect("the table exists");
            for index in table.indexes() {
                assert_eq!(index.row_count() as u64, table.rows().row_count());
                table.rows().for_each(|id, row| {
                    let mut point = Vec::new();
                    index.point_of_row(table.layout(), row, &mut point);
                    let mut found = false;
                    index
                        .for_point(table.rows(), table.layout(), &point, |other| {
                            found |= other == id
                        })
                        .expect("a key of a row is a point");
                    assert!(found, "every row is found in every index");
                });
            }
        }
    }
}

pub fn scan(datastore: &Datastore, table: TableId) -> Vec<u8> {
    let mut buffer = RowBuffer::default();
    datastore
        .scan(table, &mut buffer)
        .expect("in a transaction");
    buffer.bytes
}
