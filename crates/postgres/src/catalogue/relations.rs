//! The tables of `pg_catalog` and `information_schema`, as far as reading a database needs them.

use std::cmp::Ordering;

use lightcone_query::postgresql::{
    columns_of, name_of_oid, oid_of, size_of_oid, Type, Value, VirtualTable, TYPES,
};

use super::super::commands::SETTINGS;
use super::seen::{Seen, INFORMATION_SCHEMA_OID, PG_CATALOG_OID, PUBLIC_OID};

const HEAP_OID: i64 = 2;
const BTREE_OID: i64 = 403;

/// Names and types of columns (`columns_of`), and behind `=` what rows have that say nothing else: otherwise it is zero, false, or
/// NULL. A number of nothing is NULL.
const TABLES: &[(&str, &str)] = &[
    ("pg_namespace", "oid:l nspname:t nspowner:l=10 nspacl:T"),
    ("pg_database", "oid:l=5 datname:t=@database datdba:l=10 encoding:i=6 datlocprovider:t=c datistemplate:b datallowconn:b=t datconnlimit:i=-1 datfrozenxid:l datminmxid:l dattablespace:l=1663 datcollate:t=C datctype:t=C daticulocale:t datcollversion:t datacl:T"),
    ("pg_roles", "rolname:t=@user rolsuper:b rolinherit:b=t rolcreaterole:b rolcreatedb:b rolcanlogin:b=t rolreplication:b rolconnlimit:i=-1 rolpassword:t rolvaliduntil:t rolbypassrls:b rolconfig:T oid:l=10"),
    ("pg_user", "usename:t=@user usesysid:l=10 usecreatedb:b usesuper:b userepl:b usebypassrls:b passwd:t valuntil:t useconfig:T"),
    ("pg_am", "oid:l amname:t amhandler:t amtype:t"),
    ("pg_tablespace", "oid:l spcname:t spcowner:l=10 spcacl:T spcoptions:T"),
    ("pg_class", "oid:l relname:t relnamespace:l=2200 reltype:l reloftype:l relowner:l=10 relam:l relfilenode:l reltablespace:l relpages:i reltuples:f=-1 relallvisible:i reltoastrelid:l relhasindex:b relisshared:b relpersistence:t=p relkind:t relnatts:s relchecks:s relhasrules:b relhastriggers:b relhassubclass:b relrowsecurity:b relforcerowsecurity:b relispopulated:b=t relreplident:t=d relispartition:b relrewrite:l relfrozenxid:l relminmxid:l relacl:T reloptions:T relpartbound:t tableoid:l=1259 xmin:l"),
    ("pg_attribute", "attrelid:l attname:t atttypid:l attstattarget:i=-1 attlen:s attnum:s attndims:i attcacheoff:i atttypmod:i=-1 attbyval:b attalign:t attstorage:t=p attcompression:t= attnotnull:b atthasdef:b atthasmissing:b attidentity:t= attgenerated:t= attisdropped:b attislocal:b=t attinhcount:i attcollation:l attacl:T attoptions:T attfdwoptions:T attmissingval:t tableoid:l=1249"),
    ("pg_type", "oid:l typname:t typnamespace:l=11 typowner:l=10 typlen:s typbyval:b typtype:t typcategory:t typispreferred:b typisdefined:b=t typdelim:t=, typrelid:l typsubscript:t typelem:l typarray:l typinput:t typoutput:t typreceive:t typsend:t typmodin:t typmodout:t typanalyze:t typalign:t typstorage:t typnotnull:b typbasetype:l typtypmod:i=-1 typndims:i typcollation:l typdefaultbin:t typdefault:t typacl:T tableoid:l=1247"),
    ("pg_index", "indexrelid:l indrelid:l indnatts:s indnkeyatts:s indisunique:b indnullsnotdistinct:b indisprimary:b indisexclusion:b indimmediate:b=t indisclustered:b indisvalid:b=t indcheckxmin:b indisready:b=t indislive:b=t indisreplident:b indkey:v indcollation:v indclass:v indoption:v indexprs:t indpred:t tableoid:l"),
    ("pg_constraint", "oid:l conname:t connamespace:l=2200 contype:t condeferrable:b condeferred:b convalidated:b=t conrelid:l contypid:l conindid:l conparentid:l confrelid:l confupdtype:t confdeltype:t confmatchtype:t conislocal:b=t coninhcount:i connoinherit:b=t conkey:S confkey:S conbin:t consrc:t tableoid:l=2606"),
    ("pg_tables", "schemaname:t=public tablename:t tableowner:t=@user tablespace:t hasindexes:b hasrules:b hastriggers:b rowsecurity:b"),
    ("pg_views", "schemaname:t=public viewname:t viewowner:t=@user definition:t"),
    ("pg_indexes", "schemaname:t=public tablename:t indexname:t tablespace:t indexdef:t"),
    ("pg_settings", "name:t setting:t unit:t category:t short_desc:t extra_desc:t context:t=internal vartype:t=string source:t=default min_val:t max_val:t enumvals:T boot_val:t reset_val:t sourcefile:t sourceline:i pending_restart:b"),
    ("pg_stat_user_tables", "relid:l schemaname:t=public relname:t n_live_tup:l n_dead_tup:l seq_scan:l idx_scan:l"),
    ("information_schema.schemata", "catalog_name:t=@database schema_name:t schema_owner:t=@user default_character_set_catalog:t default_character_set_schema:t default_character_set_name:t sql_path:t"),
    ("information_schema.tables", "table_catalog:t=@database table_schema:t=public table_name:t table_type:t self_referencing_column_name:t reference_generation:t user_defined_type_catalog:t user_defined_type_schema:t user_defined_type_name:t is_insertable_into:t is_typed:t=NO commit_action:t"),
    ("information_schema.columns", "table_catalog:t=@database table_schema:t=public table_name:t column_name:t ordinal_position:i column_default:t is_nullable:t=NO data_type:t character_maximum_length:i= character_octet_length:i= numeric_precision:i= numeric_precision_radix:i= numeric_scale:i= datetime_precision:i= interval_type:t interval_precision:i= collation_catalog:t collation_schema:t collation_name:t domain_catalog:t domain_schema:t domain_name:t udt_catalog:t=@database udt_schema:t=pg_catalog udt_name:t dtd_identifier:t is_identity:t identity_generation:t is_generated:t=NEVER generation_expression:t is_updatable:t"),
    ("information_schema.views", "table_catalog:t=@database table_schema:t=public table_name:t view_definition:t check_option:t=NONE is_updatable:t=NO is_insertable_into:t=NO is_trigger_updatable:t is_trigger_deletable:t is_trigger_insertable_into:t"),
    ("information_schema.table_constraints", "constraint_catalog:t=@database constraint_schema:t=public constraint_name:t table_catalog:t=@database table_schema:t=public table_name:t constraint_type:t is_deferrable:t=NO initially_deferred:t=NO enforced:t=YES nulls_distinct:t"),
    ("information_schema.key_column_usage", "constraint_catalog:t=@database constraint_schema:t=public constraint_name:t table_catalog:t=@database table_schema:t=public table_name:t column_name:t ordinal_position:i position_in_unique_constraint:i="),
    ("information_schema.constraint_column_usage", "table_catalog:t=@database table_schema:t=public table_name:t column_name:t constraint_catalog:t=@database constraint_schema:t=public constraint_name:t"),
];

/// Tables of which nothing is there.
const EMPTY: &[&str] = &[
    "pg_aggregate pg_amop pg_amproc pg_attrdef pg_auth_members pg_cast pg_collation pg_conversion pg_db_role_setting",
    "pg_default_acl pg_depend pg_description pg_enum pg_event_trigger pg_extension pg_foreign_data_wrapper",
    "pg_foreign_server pg_foreign_table pg_inherits pg_init_privs pg_language pg_largeobject_metadata pg_locks",
    "pg_matviews pg_opclass pg_operator pg_opfamily pg_parameter_acl pg_partitioned_table pg_policies pg_policy",
    "pg_prepared_xacts pg_proc pg_publication pg_publication_namespace pg_publication_rel pg_publication_tables",
    "pg_range pg_replication_slots pg_rewrite pg_rules pg_seclabel pg_seclabels pg_sequence pg_sequences pg_shdepend",
    "pg_shdescription pg_stat_activity pg_statio_user_tables pg_statistic_ext pg_stats pg_subscription",
    "pg_timezone_names pg_transform pg_trigger pg_ts_config pg_ts_config_map pg_ts_dict pg_ts_parser pg_ts_template",
    "pg_user_mapping pg_user_mappings",
    "information_schema.check_constraints information_schema.element_types information_schema.foreign_tables",
    "information_schema.parameters information_schema.referential_constraints information_schema.role_table_grants",
    "information_schema.routines information_schema.sequences information_schema.table_privileges",
    "information_schema.triggers information_schema.domains information_schema.constraint_table_usage",
    "information_schema.user_defined_types",
];

fn empty_table(name: &str) -> Option<&'static str> {
    let mut empty = EMPTY.iter().flat_map(|names| names.split(' '));
    empty.find(|known| *known == name)
}

/// Is there a table of this name in `pg_catalog`?
pub(super) fn is_known(name: &str) -> bool {
    TABLES.iter().any(|(known, _)| *known == name) || empty_table(name).is_some()
}

/// The table of a name. None: there is no such table.
pub(super) fn table(parts: &[String]) -> Option<VirtualTable> {
    let name = match parts {
        [name] => name.clone(),
        [schema, name] | [_, schema, name] if schema == "pg_catalog" => name.clone(),
        [schema, name] | [_, schema, name] => format!("{schema}.{name}"),
        _ => return None,
    };
    if let Some(name) = empty_table(&name) {
        return Some(VirtualTable {
            name,
            columns: Vec::new(),
            key: Vec::new(),
        });
    }
    let (name, columns) = TABLES.iter().find(|(known, _)| *known == name)?;
    let columns = columns_of(columns);
    let primary_key: &[&str] = match *name {
        "pg_attribute" => &["attrelid", "attnum"],
        "pg_index" => &["indexrelid"],
        "pg_namespace" | "pg_database" | "pg_am" | "pg_tablespace" | "pg_class" | "pg_type"
        | "pg_constraint" => &["oid"],
        // Views have none.
        _ => &[],
    };
    let is_of_key = |at: &usize| primary_key.contains(&columns[*at].0);
    Some(VirtualTable {
        key: (0..columns.len()).filter(is_of_key).collect(),
        name,
        columns,
    })
}

/// The rows of a table; of a column, only those with this value.
pub(super) fn rows(
    seen: &Seen<'_>,
    table: &VirtualTable,
    wanted: Option<(usize, &Value)>,
) -> Vec<Vec<Value>> {
    let written = TABLES.iter().find(|(known, _)| *known == table.name);
    let written = written.map_or("", |(_, columns)| columns);
    let defaults = written.split(' ').zip(&table.columns);
    let mut rows = Rows {
        columns: &table.columns,
        defaults: defaults
            .map(|(written, (_, ty))| default(seen, written, ty))
            .collect(),
        wanted,
        rows: Vec::new(),
    };
    fill(seen, table.name, &mut rows);
    rows.rows
}

/// What a column is of which a row says nothing.
fn default(seen: &Seen<'_>, written: &str, ty: &Type) -> Value {
    let number = |written: &str| written.parse::<i64>().ok();
    match (written.split_once('='), ty) {
        (Some((_, "@user")), _) => (&*seen.names.user).into(),
        (Some((_, "@database")), _) => (&*seen.names.database).into(),
        (Some((_, written)), &Type::TEXT) => written.into(),
        (written, &Type::BOOL) => written.is_some().into(),
        (Some((_, written)), _) => number(written).into(),
        (None, &(Type::INT2 | Type::INT4 | Type::INT8)) => Value::Int(0),
        (None, _) => Value::Null,
    }
}

struct Rows<'c> {
    columns: &'c [(&'static str, Type)],
    defaults: Vec<Value>,
    wanted: Option<(usize, &'c Value)>,
    rows: Vec<Vec<Value>>,
}

impl Rows<'_> {
    /// A row of these values, and of those that all have.
    fn add<const N: usize>(&mut self, values: [(&str, Value); N]) {
        let mut row = self.defaults.clone();
        for (name, value) in values {
            let at = self.columns.iter().position(|(known, _)| *known == name);
            row[at.expect("rows are of columns that there are")] = value;
        }
        let is_wanted = |(at, value): (usize, &Value)| row[at].compare(value);
        if self
            .wanted
            .map(is_wanted)
            .is_none_or(|order| order == Some(Ordering::Equal))
        {
            self.rows.push(row);
        }
    }
}

fn yes_or_no(is: bool) -> Value {
    if is { "YES" } else { "NO" }.into()
}

fn numbers(ids: impl Iterator<Item = u16>) -> Value {
    Value::List(ids.map(|id| Value::Int(i64::from(id) + 1)).collect())
}

fn fill(seen: &Seen<'_>, name: &str, rows: &mut Rows<'_>) {
    match name.strip_prefix("information_schema.") {
        Some(name) => fill_information_schema(seen, name, rows),
        None => match name {
            "pg_class" => fill_classes(seen, rows),
            "pg_attribute" => fill_attributes(seen, rows),
            "pg_type" => fill_types(rows),
            "pg_index" | "pg_constraint" | "pg_indexes" => fill_keys(seen, name, rows),
            name => fill_others(seen, name, rows),
        },
    }
}

fn fill_others(seen: &Seen<'_>, name: &str, rows: &mut Rows<'_>) {
    let is_owner = Value::Bool(seen.rights.writes_rows());
    let (views, tables): (Vec<_>, Vec<_>) = seen.relations.iter().partition(|of| of.is_view);
    match name {
        "pg_namespace" => {
            for (oid, name) in [
                (PG_CATALOG_OID, "pg_catalog"),
                (INFORMATION_SCHEMA_OID, "information_schema"),
                (PUBLIC_OID, "public"),
            ] {
                rows.add([("oid", oid.into()), ("nspname", name.into())]);
            }
        }
        "pg_database" => rows.add([]),
        "pg_roles" => rows.add([("rolsuper", is_owner)]),
        "pg_user" => rows.add([("usesuper", is_owner)]),
        "pg_am" => {
            for (oid, name, kind) in [(HEAP_OID, "heap", "t"), (BTREE_OID, "btree", "i")] {
                let kind = kind.into();
                rows.add([
                    ("oid", oid.into()),
                    ("amname", name.into()),
                    ("amtype", kind),
                ]);
            }
        }
        "pg_tablespace" => {
            for (oid, name) in [(1663_i64, "pg_default"), (1664, "pg_global")] {
                rows.add([("oid", oid.into()), ("spcname", name.into())]);
            }
        }
        "pg_tables" => {
            for table in tables {
                let has_indexes = ("hasindexes", table.has_indexes.into());
                rows.add([("tablename", table.name.into()), has_indexes]);
            }
        }
        "pg_views" => {
            for view in views {
                rows.add([("viewname", view.name.into())]);
            }
        }
        "pg_stat_user_tables" => {
            for table in tables {
                rows.add([("relid", table.oid.into()), ("relname", table.name.into())]);
            }
        }
        "pg_settings" => {
            for (name, setting) in SETTINGS {
                rows.add([
                    ("name", name.into()),
                    ("setting", setting.into()),
                    ("boot_val", setting.into()),
                    ("reset_val", setting.into()),
                ]);
            }
        }
        _ => {}
    }
}

fn fill_classes(seen: &Seen<'_>, rows: &mut Rows<'_>) {
    for relation in &seen.relations {
        let (access, kind) = match relation.is_view {
            true => (0, "v"),
            false => (HEAP_OID, "r"),
        };
        rows.add([
            ("oid", relation.oid.into()),
            ("relname", relation.name.into()),
            ("relam", access.into()),
            ("relhasindex", relation.has_indexes.into()),
            ("relkind", kind.into()),
            ("relnatts", Value::Int(relation.columns.len() as i64)),
        ]);
    }
    for seen in &seen.indexes {
        let columns = seen.index.algorithm.columns().len();
        rows.add([
            ("oid", seen.oid.into()),
            ("relname", (&*seen.index.name).into()),
            ("relam", BTREE_OID.into()),
            ("relkind", "i".into()),
            ("relnatts", Value::Int(columns as i64)),
            ("relreplident", "n".into()),
        ]);
    }
}

fn fill_attributes(seen: &Seen<'_>, rows: &mut Rows<'_>) {
    for relation in &seen.relations {
        for (number, column) in (1_i64..).zip(relation.columns) {
            let ty = oid_of(&column.ty);
            let identity = if relation.is_generated(number) {
                "d"
            } else {
                ""
            };
            rows.add([
                ("attrelid", relation.oid.into()),
                ("attname", (&*column.name).into()),
                ("atttypid", Value::Int(ty.into())),
                ("attlen", Value::Int(size_of_oid(ty).into())),
                ("attnum", number.into()),
                ("attnotnull", true.into()),
                ("attidentity", identity.into()),
            ]);
        }
    }
    for of_index in &seen.indexes {
        let columns = seen.relations[of_index.of].columns;
        for (number, id) in (1_i64..).zip(of_index.index.algorithm.columns()) {
            let column = &columns[usize::from(id.0)];
            rows.add([
                ("attrelid", of_index.oid.into()),
                ("attname", (&*column.name).into()),
                ("atttypid", Value::Int(oid_of(&column.ty).into())),
                ("attnum", number.into()),
            ]);
        }
    }
}

fn fill_types(rows: &mut Rows<'_>) {
    for ty in TYPES {
        let input = match ty.element {
            Some(_) => "array_in".to_owned(),
            None => format!("{}in", ty.name),
        };
        let kind = if ty.category == "P" { "p" } else { "b" };
        rows.add([
            ("oid", Value::Int(ty.oid.into())),
            ("typname", ty.name.into()),
            ("typlen", Value::Int(ty.size.into())),
            ("typtype", kind.into()),
            ("typcategory", ty.category.into()),
            ("typelem", Value::Int(ty.element.unwrap_or_default().into())),
            ("typarray", Value::Int(ty.array().into())),
            ("typinput", input.into()),
        ]);
    }
}

fn fill_keys(seen: &Seen<'_>, name: &str, rows: &mut Rows<'_>) {
    if name == "pg_constraint" {
        for of in &seen.constraints {
            let index = of.index.map_or(0, |index| seen.indexes[index].oid);
            let kind = if of.is_primary { "p" } else { "u" };
            let columns = of.constraint.columns.iter();
            rows.add([
                ("oid", of.oid.into()),
                ("conname", (&*of.constraint.name).into()),
                ("contype", kind.into()),
                ("conrelid", seen.relations[of.of].oid.into()),
                ("conindid", index.into()),
                ("conkey", numbers(columns.map(|id| id.0))),
            ]);
        }
        return;
    }
    for of in &seen.indexes {
        let table = &seen.relations[of.of];
        if name == "pg_indexes" {
            rows.add([
                ("tablename", table.name.into()),
                ("indexname", (&*of.index.name).into()),
                ("indexdef", seen.index_definition(of.oid, 0).into()),
            ]);
            continue;
        }
        let columns = of.index.algorithm.columns();
        let count = Value::Int(columns.len() as i64);
        let zeros = Value::List(columns.iter().map(|_| Value::Int(0)).collect());
        rows.add([
            ("indexrelid", of.oid.into()),
            ("indrelid", table.oid.into()),
            ("indnatts", count.clone()),
            ("indnkeyatts", count),
            ("indisunique", of.is_unique.into()),
            ("indisprimary", of.is_primary.into()),
            ("indkey", numbers(columns.iter().map(|id| id.0))),
            ("indcollation", zeros.clone()),
            ("indclass", zeros.clone()),
            ("indoption", zeros),
        ]);
    }
}

fn fill_information_schema(seen: &Seen<'_>, name: &str, rows: &mut Rows<'_>) {
    match name {
        "schemata" => {
            for name in ["pg_catalog", "information_schema", "public"] {
                rows.add([("schema_name", name.into())]);
            }
        }
        "tables" => {
            for relation in &seen.relations {
                let kind = match relation.is_view {
                    true => "VIEW",
                    false => "BASE TABLE",
                };
                rows.add([
                    ("table_name", relation.name.into()),
                    ("table_type", kind.into()),
                    ("is_insertable_into", yes_or_no(!relation.is_view)),
                ]);
            }
        }
        "columns" => fill_columns(seen, rows),
        "views" => {
            for view in seen.relations.iter().filter(|relation| relation.is_view) {
                rows.add([("table_name", view.name.into())]);
            }
        }
        "table_constraints" => {
            for of in &seen.constraints {
                let kind = match of.is_primary {
                    true => "PRIMARY KEY",
                    false => "UNIQUE",
                };
                rows.add([
                    ("constraint_name", (&*of.constraint.name).into()),
                    ("table_name", seen.relations[of.of].name.into()),
                    ("constraint_type", kind.into()),
                ]);
            }
        }
        "key_column_usage" | "constraint_column_usage" => {
            for of in &seen.constraints {
                let relation = &seen.relations[of.of];
                for (number, id) in (1_i64..).zip(of.constraint.columns.iter()) {
                    let column = &*relation.columns[usize::from(id.0)].name;
                    let of = [
                        ("constraint_name", (&*of.constraint.name).into()),
                        ("table_name", relation.name.into()),
                        ("column_name", column.into()),
                    ];
                    match (name, of) {
                        ("key_column_usage", [a, b, c]) => {
                            rows.add([a, b, c, ("ordinal_position", number.into())]);
                        }
                        (_, of) => rows.add(of),
                    }
                }
            }
        }
        _ => {}
    }
}

fn fill_columns(seen: &Seen<'_>, rows: &mut Rows<'_>) {
    for relation in &seen.relations {
        for (number, column) in (1_i64..).zip(relation.columns) {
            let oid = oid_of(&column.ty);
            let ty = TYPES.iter().find(|ty| ty.oid == oid);
            let shown = match name_of_oid(oid) {
                array if array.ends_with("[]") => "ARRAY",
                shown => shown,
            };
            let precision = [(21, 16), (23, 32), (20, 64), (700, 24), (701, 53)];
            let precision = precision.into_iter().find(|(of, _)| *of == oid);
            let precision = precision.map(|(_, bits)| Value::Int(bits));
            let is_generated = relation.is_generated(number);
            rows.add([
                ("table_name", relation.name.into()),
                ("column_name", (&*column.name).into()),
                ("ordinal_position", number.into()),
                ("data_type", shown.into()),
                (
                    "numeric_precision_radix",
                    precision.as_ref().map(|_| 2_i64).into(),
                ),
                ("numeric_precision", precision.into()),
                (
                    "numeric_scale",
                    matches!(oid, 20 | 21 | 23).then_some(0_i64).into(),
                ),
                ("udt_name", ty.map_or("text", |ty| ty.name).into()),
                ("dtd_identifier", number.into()),
                ("is_identity", yes_or_no(is_generated)),
                (
                    "identity_generation",
                    is_generated.then_some("BY DEFAULT").into(),
                ),
                ("is_updatable", yes_or_no(!relation.is_view)),
            ]);
        }
    }
}
