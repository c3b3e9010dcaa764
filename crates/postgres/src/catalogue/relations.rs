//! The tables of `pg_catalog` and `information_schema`, as far as reading a database needs them.

use super::super::types::{name_of_oid, oid_of, TYPES};
use super::seen::{Seen, INFORMATION_SCHEMA_OID, PG_CATALOG_OID, PUBLIC_OID};
use super::values::{text, Type, Value};

const DATABASE_OID: i64 = 5;
const OWNER_OID: i64 = 10;
const HEAP_OID: i64 = 2;
const BTREE_OID: i64 = 403;

/// A table of the catalogue.
pub(super) struct Relation {
    pub columns: Vec<(&'static str, Type)>,
    /// The places of those by which its rows are told apart. None: it has no primary key.
    pub key: Vec<usize>,
    /// Nothing is in it, and it has whatever column is asked for.
    pub is_loose: bool,
    pub rows: Vec<Vec<Value>>,
}

/// Names and types of columns: `s`, `i`, `l` numbers, `b` truth, `t` text, `v` vectors, `S` and `T` lists.
const TABLES: &[(&str, &str)] = &[
    ("pg_namespace", "oid:l nspname:t nspowner:l nspacl:T"),
    ("pg_database", "oid:l datname:t datdba:l encoding:i datlocprovider:t datistemplate:b datallowconn:b datconnlimit:i datfrozenxid:l datminmxid:l dattablespace:l datcollate:t datctype:t daticulocale:t datcollversion:t datacl:T"),
    ("pg_roles", "rolname:t rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b rolcanlogin:b rolreplication:b rolconnlimit:i rolpassword:t rolvaliduntil:t rolbypassrls:b rolconfig:T oid:l"),
    ("pg_user", "usename:t usesysid:l usecreatedb:b usesuper:b userepl:b usebypassrls:b passwd:t valuntil:t useconfig:T"),
    ("pg_am", "oid:l amname:t amhandler:t amtype:t"),
    ("pg_tablespace", "oid:l spcname:t spcowner:l spcacl:T spcoptions:T"),
    ("pg_class", "oid:l relname:t relnamespace:l reltype:l reloftype:l relowner:l relam:l relfilenode:l reltablespace:l relpages:i reltuples:f relallvisible:i reltoastrelid:l relhasindex:b relisshared:b relpersistence:t relkind:t relnatts:s relchecks:s relhasrules:b relhastriggers:b relhassubclass:b relrowsecurity:b relforcerowsecurity:b relispopulated:b relreplident:t relispartition:b relrewrite:l relfrozenxid:l relminmxid:l relacl:T reloptions:T relpartbound:t tableoid:l xmin:l"),
    ("pg_attribute", "attrelid:l attname:t atttypid:l attstattarget:i attlen:s attnum:s attndims:i attcacheoff:i atttypmod:i attbyval:b attalign:t attstorage:t attcompression:t attnotnull:b atthasdef:b atthasmissing:b attidentity:t attgenerated:t attisdropped:b attislocal:b attinhcount:i attcollation:l attacl:T attoptions:T attfdwoptions:T attmissingval:t tableoid:l"),
    ("pg_type", "oid:l typname:t typnamespace:l typowner:l typlen:s typbyval:b typtype:t typcategory:t typispreferred:b typisdefined:b typdelim:t typrelid:l typsubscript:t typelem:l typarray:l typinput:t typoutput:t typreceive:t typsend:t typmodin:t typmodout:t typanalyze:t typalign:t typstorage:t typnotnull:b typbasetype:l typtypmod:i typndims:i typcollation:l typdefaultbin:t typdefault:t typacl:T tableoid:l"),
    ("pg_index", "indexrelid:l indrelid:l indnatts:s indnkeyatts:s indisunique:b indnullsnotdistinct:b indisprimary:b indisexclusion:b indimmediate:b indisclustered:b indisvalid:b indcheckxmin:b indisready:b indislive:b indisreplident:b indkey:v indcollation:v indclass:v indoption:v indexprs:t indpred:t tableoid:l"),
    ("pg_constraint", "oid:l conname:t connamespace:l contype:t condeferrable:b condeferred:b convalidated:b conrelid:l contypid:l conindid:l conparentid:l confrelid:l confupdtype:t confdeltype:t confmatchtype:t conislocal:b coninhcount:i connoinherit:b conkey:S confkey:S conbin:t consrc:t tableoid:l"),
    ("pg_tables", "schemaname:t tablename:t tableowner:t tablespace:t hasindexes:b hasrules:b hastriggers:b rowsecurity:b"),
    ("pg_views", "schemaname:t viewname:t viewowner:t definition:t"),
    ("pg_indexes", "schemaname:t tablename:t indexname:t tablespace:t indexdef:t"),
    ("pg_settings", "name:t setting:t unit:t category:t short_desc:t extra_desc:t context:t vartype:t source:t min_val:t max_val:t enumvals:T boot_val:t reset_val:t sourcefile:t sourceline:i pending_restart:b"),
    ("pg_stat_user_tables", "relid:l schemaname:t relname:t n_live_tup:l n_dead_tup:l seq_scan:l idx_scan:l"),
    ("information_schema.schemata", "catalog_name:t schema_name:t schema_owner:t default_character_set_catalog:t default_character_set_schema:t default_character_set_name:t sql_path:t"),
    ("information_schema.tables", "table_catalog:t table_schema:t table_name:t table_type:t self_referencing_column_name:t reference_generation:t user_defined_type_catalog:t user_defined_type_schema:t user_defined_type_name:t is_insertable_into:t is_typed:t commit_action:t"),
    ("information_schema.columns", "table_catalog:t table_schema:t table_name:t column_name:t ordinal_position:i column_default:t is_nullable:t data_type:t character_maximum_length:i character_octet_length:i numeric_precision:i numeric_precision_radix:i numeric_scale:i datetime_precision:i interval_type:t interval_precision:i collation_catalog:t collation_schema:t collation_name:t domain_catalog:t domain_schema:t domain_name:t udt_catalog:t udt_schema:t udt_name:t dtd_identifier:t is_identity:t identity_generation:t is_generated:t generation_expression:t is_updatable:t"),
    ("information_schema.views", "table_catalog:t table_schema:t table_name:t view_definition:t check_option:t is_updatable:t is_insertable_into:t is_trigger_updatable:t is_trigger_deletable:t is_trigger_insertable_into:t"),
    ("information_schema.table_constraints", "constraint_catalog:t constraint_schema:t constraint_name:t table_catalog:t table_schema:t table_name:t constraint_type:t is_deferrable:t initially_deferred:t enforced:t nulls_distinct:t"),
    ("information_schema.key_column_usage", "constraint_catalog:t constraint_schema:t constraint_name:t table_catalog:t table_schema:t table_name:t column_name:t ordinal_position:i position_in_unique_constraint:i"),
    ("information_schema.constraint_column_usage", "table_catalog:t table_schema:t table_name:t column_name:t constraint_catalog:t constraint_schema:t constraint_name:t"),
];

/// Tables of which nothing is there.
const EMPTY: &[&str] = &[
    "pg_aggregate",
    "pg_amop",
    "pg_amproc",
    "pg_attrdef",
    "pg_auth_members",
    "pg_cast",
    "pg_collation",
    "pg_conversion",
    "pg_db_role_setting",
    "pg_default_acl",
    "pg_depend",
    "pg_description",
    "pg_enum",
    "pg_event_trigger",
    "pg_extension",
    "pg_foreign_data_wrapper",
    "pg_foreign_server",
    "pg_foreign_table",
    "pg_inherits",
    "pg_init_privs",
    "pg_language",
    "pg_largeobject_metadata",
    "pg_locks",
    "pg_matviews",
    "pg_opclass",
    "pg_operator",
    "pg_opfamily",
    "pg_parameter_acl",
    "pg_partitioned_table",
    "pg_policies",
    "pg_policy",
    "pg_prepared_xacts",
    "pg_proc",
    "pg_publication",
    "pg_publication_namespace",
    "pg_publication_rel",
    "pg_publication_tables",
    "pg_range",
    "pg_replication_slots",
    "pg_rewrite",
    "pg_rules",
    "pg_seclabel",
    "pg_seclabels",
    "pg_sequence",
    "pg_sequences",
    "pg_shdepend",
    "pg_shdescription",
    "pg_stat_activity",
    "pg_statio_user_tables",
    "pg_statistic_ext",
    "pg_stats",
    "pg_subscription",
    "pg_timezone_names",
    "pg_transform",
    "pg_trigger",
    "pg_ts_config",
    "pg_ts_config_map",
    "pg_ts_dict",
    "pg_ts_parser",
    "pg_ts_template",
    "pg_user_mapping",
    "pg_user_mappings",
    "information_schema.check_constraints",
    "information_schema.element_types",
    "information_schema.foreign_tables",
    "information_schema.parameters",
    "information_schema.referential_constraints",
    "information_schema.role_table_grants",
    "information_schema.routines",
    "information_schema.sequences",
    "information_schema.table_privileges",
    "information_schema.triggers",
    "information_schema.domains",
    "information_schema.constraint_table_usage",
    "information_schema.user_defined_types",
];

/// Is there a table of this name in `pg_catalog`?
pub(super) fn is_known(name: &str) -> bool {
    TABLES.iter().any(|(known, _)| *known == name) || EMPTY.contains(&name)
}

/// The table of a name, with its rows if these are wanted. None: there is no such table.
pub(super) fn relation(seen: &Seen<'_>, parts: &[String], is_described: bool) -> Option<Relation> {
    let name = match parts {
        [name] => name.clone(),
        [schema, name] | [_, schema, name] if schema == "pg_catalog" => name.clone(),
        [schema, name] | [_, schema, name] => format!("{schema}.{name}"),
        _ => return None,
    };
    if EMPTY.contains(&name.as_str()) {
        return Some(Relation {
            columns: Vec::new(),
            key: Vec::new(),
            is_loose: true,
            rows: Vec::new(),
        });
    }
    let (_, columns) = TABLES.iter().find(|(known, _)| *known == name)?;
    let columns: Vec<(&str, Type)> = columns.split(' ').map(column).collect();
    let rows = match is_described {
        true => Vec::new(),
        false => {
            let mut rows = Rows {
                columns: &columns,
                rows: Vec::new(),
            };
            fill(seen, &name, &mut rows);
            rows.rows
        }
    };
    let is_of_key = |column: &&str| primary_key(&name).contains(column);
    let places = columns.iter().enumerate();
    let key = places.filter(|(_, (column, _))| is_of_key(column));
    let key = key.map(|(at, _)| at).collect();
    Some(Relation {
        columns,
        key,
        is_loose: false,
        rows,
    })
}

/// The columns of a table's primary key. Views have none.
fn primary_key(name: &str) -> &'static [&'static str] {
    match name {
        "pg_attribute" => &["attrelid", "attnum"],
        "pg_index" => &["indexrelid"],
        "pg_namespace" | "pg_database" | "pg_am" | "pg_tablespace" | "pg_class" | "pg_type"
        | "pg_constraint" => &["oid"],
        _ => &[],
    }
}

fn column(written: &'static str) -> (&'static str, Type) {
    let (name, letter) = written.split_once(':').expect("a name and a letter");
    let ty = match letter {
        "s" => Type::Int2,
        "i" => Type::Int4,
        "l" => Type::Int8,
        "f" => Type::Float,
        "b" => Type::Bool,
        "v" => Type::Vector,
        "S" => Type::Int2List,
        "T" => Type::TextList,
        _ => Type::Text,
    };
    (name, ty)
}

struct Rows<'c> {
    columns: &'c [(&'static str, Type)],
    rows: Vec<Vec<Value>>,
}

impl Rows<'_> {
    /// A row of these values; others are zero, false, and NULL.
    fn add<const N: usize>(&mut self, values: [(&str, Value); N]) {
        let default = |(_, ty): &(&str, Type)| match ty {
            Type::Int2 | Type::Int4 | Type::Int8 => Value::Int(0),
            Type::Float => Value::Float(-1.0),
            Type::Bool => Value::Bool(false),
            _ => Value::Null,
        };
        let mut row: Vec<Value> = self.columns.iter().map(default).collect();
        for (name, value) in values {
            let at = self.columns.iter().position(|(known, _)| *known == name);
            row[at.expect("rows are of columns that there are")] = value;
        }
        self.rows.push(row);
    }
}

fn yes_or_no(is: bool) -> Value {
    text(if is { "YES" } else { "NO" })
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
    let user = text(&seen.asker.user);
    match name {
        "pg_namespace" => {
            for (oid, name) in [
                (PG_CATALOG_OID, "pg_catalog"),
                (INFORMATION_SCHEMA_OID, "information_schema"),
                (PUBLIC_OID, "public"),
            ] {
                rows.add([
                    ("oid", Value::Int(oid)),
                    ("nspname", text(name)),
                    ("nspowner", Value::Int(OWNER_OID)),
                ]);
            }
        }
        "pg_database" => rows.add([
            ("oid", Value::Int(DATABASE_OID)),
            ("datname", text(&seen.asker.database)),
            ("datdba", Value::Int(OWNER_OID)),
            ("encoding", Value::Int(6)),
            ("datlocprovider", text("c")),
            ("datallowconn", Value::Bool(true)),
            ("datconnlimit", Value::Int(-1)),
            ("datcollate", text("C")),
            ("datctype", text("C")),
            ("dattablespace", Value::Int(1663)),
        ]),
        "pg_roles" => rows.add([
            ("rolname", user),
            ("rolsuper", Value::Bool(seen.rights.writes_rows())),
            ("rolinherit", Value::Bool(true)),
            ("rolcanlogin", Value::Bool(true)),
            ("rolconnlimit", Value::Int(-1)),
            ("oid", Value::Int(OWNER_OID)),
        ]),
        "pg_user" => rows.add([
            ("usename", user),
            ("usesysid", Value::Int(OWNER_OID)),
            ("usesuper", Value::Bool(seen.rights.writes_rows())),
        ]),
        "pg_am" => {
            for (oid, name, kind) in [(HEAP_OID, "heap", "t"), (BTREE_OID, "btree", "i")] {
                rows.add([
                    ("oid", Value::Int(oid)),
                    ("amname", text(name)),
                    ("amtype", text(kind)),
                ]);
            }
        }
        "pg_tablespace" => {
            for (oid, name) in [(1663, "pg_default"), (1664, "pg_global")] {
                rows.add([
                    ("oid", Value::Int(oid)),
                    ("spcname", text(name)),
                    ("spcowner", Value::Int(OWNER_OID)),
                ]);
            }
        }
        "pg_tables" => {
            for table in seen.relations.iter().filter(|relation| !relation.is_view) {
                rows.add([
                    ("schemaname", text("public")),
                    ("tablename", text(table.name)),
                    ("tableowner", user.clone()),
                    ("hasindexes", Value::Bool(table.has_indexes)),
                ]);
            }
        }
        "pg_views" => {
            for view in seen.relations.iter().filter(|relation| relation.is_view) {
                rows.add([
                    ("schemaname", text("public")),
                    ("viewname", text(view.name)),
                    ("viewowner", user.clone()),
                ]);
            }
        }
        "pg_stat_user_tables" => {
            for table in seen.relations.iter().filter(|relation| !relation.is_view) {
                rows.add([
                    ("relid", Value::Int(table.oid)),
                    ("schemaname", text("public")),
                    ("relname", text(table.name)),
                ]);
            }
        }
        "pg_settings" => {
            for (name, setting) in super::super::commands::SETTINGS {
                rows.add([
                    ("name", text(name)),
                    ("setting", text(setting)),
                    ("boot_val", text(setting)),
                    ("reset_val", text(setting)),
                    ("context", text("internal")),
                    ("vartype", text("string")),
                    ("source", text("default")),
                ]);
            }
        }
        _ => {}
    }
}

fn fill_classes(seen: &Seen<'_>, rows: &mut Rows<'_>) {
    for relation in &seen.relations {
        rows.add([
            ("oid", Value::Int(relation.oid)),
            ("relname", text(relation.name)),
            ("relnamespace", Value::Int(PUBLIC_OID)),
            ("relowner", Value::Int(OWNER_OID)),
            (
                "relam",
                Value::Int(if relation.is_view { 0 } else { HEAP_OID }),
            ),
            ("relhasindex", Value::Bool(relation.has_indexes)),
            ("relpersistence", text("p")),
            ("relkind", text(if relation.is_view { "v" } else { "r" })),
            ("relnatts", Value::Int(relation.columns.len() as i64)),
            ("relispopulated", Value::Bool(true)),
            ("relreplident", text("d")),
            ("tableoid", Value::Int(1259)),
        ]);
    }
    for seen in &seen.indexes {
        rows.add([
            ("oid", Value::Int(seen.oid)),
            ("relname", text(&seen.index.name)),
            ("relnamespace", Value::Int(PUBLIC_OID)),
            ("relowner", Value::Int(OWNER_OID)),
            ("relam", Value::Int(BTREE_OID)),
            ("relpersistence", text("p")),
            ("relkind", text("i")),
            (
                "relnatts",
                Value::Int(seen.index.algorithm.columns().len() as i64),
            ),
            ("relispopulated", Value::Bool(true)),
            ("relreplident", text("n")),
            ("tableoid", Value::Int(1259)),
        ]);
    }
}

fn fill_attributes(seen: &Seen<'_>, rows: &mut Rows<'_>) {
    for relation in &seen.relations {
        for (number, column) in (1_i64..).zip(relation.columns) {
            let ty = oid_of(&column.ty);
            let mut sequences = relation.sequences.iter();
            let is_generated = sequences.any(|s| i64::from(s.column.0) + 1 == number);
            rows.add([
                ("attrelid", Value::Int(relation.oid)),
                ("attname", text(&column.name)),
                ("atttypid", Value::Int(ty.into())),
                ("attstattarget", Value::Int(-1)),
                (
                    "attlen",
                    Value::Int(super::super::types::size_of_oid(ty).into()),
                ),
                ("attnum", Value::Int(number)),
                ("atttypmod", Value::Int(-1)),
                ("attstorage", text("p")),
                ("attcompression", text("")),
                ("attnotnull", Value::Bool(true)),
                ("attidentity", text(if is_generated { "d" } else { "" })),
                ("attgenerated", text("")),
                ("attislocal", Value::Bool(true)),
                ("tableoid", Value::Int(1249)),
            ]);
        }
    }
    for of_index in &seen.indexes {
        let columns = seen.relations[of_index.of].columns;
        for (number, id) in (1_i64..).zip(of_index.index.algorithm.columns()) {
            let column = &columns[usize::from(id.0)];
            rows.add([
                ("attrelid", Value::Int(of_index.oid)),
                ("attname", text(&column.name)),
                ("atttypid", Value::Int(oid_of(&column.ty).into())),
                ("attnum", Value::Int(number)),
                ("atttypmod", Value::Int(-1)),
                ("attidentity", text("")),
                ("attgenerated", text("")),
            ]);
        }
    }
}

fn fill_types(rows: &mut Rows<'_>) {
    for ty in TYPES {
        let element = ty.element.unwrap_or_default();
        let input = match ty.element {
            Some(_) => "array_in".to_owned(),
            None => format!("{}in", ty.name),
        };
        rows.add([
            ("oid", Value::Int(ty.oid.into())),
            ("typname", text(ty.name)),
            ("typnamespace", Value::Int(PG_CATALOG_OID)),
            ("typowner", Value::Int(OWNER_OID)),
            (
                "typlen",
                Value::Int(super::super::types::size_of_oid(ty.oid).into()),
            ),
            ("typtype", text(if ty.category == "P" { "p" } else { "b" })),
            ("typcategory", text(ty.category)),
            ("typisdefined", Value::Bool(true)),
            ("typdelim", text(",")),
            ("typelem", Value::Int(element.into())),
            ("typarray", Value::Int(ty.array.into())),
            ("typinput", text(&input)),
            ("typtypmod", Value::Int(-1)),
            ("tableoid", Value::Int(1247)),
        ]);
    }
}

fn fill_keys(seen: &Seen<'_>, name: &str, rows: &mut Rows<'_>) {
    match name {
        "pg_index" => {
            for of_index in &seen.indexes {
                let columns = of_index.index.algorithm.columns();
                let count = Value::Int(columns.len() as i64);
                let zeros = Value::List(columns.iter().map(|_| Value::Int(0)).collect());
                rows.add([
                    ("indexrelid", Value::Int(of_index.oid)),
                    ("indrelid", Value::Int(seen.relations[of_index.of].oid)),
                    ("indnatts", count.clone()),
                    ("indnkeyatts", count),
                    ("indisunique", Value::Bool(of_index.is_unique)),
                    ("indisprimary", Value::Bool(of_index.is_primary)),
                    ("indimmediate", Value::Bool(true)),
                    ("indisvalid", Value::Bool(true)),
                    ("indisready", Value::Bool(true)),
                    ("indislive", Value::Bool(true)),
                    ("indkey", numbers(columns.iter().map(|id| id.0))),
                    ("indcollation", zeros.clone()),
                    ("indclass", zeros.clone()),
                    ("indoption", zeros),
                ]);
            }
        }
        "pg_constraint" => {
            for of in &seen.constraints {
                let index = of.index.map_or(0, |index| seen.indexes[index].oid);
                rows.add([
                    ("oid", Value::Int(of.oid)),
                    ("conname", text(&of.constraint.name)),
                    ("connamespace", Value::Int(PUBLIC_OID)),
                    ("contype", text(if of.is_primary { "p" } else { "u" })),
                    ("convalidated", Value::Bool(true)),
                    ("conrelid", Value::Int(seen.relations[of.of].oid)),
                    ("conindid", Value::Int(index)),
                    ("conislocal", Value::Bool(true)),
                    ("connoinherit", Value::Bool(true)),
                    (
                        "conkey",
                        numbers(of.constraint.columns.iter().map(|id| id.0)),
                    ),
                    ("tableoid", Value::Int(2606)),
                ]);
            }
        }
        _ => {
            for of_index in &seen.indexes {
                let definition = seen.index_definition(of_index.oid, 0);
                rows.add([
                    ("schemaname", text("public")),
                    ("tablename", text(seen.relations[of_index.of].name)),
                    ("indexname", text(&of_index.index.name)),
                    ("indexdef", text(&definition.unwrap_or_default())),
                ]);
            }
        }
    }
}

fn fill_information_schema(seen: &Seen<'_>, name: &str, rows: &mut Rows<'_>) {
    let database = || text(&seen.asker.database);
    let public = || text("public");
    match name {
        "schemata" => {
            for name in ["pg_catalog", "information_schema", "public"] {
                rows.add([
                    ("catalog_name", database()),
                    ("schema_name", text(name)),
                    ("schema_owner", text(&seen.asker.user)),
                ]);
            }
        }
        "tables" => {
            for relation in &seen.relations {
                let kind = if relation.is_view {
                    "VIEW"
                } else {
                    "BASE TABLE"
                };
                rows.add([
                    ("table_catalog", database()),
                    ("table_schema", public()),
                    ("table_name", text(relation.name)),
                    ("table_type", text(kind)),
                    ("is_insertable_into", yes_or_no(!relation.is_view)),
                    ("is_typed", text("NO")),
                ]);
            }
        }
        "columns" => fill_columns(seen, rows),
        "views" => {
            for view in seen.relations.iter().filter(|relation| relation.is_view) {
                rows.add([
                    ("table_catalog", database()),
                    ("table_schema", public()),
                    ("table_name", text(view.name)),
                    ("check_option", text("NONE")),
                    ("is_updatable", text("NO")),
                    ("is_insertable_into", text("NO")),
                ]);
            }
        }
        "table_constraints" => {
            for of in &seen.constraints {
                rows.add([
                    ("constraint_catalog", database()),
                    ("constraint_schema", public()),
                    ("constraint_name", text(&of.constraint.name)),
                    ("table_catalog", database()),
                    ("table_schema", public()),
                    ("table_name", text(seen.relations[of.of].name)),
                    (
                        "constraint_type",
                        text(if of.is_primary {
                            "PRIMARY KEY"
                        } else {
                            "UNIQUE"
                        }),
                    ),
                    ("is_deferrable", text("NO")),
                    ("initially_deferred", text("NO")),
                    ("enforced", text("YES")),
                ]);
            }
        }
        "key_column_usage" | "constraint_column_usage" => {
            for of in &seen.constraints {
                let relation = &seen.relations[of.of];
                for (number, id) in (1_i64..).zip(of.constraint.columns.iter()) {
                    let column = text(&relation.columns[usize::from(id.0)].name);
                    rows.add([
                        ("constraint_catalog", database()),
                        ("constraint_schema", public()),
                        ("constraint_name", text(&of.constraint.name)),
                        ("table_catalog", database()),
                        ("table_schema", public()),
                        ("table_name", text(relation.name)),
                        ("column_name", column),
                    ]);
                    if name == "key_column_usage" {
                        let row = rows.rows.last_mut().expect("a row was added");
                        row[7] = Value::Int(number);
                        row[8] = Value::Null;
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
            let shown = name_of_oid(oid);
            let ty = TYPES.iter().find(|ty| ty.oid == oid);
            let (precision, radix) = match oid {
                21 => (Value::Int(16), Value::Int(2)),
                23 => (Value::Int(32), Value::Int(2)),
                20 => (Value::Int(64), Value::Int(2)),
                700 => (Value::Int(24), Value::Int(2)),
                701 => (Value::Int(53), Value::Int(2)),
                _ => (Value::Null, Value::Null),
            };
            let scale = if matches!(oid, 20 | 21 | 23) {
                Value::Int(0)
            } else {
                Value::Null
            };
            let mut sequences = relation.sequences.iter();
            let is_generated = sequences.any(|s| i64::from(s.column.0) + 1 == number);
            rows.add([
                ("table_catalog", text(&seen.asker.database)),
                ("table_schema", text("public")),
                ("table_name", text(relation.name)),
                ("column_name", text(&column.name)),
                ("ordinal_position", Value::Int(number)),
                ("is_nullable", text("NO")),
                (
                    "data_type",
                    text(if shown.ends_with("[]") {
                        "ARRAY"
                    } else {
                        shown
                    }),
                ),
                ("character_maximum_length", Value::Null),
                ("character_octet_length", Value::Null),
                ("numeric_precision", precision),
                ("numeric_precision_radix", radix),
                ("numeric_scale", scale),
                ("datetime_precision", Value::Null),
                ("interval_precision", Value::Null),
                ("udt_catalog", text(&seen.asker.database)),
                ("udt_schema", text("pg_catalog")),
                ("udt_name", text(ty.map_or("text", |ty| ty.name))),
                ("dtd_identifier", Value::Int(number)),
                ("is_identity", yes_or_no(is_generated)),
                (
                    "identity_generation",
                    if is_generated {
                        text("BY DEFAULT")
                    } else {
                        Value::Null
                    },
                ),
                ("is_generated", text("NEVER")),
                ("is_updatable", yes_or_no(!relation.is_view)),
            ]);
        }
    }
}
