//! Questions of programs are read, and no text takes long or much stack.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::super::failure::Failure;
use super::super::tests;
use super::super::tokens::tokens;
use super::*;

#[test]
fn forms_that_programs_use() {
    for text in [
        "SELECT 1",
        "select a.\"B\"::text AS x, b y, * , c.* FROM pg_class c LEFT OUTER JOIN (SELECT 1 AS a) AS d(e) ON c.x = d.e AND NOT c.y, pg_type WHERE a IN (1, 2) OR b NOT IN (SELECT 1) ORDER BY 1 DESC NULLS LAST, 2 LIMIT 5 OFFSET 2",
        "SELECT CASE WHEN a THEN 1 ELSE 2 END, CASE b WHEN 'x' THEN 1 END FROM pg_class",
        "SELECT count(*), count(DISTINCT a), string_agg(a, ',' ORDER BY b) FILTER (WHERE c) FROM t GROUP BY 1 HAVING count(*) > 1",
        "SELECT row_number() OVER (PARTITION BY a ORDER BY b DESC), (f(x)).n, a[1], -1 + 2 * 3, NOT a IS NOT NULL",
        "SELECT 'a'::pg_catalog.regclass, E'\\\\x', CAST(a AS character varying(3)), a::\"char\", b::int2[]",
        "SELECT a OPERATOR(pg_catalog.~) '^(x)$' COLLATE pg_catalog.default, a !~~ 'b', a ~* 'c' FROM t",
        "SELECT a = ANY (ARRAY['a', 'b']), b <> ALL (SELECT 1), c BETWEEN 1 AND 2, d NOT LIKE 'x' ESCAPE '\\', e IS DISTINCT FROM f",
        "WITH x AS (SELECT 1), y(a) AS (VALUES (1, 2), (3, 4)) SELECT * FROM x UNION ALL (SELECT 2) EXCEPT SELECT 3",
        "SELECT * FROM a CROSS JOIN b JOIN (c JOIN d USING (e)) ON TRUE, LATERAL (SELECT a.x) l, unnest(a.y) WITH ORDINALITY AS u(v, w)",
        "SELECT EXISTS (SELECT 1 FROM t), ARRAY(SELECT 1), array[]::text[], substring(a FROM 1 FOR 2), (SELECT 1), (a, b) = (1, 2)",
        "SELECT DISTINCT ON (a) a FROM t FETCH FIRST 1 ROW ONLY",
    ] {
        if let Err(refusal) = read_text(text) {
            panic!("{text}: {refusal}");
        }
    }
    for text in [
        "SELECT",
        "SELECT 1 FROM",
        "SELECT 1 2",
        "SELECT (1",
        "SELECT a +",
        "SELECT f(,)",
        "SELECT 1;SELECT 2",
        "DELETE FROM t",
        "SELECT CASE END FROM",
        "SELECT 1 FROM t JOIN u",
    ] {
        assert!(described(text).is_err(), "{text}");
    }
}

fn read_text(text: &str) -> Result<Query, String> {
    let tokens = tokens(text).ok_or("a quote or comment does not end")?;
    read(tokens)
}

/// Reads and binds a question.
fn described(text: &str) -> Result<(), Failure> {
    tests::read(text, true).map(|_| ())
}

/// Neither too many parentheses nor too many operators in one, but both.
fn chains_in_chains() -> String {
    let chain = "+1".repeat(40);
    let closed = format!("){chain}").repeat(40);
    format!("SELECT {}1{chain}{closed}", "(".repeat(40))
}

#[test]
fn nothing_is_too_deep() {
    for text in [
        format!("SELECT {}1", "(".repeat(20_000)),
        format!("SELECT {}1", "NOT ".repeat(10_000)),
        format!("SELECT {}1", "- ".repeat(20_000)),
        format!("SELECT 1{}", "::text".repeat(8_000)),
        format!("SELECT 1{}", "::a".repeat(16_000)),
        format!("SELECT 1{}", "||1".repeat(10_000)),
        format!("SELECT 1{}", "+1".repeat(24_900)),
        format!("SELECT 1{} FROM", "+1".repeat(24_900)),
        format!("SELECT 1{}", "+1".repeat(8_100)),
        format!("SELECT 1{} FROM", "+1".repeat(8_100)),
        format!("SELECT 1{}", "::a".repeat(8_100)),
        format!("SELECT 1{}", " isnull".repeat(6_000)),
        format!("SELECT {}", "case ".repeat(9_000)),
        format!("SELECT * FROM {}t", "(".repeat(20_000)),
        format!("SELECT * FROM {}", "(SELECT * FROM ".repeat(3_000)),
        format!("SELECT {}", "f(".repeat(20_000)),
        format!("SELECT 1{}", "[1]".repeat(10_000)),
        format!("VALUES(1){} UNION", " UNION VALUES(1)".repeat(3_000)),
        chains_in_chains(),
        format!(
            "SELECT * FROM {}SELECT 1{})",
            "(SELECT * FROM ".repeat(15) + "(",
            "+1".repeat(8_000)
        ),
        format!(
            "SELECT * FROM {}SELECT 1{}",
            "(a join ".repeat(40) + "(",
            "+1".repeat(8_000)
        ),
    ] {
        assert!(described(&text).is_err());
    }
    let long = format!("SELECT 1 WHERE 1 = 1{}", " OR 1 = 2 AND TRUE".repeat(2_000));
    assert_eq!(described(&long), Ok(()));
    let many = format!("VALUES(1){}", " UNION VALUES(1)".repeat(3_000));
    assert_eq!(described(&many), Ok(()));
}

/// They are answered on threads for reads, which have 2 MiB.
#[test]
fn small_questions_need_little_stack() {
    let chain = "+1".repeat(400);
    for text in [
        format!(
            "SELECT * FROM {}SELECT 1{chain}",
            "(SELECT * FROM ".repeat(12)
        ),
        format!("SELECT * FROM {}SELECT 1{chain}", "(a join ".repeat(12)),
        format!("SELECT {}1{chain}", "exists(select ".repeat(12)),
        format!("SELECT {}1{chain}", "f(not ".repeat(12)),
        format!("SELECT {}1{chain}", "case when not ".repeat(40)),
        format!("SELECT {}1{chain}", "- ".repeat(60)),
    ] {
        assert!(
            tokens(&text).is_some_and(|tokens| !is_large(&tokens)),
            "{text}"
        );
        let described = move || described(&text).is_err();
        let thread = std::thread::Builder::new()
            .stack_size(3 << 19)
            .spawn(described);
        assert!(thread.expect("a thread").join().expect("no panic"));
    }
}

#[test]
fn nothing_takes_long() {
    for part in [
        "if(current_time(",
        ".foo(t--,i)",
        "x-not-b.",
        "case\t-",
        "CAST(CASE (",
        "case when ",
        "not exists(",
        "(select * from (",
        "array[",
        "interval ",
        "a in (",
        "f(distinct ",
        "trim(both ",
        "position(",
        "extract(x from ",
        "substring(",
        "cast(a as x(",
        "a::x(",
        "with x as (",
        "((a join ",
        "between ",
        "left join (",
        "(a,",
        "any(",
    ] {
        for count in [24, 40, 4_000 / part.len()] {
            for end in ["", "1", "1)))"] {
                for start in ["SELECT ", "SELECT 1 FROM "] {
                    let text = format!("{start}{}{end}", part.repeat(count));
                    let started = Instant::now();
                    let _ = read_text(&text);
                    let taken = started.elapsed();
                    assert!(taken < Duration::from_secs(1), "{start}{part}: {taken:?}");
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn any_words_are_a_question_or_not(words in prop::collection::vec("select|from|where|join|on|as|case|when|then|end|in|not|and|or|is|null|a|b|,|\\(|\\)|\\[|\\]|\\.|=|<|>|~|!|::|1|'x'|\\*|order by|limit|any|array|exists|union|with|over|distinct|between|like|operator", 0..20), count in prop_oneof![3 => Just(1_usize), 1 => 2..100_usize]) {
        let words = format!("{} ", words.join(" ")).repeat(count);
        let started = Instant::now();
        let _ = read_text(&format!("select {words}"));
        prop_assert!(started.elapsed() < Duration::from_secs(2), "{words}");
    }
}
