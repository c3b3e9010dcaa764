//! Random conditions against a naive evaluator over values, and hostile texts.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::common::{encode_row, layout, matches, only, table, Tables};
use crate::fuzzing::{fuzz_plan, fuzz_sql};
use lightcone_query::{compile_statement, compile_subscription, Caller, SelectPlan};
use lightcone_types::{AlgebraicType, AlgebraicValue as V, ColId, Identity, I256, U256};
use proptest::prelude::*;

/// A condition as a tree of its own, written out as text for the parser and evaluated here by the book.
#[derive(Clone, Debug)]
enum Condition {
    Constant(bool),
    Bool(usize),
    /// Column, operator, literal, is the literal on the left.
    Literal(usize, &'static str, V, bool),
    Columns(usize, &'static str, usize),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
    Not(Box<Condition>),
    Compare(Box<Condition>, &'static str, Box<Condition>),
}

const COLUMNS: &[(&str, AlgebraicType)] = &[
    ("b1", AlgebraicType::Bool),
    ("b2", AlgebraicType::Bool),
    ("u1", AlgebraicType::U8),
    ("u2", AlgebraicType::U8),
    ("i1", AlgebraicType::I16),
    ("i2", AlgebraicType::I16),
    ("f1", AlgebraicType::F64),
    ("f2", AlgebraicType::F64),
    ("g", AlgebraicType::F32),
    ("w", AlgebraicType::U32),
    ("x", AlgebraicType::I32),
    ("y", AlgebraicType::U64),
    ("z", AlgebraicType::I64),
    ("v", AlgebraicType::U16),
    ("s1", AlgebraicType::String),
    ("s2", AlgebraicType::String),
    ("h1", AlgebraicType::I128),
    ("h2", AlgebraicType::U128),
    ("k1", AlgebraicType::I256),
    ("k2", AlgebraicType::U256),
    ("p", AlgebraicType::I8),
];

fn operator() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["=", "==", "<>", "!=", "<", "<=", ">", ">="])
}

/// Few values per type, so that equal ones meet.
fn value(ty: &AlgebraicType, literal: bool) -> BoxedStrategy<V> {
    use AlgebraicType as T;
    let small = -2i8..3;
    let tiny = 0u8..4;
    match *ty {
        T::Bool => any::<bool>().prop_map(V::Bool).boxed(),
        T::U8 => tiny.prop_map(V::U8).boxed(),
        T::I8 => small.prop_map(V::I8).boxed(),
        T::U16 => tiny.prop_map(|n| V::U16(u16::from(n) << 7)).boxed(),
        T::I16 => small.prop_map(|n| V::I16(i16::from(n) << 7)).boxed(),
        T::U32 => tiny.prop_map(|n| V::U32(u32::from(n) << 30)).boxed(),
        T::I32 => small.prop_map(|n| V::I32(i32::from(n) << 30)).boxed(),
        T::U64 => tiny.prop_map(|n| V::U64(u64::from(n) << 62)).boxed(),
        T::I64 => small.prop_map(|n| V::I64(i64::from(n) << 62)).boxed(),
        T::U128 => tiny.prop_map(|n| V::U128(u128::from(n) << 126)).boxed(),
        T::I128 => small.prop_map(|n| V::I128(i128::from(n) << 126)).boxed(),
        T::U256 => tiny.prop_map(|n| V::U256(U256::from(n) << 254)).boxed(),
        T::I256 => small.prop_map(|n| V::I256(I256::from(n) << 254)).boxed(),
        T::F32 if literal => prop::sample::select(vec![-1.5f32, 0.0, 0.1, 7.0])
            .prop_map(V::F32)
            .boxed(),
        T::F32 => prop::sample::select(vec![-1.5f32, -0.0, 0.0, 0.1, 7.0, f32::NAN, f32::INFINITY])
            .prop_map(V::F32)
            .boxed(),
        T::F64 if literal => prop::sample::select(vec![-1.5f64, 0.0, 0.1, 1e300])
            .prop_map(V::F64)
            .boxed(),
        T::F64 => prop::sample::select(vec![
            -1.5f64,
            -0.0,
            0.0,
            0.1,
            1e300,
            f64::NAN,
            -f64::NAN,
            f64::NEG_INFINITY,
        ])
        .prop_map(V::F64)
        .boxed(),
        T::String => prop::sample::select(vec!["", "a", "ab", "b", "é", "it's"])
            .prop_map(|s| V::String(s.into()))
            .boxed(),
        _ => panic!("no values of {}", ty.type_name()),
    }
}

fn literal_text(value: &V) -> String {
    match value {
        V::Bool(b) => b.to_string(),
        V::U8(n) => n.to_string(),
        V::I8(n) => n.to_string(),
        V::U16(n) => n.to_string(),
        V::I16(n) => n.to_string(),
        V::U32(n) => n.to_string(),
        V::I32(n) => n.to_string(),
        V::U64(n) => n.to_string(),
        V::I64(n) => n.to_string(),
        V::U128(n) => n.to_string(),
        V::I128(n) => n.to_string(),
        V::U256(n) => n.to_string(),
        V::I256(n) => n.to_string(),
        V::F32(n) => n.to_string(),
        V::F64(n) => n.to_string(),
        V::String(s) => format!("'{}'", s.replace('\'', "''")),
        other => panic!("no literal for {other:?}"),
    }
}

fn leaf() -> impl Strategy<Value = Condition> {
    let column = 0..COLUMNS.len();
    prop_oneof![
        1 => any::<bool>().prop_map(Condition::Constant),
        1 => (0usize..2).prop_map(Condition::Bool),
        6 => (column.clone(), operator(), any::<bool>()).prop_flat_map(|(column, operator, left)| {
            value(&COLUMNS[column].1, true).prop_map(move |v| Condition::Literal(column, operator, v, left))
        }),
        2 => (column, operator(), any::<prop::sample::Index>()).prop_map(|(left, operator, index)| {
            let same: Vec<usize> = (0..COLUMNS.len()).filter(|c| COLUMNS[*c].1 == COLUMNS[left].1).collect();
            Condition::Columns(left, operator, *index.get(&same))
        }),
    ]
}

fn condition() -> impl Strategy<Value = Condition> {
    leaf().prop_recursive(6, 40, 2, |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            2 => pair.clone().prop_map(|(a, b)| Condition::And(a.into(), b.into())),
            2 => pair.clone().prop_map(|(a, b)| Condition::Or(a.into(), b.into())),
            1 => inner.prop_map(|a| Condition::Not(a.into())),
            1 => (pair, operator()).prop_map(|((a, b), o)| Condition::Compare(a.into(), o, b.into())),
        ]
    })
}

impl Condition {
    /// With only the parentheses that precedence asks for, so that precedence is tested too.
    fn text(&self, precedence: u8) -> String {
        let (own, text) = match self {
            Condition::Constant(truth) => (9, truth.to_string()),
            Condition::Bool(column) => (9, COLUMNS[*column].0.to_owned()),
            Condition::Literal(column, operator, value, false) => (
                4,
                format!("{}{operator}{}", COLUMNS[*column].0, literal_text(value)),
            ),
            Condition::Literal(column, operator, value, true) => (
                4,
                format!("{} {operator} {}", literal_text(value), COLUMNS[*column].0),
            ),
            Condition::Columns(left, operator, right) => (
                4,
                format!("{} {operator} t.{}", COLUMNS[*left].0, COLUMNS[*right].0),
            ),
            Condition::Compare(a, operator, b) => {
                (4, format!("{} {operator} {}", a.text(4), b.text(5)))
            }
            Condition::Not(a) => (3, format!("NOT {}", a.text(3))),
            Condition::And(a, b) => (2, format!("{} AND {}", a.text(2), b.text(3))),
            Condition::Or(a, b) => (1, format!("{} or {}", a.text(1), b.text(2))),
        };
        if own < precedence {
            format!("({text})")
        } else {
            text
        }
    }

    fn holds(&self, row: &[V]) -> bool {
        match self {
            Condition::Constant(truth) => *truth,
            Condition::Bool(column) => row[*column] == V::Bool(true),
            Condition::Literal(column, operator, value, false) => {
                holds(operator, order(&row[*column], value))
            }
            Condition::Literal(column, operator, value, true) => {
                holds(operator, order(value, &row[*column]))
            }
            Condition::Columns(left, operator, right) => {
                holds(operator, order(&row[*left], &row[*right]))
            }
            Condition::And(a, b) => a.holds(row) && b.holds(row),
            Condition::Or(a, b) => a.holds(row) || b.holds(row),
            Condition::Not(a) => !a.holds(row),
            Condition::Compare(a, operator, b) => holds(operator, a.holds(row).cmp(&b.holds(row))),
        }
    }
}

fn holds(operator: &str, ordering: Ordering) -> bool {
    match operator {
        "=" | "==" => ordering == Ordering::Equal,
        "<>" | "!=" => ordering != Ordering::Equal,
        "<" => ordering == Ordering::Less,
        "<=" => ordering != Ordering::Greater,
        ">" => ordering == Ordering::Greater,
        _ => ordering != Ordering::Less,
    }
}

/// The order of 01 §1.6.1, written down a second time.
fn order(left: &V, right: &V) -> Ordering {
    let float = |a: f64, b: f64| match (a.is_nan(), b.is_nan()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        _ if a < b => Ordering::Less,
        _ if a > b => Ordering::Greater,
        _ => Ordering::Equal,
    };
    match (left, right) {
        (V::Bool(a), V::Bool(b)) => a.cmp(b),
        (V::U8(a), V::U8(b)) => a.cmp(b),
        (V::I8(a), V::I8(b)) => a.cmp(b),
        (V::U16(a), V::U16(b)) => a.cmp(b),
        (V::I16(a), V::I16(b)) => a.cmp(b),
        (V::U32(a), V::U32(b)) => a.cmp(b),
        (V::I32(a), V::I32(b)) => a.cmp(b),
        (V::U64(a), V::U64(b)) => a.cmp(b),
        (V::I64(a), V::I64(b)) => a.cmp(b),
        (V::U128(a), V::U128(b)) => a.cmp(b),
        (V::I128(a), V::I128(b)) => a.cmp(b),
        (V::U256(a), V::U256(b)) => a.cmp(b),
        (V::I256(a), V::I256(b)) => a.cmp(b),
        (V::F32(a), V::F32(b)) => float((*a).into(), (*b).into()),
        (V::F64(a), V::F64(b)) => float(*a, *b),
        (V::String(a), V::String(b)) => a.as_bytes().cmp(b.as_bytes()),
        other => panic!("different types: {other:?}"),
    }
}

fn row() -> impl Strategy<Value = Vec<V>> {
    COLUMNS
        .iter()
        .map(|(_, ty)| value(ty, false))
        .collect::<Vec<_>>()
}

const CALLER: Caller = Caller {
    identity: Identity::ZERO,
    is_owner: false,
};

fn plan(condition: &str) -> SelectPlan {
    let tables = Tables(vec![Arc::new(table(1, "t", COLUMNS))]);
    let text = format!("SELECT * FROM t WHERE {condition}");
    only(compile_subscription(&text, &tables, &CALLER).unwrap_or_else(|e| panic!("{text}: {e}")))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn conditions_mean_what_they_say(condition in condition(), rows in prop::collection::vec(row(), 4)) {
        let plan = plan(&condition.text(0));
        let layout = layout(&plan.table);
        let handled: Vec<ColId> = plan.equalities.iter().map(|(column, _)| *column).collect();
        let residual = plan.residual(&handled);
        for row in rows {
            let bytes = encode_row(&row);
            let expected = condition.holds(&row);
            prop_assert_eq!(matches(&plan, &bytes), expected, "{} on {:?}", condition.text(0), row);
            // Equalities and residual together are the whole condition.
            let equal = plan.equalities.iter().all(|(column, constant)| {
                layout.column(&bytes, usize::from(column.0)) == &**constant
            });
            let rest = residual.as_ref().is_none_or(|p| p.matches(&layout, &bytes));
            prop_assert_eq!(equal && rest, expected, "{} on {:?}", condition.text(0), row);
        }
    }

    #[test]
    fn arbitrary_bytes_are_survived(data in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzz_sql(&data);
    }

    #[test]
    fn arbitrary_tokens_are_survived(words in prop::collection::vec(prop::sample::select(vec![
        "SELECT", "*", "FROM", "t", "WHERE", "a", "b", "s", "f", "i", "x", ".", ",", "(", ")", "=", "<", "<>", "AND",
        "OR", "NOT", "TRUE", "1", "-", "+", "1e9", "'x'", "0xab", "X'ab'", ":", "sender", "JOIN", "ON", "LIMIT", "AS",
        "COUNT", "IN", "IS", "BETWEEN", "CASE", "NULL", "\"a\"", ";", "$1", "::", "[", "DISTINCT", "GROUP", "BY", "INSERT",
        "INTO", "SET", "row_limit", "SHOW", "user", "OF", "SYSTEM", "TIME", "--", "/*", "\n", "é", "L",
    ]), 0..40)) {
        let text = words.join(" ");
        fuzz_sql(text.as_bytes());
        fuzz_sql(format!("SELECT * FROM t {text}").as_bytes());
    }

    #[test]
    fn arbitrary_arguments_are_survived(values in prop::collection::vec(prop::sample::select(vec![
        "1", "1.0", "-1", "4294967295", "4294967296", "1e9", "1e999999999", "'x'", "''", "'a''b'", "'2024-01-01T00:00:00Z'",
        "'2024-13-01'", "0xab", "X''", "TRUE", "NULL", ":sender", "$1", "t.a", "(1)", "1 + 1", "n => 1", "v(1)", "'", "é", ")",
    ]), 0..5)) {
        fuzz_sql(values.join(", ").as_bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn ends_of_queries_mean_the_same_with_indexes_and_without(
        words in prop::collection::vec(prop::sample::select(vec![
            "r.a", "s.a", "s.b", "r.f", "r.i", "s.t", "a", "f", "=", "<", ">=", "<>", "1", "2", "0.0", "TRUE", ":sender",
            "'a'", "AND", "AND", "OR", "NOT", "(", ")", "WHERE", "ON", "JOIN s", "JOIN r q", "q.a", "IN (1, 2)",
            "BETWEEN 0 AND 1", "LIKE 'a%'", "IS NULL", "GROUP BY", "ORDER BY", "DISTINCT", "COUNT(*) AS n", ",", "FROM r",
            "HAVING", "SUM(r.a) AS m",
        ]), 0..14),
    ) {
        fuzz_plan(words.join(" ").as_bytes());
    }
}

#[test]
fn ends_of_queries_that_mean_something() {
    for end in [
        "JOIN s ON r.a = s.a WHERE s.b = TRUE AND r.f >= 0",
        "r.a = s.a JOIN r q ON q.b = s.b WHERE q.a < 3 AND r.i = :sender",
        "a BETWEEN 1 AND 2 AND f = 0",
        "DISTINCT r.a, s.b FROM r JOIN s ON r.a = s.a ORDER BY 2 DESC, 1",
        "r.a, COUNT(*) AS n FROM r JOIN s ON r.f = s.f GROUP BY r.a HAVING n > 1",
    ] {
        fuzz_plan(end.as_bytes());
    }
}

/// Texts of the greatest length that nest, chain and repeat; none may take long or use up the stack.
#[test]
fn hostile_texts_are_survived() {
    let room = 49_900;
    let repeat = |text: &str| text.repeat(room / text.len());
    let half = |open: &str, middle: &str, close: &str| {
        let n = (room - middle.len()) / (open.len() + close.len());
        format!("{}{middle}{}", open.repeat(n), close.repeat(n))
    };
    for text in [
        half("(", "u1 = 1", ")"),
        half("NOT (", "u1 = 1", ")"),
        half("(b1 = ", "b2", ")"),
        half("(", "b1", " = b2)"),
        half("(", "u1 = 1", " AND b1)"),
        half("(b1 OR ", "u1 = 1", ")"),
        format!("{}b1", repeat("NOT ")),
        format!("{}b1", repeat("b1 = ")),
        format!("{}b1", repeat("b1 < (b2) AND b1 OR ")),
        format!("{}b1", repeat("b1 OR ")),
        format!("{}b1", repeat("b1 AND ")),
    ] {
        let plan = plan(&text);
        let row: Vec<V> = COLUMNS.iter().map(|(_, ty)| zero(ty)).collect();
        matches(&plan, &encode_row(&row));
        plan.residual(&[ColId(0), ColId(2)]);
    }
    let refused = [
        repeat("("),
        repeat(")"),
        repeat("(SELECT * FROM t WHERE "),
        repeat("SELECT "),
        repeat("b1 = "),
        repeat("NOT "),
        repeat("- "),
        repeat("/*"),
        repeat("'"),
        repeat("\""),
        repeat("a."),
        repeat("$a$"),
        repeat("b1 IN ("),
        repeat("CASE WHEN "),
        repeat("1e"),
        format!("b1 {}", repeat("JOIN t ")),
        format!("u1 = {}", repeat("9")),
        format!("u1 = 1e{}", repeat("9")),
        format!("f1 {}", repeat("+1")),
    ];
    let tables = Tables(vec![Arc::new(table(1, "t", COLUMNS))]);
    for text in refused {
        for prefix in [
            "",
            "SELECT * FROM t WHERE ",
            "SELECT ",
            "SELECT * FROM ",
            "SELECT t.* FROM t JOIN t AS u ON ",
        ] {
            let text = format!("{prefix}{text}");
            let error = compile_statement(&text, &tables, &CALLER)
                .err()
                .map(|e| e.to_string());
            let error = error.unwrap_or_else(|| panic!("accepted: {}...", &text[..80]));
            assert!(error.len() < 60_000);
        }
    }
    // The balanced tree of comparisons of truths needs the most registers.
    let mut balanced = "b1".to_owned();
    while balanced.len() * 2 + 6 < room {
        balanced = format!("({balanced}) = ({balanced})");
    }
    let row: Vec<V> = COLUMNS.iter().map(|(_, ty)| zero(ty)).collect();
    assert!(matches(&plan(&balanced), &encode_row(&row)));
}

fn zero(ty: &AlgebraicType) -> V {
    use AlgebraicType as T;
    match *ty {
        T::Bool => V::Bool(false),
        T::U8 => V::U8(0),
        T::I8 => V::I8(0),
        T::U16 => V::U16(0),
        T::I16 => V::I16(0),
        T::U32 => V::U32(0),
        T::I32 => V::I32(0),
        T::U64 => V::U64(0),
        T::I64 => V::I64(0),
        T::U128 => V::U128(0),
        T::I128 => V::I128(0),
        T::U256 => V::U256(U256::ZERO),
        T::I256 => V::I256(I256::ZERO),
        T::F32 => V::F32(0.0),
        T::F64 => V::F64(0.0),
        T::String => V::String("".into()),
        _ => panic!("no zero of {}", ty.type_name()),
    }
}
