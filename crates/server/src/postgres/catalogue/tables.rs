//! The virtual tables of `information_schema` and `pg_catalog`, as far as reading a database needs them.

use std::sync::Arc;

use lightcone_schema::{ColumnSchema, TableAccess, TableDef, TableKind, TableSchema};
use lightcone_types::{AlgebraicType as T, AlgebraicValue as V, TableId};

use super::super::table::text;
use super::super::types::{name_of_oid, oid_of};
use super::Seen;

/// A table that exists while a question is answered.
pub(super) struct VirtualTable {
    pub schema: Arc<TableSchema>,
    pub rows: Vec<Vec<V>>,
}

/// The schema of all tables.
pub(super) const PUBLIC_OID: u32 = 2200;
const DATABASE_OID: u32 = 5;
const OWNER_OID: u32 = 10;

type Columns = &'static [(&'static str, T)];

pub(super) fn all(catalogue: &Seen<'_>) -> Vec<VirtualTable> {
    let database = &catalogue.asker.database;
    let user = &catalogue.asker.user;
    let of_tables = |row: &dyn Fn(u32, &TableDef) -> Vec<V>| {
        let tables = catalogue.tables.iter();
        tables
            .map(|(oid, table)| row(*oid, table))
            .collect::<Vec<_>>()
    };
    let columns = || {
        catalogue.tables.iter().flat_map(|(oid, table)| {
            let numbered = (1_i32..).zip(&table.columns);
            numbered.map(move |(number, column)| (*oid, *table, number, column))
        })
    };
    let keys = || {
        catalogue.tables.iter().flat_map(|(_, table)| {
            table
                .constraints
                .iter()
                .map(move |constraint| (*table, constraint))
        })
    };
    let yes = V::Bool(true);
    let oid = |oid: u32| V::U32(oid);
    let mut made = Vec::new();
    let mut add = |name: &str, columns: Columns, rows: Vec<Vec<V>>| {
        made.push(virtual_table(made.len(), name, columns, rows));
    };
    add(
        "information_schema.schemata",
        &[
            ("catalog_name", T::String),
            ("schema_name", T::String),
            ("schema_owner", T::String),
        ],
        vec![vec![text(database), text("public"), text(user)]],
    );
    add(
        "information_schema.tables",
        &[
            ("table_catalog", T::String),
            ("table_schema", T::String),
            ("table_name", T::String),
            ("table_type", T::String),
            ("is_insertable_into", T::String),
        ],
        of_tables(&|_, table| {
            vec![
                text(database),
                text("public"),
                text(&table.name),
                text("BASE TABLE"),
                text("YES"),
            ]
        }),
    );
    add(
        "information_schema.columns",
        &[
            ("table_catalog", T::String),
            ("table_schema", T::String),
            ("table_name", T::String),
            ("column_name", T::String),
            ("ordinal_position", T::I32),
            ("column_default", T::String),
            ("is_nullable", T::String),
            ("data_type", T::String),
            ("udt_name", T::String),
        ],
        columns()
            .map(|(_, table, number, column)| {
                let ty = name_of_oid(oid_of(&column.ty));
                vec![
                    text(database),
                    text("public"),
                    text(&table.name),
                    text(&column.name),
                    V::I32(number),
                    text(""),
                    text("NO"),
                    text(if ty.ends_with("[]") { "ARRAY" } else { ty }),
                    text(ty),
                ]
            })
            .collect(),
    );
    add(
        "information_schema.table_constraints",
        &[
            ("constraint_catalog", T::String),
            ("constraint_schema", T::String),
            ("constraint_name", T::String),
            ("table_schema", T::String),
            ("table_name", T::String),
            ("constraint_type", T::String),
        ],
        keys()
            .map(|(table, constraint)| {
                let is_primary = table
                    .primary_key
                    .is_some_and(|key| *constraint.columns == [key]);
                vec![
                    text(database),
                    text("public"),
                    text(&constraint.name),
                    text("public"),
                    text(&table.name),
                    text(if is_primary { "PRIMARY KEY" } else { "UNIQUE" }),
                ]
            })
            .collect(),
    );
    add(
        "information_schema.key_column_usage",
        &[
            ("constraint_schema", T::String),
            ("constraint_name", T::String),
            ("table_schema", T::String),
            ("table_name", T::String),
            ("column_name", T::String),
            ("ordinal_position", T::I32),
        ],
        keys()
            .flat_map(|(table, constraint)| {
                let numbered = (1_i32..).zip(constraint.columns.iter());
                numbered.map(move |(number, id)| {
                    vec![
                        text("public"),
                        text(&constraint.name),
                        text("public"),
                        text(&table.name),
                        text(&table.columns[usize::from(id.0)].name),
                        V::I32(number),
                    ]
                })
            })
            .collect(),
    );
    add(
        "information_schema.views",
        &[
            ("table_catalog", T::String),
            ("table_schema", T::String),
            ("table_name", T::String),
        ],
        Vec::new(),
    );
    add(
        "pg_tables",
        &[
            ("schemaname", T::String),
            ("tablename", T::String),
            ("tableowner", T::String),
            ("hasindexes", T::Bool),
            ("rowsecurity", T::Bool),
        ],
        of_tables(&|_, table| {
            vec![
                text("public"),
                text(&table.name),
                text(user),
                V::Bool(!table.indexes.is_empty()),
                V::Bool(false),
            ]
        }),
    );
    add(
        "pg_views",
        &[
            ("schemaname", T::String),
            ("viewname", T::String),
            ("definition", T::String),
        ],
        Vec::new(),
    );
    add(
        "pg_namespace",
        &[
            ("oid", T::U32),
            ("nspname", T::String),
            ("nspowner", T::U32),
        ],
        vec![
            vec![oid(11), text("pg_catalog"), oid(OWNER_OID)],
            vec![oid(PUBLIC_OID), text("public"), oid(OWNER_OID)],
        ],
    );
    add(
        "pg_database",
        &[
            ("oid", T::U32),
            ("datname", T::String),
            ("datdba", T::U32),
            ("datistemplate", T::Bool),
            ("datallowconn", T::Bool),
        ],
        vec![vec![
            oid(DATABASE_OID),
            text(database),
            oid(OWNER_OID),
            V::Bool(false),
            yes.clone(),
        ]],
    );
    add(
        "pg_class",
        &[
            ("oid", T::U32),
            ("relname", T::String),
            ("relnamespace", T::U32),
            ("relkind", T::String),
            ("relowner", T::U32),
            ("relhasindex", T::Bool),
        ],
        of_tables(&|id, table| {
            vec![
                oid(id),
                text(&table.name),
                oid(PUBLIC_OID),
                text("r"),
                oid(OWNER_OID),
                V::Bool(!table.indexes.is_empty()),
            ]
        }),
    );
    add(
        "pg_attribute",
        &[
            ("attrelid", T::U32),
            ("attname", T::String),
            ("atttypid", T::U32),
            ("attnum", T::I16),
            ("attnotnull", T::Bool),
            ("attisdropped", T::Bool),
        ],
        columns()
            .map(|(id, _, number, column)| {
                vec![
                    oid(id),
                    text(&column.name),
                    oid(oid_of(&column.ty)),
                    V::I16(number as i16),
                    yes.clone(),
                    V::Bool(false),
                ]
            })
            .collect(),
    );
    add(
        "pg_indexes",
        &[
            ("schemaname", T::String),
            ("tablename", T::String),
            ("indexname", T::String),
        ],
        catalogue
            .tables
            .iter()
            .flat_map(|(_, table)| {
                let row = |name: &str| vec![text("public"), text(&table.name), text(name)];
                table.indexes.iter().map(move |index| row(&index.name))
            })
            .collect(),
    );
    made
}

fn virtual_table(place: usize, name: &str, columns: Columns, rows: Vec<Vec<V>>) -> VirtualTable {
    let column = |(name, ty): &(&str, T)| ColumnSchema {
        name: (*name).to_owned(),
        accessor: None,
        ty: ty.clone(),
    };
    VirtualTable {
        schema: Arc::new(TableSchema {
            id: TableId(place as u32),
            name: name.to_owned(),
            accessor: None,
            columns: columns.iter().map(column).collect(),
            primary_key: None,
            indexes: Vec::new(),
            constraints: Vec::new(),
            sequences: Vec::new(),
            schedule: None,
            access: TableAccess::Public,
            kind: TableKind::User,
            is_event: false,
            view: None,
        }),
        rows,
    }
}
