//! Functions of PostgreSQL's catalogue: about what a session sees, and about the session.

use lightcone_query::postgresql::{is_among, name_of_oid, Type, Value};

use super::super::commands::{setting, SERVER_VERSION};
use super::seen::Seen;

type Function = fn(&Seen<'_>, &[Value]) -> Value;

/// Those that ask for what is not there. Behind a name stands how many arguments it takes, if that is not one.
const OF_NO_TEXT: &str = "obj_description:1-2|col_description:2|shobj_description:2|pg_get_viewdef:1-2|pg_get_ruledef:1-2\
    |pg_get_triggerdef:1-2|pg_get_functiondef|pg_get_function_arguments|pg_get_function_result\
    |pg_get_function_identity_arguments|pg_get_function_sqlbody|pg_get_partkeydef|pg_get_statisticsobjdef\
    |pg_get_statisticsobjdef_columns|pg_get_serial_sequence:2|pg_tablespace_location|pg_size_pretty\
    |pg_get_partition_constraintdef|array_to_json:1-2|to_json|row_to_json:1-2|pg_describe_object:3";
const OF_NO_NUMBER: &str =
    "pg_relation_size:1-2|pg_total_relation_size|pg_table_size|pg_indexes_size|pg_database_size\
    |pg_tablespace_size|pg_stat_get_numscans";
const OF_NO_TRUTH: &str =
    "pg_relation_is_publishable|pg_is_other_temp_schema|pg_is_in_recovery:0|row_security_active";
const OF_USER: &str = "pg_get_userbyid|current_user:0|session_user:0|user:0|current_role:0";
const OF_ENCODING: &str = "pg_encoding_to_char|getdatabaseencoding:0|pg_client_encoding:0";
const PRIVILEGES: &str = "has_*_privilege:2-3|has_column_privilege:3-4";

/// Functions, and the names of the types of what they give.
const FUNCTIONS: [(&str, &str, Function); 22] = [
    ("pg_*_is_visible", "bool", |_, _| true.into()),
    (PRIVILEGES, "bool", has_privilege),
    (OF_NO_TEXT, "text", |_, _| Value::Null),
    (OF_NO_NUMBER, "int8", |_, _| Value::Null),
    (OF_NO_TRUTH, "bool", |_, _| false.into()),
    (OF_USER, "text", |seen, _| (&*seen.names.user).into()),
    (OF_ENCODING, "text", |_, _| "UTF8".into()),
    ("pg_char_to_encoding", "int4", |_, _| Value::Int(6)),
    ("format_type:2", "text", |_, values| {
        int(values, 0).map(|oid| name_of_oid(oid as u32)).into()
    }),
    ("pg_get_expr:2-3", "text", |_, values| {
        values.first().cloned().into()
    }),
    ("pg_get_constraintdef:1-2", "text", |seen, values| {
        let oid = int(values, 0);
        oid.and_then(|oid| seen.constraint_definition(oid)).into()
    }),
    (
        "pg_get_indexdef|pg_get_indexdef:3",
        "text",
        |seen, values| {
            let column = int(values, 1).unwrap_or(0);
            let oid = int(values, 0);
            oid.and_then(|oid| seen.index_definition(oid, column))
                .into()
        },
    ),
    ("to_regclass", "regclass", |seen, values| {
        seen.relation_oid(&shown(values)).into()
    }),
    ("pg_column_is_updatable:3", "bool", |seen, _| {
        seen.rights.writes_rows().into()
    }),
    ("pg_relation_is_updatable:2", "int4", |seen, _| {
        Value::Int(if seen.rights.writes_rows() { 28 } else { 0 })
    }),
    (
        "pg_my_temp_schema:0|pg_backend_pid:0|inet_server_port:0",
        "int4",
        |_, _| Value::Int(0),
    ),
    ("version:0", "text", |_, _| {
        format!("PostgreSQL {SERVER_VERSION}").into()
    }),
    ("current_schema:0", "text", |_, _| "public".into()),
    ("current_schemas", "text[]", |_, values| {
        let has_implicit = values.first().and_then(Value::truth).unwrap_or(false);
        let implicit = has_implicit.then_some("pg_catalog");
        Value::List(
            implicit
                .into_iter()
                .chain(["public"])
                .map(Value::from)
                .collect(),
        )
    }),
    ("current_database:0|current_catalog:0", "text", |seen, _| {
        (&*seen.names.database).into()
    }),
    ("current_setting:1-2", "text", |_, values| {
        setting(&shown(values).to_lowercase()).into()
    }),
    ("set_config:3", "text", |_, values| {
        values.get(1).cloned().into()
    }),
];

/// The function of a name and of so many arguments, by its number, and what it gives.
pub(super) fn function(name: &str, count: usize) -> Option<(usize, Type)> {
    let name = match name {
        "has_column_privilege" => name,
        name if name.starts_with("pg_") && name.ends_with("_is_visible") => "pg_*_is_visible",
        name if name.starts_with("has_") && name.ends_with("_privilege") => "has_*_privilege",
        name => name,
    };
    let is_named = |(names, ..): &(&str, &str, Function)| is_among(names, name, count);
    let at = FUNCTIONS.iter().position(is_named)?;
    Some((at, Type::named(FUNCTIONS[at].1)?))
}

pub(super) fn call(function: usize, seen: &Seen<'_>, arguments: &[Value]) -> Value {
    (FUNCTIONS[function].2)(seen, arguments)
}

fn int(values: &[Value], nth: usize) -> Option<i64> {
    values.get(nth).and_then(Value::int)
}

fn shown(values: &[Value]) -> std::sync::Arc<str> {
    values.first().map(Value::shown).unwrap_or_default()
}

/// All callers read what they see; the owner does more.
fn has_privilege(seen: &Seen<'_>, values: &[Value]) -> Value {
    let privilege = values.last().map(Value::shown).unwrap_or_default();
    let privilege = privilege.to_lowercase();
    let reading = ["select", "usage", "connect"];
    let is_reading = reading.iter().any(|word| privilege.contains(word));
    Value::Bool(is_reading || seen.rights.writes_rows())
}
