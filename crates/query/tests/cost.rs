//! What predicates say that they cost.

use std::sync::Arc;

use crate::common::{guest, only, table, Tables};
use lightcone_query::{compile_subscription, SelectPlan};
use lightcone_types::AlgebraicType as T;

fn plan(condition: &str) -> SelectPlan {
    let columns = [
        ("n", T::U32),
        ("f", T::F64),
        ("a", T::String),
        ("b", T::String),
        ("list", T::array(T::String)),
        ("last", T::U32),
    ];
    let tables = Tables(vec![Arc::new(table(2, "t", &columns))]);
    let text = format!("SELECT * FROM t WHERE {condition}");
    only(compile_subscription(&text, &tables, &guest()).expect("a query"))
}

/// For a row of so many bytes.
fn steps(condition: &str, row_bytes: usize) -> usize {
    let predicate = plan(condition).predicate.expect("a condition");
    predicate.steps(row_bytes)
}

#[test]
fn every_test_counts() {
    assert_eq!(steps("n = 1", 1 << 20), 1);
    let long = format!("n = 1{}", " OR n = 1".repeat(4999));
    assert_eq!(steps(&long, 1 << 20), 5000);
    let nested = format!("n = 1{}", " AND (n = 2 OR NOT n = 3)".repeat(1000));
    assert!(steps(&nested, 0) >= 2001);
}

#[test]
fn bytes_that_are_compared_count() {
    // A constant is compared as far as it goes, however long the row.
    let constant = format!("a = '{}'", "x".repeat(8000));
    assert_eq!(steps(&constant, 10), steps(&constant, 1 << 20));
    assert!(steps(&constant, 10) >= 1000);
    assert!(steps("a < b", 1 << 20) > 100_000);
    assert!(steps("a < b OR a < b", 1 << 20) > 200_000);
}

#[test]
fn columns_that_are_walked_over_count() {
    assert!(steps("b = ''", 0) > steps("n = 1", 0));
    // Behind a list, whose elements are walked over one by one.
    assert!(steps("last = 1", 1 << 20) > 100_000);
}

#[test]
fn a_column_compared_with_itself_is_not_compared() {
    for condition in ["a = a", "a <= b OR a >= a", "f = f", "n = n AND b = b"] {
        assert_eq!(plan(condition).predicate, None, "{condition}");
    }
    for condition in ["a < a", "f <> f", "n = 1 AND b > b"] {
        let predicate = plan(condition).predicate;
        assert!(predicate.is_some_and(|p| p.is_never()), "{condition}");
    }
    assert_eq!(steps("n = 1 OR a < a", 1 << 20), 1);
}

#[test]
fn memory_is_that_of_all_parts() {
    let short = plan("n = 1").memory_bytes();
    let long = plan(&format!("n = 1{}", " OR n = 1".repeat(999))).memory_bytes();
    assert!(short < 2000, "{short}");
    assert!(long > 60_000, "{long}");
}
