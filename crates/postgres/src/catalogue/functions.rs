//! Functions that questions to the catalogue call.

use std::collections::HashSet;
use std::sync::Arc;

use super::super::failure::{state, Failure};
use super::super::types::name_of_oid;
use super::seen::{quoted, Seen};
use super::values::{text, Names as _, Type, Value};

pub(super) type Function = fn(&Seen<'_>, &[Value]) -> Value;

/// What is made of the rows of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aggregate {
    Count,
    Min,
    Max,
    Sum,
    Average,
    ListOf,
    Joined,
    AnyTrue,
    AllTrue,
}

pub(super) fn aggregate(name: &str, of: Option<Type>) -> Option<(Aggregate, Type)> {
    let of = of.unwrap_or(Type::Text);
    Some(match name {
        "count" => (Aggregate::Count, Type::Int8),
        "min" => (Aggregate::Min, of),
        "max" => (Aggregate::Max, of),
        "sum" if matches!(of, Type::Float | Type::Float4) => (Aggregate::Sum, Type::Float),
        "avg" => (Aggregate::Average, Type::Float),
        "sum" => (Aggregate::Sum, Type::Int8),
        "array_agg" => (Aggregate::ListOf, of.list()),
        "string_agg" => (Aggregate::Joined, Type::Text),
        "bool_or" => (Aggregate::AnyTrue, Type::Bool),
        "bool_and" | "every" => (Aggregate::AllTrue, Type::Bool),
        _ => return None,
    })
}

/// A function that gives rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Series {
    Numbers,
    Elements,
    Subscripts,
    /// Elements with their places: `x` and `n`.
    Expanded,
    Keywords,
    /// One that never has any, of some columns.
    Nothing,
}

pub(super) fn series(name: &str, of: Option<Type>) -> Option<(Series, Vec<(&'static str, Type)>)> {
    let element = of.map_or(Type::Text, Type::element);
    Some(match name {
        "generate_series" => (Series::Numbers, vec![("generate_series", Type::Int4)]),
        "unnest" => (Series::Elements, vec![("unnest", element)]),
        "generate_subscripts" => (
            Series::Subscripts,
            vec![("generate_subscripts", Type::Int4)],
        ),
        "_pg_expandarray" => (Series::Expanded, vec![("x", element), ("n", Type::Int4)]),
        "pg_get_keywords" => (
            Series::Keywords,
            vec![
                ("word", Type::Text),
                ("catcode", Type::Text),
                ("catdesc", Type::Text),
            ],
        ),
        "aclexplode" => (
            Series::Nothing,
            vec![
                ("grantor", Type::Int8),
                ("grantee", Type::Int8),
                ("privilege_type", Type::Text),
                ("is_grantable", Type::Bool),
            ],
        ),
        "pg_options_to_table" => (
            Series::Nothing,
            vec![("option_name", Type::Text), ("option_value", Type::Text)],
        ),
        _ => return None,
    })
}

/// Words that mean something in our language, beyond the standard.
const KEYWORDS: [&str; 4] = ["explain", "limit", "offset", "show"];

/// The rows of a series, at most so many.
pub(super) fn rows_of(
    series: Series,
    arguments: &[Value],
    rows_max: usize,
) -> Result<Vec<Vec<Value>>, Failure> {
    let list = || arguments.first().and_then(Value::list).unwrap_or_default();
    Ok(match series {
        Series::Numbers => return numbers(arguments, rows_max),
        Series::Elements => list().iter().map(|value| vec![value.clone()]).collect(),
        Series::Subscripts => (1..=list().len())
            .map(|n| vec![Value::Int(n as i64)])
            .collect(),
        Series::Expanded => {
            let numbered = (1..).zip(list().iter().cloned().collect::<Vec<_>>());
            numbered
                .map(|(n, value)| vec![value, Value::Int(n)])
                .collect()
        }
        Series::Keywords => {
            let row = |word: &&str| vec![text(word), text("U"), text("unreserved")];
            KEYWORDS.iter().map(row).collect()
        }
        Series::Nothing => Vec::new(),
    })
}

/// `generate_series(first, last[, step])`
fn numbers(arguments: &[Value], rows_max: usize) -> Result<Vec<Vec<Value>>, Failure> {
    if arguments.iter().any(Value::is_null) {
        return Ok(Vec::new());
    }
    let numbers: Option<Vec<i64>> = arguments.iter().map(Value::int).collect();
    let (first, last, step) = match numbers.as_deref() {
        Some([first, last]) => (*first, *last, 1),
        Some([first, last, step]) => (*first, *last, *step),
        _ => {
            let message = "generate_series() takes two or three numbers here";
            return Err(Failure::unsupported(message));
        }
    };
    if step == 0 {
        let message = "step size cannot equal zero";
        return Err(Failure::new(state::INVALID_PARAMETER_VALUE, message));
    }
    let steps = (i128::from(last) - i128::from(first)) / i128::from(step);
    if (i128::from(last) - i128::from(first)).signum() * i128::from(step.signum()) < 0 {
        return Ok(Vec::new());
    }
    if steps >= rows_max as i128 {
        let message = format!("a series has more than {rows_max} rows");
        return Err(Failure::new(state::LIMIT_REACHED, message));
    }
    let number = |nth: i64| Value::Int(first + nth * step);
    Ok((0..=steps as i64).map(|nth| vec![number(nth)]).collect())
}

/// The function of a name, and what it gives. None: there is none.
pub(super) fn function(name: &str, arguments: &[Type]) -> Option<(Function, Type)> {
    let first = arguments.first().copied().unwrap_or(Type::Text);
    if name.starts_with("pg_") && name.ends_with("_is_visible") {
        return Some((|_, _| Value::Bool(true), Type::Bool));
    }
    if name.starts_with("has_") && name.ends_with("_privilege") {
        return Some((has_privilege, Type::Bool));
    }
    let nothing: Function = |_, _| Value::Null;
    Some(match name {
        "coalesce" => (
            |_, values| {
                values
                    .iter()
                    .find(|v| !v.is_null())
                    .cloned()
                    .unwrap_or(Value::Null)
            },
            common(arguments),
        ),
        "nullif" => (
            |_, values| match values {
                [a, b] if a.compare(b) == Some(std::cmp::Ordering::Equal) => Value::Null,
                [a, ..] => a.clone(),
                [] => Value::Null,
            },
            first,
        ),
        "greatest" => (
            |_, values| best(values, |a, b| a.order(b).is_gt()),
            common(arguments),
        ),
        "least" => (
            |_, values| best(values, |a, b| a.order(b).is_lt()),
            common(arguments),
        ),
        "between" => (between, Type::Bool),
        "format_type" => (
            |_, values| match values.first().and_then(Value::int) {
                Some(oid) => text(name_of_oid(oid as u32)),
                None => Value::Null,
            },
            Type::Text,
        ),
        "pg_get_userbyid" => (|seen, _| text(&seen.asker.user), Type::Text),
        "pg_get_expr" => (
            |_, values| values.first().cloned().unwrap_or(Value::Null),
            Type::Text,
        ),
        "pg_get_constraintdef" => (
            |seen, values| optional(int(values, 0).and_then(|oid| seen.constraint_definition(oid))),
            Type::Text,
        ),
        "pg_get_indexdef" => (
            |seen, values| {
                let column = int(values, 1).unwrap_or(0);
                optional(int(values, 0).and_then(|oid| seen.index_definition(oid, column)))
            },
            Type::Text,
        ),
        "to_regclass" => (
            |seen, values| {
                let name = values.first().map(Value::shown).unwrap_or_default();
                seen.oid(&name).map_or(Value::Null, Value::Int)
            },
            Type::Relation,
        ),
        "obj_description"
        | "col_description"
        | "shobj_description"
        | "pg_get_viewdef"
        | "pg_get_ruledef"
        | "pg_get_triggerdef"
        | "pg_get_functiondef"
        | "pg_get_function_arguments"
        | "pg_get_function_result"
        | "pg_get_function_identity_arguments"
        | "pg_get_function_sqlbody"
        | "pg_get_partkeydef"
        | "pg_get_statisticsobjdef"
        | "pg_get_statisticsobjdef_columns"
        | "pg_get_serial_sequence"
        | "pg_tablespace_location"
        | "pg_size_pretty"
        | "pg_get_partition_constraintdef"
        | "array_to_json"
        | "to_json"
        | "row_to_json"
        | "pg_describe_object" => (nothing, Type::Text),
        "pg_relation_size"
        | "pg_total_relation_size"
        | "pg_table_size"
        | "pg_indexes_size"
        | "pg_database_size"
        | "pg_tablespace_size"
        | "pg_stat_get_numscans" => (nothing, Type::Int8),
        "pg_relation_is_publishable"
        | "pg_is_other_temp_schema"
        | "pg_is_in_recovery"
        | "row_security_active" => (|_, _| Value::Bool(false), Type::Bool),
        "pg_column_is_updatable" => (|seen, _| Value::Bool(seen.rights.writes_rows()), Type::Bool),
        "pg_relation_is_updatable" => (
            |seen, _| Value::Int(if seen.rights.writes_rows() { 28 } else { 0 }),
            Type::Int4,
        ),
        "pg_my_temp_schema" | "pg_backend_pid" | "inet_server_port" => {
            (|_, _| Value::Int(0), Type::Int4)
        }
        "pg_encoding_to_char" | "getdatabaseencoding" | "pg_client_encoding" => {
            (|_, _| text("UTF8"), Type::Text)
        }
        "pg_char_to_encoding" => (|_, _| Value::Int(6), Type::Int4),
        "version" => (
            |_, _| {
                text(&format!(
                    "PostgreSQL {}",
                    super::super::commands::SERVER_VERSION
                ))
            },
            Type::Text,
        ),
        "current_schema" => (|_, _| text("public"), Type::Text),
        "current_schemas" => (
            |_, values| {
                let public = [text("public")];
                let with_implicit = [text("pg_catalog"), text("public")];
                let has_implicit = values.first().and_then(Value::truth).unwrap_or(false);
                Value::List(if has_implicit {
                    with_implicit.into()
                } else {
                    public.into()
                })
            },
            Type::TextList,
        ),
        "current_database" | "current_catalog" => {
            (|seen, _| text(&seen.asker.database), Type::Text)
        }
        "current_user" | "session_user" | "user" | "current_role" => {
            (|seen, _| text(&seen.asker.user), Type::Text)
        }
        "current_setting" => (
            |_, values| {
                let name = values
                    .first()
                    .map(Value::shown)
                    .unwrap_or_default()
                    .to_lowercase();
                let known = super::super::commands::SETTINGS;
                let found = known.iter().find(|(known, _)| **known == *name);
                found.map_or(Value::Null, |(_, value)| text(value))
            },
            Type::Text,
        ),
        "set_config" => (
            |_, values| values.get(1).cloned().unwrap_or(Value::Null),
            Type::Text,
        ),
        "round" | "floor" | "ceil" | "ceiling" if arguments.len() == 1 => (
            match name {
                "round" => |_, values| rounded(values, f64::round_ties_even),
                "floor" => |_, values| rounded(values, f64::floor),
                _ => |_, values| rounded(values, f64::ceil),
            },
            first,
        ),
        "array_to_string" => (joined_list, Type::Text),
        "string_to_array" => (
            |_, values| match values {
                [Value::Null, ..] | [] => Value::Null,
                [whole, separator, ..] => {
                    let (whole, separator) = (whole.shown(), separator.shown());
                    match separator.is_empty() || whole.is_empty() {
                        true => Value::List([Value::Text(whole)].into()),
                        false => Value::List(whole.split(&*separator).map(text).collect()),
                    }
                }
                [whole] => Value::List([whole.clone()].into()),
            },
            Type::TextList,
        ),
        "array_length" | "array_upper" => (
            |_, values| match values.first().and_then(Value::list) {
                Some(list) if !list.is_empty() => Value::Int(list.len() as i64),
                _ => Value::Null,
            },
            Type::Int4,
        ),
        "array_lower" => (
            |_, values| match values.first().and_then(Value::list) {
                Some(list) if !list.is_empty() => Value::Int(1),
                _ => Value::Null,
            },
            Type::Int4,
        ),
        "cardinality" => (
            |_, values| match values.first().and_then(Value::list) {
                Some(list) => Value::Int(list.len() as i64),
                None => Value::Null,
            },
            Type::Int4,
        ),
        "array_position" => (
            |_, values| {
                let list = values.first().and_then(Value::list).unwrap_or_default();
                let is_wanted = |value: &Value| {
                    values
                        .get(1)
                        .is_some_and(|wanted| value.order(wanted).is_eq())
                };
                let at = list.iter().position(is_wanted);
                at.map_or(Value::Null, |at| Value::Int(at as i64 + 1))
            },
            Type::Int4,
        ),
        "lower" => (|_, values| mapped(values, |t| t.to_lowercase()), Type::Text),
        "upper" => (|_, values| mapped(values, |t| t.to_uppercase()), Type::Text),
        "trim" | "btrim" => (|_, values| trimmed(values, true, true), Type::Text),
        "ltrim" => (|_, values| trimmed(values, true, false), Type::Text),
        "rtrim" => (|_, values| trimmed(values, false, true), Type::Text),
        "quote_ident" => (|_, values| mapped(values, quoted), Type::Text),
        "quote_literal" => (
            |_, values| mapped(values, |t| format!("'{}'", t.replace('\'', "''"))),
            Type::Text,
        ),
        "length" | "char_length" | "character_length" => (
            |_, values| match values.first() {
                None | Some(Value::Null) => Value::Null,
                Some(value) => Value::Int(value.shown().chars().count() as i64),
            },
            Type::Int4,
        ),
        "substring" | "substr" => (substring, Type::Text),
        "left" => (
            |_, values| {
                let count = int(values, 1).unwrap_or(0).max(0) as usize;
                mapped(values, |t| t.chars().take(count).collect())
            },
            Type::Text,
        ),
        "replace" => (replaced, Type::Text),
        "strpos" | "position" => (
            |_, values| match values {
                [whole, part, ..] if !whole.is_null() && !part.is_null() => {
                    let whole = whole.shown();
                    let found = whole.find(&*part.shown());
                    Value::Int(found.map_or(0, |at| whole[..at].chars().count() as i64 + 1))
                }
                _ => Value::Null,
            },
            Type::Int4,
        ),
        "split_part" => (
            |_, values| match values {
                [whole, separator, nth] => {
                    let (whole, separator) = (whole.shown(), separator.shown());
                    let nth = nth.int().unwrap_or(1).saturating_sub(1);
                    let nth = usize::try_from(nth).unwrap_or(0);
                    match separator.is_empty() {
                        true => Value::Text(whole),
                        false => text(whole.split(&*separator).nth(nth).unwrap_or("")),
                    }
                }
                _ => Value::Null,
            },
            Type::Text,
        ),
        "concat" => (
            |_, values| {
                let shown: Vec<Arc<str>> = values.iter().map(Value::shown).collect();
                text(&shown.concat())
            },
            Type::Text,
        ),
        "concat_ws" => (
            |_, values| {
                let separator = values.first().map(Value::shown).unwrap_or_default();
                let rest = values.iter().skip(1).filter(|value| !value.is_null());
                let shown: Vec<Arc<str>> = rest.map(Value::shown).collect();
                joined(&shown, &separator)
            },
            Type::Text,
        ),
        "format" => (formatted, Type::Text),
        "abs" => (
            |_, values| match values.first() {
                Some(Value::Float(number)) => Value::Float(number.abs()),
                _ => int(values, 0).map_or(Value::Null, |n| Value::Int(n.saturating_abs())),
            },
            first,
        ),
        _ => return None,
    })
}

/// The type of one of several values.
pub(super) fn common(types: &[Type]) -> Type {
    let first = types.first().copied().unwrap_or(Type::Text);
    if types.iter().all(|ty| *ty == first) {
        return first;
    }
    match types.iter().all(|ty| ty.is_number()) {
        true if types.contains(&Type::Float) || types.contains(&Type::Float4) => Type::Float,
        true => Type::Int8,
        false => types
            .iter()
            .copied()
            .find(|ty| *ty != Type::Text)
            .filter(|_| types.len() > 1)
            .map_or(Type::Text, |ty| {
                if types
                    .iter()
                    .all(|other| *other == ty || *other == Type::Text)
                    && ty.is_list()
                {
                    ty
                } else {
                    Type::Text
                }
            }),
    }
}

fn int(values: &[Value], nth: usize) -> Option<i64> {
    values.get(nth).and_then(Value::int)
}

fn rounded(values: &[Value], round: fn(f64) -> f64) -> Value {
    match values.first() {
        Some(Value::Float(number)) => Value::Float(round(*number)),
        value => value.cloned().unwrap_or(Value::Null),
    }
}

fn optional(found: Option<String>) -> Value {
    found.map_or(Value::Null, |found| text(&found))
}

fn mapped(values: &[Value], map: impl FnOnce(&str) -> String) -> Value {
    match values.first() {
        None | Some(Value::Null) => Value::Null,
        Some(value) => text(&map(&value.shown())),
    }
}

/// Without characters at the beginning, at the end: blanks, or those of the second value.
fn trimmed(values: &[Value], at_start: bool, at_end: bool) -> Value {
    let characters = values.get(1).map_or_else(|| " ".into(), Value::shown);
    // There may be as many of them as the text has.
    let characters: HashSet<char> = characters.chars().collect();
    mapped(values, |whole| {
        let is_one = |c: char| characters.contains(&c);
        let whole = if at_start {
            whole.trim_start_matches(is_one)
        } else {
            whole
        };
        let whole = if at_end {
            whole.trim_end_matches(is_one)
        } else {
            whole
        };
        whole.to_owned()
    })
}

fn best(values: &[Value], is_better: fn(&Value, &Value) -> bool) -> Value {
    let mut best = Value::Null;
    for value in values.iter().filter(|value| !value.is_null()) {
        if best.is_null() || is_better(value, &best) {
            best = value.clone();
        }
    }
    best
}

fn between(_: &Seen<'_>, values: &[Value]) -> Value {
    let [value, low, high] = values else {
        return Value::Null;
    };
    match (value.compare(low), value.compare(high)) {
        (Some(low), Some(high)) => Value::Bool(low.is_ge() && high.is_le()),
        _ => Value::Null,
    }
}

/// Everybody reads what he sees; the owner does more.
fn has_privilege(seen: &Seen<'_>, values: &[Value]) -> Value {
    let asked = values
        .last()
        .map(Value::shown)
        .unwrap_or_default()
        .to_lowercase();
    let is_reading = ["select", "usage", "connect"]
        .iter()
        .any(|word| asked.contains(word));
    Value::Bool(is_reading || seen.rights.writes_rows())
}

fn joined_list(_: &Seen<'_>, values: &[Value]) -> Value {
    let Some(list) = values.first().and_then(Value::list) else {
        return Value::Null;
    };
    let separator = values.get(1).map(Value::shown).unwrap_or_default();
    let of_null = values.get(2).filter(|value| !value.is_null());
    let shown = list.iter().filter_map(|value| match value {
        Value::Null => of_null.map(Value::shown),
        value => Some(value.shown()),
    });
    joined(&shown.collect::<Vec<_>>(), &separator)
}

/// NULL if it would be longer than any text here is.
fn joined(texts: &[Arc<str>], separator: &str) -> Value {
    let bytes = texts.iter().map(|text| text.len() + separator.len());
    match bytes.sum::<usize>() <= MADE_BYTES_MAX {
        true => text(&texts.join(separator)),
        false => Value::Null,
    }
}

/// `%s`, `%I` and `%L` of a text become the other values.
fn formatted(_: &Seen<'_>, values: &[Value]) -> Value {
    let Some((written, rest)) = values.split_first().filter(|(first, _)| !first.is_null()) else {
        return Value::Null;
    };
    let written = written.shown();
    let mut rest = rest.iter();
    let mut made = String::new();
    let mut characters = written.chars();
    while let Some(c) = characters.next() {
        if c != '%' {
            made.push(c);
            continue;
        }
        let mut next = || rest.next().map(Value::shown).unwrap_or_default();
        match characters.next() {
            Some('s') => made.push_str(&next()),
            Some('I') => made.push_str(&quoted(&next())),
            Some('L') => made.push_str(&format!("'{}'", next().replace('\'', "''"))),
            other => made.extend(other),
        }
    }
    text(&made)
}

fn substring(_: &Seen<'_>, values: &[Value]) -> Value {
    let before = int(values, 1).unwrap_or(1).saturating_sub(1);
    let skipped = usize::try_from(before).unwrap_or(0);
    let count = int(values, 2).map_or(usize::MAX, |count| {
        // What would stand before the beginning counts.
        usize::try_from(count.saturating_add(before.min(0))).unwrap_or(0)
    });
    mapped(values, |whole| {
        whole.chars().skip(skipped).take(count).collect()
    })
}

/// The longest text that a function makes.
const MADE_BYTES_MAX: usize = 1 << 20;

fn replaced(_: &Seen<'_>, values: &[Value]) -> Value {
    let [whole, from, to] = values else {
        return Value::Null;
    };
    if values.iter().any(Value::is_null) {
        return Value::Null;
    }
    let (whole, from, to) = (whole.shown(), from.shown(), to.shown());
    let count = if from.is_empty() {
        0
    } else {
        whole.matches(&*from).count()
    };
    match count > 0 && count.saturating_mul(to.len()) <= MADE_BYTES_MAX {
        true => text(&whole.replace(&*from, &to)),
        false => Value::Text(whole),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn series(numbers: &[i64]) -> Result<Vec<i64>, &'static str> {
        let arguments: Vec<Value> = numbers.iter().map(|number| Value::Int(*number)).collect();
        let rows = rows_of(Series::Numbers, &arguments, 100).map_err(|failure| failure.state)?;
        let number = |row: &Vec<Value>| row[0].int().expect("a number");
        Ok(rows.iter().map(number).collect())
    }

    #[test]
    fn series_go_both_ways() {
        assert_eq!(series(&[1, 3]), Ok(vec![1, 2, 3]));
        assert_eq!(series(&[5, 1, -2]), Ok(vec![5, 3, 1]));
        assert_eq!(series(&[1, 5, -1]), Ok(vec![]));
        assert_eq!(series(&[5, 1]), Ok(vec![]));
        assert_eq!(series(&[2, 2, -7]), Ok(vec![2]));
        assert_eq!(series(&[1, 2, 0]), Err("22023"));
        assert_eq!(series(&[1, 101]), Err("54000"));
        assert_eq!(series(&[i64::MIN, i64::MAX, 1]), Err("54000"));
        assert_eq!(series(&[1]), Err("0A000"));
        let of_text = rows_of(Series::Numbers, &[text("2020-01-01"), Value::Int(1)], 100);
        assert_eq!(of_text.map_err(|failure| failure.state), Err("0A000"));
        let of_null = rows_of(Series::Numbers, &[Value::Null, Value::Int(1)], 100);
        assert_eq!(of_null, Ok(Vec::new()));
    }

    proptest! {
        #[test]
        fn a_series_is_what_steps_reach(first: i64, length in 0_i64..100, step in prop_oneof![-9_i64..9, Just(i64::MIN), Just(i64::MAX)]) {
            prop_assume!(step != 0);
            let last = first.saturating_add(length.saturating_mul(step.clamp(-9, 9)));
            let mut expected = Vec::new();
            let mut next = Some(first);
            while let Some(number) = next.filter(|n| if step > 0 { *n <= last } else { *n >= last }) {
                expected.push(number);
                next = number.checked_add(step);
            }
            match series(&[first, last, step]) {
                Ok(found) => prop_assert_eq!(found, expected),
                Err(state) => prop_assert!(state == "54000" && expected.len() > 100),
            }
        }
    }
}
