//! Random queries over several relations, and random row-level security rules, against an evaluation by the book: every
//! combination of rows is looked at.

use crate::common;
use crate::common::{database, encode_row, table};
use lightcone_query::{
    compile_statement, compile_subscription, Caller, Query, SqlError, Statement,
};
use lightcone_schema::{IndexAlgorithm, IndexSchema, TableSchema};
use lightcone_types::{AlgebraicType as T, AlgebraicValue as V, ColId, Identity, IndexId, TableId};
use proptest::prelude::*;

const TABLES: [&str; 3] = ["r", "s", "t"];
/// Of every table: two numbers, a float and an owner.
const COLUMNS: [&str; 4] = ["a", "b", "f", "o"];
const MEMORY_BYTES_MAX: usize = 1 << 20;

fn user(number: u8) -> Identity {
    Identity::from_le_bytes([number; 32])
}

/// A row: small numbers, so that they meet.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    a: u32,
    b: u32,
    f: f64,
    o: u8,
}

impl Row {
    fn encoded(&self) -> Vec<u8> {
        encode_row(&[
            V::U32(self.a),
            V::U32(self.b),
            V::F64(self.f),
            V::Product(vec![V::U256(user(self.o).to_u256())]),
        ])
    }

    /// By which values of a column compare. Zeros are equal, and so are all that are no number.
    fn key(&self, column: usize) -> i64 {
        match column {
            0 => i64::from(self.a),
            1 => i64::from(self.b),
            2 if self.f.is_nan() => i64::MAX,
            2 => (self.f * 2.0) as i64,
            _ => i64::from(self.o),
        }
    }
}

fn row() -> impl Strategy<Value = Row> {
    let float = prop::sample::select(vec![0.0, -0.0, 1.0, f64::NAN]);
    (0..4u32, 0..3u32, float, 1..3u8).prop_map(|(a, b, f, o)| Row { a, b, f, o })
}

/// A column: position of its relation in the query, and its own.
type At = (usize, usize);

#[derive(Clone, Debug)]
enum Condition {
    Columns(At, &'static str, At),
    Number(At, &'static str, u32),
    Mine(usize, bool),
    Or(Box<Condition>, Box<Condition>),
    Not(Box<Condition>),
}

impl Condition {
    fn text(&self) -> String {
        let column = |(relation, column): &At| format!("x{relation}.{}", COLUMNS[*column]);
        match self {
            Condition::Columns(l, op, r) => format!("{} {op} {}", column(l), column(r)),
            Condition::Number(at, op, number) => format!("{} {op} {number}", column(at)),
            Condition::Mine(relation, true) => format!("x{relation}.o = :sender"),
            Condition::Mine(relation, false) => format!(":sender <> x{relation}.o"),
            Condition::Or(l, r) => format!("({} OR {})", l.text(), r.text()),
            Condition::Not(inner) => format!("NOT ({})", inner.text()),
        }
    }

    fn holds(&self, rows: &[&Row], me: u8) -> bool {
        let key = |(relation, column): &At| rows[*relation].key(*column);
        match self {
            Condition::Columns(l, op, r) => compare(op, key(l), key(r)),
            Condition::Number(at, op, number) => {
                let factor = if at.1 == 2 { 2 } else { 1 };
                compare(op, key(at), i64::from(*number) * factor)
            }
            Condition::Mine(relation, is_mine) => (rows[*relation].o == me) == *is_mine,
            Condition::Or(l, r) => l.holds(rows, me) || r.holds(rows, me),
            Condition::Not(inner) => !inner.holds(rows, me),
        }
    }
}

fn compare(operator: &str, left: i64, right: i64) -> bool {
    match operator {
        "=" => left == right,
        "<>" => left != right,
        "<" => left < right,
        _ => left >= right,
    }
}

/// `SELECT x<returned>.* FROM … WHERE …`: relations are called x0, x1, …
#[derive(Clone, Debug)]
struct Select {
    /// Tables, and the columns of `ON`: one of an earlier relation, one of its own.
    relations: Vec<(usize, Option<(At, usize)>)>,
    conditions: Vec<Condition>,
    returned: usize,
}

impl Select {
    fn text(&self, output: &str) -> String {
        let mut text = format!("SELECT {output} FROM");
        for (number, (table, on)) in self.relations.iter().enumerate() {
            let join = if number > 0 { " JOIN" } else { "" };
            text += &format!("{join} {} x{number}", TABLES[*table]);
            if let Some(((relation, column), own)) = on {
                let (left, right) = (COLUMNS[*column], COLUMNS[*own]);
                text += &format!(" ON x{relation}.{left} = x{number}.{right}");
            }
        }
        let conditions: Vec<_> = self.conditions.iter().map(Condition::text).collect();
        if !conditions.is_empty() {
            text += &format!(" WHERE {}", conditions.join(" AND "));
        }
        text
    }

    fn rows_text(&self) -> String {
        self.text(&format!("x{}.*", self.returned))
    }

    /// All combinations of rows that match.
    fn matches<'r>(&self, of_relation: &[Vec<&'r Row>], me: u8) -> Vec<Vec<&'r Row>> {
        let mut tuples: Vec<Vec<&Row>> = vec![Vec::new()];
        for ((_, on), rows) in self.relations.iter().zip(of_relation) {
            let longer = tuples.iter().flat_map(|tuple| {
                rows.iter().map(move |row| {
                    let mut tuple = tuple.clone();
                    tuple.push(*row);
                    tuple
                })
            });
            let joins = |tuple: &Vec<&Row>| {
                on.is_none_or(|((relation, column), own)| {
                    let last = tuple.last().expect("it was pushed");
                    tuple[relation].key(column) == last.key(own)
                })
            };
            tuples = longer.filter(joins).collect();
        }
        tuples.retain(|tuple| self.conditions.iter().all(|c| c.holds(tuple, me)));
        tuples
    }
}

fn operator() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["=", "=", "<>", "<", ">="])
}

fn condition(relations: usize) -> impl Strategy<Value = Condition> {
    let at = move || (0..relations, 0..3usize);
    let leaf = prop_oneof![
        3 => (at(), operator(), at()).prop_map(|(l, op, r)| {
            // Of one type.
            let column = if (l.1 == 2) != (r.1 == 2) { l.1 } else { r.1 };
            Condition::Columns(l, op, (r.0, column))
        }),
        3 => (at(), operator(), 0..4u32).prop_map(|(at, op, n)| Condition::Number(at, op, n)),
        2 => (0..relations, prop::bool::weighted(0.8)).prop_map(|(r, m)| Condition::Mine(r, m)),
    ];
    leaf.prop_recursive(2, 4, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone())
                .prop_map(|(l, r)| Condition::Or(Box::new(l), Box::new(r))),
            inner.prop_map(|c| Condition::Not(Box::new(c))),
        ]
    })
}

fn select(relations_max: usize) -> impl Strategy<Value = Select> {
    (1..=relations_max).prop_flat_map(|count| {
        let relation = (
            0..3usize,
            prop::option::weighted(0.7, (0..64usize, 0..4usize)),
        );
        let relations = prop::collection::vec(relation, count);
        let conditions = prop::collection::vec(condition(count), 0..3);
        (relations, conditions, 0..count).prop_map(|(relations, conditions, returned)| Select {
            relations: relations
                .into_iter()
                .enumerate()
                .map(|(number, (table, on))| {
                    let on = on.filter(|_| number > 0).map(|(relation, own)| {
                        // Columns of one type: the two numbers, or the same.
                        let column = match own {
                            0 | 1 => relation / number % 2,
                            own => own,
                        };
                        ((relation % number, column), own)
                    });
                    (table, on)
                })
                .collect(),
            conditions,
            returned,
        })
    })
}

/// Columns of an index, and whether it is a hash index.
type IndexColumns = (Vec<u16>, bool);

#[derive(Clone, Debug)]
struct Database {
    rows: Vec<Vec<Row>>,
    indexes: Vec<Vec<IndexColumns>>,
}

fn database() -> impl Strategy<Value = Database> {
    let columns = prop::sample::subsequence(vec![0u16, 1, 2, 3], 1..3).prop_shuffle();
    let indexes = prop::collection::vec((columns, any::<bool>()), 0..3);
    let rows = prop::collection::vec(row(), 0..7);
    (
        prop::collection::vec(rows, 3),
        prop::collection::vec(indexes, 3),
    )
        .prop_map(|(mut rows, indexes)| {
            // Tables are sets of rows, byte by byte.
            for rows in &mut rows {
                let mut seen: Vec<Vec<u8>> = Vec::new();
                rows.retain(|row| {
                    let encoded = row.encoded();
                    let is_new = !seen.contains(&encoded);
                    seen.push(encoded);
                    is_new
                });
            }
            Database { rows, indexes }
        })
}

struct Loaded(database::Database);

impl Loaded {
    fn new(database: &Database, rules: &[Select]) -> Loaded {
        let columns = [
            ("a", T::U32),
            ("b", T::U32),
            ("f", T::F64),
            ("o", T::identity()),
        ];
        let mut loaded = database::Database::default();
        for (number, name) in TABLES.iter().enumerate() {
            let mut schema: TableSchema = table(4096 + number as u32, name, &columns);
            let index = |(position, (columns, hash)): (usize, &IndexColumns)| {
                let columns = columns.iter().map(|c| ColId(*c)).collect();
                IndexSchema {
                    id: IndexId(position as u32),
                    name: format!("i{position}"),
                    accessor: None,
                    algorithm: match hash {
                        true => IndexAlgorithm::Hash(columns),
                        false => IndexAlgorithm::BTree(columns),
                    },
                    unique: false,
                }
            };
            let indexes = database.indexes[number].iter().enumerate();
            schema.indexes = indexes.map(index).collect();
            loaded.add(schema, database.rows[number].iter().map(Row::encoded));
        }
        for rule in rules {
            let (table, _) = rule.relations[rule.returned];
            let id = TableId(4096 + table as u32);
            loaded.rules.entry(id).or_default().push(rule.rows_text());
        }
        Loaded(loaded)
    }

    /// The rows in BSATN, sorted, found in pieces of so many steps.
    fn run(&self, query: Query, me: u8, piece: usize) -> Vec<Vec<u8>> {
        let rows = self.0.rows(query, user(me), MEMORY_BYTES_MAX, piece);
        let mut rows = rows.expect("it is small");
        rows.sort_unstable();
        rows
    }
}

/// The rows that a user sees of a table, by the book: for each rule, the rows of the table that it gives where it sees all of
/// its table, and of others what the user sees. None if rules go in a circle.
fn visible<'r>(
    database: &'r Database,
    rules: &[Select],
    table: usize,
    me: u8,
    chain: &mut Vec<usize>,
) -> Option<Vec<&'r Row>> {
    let mut own = rules
        .iter()
        .filter(|rule| rule.relations[rule.returned].0 == table);
    if chain.last() == Some(&table) || own.clone().next().is_none() {
        return Some(database.rows[table].iter().collect());
    }
    if chain.contains(&table) {
        return None;
    }
    chain.push(table);
    let found = own.try_fold(Vec::new(), |mut rows, rule| {
        let relations = rule.relations.iter();
        let of_relation: Option<Vec<_>> = relations
            .map(|(table, _)| visible(database, rules, *table, me, chain))
            .collect();
        let found = rule.matches(&of_relation?, me);
        rows.extend(found.into_iter().map(|tuple| tuple[rule.returned]));
        Some(rows)
    });
    chain.pop();
    found
}

fn caller(me: u8) -> Caller {
    Caller {
        identity: user(me),
        is_owner: me == 9,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(common::cases(600)))]

    #[test]
    fn joins_find_what_all_combinations_give(
        database in database(),
        select in select(4),
        piece in prop::sample::select(vec![1usize, 7, 1 << 20]),
    ) {
        let loaded = Loaded::new(&database, &[]);
        let of_relation: Vec<Vec<&Row>> = (select.relations.iter())
            .map(|(table, _)| database.rows[*table].iter().collect())
            .collect();
        let matches = select.matches(&of_relation, 1);
        let mut expected: Vec<_> = matches.iter().map(|m| m[select.returned].encoded()).collect();
        expected.sort_unstable();
        let text = select.rows_text();
        let query = compile_subscription(&text, &loaded.0, &caller(1));
        let query = query.unwrap_or_else(|e| panic!("{text}: {e}"));
        prop_assert_eq!(loaded.run(query, 1, piece), expected, "{}", text);

        let text = select.text("COUNT(*) AS n");
        let Ok(Statement::Select(query)) = compile_statement(&text, &loaded.0, &caller(1)) else {
            panic!("{text}")
        };
        let count = (matches.len() as u64).to_le_bytes().to_vec();
        prop_assert_eq!(loaded.run(query, 1, piece), vec![count], "{}", text);
    }

    #[test]
    fn no_caller_gets_a_row_that_the_rules_do_not_give_him(
        database in database(),
        rules in prop::collection::vec(select(2), 1..4),
        select in select(3),
        me in 1..4u8,
    ) {
        let loaded = Loaded::new(&database, &rules);
        let text = select.rows_text();
        let query = compile_subscription(&text, &loaded.0, &caller(me));
        let of_relation: Option<Vec<_>> = (select.relations.iter())
            .map(|(table, _)| visible(&database, &rules, *table, me, &mut Vec::new()))
            .collect();
        let Some(of_relation) = of_relation else {
            let refused = query.expect_err("rules go in a circle");
            prop_assert!(matches!(refused, SqlError::CyclicRules(_)), "{}", refused);
            return Ok(());
        };
        let query = query.unwrap_or_else(|e| panic!("{text}: {e}"));
        let matches = select.matches(&of_relation, me);
        let mut expected: Vec<_> = matches.iter().map(|m| m[select.returned].encoded()).collect();
        expected.sort_unstable();
        prop_assert_eq!(loaded.run(query, me, 100), expected, "{} with {:?}", text, loaded.0.rules);

        // The owner sees all.
        let query = compile_subscription(&text, &loaded.0, &caller(9)).expect("no rules");
        let all: Vec<Vec<&Row>> = (select.relations.iter())
            .map(|(table, _)| database.rows[*table].iter().collect())
            .collect();
        prop_assert_eq!(loaded.run(query, 9, 100).len(), select.matches(&all, 9).len());
    }
}

/// `[NOT] EXISTS` of a table's rows with the value of a column, or `[NOT] IN` of its values.
#[derive(Clone, Debug)]
struct Subquery {
    is_not: bool,
    is_in: bool,
    table: usize,
    of: At,
}

impl Subquery {
    fn text(&self) -> String {
        let (table, column) = (TABLES[self.table], COLUMNS[self.of.1]);
        let not = if self.is_not { "NOT " } else { "" };
        let around = format!("x{}.{column}", self.of.0);
        match self.is_in {
            true => format!("{around} {not}IN (SELECT {column} FROM {table})"),
            false => format!("{not}EXISTS (SELECT 1 FROM {table} y WHERE {around} = y.{column})"),
        }
    }

    fn holds(&self, tuple: &[&Row], seen: &[Vec<&Row>]) -> bool {
        let (relation, column) = self.of;
        let mut rows = seen[self.table].iter();
        let found = rows.any(|row| row.key(column) == tuple[relation].key(column));
        found != self.is_not
    }
}

fn subqueries() -> impl Strategy<Value = Vec<Subquery>> {
    let one = (
        any::<bool>(),
        any::<bool>(),
        0..3usize,
        0..8usize,
        0..4usize,
    );
    let one = one.prop_map(|(is_not, is_in, table, relation, column)| Subquery {
        is_not,
        is_in,
        table,
        of: (relation, column),
    });
    prop::collection::vec(one, 1..3)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(common::cases(600)))]

    #[test]
    fn subqueries_are_about_the_rows_that_the_rules_give(
        database in database(),
        rules in prop::collection::vec(select(2), 1..4),
        select in select(2),
        subqueries in subqueries(),
        is_or in any::<bool>(),
        me in 1..4u8,
    ) {
        let loaded = Loaded::new(&database, &rules);
        let subqueries: Vec<_> = (subqueries.into_iter())
            .map(|mut subquery| {
                subquery.of.0 %= select.relations.len();
                subquery
            })
            .collect();
        let texts: Vec<_> = subqueries.iter().map(Subquery::text).collect();
        let rows = select.rows_text();
        let word = if select.conditions.is_empty() { "WHERE" } else { "AND" };
        let text = format!("{rows} {word} ({})", texts.join(if is_or { " OR " } else { " AND " }));
        let seen: Option<Vec<_>> = (0..TABLES.len())
            .map(|table| visible(&database, &rules, table, me, &mut Vec::new()))
            .collect();
        let Some(seen) = seen else { return Ok(()) };
        let of_relation: Vec<_> = (select.relations.iter())
            .map(|(table, _)| seen[*table].clone())
            .collect();
        let query = compile_statement(&text, &loaded.0, &caller(me));
        let query = query.unwrap_or_else(|e| panic!("{text}: {e}")).into_query().expect("a query");
        let matches = select.matches(&of_relation, me).into_iter().filter(|tuple| {
            let mut held = subqueries.iter().map(|subquery| subquery.holds(tuple, &seen));
            if is_or { held.any(|held| held) } else { held.all(|held| held) }
        });
        let mut expected: Vec<_> = matches.map(|tuple| tuple[select.returned].encoded()).collect();
        expected.sort_unstable();
        prop_assert_eq!(loaded.run(query, me, 100), expected, "{} with {:?}", text, loaded.0.rules);
    }
}

#[test]
fn two_hundred_relations() {
    let database = Database {
        rows: vec![
            (0..4)
                .map(|a| Row {
                    a,
                    b: 0,
                    f: 0.0,
                    o: 1,
                })
                .collect(),
            Vec::new(),
            Vec::new(),
        ],
        indexes: vec![vec![(vec![0], false)], vec![], vec![]],
    };
    let select = Select {
        relations: (0..200)
            .map(|n: usize| (0, n.checked_sub(1).map(|left| ((left, 0), 0))))
            .collect(),
        conditions: vec![Condition::Number((0, 0), "=", 2)],
        returned: 199,
    };
    let loaded = Loaded::new(&database, &[]);
    let query = compile_subscription(&select.rows_text(), &loaded.0, &caller(1)).expect("valid");
    let expected = database.rows[0][2].encoded();
    assert_eq!(loaded.run(query, 1, 1000), [expected]);
}

#[test]
fn limits_end_the_union_of_fragments() {
    let row = |a| Row {
        a,
        b: 0,
        f: 0.0,
        o: 1,
    };
    let database = Database {
        rows: vec![(0..4).map(row).collect(), Vec::new(), Vec::new()],
        indexes: vec![vec![]; 3],
    };
    let everything = Select {
        relations: vec![(0, None)],
        conditions: vec![],
        returned: 0,
    };
    let mine = Select {
        conditions: vec![Condition::Mine(0, true)],
        ..everything.clone()
    };
    let loaded = Loaded::new(&database, &[everything, mine]);
    for (text, rows) in [
        ("SELECT * FROM r", 8),
        ("SELECT * FROM r LIMIT 0", 0),
        ("SELECT * FROM r LIMIT 1", 1),
        ("SELECT r.a FROM r LIMIT 5", 5),
        ("SELECT COUNT(*) AS n FROM r LIMIT 5", 1),
        ("SELECT COUNT(*) AS n FROM r LIMIT 0", 0),
    ] {
        let Ok(Statement::Select(query)) = compile_statement(text, &loaded.0, &caller(1)) else {
            panic!("{text}")
        };
        assert_eq!(loaded.run(query, 1, 3).len(), rows, "{text}");
    }
}

#[test]
fn rules_may_multiply_only_so_far() {
    let database = Database {
        rows: vec![Vec::new(); 3],
        indexes: vec![vec![]; 3],
    };
    let rule = |number| Select {
        relations: vec![(0, None)],
        conditions: vec![Condition::Number((0, 0), "=", number)],
        returned: 0,
    };
    let loaded = Loaded::new(&database, &[rule(1), rule(2)]);
    let text = |joins: usize| {
        let joined: String = (0..joins).map(|n| format!(" JOIN r y{n}")).collect();
        format!("SELECT x.* FROM r x{joined}")
    };
    let fragments = |joins| {
        let query = compile_subscription(&text(joins), &loaded.0, &caller(1))?;
        Ok::<_, SqlError>(query.fragments.len())
    };
    assert_eq!(fragments(7), Ok(256));
    let refused = fragments(8).expect_err("512").to_string();
    assert!(refused.ends_with("[LC0408]"), "{refused}");
}
