//! A table, and queries over it, for the unit tests of this crate and of those above it.
#![allow(dead_code)]

use std::sync::Arc;

use lightcone_engine::{CommitOutput, Datastore};
use lightcone_live::{LiveQuery, Shapes};
use lightcone_query::{compile_subscription, Caller, Catalog, SelectPlan};
use lightcone_schema::raw::{RawModuleDef, RawModuleDefV10};
use lightcone_schema::{ColumnDef, ModuleDef, TableAccess, TableDef, TableSchema};
use lightcone_types::{AlgebraicType as T, Encode, Identity, ProductTypeElement, TableId, TypeRef};
/// A table `items` of an `id`, a `key` and two equal texts, without an index.
pub struct Items {
    pub datastore: Datastore,
    catalog: OneTable,
}

struct OneTable(Arc<TableSchema>);

impl Catalog for OneTable {
    fn table(&self, name: &str) -> Option<Arc<TableSchema>> {
        (name == self.0.name).then(|| self.0.clone())
    }

    fn parameters(&self, _: TableId) -> &[ProductTypeElement] {
        &[]
    }

    fn rules(&self, _: TableId) -> &[String] {
        &[]
    }
}

impl Items {
    pub fn new(rows: u32, text_bytes: usize) -> Items {
        let raw = RawModuleDef::V10(RawModuleDefV10 {
            sections: Vec::new(),
        });
        let mut def = ModuleDef::validate(raw).expect("an empty module is valid");
        def.tables = vec![items()];
        let mut datastore = Datastore::new();
        datastore.begin();
        datastore.bootstrap();
        datastore.create_tables(&def).expect("names are free");
        let table = datastore.table_id_from_name("items").expect("it was made");
        for id in 0..rows {
            let mut row = Vec::new();
            id.encode(&mut row);
            u128::from(id).encode(&mut row);
            let text = "x".repeat(text_bytes);
            text.encode(&mut row);
            text.encode(&mut row);
            datastore
                .insert(table, &row, &mut Vec::new())
                .expect("a row");
        }
        datastore
            .commit(&mut CommitOutput::default())
            .expect("the record fits");
        Items {
            catalog: OneTable(datastore.schema(table).expect("it was made").clone()),
            datastore,
        }
    }

    /// Removes a row in a transaction of its own.
    pub fn delete(&mut self, table: TableId, id: u32) {
        let wanted = id.to_le_bytes();
        let view = self.datastore.table(table).expect("items");
        let mut found = None;
        view.rows().walk(None, |_, row| {
            found = (row[..4] == wanted).then(|| row.to_vec());
            found.is_none()
        });
        self.datastore.begin();
        let mut rows = 1_u32.to_vec();
        rows.extend(found.expect("the row is there"));
        self.datastore
            .delete_all_by_eq(table, &rows)
            .expect("a row of the table");
        self.datastore
            .commit(&mut CommitOutput::default())
            .expect("the record fits");
    }

    /// `SELECT * FROM items WHERE` a condition.
    pub fn plan(&self, condition: &str) -> SelectPlan {
        let caller = Caller {
            identity: Identity::ZERO,
            is_owner: false,
        };
        let text = format!("SELECT * FROM items WHERE {condition}");
        let query = compile_subscription(&text, &self.catalog, &caller).expect("a query");
        let plan = query.only_select_plan(&caller.identity);
        plan.expect("it is on one table")
    }

    /// The window of `SELECT * FROM items` with what comes behind, as a client subscribes to it.
    pub fn live_window(&self, behind: &str) -> Arc<LiveQuery> {
        let caller = Caller {
            identity: Identity::ZERO,
            is_owner: false,
        };
        let text = format!("SELECT * FROM items {behind}");
        let query = compile_subscription(&text, &self.catalog, &caller).expect("a query");
        let live = LiveQuery::of_window(&query, &caller.identity, &Shapes::default());
        Arc::new(live.expect("it can be kept up to date"))
    }
}

fn items() -> TableDef {
    let columns = [
        ("id", T::U32),
        ("key", T::U128),
        ("one", T::String),
        ("two", T::String),
    ];
    let column = |(name, ty): (&str, T)| ColumnDef {
        name: name.into(),
        source_name: name.into(),
        ty,
        default: None,
    };
    TableDef {
        name: "items".into(),
        source_name: "items".into(),
        row_type: TypeRef(0),
        columns: columns.into_iter().map(column).collect(),
        primary_key: None,
        indexes: Vec::new(),
        constraints: Vec::new(),
        sequences: Vec::new(),
        schedule: None,
        outbox: None,
        access: TableAccess::Public,
        is_event: false,
    }
}
