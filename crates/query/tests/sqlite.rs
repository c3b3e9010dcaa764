//! The ad hoc language against SQLite: random rows and queries, of which both must give the same.

use crate::both::{Both, Row, COLUMNS, TABLES, TEXTS};
use crate::common;
use proptest::prelude::*;

fn row() -> impl Strategy<Value = Row> {
    let option = prop::option::of(0..2u32);
    (0..4u32, -2..2i64, 0..TEXTS.len(), -2..3i8, option).prop_map(|(a, b, s, f, o)| Row {
        a,
        b,
        s,
        f,
        o,
    })
}

/// A column: position of its relation, and its own.
type At = (usize, usize);

fn name((relation, column): At) -> String {
    format!("x{relation}.{}", COLUMNS[column])
}

fn literal(column: usize, number: u32) -> String {
    match column {
        2 => format!("'{}'", TEXTS[number as usize % TEXTS.len()]),
        3 => format!("{:?}", f64::from(number) / 2.0),
        _ => number.to_string(),
    }
}

fn condition(relations: usize) -> impl Strategy<Value = String> {
    let at = move || (0..relations, 0..4usize);
    let operator = prop::sample::select(vec!["=", "<>", "<", ">="]);
    let pattern = prop::sample::select(vec!["%", "a%", "_", "%b", "a_", "A%", "", "%_%"]);
    let not = || prop::sample::select(vec!["", "NOT "]);
    let leaf = prop_oneof![
        (at(), operator.clone(), 0..4u32).prop_map(|(at, op, n)| format!(
            "{} {op} {}",
            name(at),
            literal(at.1, n)
        )),
        (at(), operator, 0..relations).prop_map(|(at, op, other)| format!(
            "{} {op} {}",
            name(at),
            name((other, at.1))
        )),
        (at(), not(), 0..4u32, 0..4u32).prop_map(|(at, not, l, r)| format!(
            "{} {not}BETWEEN {} AND {}",
            name(at),
            literal(at.1, l),
            literal(at.1, r)
        )),
        (at(), not(), prop::collection::vec(0..4u32, 1..4)).prop_map(|(at, not, list)| {
            let list: Vec<_> = list.iter().map(|n| literal(at.1, *n)).collect();
            format!("{} {not}IN ({})", name(at), list.join(", "))
        }),
        (0..relations, not(), pattern)
            .prop_map(|(relation, not, p)| format!("x{relation}.s {not}LIKE '{p}'")),
        (0..relations, not()).prop_map(|(relation, not)| format!("x{relation}.o IS {not}NULL")),
    ];
    let leaf = prop_oneof![3 => leaf, 1 => subquery(relations)];
    leaf.prop_recursive(2, 4, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(l, r)| format!("({l} OR {r})")),
            (inner.clone(), inner.clone()).prop_map(|(l, r)| format!("{l} AND {r}")),
            inner.prop_map(|c| format!("NOT ({c})")),
        ]
    })
}

/// A subquery that reads relations around it, or does not: `IN`, `EXISTS`, with joins, and with another one inside.
fn subquery(relations: usize) -> impl Strategy<Value = String> {
    let not = prop::sample::select(vec!["", "NOT "]);
    let at = move || (0..relations, 0..4usize);
    let table = || prop::sample::select(TABLES.to_vec());
    let join = prop::option::of((any::<bool>(), table(), 0..4usize, 0..4usize));
    let own = prop::option::of((0..4usize, 0..4u32));
    let operator = prop::sample::select(vec!["=", "=", "<>", "<"]);
    let around = prop::option::of((at(), operator));
    let inner = prop::option::weighted(0.3, (table(), 0..4usize, at(), any::<bool>()));
    let parts = (own, around, inner);
    (not, at(), table(), join, parts, any::<bool>()).prop_map(
        |(not, left, table, join, (own, around, inner), is_in)| {
            let mut text = format!("FROM {table} y");
            let mut listed = "y";
            if let Some((is_left, other, on, from)) = join {
                let join = if is_left { "LEFT JOIN" } else { "JOIN" };
                let on = COLUMNS[on];
                text += &format!(" {join} {other} z ON y.{on} = z.{on}");
                listed = if from > 1 { "y" } else { "z" };
            }
            let mut conditions = Vec::new();
            if let Some((column, number)) = own {
                let name = COLUMNS[column];
                conditions.push(format!("{listed}.{name} < {}", literal(column, number)));
            }
            if let Some((at, operator)) = around {
                conditions.push(format!("{} {operator} y.{}", name(at), COLUMNS[at.1]));
            }
            if let Some((other, column, at, is_or)) = inner {
                let (own, far) = (COLUMNS[column], COLUMNS[at.1]);
                let or = match is_or {
                    true => format!(" OR y.{own} = {}", literal(column, 1)),
                    false => String::new(),
                };
                conditions.push(format!(
                    "(EXISTS (SELECT * FROM {other} w WHERE w.{own} = y.{own} AND w.{far} >= {}){or})",
                    name(at)
                ));
            }
            if !conditions.is_empty() {
                text += &format!(" WHERE {}", conditions.join(" AND "));
            }
            match is_in {
                true => {
                    let column = COLUMNS[left.1];
                    format!("{} {not}IN (SELECT {listed}.{column} {text})", name(left))
                }
                false => format!("{not}EXISTS (SELECT 1 {text})"),
            }
        },
    )
}

/// `FROM … WHERE …` over so many relations.
fn from(relations: usize) -> impl Strategy<Value = String> {
    let on = prop::option::weighted(0.8, (0..8usize, 0..4usize));
    let join = (0..2usize, on, prop::bool::weighted(0.2));
    let condition = prop::option::of(condition(relations));
    (prop::collection::vec(join, relations), condition).prop_map(|(joins, condition)| {
        let mut text = String::from("FROM");
        for (number, (table, on, is_left)) in joins.into_iter().enumerate() {
            let join = match number {
                0 => "",
                _ if is_left && on.is_some() => " LEFT JOIN",
                _ => " JOIN",
            };
            text += &format!("{join} {} x{number}", TABLES[table]);
            if let (Some((other, column)), true) = (on, number > 0) {
                let (left, right) = (name((other % number, column)), name((number, column)));
                text += &format!(" ON {left} = {right}");
            }
        }
        match condition {
            Some(condition) => format!("{text} WHERE {condition}"),
            None => text,
        }
    })
}

fn aggregate(relations: usize) -> impl Strategy<Value = String> {
    let of = |names: Vec<&'static str>| prop::sample::select(names);
    prop_oneof![
        Just("COUNT(*)".to_owned()),
        (of(vec!["COUNT", "MIN", "MAX"]), 0..relations, 0..4usize)
            .prop_map(|(f, relation, column)| format!("{f}({})", name((relation, column)))),
        (
            of(vec!["SUM", "AVG"]),
            0..relations,
            of(vec!["a", "b", "f"])
        )
            .prop_map(|(f, relation, column)| format!("{f}(x{relation}.{column})")),
    ]
}

/// `ORDER BY` all columns of a result, and limits.
fn order(columns: usize) -> impl Strategy<Value = String> {
    let by = prop::collection::vec(any::<bool>(), columns);
    let rotate = 0..columns;
    let limit = prop::option::of((0..5u64, prop::option::of(0..4u64)));
    (by, rotate, limit).prop_map(|(by, rotate, limit)| {
        let mut items: Vec<_> = by
            .iter()
            .enumerate()
            .map(|(column, descending)| match descending {
                true => format!("c{column} DESC"),
                false => format!("{}", column + 1),
            })
            .collect();
        items.rotate_left(rotate);
        let mut text = format!(" ORDER BY {}", items.join(", "));
        if let Some((limit, offset)) = limit {
            text += &format!(" LIMIT {limit}");
            if let Some(offset) = offset {
                text += &format!(" OFFSET {offset}");
            }
        }
        text
    })
}

/// A query, and whether it says in which order its rows come.
fn query() -> impl Strategy<Value = (String, bool)> {
    let plain = (1..4usize).prop_flat_map(|relations| {
        let columns = prop::collection::vec((0..relations, 0..4usize), 1..4);
        (columns, any::<bool>(), from(relations))
    });
    let plain = plain.prop_flat_map(|(columns, distinct, from)| {
        let items: Vec<_> = (columns.iter().enumerate())
            .map(|(number, at)| format!("{} AS c{number}", name(*at)))
            .collect();
        let distinct = if distinct { "DISTINCT " } else { "" };
        let text = format!("SELECT {distinct}{} {from}", items.join(", "));
        ordered(text, columns.len())
    });
    let grouped = (1..3usize).prop_flat_map(|relations| {
        let keys = prop::collection::vec((0..relations, 0..4usize), 0..3);
        let aggregates = prop::collection::vec(aggregate(relations), 1..4);
        let having = prop::option::of((aggregate(relations), 0..3u32));
        (keys, aggregates, having, from(relations))
    });
    let grouped = grouped.prop_flat_map(|(keys, aggregates, having, from)| {
        let names: Vec<_> = keys.iter().map(|at| name(*at)).collect();
        let items: Vec<_> = names.iter().chain(&aggregates).cloned().collect();
        let listed: Vec<_> = (items.iter().enumerate())
            .map(|(number, item)| format!("{item} AS c{number}"))
            .collect();
        let mut text = format!("SELECT {} {from}", listed.join(", "));
        if !names.is_empty() {
            text += &format!(" GROUP BY {}", names.join(", "));
            // Without groups, aggregates may be nothing, which has no comparison.
            let may_be_nothing = from.contains(" LEFT ");
            let is_count = |having: &(String, u32)| having.0.starts_with("COUNT");
            if let Some((aggregate, number)) = having.filter(|h| !may_be_nothing || is_count(h)) {
                let number = match aggregate.ends_with(".s)") && !aggregate.starts_with("COUNT") {
                    true => "'a'".to_owned(),
                    false => number.to_string(),
                };
                text += &format!(" HAVING {aggregate} >= {number}");
            }
        }
        // Nothing has no place in the order that both agree on.
        match names.is_empty() {
            true => Just((text, false)).boxed(),
            false => ordered(text, items.len()).boxed(),
        }
    });
    prop_oneof![plain.boxed(), grouped.boxed()]
}

fn ordered(text: String, columns: usize) -> impl Strategy<Value = (String, bool)> {
    // Nothing comes first there, and last here.
    let may_be_nothing = text.contains(" LEFT ");
    prop::option::of(order(columns)).prop_map(move |order| match order {
        Some(order) if !may_be_nothing => (format!("{text}{order}"), true),
        _ => (text.clone(), false),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(common::cases(500)))]

    #[test]
    fn answers_are_those_of_sqlite(
        rows in prop::collection::vec(prop::collection::vec(row(), 0..9), 2),
        indexes in prop::collection::vec(
            prop::collection::vec(prop::sample::subsequence(vec![0u16, 1, 2, 3], 1..3), 0..3),
            2,
        ),
        (text, is_ordered) in query(),
        piece in prop::sample::select(vec![1usize, 50, 1 << 20]),
    ) {
        let both = Both::new(&rows, &indexes);
        let (mut ours, mut theirs) = (both.ours(&text, piece), both.theirs(&text));
        if !is_ordered {
            ours.sort_unstable();
            theirs.sort_unstable();
        }
        prop_assert_eq!(ours, theirs, "{}", text);
        // Its plan is told too.
        let plan = both.ours(&format!("EXPLAIN {text}"), piece);
        prop_assert!(text.ends_with(" LIMIT 0") || text.contains(" LIMIT 0 ") || !plan.is_empty());
    }
}

#[test]
fn explain_says_what_was_read() {
    let rows = |count: u32| -> Vec<Row> {
        (0..count)
            .map(|a| Row {
                a,
                b: i64::from(a % 3),
                s: 0,
                f: 0,
                o: None,
            })
            .collect()
    };
    let both = Both::new(&[rows(10), rows(30)], &[vec![], vec![vec![0]]]);
    let plan = both.ours(
        "EXPLAIN SELECT x.b, COUNT(*) AS n FROM r x JOIN s y ON x.a = y.a WHERE x.b = 1 \
         GROUP BY x.b ORDER BY n LIMIT 3",
        1 << 20,
    );
    let lines: Vec<_> = plan.iter().map(|row| row[0].trim_matches('\'')).collect();
    assert_eq!(
        lines,
        [
            "  r #0: all rows, about 1 rows; looked at 10, found 3 by conditions",
            "  s #1: index i where a = r #0.a, about 1 rows; looked at 3, found 3 by conditions",
            "groups by 1 columns",
            "sorted by 1 columns",
            "at most 3",
        ]
    );
}
