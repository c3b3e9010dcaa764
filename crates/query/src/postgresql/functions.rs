//! Functions of values, of groups, and those that give rows.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use super::column_type::{columns_of, common, Type};
use super::failure::{state, Done, Failure};
use super::value::{List, Value, ELEMENTS_MAX};
use crate::words::quoted;

/// The longest text that a function makes of several.
const MADE_BYTES_MAX: usize = 1 << 20;

/// Whether a function of so many arguments is among those of a table: their names have `|` between them, and behind each stands how
/// many it takes, as in `:2`, `:2-3` or `:2-` for two and more. One, if nothing stands there.
pub fn is_among(names: &str, name: &str, count: usize) -> bool {
    names.split('|').any(|known| {
        let (known, counts) = known.split_once(':').unwrap_or((known, "1"));
        let (least, most) = counts.split_once('-').unwrap_or((counts, counts));
        let number = |written: &str| written.parse().unwrap_or(usize::MAX);
        known == name && (number(least)..=number(most)).contains(&count)
    })
}

pub fn no_such_function(name: &str, types: &[Type]) -> Failure {
    let types: Vec<&str> = types.iter().map(Type::name).collect();
    let message = format!("function {name}({}) does not exist here", types.join(", "));
    Failure::new(state::NO_SUCH_FUNCTION, message)
}

/// What is made of the rows of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
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

const AGGREGATES: &str = "count:0-1|min|max|sum|avg|array_agg|string_agg:2|bool_or|bool_and|every";

/// The aggregate of a name and of so many arguments.
pub fn aggregate(name: &str, count: usize, of: Option<Type>) -> Option<(Aggregate, Type)> {
    let of = of.unwrap_or(Type::TEXT);
    if !is_among(AGGREGATES, name, count) {
        return None;
    }
    Some(match name {
        "count" => (Aggregate::Count, Type::INT8),
        "min" => (Aggregate::Min, of),
        "max" => (Aggregate::Max, of),
        "sum" | "avg" if matches!(of, Type::FLOAT | Type::FLOAT4) => {
            let is_sum = name == "sum";
            let aggregate = if is_sum {
                Aggregate::Sum
            } else {
                Aggregate::Average
            };
            (aggregate, Type::FLOAT)
        }
        "sum" if of == Type::Decimal => (Aggregate::Sum, of),
        "avg" => (Aggregate::Average, Type::Decimal),
        "sum" => (Aggregate::Sum, Type::INT8),
        "array_agg" => (Aggregate::ListOf, of.list()),
        "string_agg" => (Aggregate::Joined, Type::TEXT),
        "bool_or" => (Aggregate::AnyTrue, Type::BOOL),
        "bool_and" | "every" => (Aggregate::AllTrue, Type::BOOL),
        _ => return None,
    })
}

/// A function that gives rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Series {
    Numbers,
    Elements,
    Subscripts,
    /// Elements with their places: `x` and `n`.
    Expanded,
    Keywords,
    /// One that never has any, of some columns.
    Nothing,
}

const SERIES: &str = "generate_series:2-3|generate_subscripts:2-3|unnest|_pg_expandarray\
    |pg_get_keywords:0|aclexplode|pg_options_to_table";

/// Why a function in FROM gives no rows.
pub fn no_series(name: &str, types: &[Type]) -> Failure {
    match SERIES.split(['|', ':']).any(|known| known == name) {
        true => no_such_function(name, types),
        false => format!("{name}() does not give rows").into(),
    }
}

/// The series of a name and of so many arguments, with the columns of its rows.
pub fn series(
    name: &str,
    count: usize,
    of: Option<Type>,
) -> Option<(Series, Vec<(&'static str, Type)>)> {
    let element = of.map_or(Type::TEXT, |of| of.element());
    if !is_among(SERIES, name, count) {
        return None;
    }
    let (series, columns) = match name {
        "generate_series" => (Series::Numbers, "generate_series:i"),
        "unnest" => return Some((Series::Elements, vec![("unnest", element)])),
        "generate_subscripts" => (Series::Subscripts, "generate_subscripts:i"),
        "_pg_expandarray" => {
            let columns = vec![("x", element), ("n", Type::INT4)];
            return Some((Series::Expanded, columns));
        }
        "pg_get_keywords" => (Series::Keywords, "word:t catcode:t catdesc:t"),
        "aclexplode" => (
            Series::Nothing,
            "grantor:l grantee:l privilege_type:t is_grantable:b",
        ),
        "pg_options_to_table" => (Series::Nothing, "option_name:t option_value:t"),
        _ => return None,
    };
    Some((series, columns_of(columns)))
}

/// Words that mean something in our language, beyond the standard.
const KEYWORDS: [&str; 4] = ["explain", "limit", "offset", "show"];

/// The rows of a series, at most so many.
pub fn rows_of(series: Series, arguments: &[Value], rows_max: usize) -> Done<Vec<Vec<Value>>> {
    let list = || {
        let list = match arguments.first().unwrap_or(&Value::Null) {
            Value::Null => List::default(),
            value => value.list().ok_or_else(malformed)?,
        };
        match list.len() > rows_max {
            true => Err(too_many_rows(rows_max)),
            false => Ok(list),
        }
    };
    Ok(match series {
        Series::Numbers => return numbers(arguments, rows_max),
        Series::Elements => list()?.iter().map(|value| vec![value.clone()]).collect(),
        Series::Subscripts => {
            let numbers = 1..=list()?.len() as i64;
            numbers.map(|n| vec![n.into()]).collect()
        }
        Series::Expanded => {
            let list = list()?;
            let numbered = list.iter().zip(1_i64..);
            numbered
                .map(|(value, n)| vec![value.clone(), n.into()])
                .collect()
        }
        Series::Keywords => {
            let row = |word: &&str| [word, "U", "unreserved"].map(Value::from).into();
            KEYWORDS.iter().map(row).collect()
        }
        Series::Nothing => Vec::new(),
    })
}

fn too_many_rows(rows_max: usize) -> Failure {
    let message = format!("a series has more than {rows_max} rows");
    Failure::new(state::LIMIT_REACHED, message)
}

/// What is no list, or one with too many elements.
pub fn malformed() -> Failure {
    let message = format!("malformed array literal, or one of more than {ELEMENTS_MAX} elements");
    Failure::new(state::INVALID_TEXT, message)
}

/// `generate_series(first, last[, step])`
fn numbers(arguments: &[Value], rows_max: usize) -> Done<Vec<Vec<Value>>> {
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
    let distance = i128::from(last) - i128::from(first);
    if distance.signum() * i128::from(step.signum()) < 0 {
        return Ok(Vec::new());
    }
    let steps = distance / i128::from(step);
    if steps >= rows_max as i128 {
        return Err(too_many_rows(rows_max));
    }
    let number = |nth: i64| Value::Int(first + nth * step);
    Ok((0..=steps as i64).map(|nth| vec![number(nth)]).collect())
}

/// What a function gives.
enum Gives {
    /// A value of this type.
    A(Type),
    /// A list of texts.
    Texts,
    /// One of its arguments.
    Common,
    /// What the first argument is.
    First,
}

/// One that is NULL if an argument is.
type Strict = fn(&[Value]) -> Value;
/// One that also takes NULLs, or refuses some values.
type Other = fn(&[Value]) -> Done<Value>;

const INT: Gives = Gives::A(Type::INT4);
const TEXT: Gives = Gives::A(Type::TEXT);
const BOOL: Gives = Gives::A(Type::BOOL);

/// `round` of a decimal number. No question names it so.
const ROUND_DECIMAL: &str = "round of numeric";

/// Functions, and how many arguments they take.
static STRICT: [(&str, Gives, Strict); 19] = [
    (ROUND_DECIMAL, Gives::First, |v| rounded(v, f64::round)),
    ("round", Gives::First, |v| rounded(v, f64::round_ties_even)),
    ("floor", Gives::First, |v| rounded(v, f64::floor)),
    ("ceil|ceiling", Gives::First, |v| rounded(v, f64::ceil)),
    ("abs", Gives::First, |values| match values.first() {
        Some(Value::Float(number)) => Value::Float(number.abs()),
        _ => int(values, 0).map(i64::saturating_abs).into(),
    }),
    ("array_length:2|array_upper:2", INT, |v| {
        length(v).filter(|length| *length > 0).into()
    }),
    ("array_lower:2", INT, |v| {
        length(v)
            .map(|length| length.min(1))
            .filter(|n| *n > 0)
            .into()
    }),
    ("cardinality", INT, |v| length(v).into()),
    ("lower", TEXT, |v| mapped(v, str::to_lowercase)),
    ("upper", TEXT, |v| mapped(v, str::to_uppercase)),
    ("trim:1-2|btrim:1-2", TEXT, |v| trimmed(v, true, true)),
    ("ltrim:1-2", TEXT, |v| trimmed(v, true, false)),
    ("rtrim:1-2", TEXT, |v| trimmed(v, false, true)),
    ("quote_ident", TEXT, |v| mapped(v, quoted_name)),
    ("quote_literal", TEXT, |v| mapped(v, quoted_text)),
    ("length|char_length|character_length", INT, |v| {
        shown(v, 0).map(|text| text.chars().count() as i64).into()
    }),
    ("substring:2-3|substr:2-3", TEXT, substring),
    ("left:2", TEXT, |values| {
        let count = int(values, 1).unwrap_or(0);
        mapped(values, |text| {
            let all = if count < 0 { text.chars().count() } else { 0 };
            // Of a negative number, all but so many.
            let count = usize::try_from(count).unwrap_or_else(|_| {
                let left_out = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
                all.saturating_sub(left_out)
            });
            text.chars().take(count).collect()
        })
    }),
    ("strpos:2|position:2", INT, |values| {
        let both = shown(values, 0).zip(shown(values, 1));
        let place = |(whole, part): (Arc<str>, Arc<str>)| match whole.find(&*part) {
            Some(at) => whole[..at].chars().count() as i64 + 1,
            None => 0,
        };
        both.map(place).into()
    }),
];

/// The same of those that are called with NULLs, or refuse some values.
static OTHERS: [(&str, Gives, Other); 13] = [
    ("coalesce:1-", Gives::Common, |values| {
        let first = values.iter().find(|value| !value.is_null());
        Ok(first.cloned().into())
    }),
    ("nullif:2", Gives::First, |values| {
        Ok(match values {
            [a, b] if a.compare(b) == Some(Ordering::Equal) => Value::Null,
            values => values.first().cloned().into(),
        })
    }),
    ("greatest:1-", Gives::Common, |v| {
        Ok(best(v, Ordering::Greater))
    }),
    ("least:1-", Gives::Common, |v| Ok(best(v, Ordering::Less))),
    ("between:3", BOOL, |v| Ok(between(v))),
    ("array_to_string:2-3", TEXT, joined_list),
    ("string_to_array:2-3", Gives::Texts, split),
    ("array_position:2", INT, |values| {
        let list = values.first().and_then(Value::list).unwrap_or_default();
        let is_wanted = |value: &Value| values.get(1).is_some_and(|of| value.order(of).is_eq());
        let at = list.iter().position(is_wanted);
        Ok(at.map(|at| at as i64 + 1).into())
    }),
    ("replace:3", TEXT, replaced),
    ("split_part:3", TEXT, split_part),
    ("concat:1-", TEXT, |v| joined(v, "")),
    ("concat_ws:2-", TEXT, |values| match values.split_first() {
        Some((separator, rest)) if !separator.is_null() => joined(rest, &separator.shown()),
        _ => Ok(Value::Null),
    }),
    ("format:1-", TEXT, |v| Ok(formatted(v))),
];

/// The function of a name and of such arguments, by its number, and what it gives. None: there is none.
pub fn function(name: &str, arguments: &[Type]) -> Option<(usize, Type)> {
    let strict = STRICT.iter().map(|(names, gives, _)| (*names, gives));
    let others = OTHERS.iter().map(|(names, gives, _)| (*names, gives));
    let mut all = strict.chain(others).enumerate();
    let name = match (name, arguments) {
        ("round", [Type::Decimal]) => ROUND_DECIMAL,
        _ => name,
    };
    let (at, (_, gives)) = all.find(|(_, (names, _))| is_among(names, name, arguments.len()))?;
    let gives = match gives {
        Gives::A(ty) => ty.clone(),
        Gives::Texts => Type::TEXT.list(),
        Gives::Common => common(arguments),
        Gives::First => arguments.first().cloned().unwrap_or(Type::TEXT),
    };
    Some((at, gives))
}

/// # Errors
/// It refuses the values, or what it would make is too large.
pub fn call(function: usize, arguments: &[Value]) -> Done<Value> {
    match STRICT.get(function) {
        Some(_) if arguments.iter().any(Value::is_null) => Ok(Value::Null),
        Some((.., strict)) => Ok(strict(arguments)),
        None => (OTHERS[function - STRICT.len()].2)(arguments),
    }
}

fn int(values: &[Value], nth: usize) -> Option<i64> {
    values.get(nth).and_then(Value::int)
}

/// The text of a value. None: it is NULL, or not there.
fn shown(values: &[Value], nth: usize) -> Option<Arc<str>> {
    let value = values.get(nth).filter(|value| !value.is_null());
    value.map(Value::shown)
}

fn length(values: &[Value]) -> Option<i64> {
    let list = values.first().and_then(Value::list);
    list.map(|list| list.len() as i64)
}

fn rounded(values: &[Value], round: fn(f64) -> f64) -> Value {
    match values.first() {
        Some(Value::Float(number)) => Value::Float(round(*number)),
        value => value.cloned().into(),
    }
}

fn mapped(values: &[Value], map: impl FnOnce(&str) -> String) -> Value {
    shown(values, 0).map(|text| map(&text)).into()
}

/// Without characters at the beginning, at the end: blanks, or those of the second value.
fn trimmed(values: &[Value], at_start: bool, at_end: bool) -> Value {
    let characters = values.get(1).map_or_else(|| " ".into(), Value::shown);
    // There may be as many of them as the text has.
    let characters: HashSet<char> = characters.chars().collect();
    let is_one = |c: char| characters.contains(&c);
    mapped(values, |mut text| {
        if at_start {
            text = text.trim_start_matches(is_one);
        }
        if at_end {
            text = text.trim_end_matches(is_one);
        }
        text.to_owned()
    })
}

fn best(values: &[Value], wanted: Ordering) -> Value {
    let mut best = &Value::Null;
    for value in values.iter().filter(|value| !value.is_null()) {
        if best.is_null() || value.order(best) == wanted {
            best = value;
        }
    }
    best.clone()
}

fn between(values: &[Value]) -> Value {
    let [value, low, high] = values else {
        return Value::Null;
    };
    let both = [
        value.compare(low).map(Ordering::is_ge),
        value.compare(high).map(Ordering::is_le),
    ];
    match both {
        [Some(true), Some(true)] => Value::Bool(true),
        // One that is not so decides, whatever the other is.
        both if both.contains(&Some(false)) => Value::Bool(false),
        _ => Value::Null,
    }
}

/// `string_to_array(text, separator[, what stands for NULL])`
fn split(values: &[Value]) -> Done<Value> {
    let Some(whole) = shown(values, 0) else {
        return Ok(Value::Null);
    };
    let of_null = shown(values, 2);
    let element = |text: &str| match of_null.as_deref() == Some(text) {
        true => Value::Null,
        false => Value::from(text),
    };
    let separator = shown(values, 1);
    let count = match separator.as_deref() {
        None => whole.len(),
        Some("") => 1,
        Some(separator) => whole.matches(separator).count() + 1,
    };
    if count > ELEMENTS_MAX {
        let message = format!("an array would have more than {ELEMENTS_MAX} elements");
        return Err(Failure::new(state::LIMIT_REACHED, message));
    }
    let list: List = match separator.as_deref() {
        _ if whole.is_empty() => List::default(),
        // Without a separator, each character is one.
        None => {
            let characters = whole.char_indices();
            let characters = characters.map(|(at, c)| &whole[at..at + c.len_utf8()]);
            characters.map(element).collect()
        }
        Some("") => [element(&whole)].into_iter().collect(),
        Some(separator) => whole.split(separator).map(element).collect(),
    };
    Ok(Value::List(list))
}

/// `split_part(text, separator, nth)`; a negative number counts from the end.
fn split_part(values: &[Value]) -> Done<Value> {
    let (Some(whole), Some(separator), Some(nth)) =
        (shown(values, 0), shown(values, 1), int(values, 2))
    else {
        return Ok(Value::Null);
    };
    if nth == 0 {
        let message = "field position must not be zero";
        return Err(Failure::new(state::INVALID_PARAMETER_VALUE, message));
    }
    if separator.is_empty() {
        let is_it = nth == 1 || nth == -1;
        return Ok(if is_it { &*whole } else { "" }.into());
    }
    let at = match nth > 0 {
        true => nth - 1,
        false => {
            let count = whole.matches(&*separator).count() as i64 + 1;
            count.saturating_add(nth)
        }
    };
    let part = usize::try_from(at).ok();
    let part = part.and_then(|at| whole.split(&*separator).nth(at));
    Ok(part.unwrap_or("").into())
}

fn joined_list(values: &[Value]) -> Done<Value> {
    let list = values.first().and_then(Value::list);
    let (Some(list), Some(separator)) = (list, shown(values, 1)) else {
        return Ok(Value::Null);
    };
    let of_null = values.get(2).cloned().unwrap_or(Value::Null);
    let shown = |value: &Value| match value {
        Value::Null => of_null.clone(),
        value => value.clone(),
    };
    let list: Vec<Value> = list.iter().map(shown).collect();
    joined(&list, &separator)
}

/// The texts of those that are not NULL.
fn joined(values: &[Value], separator: &str) -> Done<Value> {
    let there = values.iter().filter(|value| !value.is_null());
    let texts: Vec<Arc<str>> = there.map(Value::shown).collect();
    let bytes = texts.iter().map(|text| text.len() + separator.len());
    check_made(bytes.sum())?;
    Ok(texts.join(separator).into())
}

/// Refuses to make a text that is longer than any that is made of several.
fn check_made(bytes: usize) -> Done<()> {
    if bytes <= MADE_BYTES_MAX {
        return Ok(());
    }
    let message = format!("a text would have more than {MADE_BYTES_MAX} bytes");
    Err(Failure::new(state::LIMIT_REACHED, message))
}

/// `%s`, `%I` and `%L` of a text become the other values.
fn formatted(values: &[Value]) -> Value {
    let mut rest = values.iter().skip(1);
    mapped(values, |written| {
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
                Some('I') => made.push_str(&quoted_name(&next())),
                Some('L') => made.push_str(&quoted_text(&next())),
                other => made.extend(other),
            }
        }
        made
    })
}

fn substring(values: &[Value]) -> Value {
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

fn replaced(values: &[Value]) -> Done<Value> {
    let (Some(whole), Some(from), Some(to)) =
        (shown(values, 0), shown(values, 1), shown(values, 2))
    else {
        return Ok(Value::Null);
    };
    let count = match from.is_empty() {
        true => 0,
        false => whole.matches(&*from).count(),
    };
    if count == 0 {
        return Ok(Value::Text(whole));
    }
    check_made(count.saturating_mul(to.len()))?;
    Ok(whole.replace(&*from, &to).into())
}

/// A name as it stands in a statement.
pub fn quoted_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit();
    match name.chars().all(is_plain)
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
    {
        true => name.to_owned(),
        false => quoted(name),
    }
}

fn quoted_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
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
        let of_text = rows_of(Series::Numbers, &["2020-01-01".into(), Value::Int(1)], 100);
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
