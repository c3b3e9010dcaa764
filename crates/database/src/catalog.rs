//! The tables as queries see them: a frozen view of the engine's catalog that connection tasks compile against.

use std::sync::Arc;

use lightcone_engine::{is_hidden, Datastore, ST_ENV_ID};
use lightcone_query::{check_rule, compile_subscription, Caller, Catalog};
use lightcone_schema::{ModuleDef, TableSchema};
use lightcone_types::{Identity, ProductType, ProductTypeElement, TableId};
use rustc_hash::FxHashMap;

use lightcone_live::{LiveQuery, RuleColumns, Shapes};

/// What callers see of system tables who may not read all rows: their own, and none where rows are about no identity.
/// `st_module` has the whole program, and in it may be keys.
const SYSTEM_RULES: [&str; 5] = [
    "SELECT * FROM st_module WHERE owner_identity = :sender",
    "SELECT * FROM st_client WHERE identity = :sender",
    "SELECT * FROM st_row_level_security WHERE table_id = 0",
    "SELECT * FROM st_view_sub WHERE identity = :sender",
    "SELECT * FROM st_view_arg WHERE id = 0",
];

/// The names of one version of a database.
pub(crate) struct CatalogView {
    pub schemas: Vec<Arc<TableSchema>>,
    by_name: FxHashMap<String, usize>,
    /// Of the views that have some. Types are resolved, as far as they can be.
    parameters: FxHashMap<TableId, ProductType>,
    /// Row-level security rules.
    rules: FxHashMap<TableId, Vec<String>>,
    /// Columns that these look rows up by in live queries.
    pub rule_columns: RuleColumns,
    /// Of the live queries that were compiled against it.
    pub shapes: Shapes,
}

impl CatalogView {
    /// The tables without rules and the parameters of views: for callers who see all rows, and read no views.
    pub fn of_tables(datastore: &Datastore) -> CatalogView {
        // A database that is opened in the middle of a backfill has the tables of that already.
        let schemas = datastore.schemas().filter(|s| !is_hidden(&s.name));
        let schemas: Vec<_> = schemas.cloned().collect();
        let mut by_name = FxHashMap::default();
        for (position, schema) in schemas.iter().enumerate() {
            by_name.insert(schema.name.clone(), position);
        }
        for (position, schema) in schemas.iter().enumerate() {
            if let Some(accessor) = &schema.accessor {
                by_name.entry(accessor.clone()).or_insert(position);
            }
        }
        CatalogView {
            schemas,
            by_name,
            parameters: FxHashMap::default(),
            rules: FxHashMap::default(),
            rule_columns: RuleColumns::default(),
            shapes: Shapes::default(),
        }
    }

    pub fn new(datastore: &Datastore, def: &ModuleDef) -> CatalogView {
        let mut catalog = CatalogView::of_tables(datastore);
        for view in def.views.iter().filter(|view| view.has_parameters()) {
            if let Some(table) = datastore.view_table(&view.name) {
                let resolved = view.params_typespace.resolve_product(&view.params);
                let resolved = resolved.unwrap_or_else(|_| view.params.clone());
                catalog.parameters.insert(table.id, resolved);
            }
        }
        let of_module = def.row_level_security.iter().map(String::as_str);
        for rule in SYSTEM_RULES.into_iter().chain(of_module) {
            catalog.add_rule(rule);
        }
        catalog.rule_columns = catalog.looked_up_by_rules();
        catalog
    }

    /// The tables, and the views that need no arguments.
    pub fn all(&self) -> impl Iterator<Item = &Arc<TableSchema>> {
        let needs_some = |schema: &Arc<TableSchema>| self.parameters.contains_key(&schema.id);
        self.schemas
            .iter()
            .filter(move |schema| !needs_some(schema))
    }

    /// The columns that rules alone look rows up by, for a caller who may read all rows.
    fn looked_up_by_rules(&self) -> RuleColumns {
        let stranger = Caller {
            identity: Identity::ZERO,
            is_owner: false,
        };
        let mut columns = RuleColumns::default();
        for schema in self
            .schemas
            .iter()
            .filter(|s| self.rules.contains_key(&s.id))
        {
            let text = format!("SELECT * FROM \"{}\"", schema.name);
            // A table that no caller may read has no query.
            let Ok(query) = compile_subscription(&text, self, &stranger) else {
                continue;
            };
            let live = query.fragments.iter().filter_map(|fragment| {
                LiveQuery::of_fragment(&query, fragment, &stranger.identity, &self.shapes).ok()
            });
            for live in live {
                let looked_up = live.joins().flat_map(|(shape, _)| shape.looked_up_by());
                columns.extend(looked_up.map(|(table, column)| (table.id, column)));
            }
        }
        columns
    }

    /// Rules were checked when the module was published. If it is not known whose rows one gives, no caller
    /// but the owner gets rows of any table: the rule is drawn into all queries, and refuses them.
    fn add_rule(&mut self, rule: &str) {
        let of = |schema: &Arc<TableSchema>| schema.id;
        let tables: Vec<TableId> = match check_rule(rule, self, Identity::ZERO) {
            Ok(table) => vec![table.id],
            Err(_) => {
                let is_user = |id: &TableId| id.0 >= lightcone_schema::table::FIRST_USER_ID;
                self.schemas.iter().map(of).filter(is_user).collect()
            }
        };
        for table in tables {
            let rules = self.rules.entry(table).or_default();
            if !rules.iter().any(|known| known == rule) {
                rules.push(rule.to_owned());
            }
        }
    }
}

impl Catalog for CatalogView {
    fn table(&self, name: &str) -> Option<Arc<TableSchema>> {
        self.by_name
            .get(name)
            .map(|&position| self.schemas[position].clone())
    }

    fn parameters(&self, table: TableId) -> &[ProductTypeElement] {
        let of_view = self.parameters.get(&table);
        of_view.map_or(&[], |parameters| &parameters.elements)
    }

    fn rules(&self, table: TableId) -> &[String] {
        self.rules.get(&table).map_or(&[], Vec::as_slice)
    }
}

/// The tables as programs for PostgreSQL and assistants see them: variables of the environment are not for these, whatever the rights of the user.
pub(crate) struct WithoutEnvironment<'c>(pub &'c CatalogView);

impl Catalog for WithoutEnvironment<'_> {
    fn table(&self, name: &str) -> Option<Arc<TableSchema>> {
        self.0.table(name).filter(|table| table.id != ST_ENV_ID)
    }

    fn parameters(&self, table: TableId) -> &[ProductTypeElement] {
        self.0.parameters(table)
    }

    fn rules(&self, table: TableId) -> &[String] {
        self.0.rules(table)
    }
}
