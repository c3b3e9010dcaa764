//! The cases of 08: §2 words, §3 names, §4 literals, §5 grammar, §6 types, §7 texts, §17 builders, §20 conformance.

use crate::columns::column_type;
use crate::common;
use crate::common::{
    ad_hoc, ad_hoc_query, catalog, encode_row, guest, matches, owner, subscription,
    subscription_query,
};
use lightcone_query::{
    admit_subscription, check_rule, compile_statement, compile_subscription, expand_subscribe_all,
    read_subscribe_text, GuardSays, Projection, SqlError, Statement, SubscribeText,
    LIVE_RELATIONS_MAX,
};
use lightcone_types::{AlgebraicType, AlgebraicValue as V, ColId, Identity, ProductType};
use lightcone_vectors::{each, file, sections_are, Entry};
use std::cell::Cell;

const STATEMENTS: &str = "08-statements.json";
const LITERALS: &str = "08-literals.json";

#[track_caller]
fn accepted(text: &str) {
    let query = subscription_query(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    admit_subscription(&query).unwrap_or_else(|e| panic!("{text}: {e}"));
    ad_hoc_query(text).unwrap_or_else(|e| panic!("{text}: {e}"));
}

#[track_caller]
fn refused(text: &str, message: &str) {
    match subscription_query(text) {
        Ok(_) => panic!("{text}: accepted"),
        Err(e) => assert_eq!(e.to_string(), message, "{text}"),
    }
}

/// It can be evaluated once, but not be subscribed to.
#[track_caller]
fn not_admitted(text: &str, message: &str) {
    let query = subscription_query(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    let refused = admit_subscription(&query).map_err(|error| error.to_string());
    assert_eq!(refused, Err(message.to_owned()), "{text}");
}

/// What a case of the file becomes here.
fn outcome(entry: &Entry) -> Result<(), String> {
    let text = entry.text("sql");
    let caller = match entry.0["caller"].as_str() {
        None => guest(),
        Some("owner") => owner(),
        Some(unknown) => panic!("caller {unknown}"),
    };
    let plan = match entry.text("language") {
        "subscription" => compile_subscription(text, &catalog(), &caller),
        "ad hoc" => {
            return compile_statement(text, &catalog(), &caller)
                .map(drop)
                .map_err(|error| error.to_string())
        }
        unknown => panic!("language {unknown}"),
    };
    plan.map(drop).map_err(|error| error.to_string())
}

/// Is this refused because it is not there yet? A later version accepts it.
fn waits(message: &str) -> bool {
    message.ends_with("[LC0404]")
}

/// Ad hoc texts that the reference refuses and that have a meaning here, or are refused for another reason (08 §5.4).
const EXTENSIONS: [&str; 2] = ["select sum(u32) as n from t", "select distinct x from test"];

/// Checks the cases of a language; so many that are valid are not there yet.
fn check_cases(language: &str, not_yet: usize) {
    let waiting = Cell::new(0);
    each(STATEMENTS, "cases", |entry| {
        let is_extension = EXTENSIONS.contains(&entry.text("sql"));
        if entry.text("language") != language || (language == "ad hoc" && is_extension) {
            return;
        }
        match (entry.text("outcome"), outcome(entry)) {
            ("ok", Ok(())) if language == "subscription" => {
                let text = entry.text("sql");
                match entry.0["admission"].as_str() {
                    None => accepted(text),
                    Some(expected) => not_admitted(text, expected),
                }
            }
            ("ok", Ok(())) => {}
            // The names do not exist, but the syntax is fine.
            ("parses", Ok(())) => {}
            ("parses", Err(message)) => {
                let is_of_names = message.ends_with("is not in scope")
                    || message.contains("no such table")
                    || message.contains("does not match the number of columns")
                    || message.contains("does not have a field");
                assert!(waits(&message) || is_of_names, "{message}");
            }
            ("ok", Err(message)) => {
                assert!(waits(&message), "{message}");
                waiting.set(waiting.get() + 1);
            }
            // Where the chapter has no text, any will do but that of a thing to come.
            ("refused", Err(message)) => match entry.0.get("message") {
                Some(expected) => assert_eq!(expected, &message),
                None => assert!(!waits(&message), "{message}"),
            },
            (expected, became) => panic!("{expected}, but {became:?}"),
        }
    });
    assert_eq!(waiting.get(), not_yet, "{language} that are not there yet");
}

#[test]
fn every_case_is_of_a_known_language() {
    sections_are(STATEMENTS, &["tables", "cases"]);
    each(STATEMENTS, "cases", |entry| {
        assert!(["subscription", "ad hoc"].contains(&entry.text("language")));
    });
}

/// The catalog of these tests has the tables of the file, column by column.
#[test]
fn tables_of_the_chapter() {
    use lightcone_query::Catalog;
    for (name, table) in file(STATEMENTS)["tables"].as_object().expect("tables") {
        let ours = catalog().table(name).expect(name);
        assert_eq!(
            ours.accessor.as_deref(),
            table["accessor"].as_str(),
            "{name}"
        );
        assert_eq!(ours.is_event, table["event"] == true, "{name}");
        assert_eq!(ours.view.is_some(), table["view"] == true, "{name}");
        let columns = table["columns"].as_array().expect("columns");
        let declared = ours.declared_columns();
        assert_eq!(declared.len(), columns.len(), "{name}");
        for (ours, column) in declared.iter().zip(columns) {
            assert_eq!(ours.name, column["name"], "{name}");
            assert_eq!(
                ours.accessor.as_deref(),
                column["accessor"].as_str(),
                "{name}"
            );
            let ty = column_type(column["type"].as_str().expect("a type"));
            assert_eq!(ours.ty, ty, "{name}.{}", ours.name);
        }
    }
}

#[test]
fn subscriptions_of_the_chapter() {
    check_cases("subscription", 0);
    // Beyond the file.
    for text in [
        "select * from user where user.identity = :sender",
        "select * from t where str = B'1'",
        "select * from t /* open",
        "select * from [t]",
        "select * from `t`",
        "select * from t where u32 = 1_000",
    ] {
        assert!(subscription(text).is_err(), "{text}");
    }
    assert!(compile_subscription("select * from secret", &catalog(), &owner()).is_ok());
}

#[test]
fn texts_of_the_query_builders() {
    each("08-builders.json", "", |entry| {
        let text = entry.text("sql");
        match (subscription_query(text), entry.0["message"].as_str()) {
            (Err(error), Some(message)) => assert_eq!(error.to_string(), message),
            // Semijoins need indexes, which the tables of the file have not.
            (Ok(_), None) if text.contains(" JOIN ") => {
                not_admitted(text, "Subscriptions require indexes on join columns");
                ad_hoc_query(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            }
            (Ok(_), None) => accepted(text),
            (Err(error), None) => panic!("{text}: {error}"),
            (Ok(_), Some(message)) => panic!("accepted, but: {message}"),
        }
    });
    accepted(r#"SELECT * FROM "player" WHERE ("player"."level" > 3)"#);
}

/// A table and a column of the type that a literal is compared with.
fn column_of(ty: &str) -> (String, String) {
    let tables = file(STATEMENTS)["tables"].take();
    for (table, definition) in tables.as_object().expect("tables") {
        for column in definition["columns"].as_array().expect("columns") {
            if column["type"] == ty {
                let name = column["name"].as_str().expect("a name");
                return (table.clone(), name.to_owned());
            }
        }
    }
    panic!("no column is a {ty}")
}

fn comparison(entry: &Entry) -> String {
    let (table, column) = column_of(entry.text("type"));
    format!(
        "select * from {table} where {column} = {}",
        entry.text("literal")
    )
}

#[test]
fn literals() {
    sections_are(LITERALS, &["valid", "invalid"]);
    each(LITERALS, "valid", |entry| {
        let plan = ad_hoc(&comparison(entry)).unwrap_or_else(|error| panic!("{error}"));
        let bytes: Vec<Vec<u8>> = (plan.equalities.iter())
            .map(|(_, bytes)| bytes.to_vec())
            .collect();
        let is_float = entry.text("type").starts_with('F');
        if is_float && entry.hex().iter().all(|byte| *byte == 0) {
            // Both zeros are equal, so this is no search for one value.
            assert!(bytes.is_empty());
        } else {
            assert_eq!(bytes, [entry.hex()]);
        }
    });
}

#[test]
fn refused_literals() {
    each(LITERALS, "invalid", |entry| {
        let error = subscription(&comparison(entry))
            .expect_err("refused")
            .to_string();
        let start = match entry.0["text"].as_str() {
            Some(text) => format!("The literal expression `{text}` cannot be parsed as type `"),
            None => panic!("a literal without a text"),
        };
        assert!(error.starts_with(&start), "{error}");
    });
}

#[test]
fn joins_are_admitted_with_an_index_on_either_side() {
    let without = "Subscriptions require indexes on join columns";
    let event = "Event tables cannot be used as the lookup table in subscription joins";
    // `lib.items`, `users`, `other` and `event` have no index; `ranked` has (a, b), `keyed` and `happening` have id.
    for (text, expected) in [
        (
            "SELECT u.* FROM users u JOIN keyed k ON u.id = k.id",
            Ok(()),
        ),
        (
            "SELECT k.* FROM keyed k JOIN users u ON u.id = k.id",
            Ok(()),
        ),
        (
            "SELECT k.* FROM keyed k JOIN keyed l ON l.id = k.id",
            Ok(()),
        ),
        (
            "SELECT u.* FROM users u JOIN other o ON u.id = o.uid",
            Err(without),
        ),
        (
            "SELECT u.* FROM users u JOIN keyed k WHERE u.id = k.id",
            Err(without),
        ),
        (
            "SELECT u.* FROM users u JOIN ranked r ON u.id = r.b",
            Err(without),
        ),
        (
            "SELECT u.* FROM users u JOIN ranked r ON u.id = r.b WHERE r.a = 3",
            Ok(()),
        ),
        (
            "SELECT u.* FROM users u JOIN ranked r ON u.id = r.b WHERE r.a > 3",
            Err(without),
        ),
        (
            "SELECT u.* FROM users u JOIN ranked r ON u.id = r.a",
            Err(without),
        ),
        (
            "SELECT u.* FROM users u JOIN keyed k ON u.id = k.id JOIN keyed l ON l.id = k.id",
            Ok(()),
        ),
        (
            "SELECT u.* FROM users u JOIN keyed k ON u.id = k.id JOIN other o ON o.uid = u.id",
            Err(without),
        ),
        (
            "SELECT u.* FROM users u JOIN keyed k ON u.id = k.id JOIN keyed l ON u.age = k.id",
            Err(without),
        ),
        (
            "SELECT e.* FROM event e JOIN keyed k ON e.id = k.id JOIN keyed l ON l.id = k.id",
            Ok(()),
        ),
        (
            "SELECT k.* FROM event e JOIN keyed k ON e.id = k.id JOIN keyed l ON l.id = k.id",
            Err(event),
        ),
        (
            "SELECT e.* FROM event e JOIN keyed k ON e.id = k.id",
            Ok(()),
        ),
        (
            "SELECT e.* FROM keyed k JOIN event e ON e.id = k.id",
            Ok(()),
        ),
        (
            "SELECT e.* FROM event e JOIN users u ON e.id = u.id",
            Err(without),
        ),
        (
            "SELECT k.* FROM event e JOIN keyed k ON e.id = k.id",
            Err(event),
        ),
        (
            "SELECT h.* FROM happening h JOIN users u ON h.id = u.id",
            Err(without),
        ),
        (
            "SELECT h.* FROM happening h JOIN happening i ON h.id = i.id",
            Err(event),
        ),
    ] {
        match expected {
            Ok(()) => accepted(text),
            Err(message) => not_admitted(text, message),
        }
    }
}

#[test]
fn live_queries_read_so_many_relations() {
    let text = |count: usize| {
        let joins = (1..count).map(|n| format!(" JOIN keyed k{n} ON k{n}.id = k0.id"));
        format!("SELECT k0.* FROM keyed k0{}", joins.collect::<String>())
    };
    accepted(&text(LIVE_RELATIONS_MAX));
    let refused = "Invalid number of tables in subscription: 17; it may read 16, those of row-level security rules included [LC0719]";
    not_admitted(&text(LIVE_RELATIONS_MAX + 1), refused);
    not_admitted(&text(500), &refused.replace("17", "500"));
}

#[test]
fn live_joins_say_what_is_theirs() {
    let text = "SELECT k.* FROM users u JOIN keyed k ON u.id = k.id \
        WHERE u.age = 3 AND k.owner = :sender AND u.age < k.id AND k.id > 1";
    let query = subscription_query(text).expect("valid");
    let me = guest().identity;
    let live = query.live_join(&query.fragments[0], &me).expect("a join");
    assert_eq!(live.returned, 1);
    assert!(!live.is_of_caller);
    let [users, keyed] = &live.relations[..] else {
        panic!("{live:?}");
    };
    let [edge] = &live.edges[..] else {
        panic!("{live:?}");
    };
    assert!(edge.ends.iter().all(|end| end.column == ColId(0)));
    assert_eq!(users.parameters, [(ColId(1), 3u32.to_le_bytes().into())]);
    let [(_, value)] = &keyed.parameters[..] else {
        panic!("{:?}", keyed.parameters);
    };
    assert_eq!(value[..], me.to_le_bytes());
    assert!(users.predicate.is_none() && keyed.predicate.is_some());
    assert_eq!(live.residuals.len(), 1);
    let mine = subscription_query(
        "SELECT k.* FROM users u JOIN keyed k ON u.id = k.id WHERE k.owner <> :sender",
    );
    let mine = mine.expect("valid");
    let live = mine.live_join(&mine.fragments[0], &me).expect("a join");
    assert!(live.is_of_caller && live.residuals.is_empty());
}

#[test]
fn clauses_that_do_not_fit_together() {
    for text in [
        "select u32, count(*) as n from t group by i32",
        "select count(*) as n from t group by i32 order by u32",
        "select distinct u32 from t order by i32",
        "select t.u32 from t left join s on t.u32 = s.u32 where (t.u32 = 1) = (s.u32 = 1)",
        "select u.id from users u left join guarded g on u.id = g.id",
        "select v.* from users u left join public_view v on u.id = v.id",
    ] {
        let refused = ad_hoc_query(text).map(drop).expect_err(text).to_string();
        assert!(refused.ends_with("[LC0411]"), "{text}: {refused}");
    }
}

#[test]
fn subqueries_that_are_refused_say_why() {
    let exists = |count: usize| vec!["exists (select 1 from team)"; count].join(" and ");
    let nested = |depth: usize| {
        let text = "exists (select 1 from team where ".repeat(depth);
        format!("{text}open = true{}", ")".repeat(depth))
    };
    for condition in [
        "id in (select id, open from team)".to_owned(),
        "id in (select * from team)".to_owned(),
        "exists (select count(*) as n from team)".to_owned(),
        "exists (select id from team group by id)".to_owned(),
        "id in (select id from team order by id limit 1)".to_owned(),
        exists(65),
        nested(9),
    ] {
        let text = format!("select * from users where {condition}");
        let refused = ad_hoc_query(&text).map(drop).expect_err(&text).to_string();
        assert!(refused.ends_with("[LC0412]"), "{text}: {refused}");
    }
    for condition in [exists(64), nested(8)] {
        let text = format!("select * from users where {condition}");
        let found = ad_hoc_query(&text).map(drop);
        assert!(found.is_ok(), "{found:?}");
    }
    let grouped =
        "select id, count(*) as n from users group by id having id in (select id from team)";
    let refused = ad_hoc_query(grouped)
        .map(drop)
        .expect_err(grouped)
        .to_string();
    assert!(refused.ends_with("[LC0412]"), "{refused}");
    for (text, error) in [
        ("select * from users where exists (select 1 from secret)", "no such table: `secret`. If the table exists, it may be marked private."),
        ("select * from users where exists (select 1 from team where nothing = 1)", "`nothing` is not in scope"),
        ("select * from users where exists (select 1 from team t) and t.id = 1", "`t` is not in scope"),
        ("select * from users where exists (select 1 from team join other on team.id = other.uid where label = 'a')", "Names must be qualified when using joins"),
        ("select * from users where id in (select label from team)", "Unexpected type: (expected) String != U32 (inferred)"),
        ("select * from player where maybe in (select maybe from player)", "Invalid binary operator `=` for type `(some: U64 | none: ())`"),
        ("select * from users where exists (select 1 from team", "sql parser error: Expected ), found: EOF"),
        ("select * from users where (select 1 from team) = 1", "Unsupported expression: (SELECT 1 FROM team) = 1"),
    ] {
        assert_eq!(ad_hoc_query(text).map(drop).expect_err(text).to_string(), error, "{text}");
    }
}

#[test]
fn subqueries_are_admitted_if_equal_columns_lead_into_them() {
    let without = "Subscriptions require indexes on join columns";
    let event = "Event tables cannot be used as the lookup table in subscription joins";
    let unlinked = |table: &str| {
        format!("a subscription follows a subquery by columns that equal those around it, and nothing leads to `{table}` in one: add a comparison `column = column` with the query around it, which all of its condition is joined to with AND [LC0417]")
    };
    let accept = |condition: &str| accepted(&format!("select * from users where {condition}"));
    let refuse = |condition: &str, message: &str| {
        not_admitted(&format!("select * from users where {condition}"), message);
    };
    for condition in [
        "exists (select 1 from keyed k where k.id = users.id)",
        "exists (select distinct k.id from keyed k where k.id = users.id and k.id > 3)",
        "not exists (select * from keyed where keyed.id = users.id and owner = :sender)",
        "exists (select 'x' from keyed where keyed.id = users.id)",
        "exists (select true from keyed where keyed.id = users.id)",
        "exists (select null from keyed where keyed.id = users.id)",
        "id in (select id from keyed)",
        "id not in (select id from keyed where owner = :sender)",
        "age = 1 or id in (select id from keyed)",
        "exists (select 1 from keyed k join keyed l on k.id = l.id where k.id = users.id)",
        "exists (select 1 from keyed k join other o on k.id = o.uid where k.id = users.id)",
        "exists (select 1 from keyed k where k.id = users.id and exists (select 1 from users u where u.age = k.id))",
    ] {
        accept(condition);
    }
    refuse(
        "exists (select 1 from other o where exists (select 1 from keyed k where k.id = o.uid and k.id = users.id))",
        &unlinked("other"),
    );
    refuse("exists (select 1 from keyed)", &unlinked("keyed"));
    refuse(
        "exists (select 1 from keyed k where k.id <= users.id)",
        &unlinked("keyed"),
    );
    refuse(
        "exists (select 1 from keyed k where k.id = users.id or k.id = 1)",
        &unlinked("keyed"),
    );
    refuse(
        "exists (select 1 from keyed k where users.id = users.age and k.id = 1)",
        &unlinked("keyed"),
    );
    refuse(
        "exists (select 1 from other o where o.uid = users.id)",
        without,
    );
    refuse(
        "exists (select 1 from event e where e.id = users.id)",
        without,
    );
    refuse(
        "exists (select 1 from event e join keyed k on k.id = e.id where k.id = users.id)",
        event,
    );
    accepted("select * from event where exists (select 1 from keyed k where k.id = event.id)");
    not_admitted(
        "select * from users where id in (select id from keyed) order by id limit 1",
        "a subscription with ORDER BY and LIMIT is not possible here: it reads one table, and this one is a join or has a subquery [LC0415]",
    );
    refuse(
        &vec!["id in (select id from keyed)"; 16].join(" and "),
        "Invalid number of tables in subscription: 17; it may read 16, those of row-level security rules included [LC0719]",
    );
    accept(&vec!["id in (select id from keyed)"; 15].join(" and "));
    // Lists are still not of the language.
    refused(
        "select * from users where id in (1, 2)",
        "Unsupported expression: id IN (1, 2)",
    );
}

#[test]
fn live_subqueries_say_what_is_theirs() {
    let text = "SELECT * FROM users WHERE age = 3 AND (id > 1 OR NOT EXISTS (SELECT 1 FROM keyed WHERE keyed.id = age)) \
        AND id IN (SELECT k.id FROM keyed k WHERE k.owner = :sender AND k.id <> users.age AND k.id > 2)";
    let query = subscription_query(text).expect("valid");
    let me = guest().identity;
    let live = query.live_join(&query.fragments[0], &me).expect("a join");
    assert!(!live.is_of_caller && live.edges.is_empty() && live.residuals.is_empty());
    let of: Vec<_> = live
        .relations
        .iter()
        .map(|r| (r.subquery, r.parameters.len()))
        .collect();
    assert_eq!(of, [(None, 1), (Some(0), 0), (Some(1), 1)]);
    let says: Vec<_> = live.guards.iter().map(|guard| guard.says).collect();
    assert_eq!(says, [GuardSays::Other, GuardSays::Match]);
    assert_eq!(live.guards[0].columns.len(), 1);
    assert_eq!(live.links.len(), 2);
    // What equals is among the conditions.
    let residuals = live
        .subqueries
        .iter()
        .map(|subquery| subquery.residuals.len());
    assert_eq!(residuals.collect::<Vec<_>>(), [1, 2]);
    assert!(live.relations[2].predicate.is_some());
    let other = subscription_query(
        "select u.* from users u where not u.id in (select id from keyed where owner <> :sender)",
    );
    let other = other.expect("valid");
    let live = other.live_join(&other.fragments[0], &me).expect("a join");
    assert!(live.is_of_caller);
    assert_eq!(live.guards[0].says, GuardSays::NoMatch);
}

#[test]
fn text_length_is_limited() {
    let text = format!("select * from t where str = '{}'", "é".repeat(25_000));
    let prefix: String = text.chars().take(120).collect();
    refused(
        &text,
        &format!("SQL query exceeds maximum allowed length: \"{prefix}...\""),
    );
    let filler = lightcone_query::QUERY_BYTES_MAX - "select * from t where str = ''".len();
    accepted(&format!(
        "select * from t where str = '{}'",
        "a".repeat(filler)
    ));
}

#[test]
fn ad_hoc_statements() {
    check_cases("ad hoc", 0);
    let columns = |text: &str| {
        ad_hoc(text)
            .unwrap_or_else(|e| panic!("{text}: {e}"))
            .output_type()
    };
    assert_eq!(
        columns("select str, t.u32 as x, \"u_8\" y from t"),
        ProductType::new([
            ("str", AlgebraicType::String),
            ("x", AlgebraicType::U32),
            ("y", AlgebraicType::U8)
        ])
    );
    assert_eq!(
        columns("select u8, u_16 from t"),
        ProductType::new([("u8", AlgebraicType::U8), ("u_16", AlgebraicType::U16)])
    );
    assert_eq!(
        columns("select Count(*) n from t limit 2"),
        ProductType::new([("n", AlgebraicType::U64)])
    );
    assert_eq!(
        columns("select * from playerState"),
        ProductType::new([("player_id", AlgebraicType::U32)])
    );
    assert_eq!(
        ad_hoc("select * from t limit 5").map(|p| p.limit),
        Ok(Some(5))
    );
    assert_eq!(
        ad_hoc("select * from t limit 1e1").map(|p| p.limit),
        Ok(Some(10))
    );
    assert_eq!(ad_hoc("select str, arr from t").map(|p| p.projection), {
        Ok(Projection::Columns(vec![
            (ColId(16), "str".to_owned()),
            (ColId(17), "arr".to_owned()),
        ]))
    });
    assert!(ad_hoc("select u32, count(*) from t group by u32").is_err());
    assert!(ad_hoc("select u32 from t for update").is_err());
}

/// A `player` row.
fn player(level: i32, score: f64, name: &str, online: bool, identity: Identity) -> Vec<u8> {
    let product = |value| V::Product(vec![value]);
    encode_row(&[
        V::U64(u64::MAX),
        V::I32(level),
        V::F64(score),
        V::String(name.into()),
        V::Bool(online),
        V::I256((-10i128).into()),
        product(V::U256(identity.to_u256())),
        product(V::U128(0xabc)),
        product(V::I64(1_739_202_330_000_000)),
        product(V::U128(0x0188_8d6e_5c00_7000_8000_0000_0000_0001)),
        V::U32(3),
        V::Bool(false),
        V::some(V::U64(5)),
        product(V::I64(1)),
    ])
}

#[test]
fn predicates_on_rows() {
    let me = guest().identity;
    let row = player(-7, 0.5, "O'Neil", true, me);
    for (condition, expected) in [
        ("level = -7", true),
        ("level < -7", false),
        ("-7 >= level", true),
        ("level <> -7 OR name = 'O''Neil'", true),
        ("name < 'P' AND name > 'O'", true),
        ("name = 'O'", false),
        ("online", true),
        ("NOT online", false),
        ("online = TRUE = TRUE", true),
        ("online > muted", true),
        ("(level = 1) = (score = 1)", true),
        ("(level = -7) <> (score = 0.5)", false),
        ("(level = -7) > ((score = 1) < muted)", true),
        ("muted <= (level = 1) AND muted >= muted", true),
        ("identity = :sender", true),
        ("NOT :sender = identity", false),
        (":sender = :sender", true),
        ("id = 18446744073709551615", true),
        ("big = -10", true),
        ("big < 0", true),
        ("conn = 0x00000000000000000000000000000abc", true),
        ("ts = '2025-02-10T15:45:30Z'", true),
        ("ts > '2025-02-10 15:45:30.123+02:00'", true),
        ("uid = '01888d6e-5c00-7000-8000-000000000001'", true),
        ("score = 5e-1 AND score >= 0.5 AND score <= .5", true),
        ("teamId = 3 AND team_id = 0x3", true),
        ("TRUE", true),
        ("FALSE OR level = -7", true),
        ("FALSE", false),
        ("level = -7 AND FALSE", false),
        (
            "NOT level = 1 AND NOT level = 2 AND NOT (level = 3 OR online = FALSE)",
            true,
        ),
        ("NOT level = 1 OR level = -7 AND muted", true),
    ] {
        let plan = subscription(&format!("SELECT * FROM player WHERE {condition}"));
        let plan = plan.unwrap_or_else(|e| panic!("{condition}: {e}"));
        assert_eq!(matches(&plan, &row), expected, "{condition}");
        let is_compared = condition.contains(":sender") && condition != ":sender = :sender";
        assert_eq!(plan.reads_sender, is_compared);
    }
}

#[test]
fn floats_compare_by_value_order() {
    let compare = |score: f64, condition: &str| {
        let plan = subscription(&format!("SELECT * FROM player WHERE {condition}")).expect("valid");
        matches(&plan, &player(0, score, "", false, Identity::ZERO))
    };
    assert!(compare(-0.0, "score = 0"));
    assert!(compare(0.0, "score = -0"));
    assert!(compare(f64::NAN, "score > 1e999"));
    assert!(compare(f64::NAN, "score = score"));
    assert!(compare(-f64::NAN, "score >= score"));
    assert!(!compare(f64::NAN, "score = 0"));
    assert!(compare(f64::NEG_INFINITY, "score < -1e300"));
}

#[test]
fn sender_in_bytes_is_big_endian() {
    let plan = subscription("select * from s where bytes = :sender").expect("valid");
    let me = guest().identity;
    let row = |bytes: &[u8]| {
        encode_row(&[
            V::Product(vec![V::U256(me.to_u256())]),
            V::U32(0),
            V::Array(vec![]),
            V::Bytes(bytes.to_vec()),
        ])
    };
    assert!(matches(&plan, &row(&me.to_be_bytes())));
    assert!(!matches(&plan, &row(&me.to_le_bytes())));
}

#[test]
fn equalities_and_residuals() {
    let equalities = |text: &str| {
        let plan = ad_hoc(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        plan.equalities
            .into_iter()
            .map(|(column, bytes)| (column.0, bytes.to_vec()))
            .collect::<Vec<_>>()
    };
    let level = |n: i32| (1, n.to_le_bytes().to_vec());
    assert_eq!(
        equalities("select * from player where level = 5"),
        [level(5)]
    );
    assert_eq!(
        equalities("select * from player where (5 = level AND online) AND name = 'a' AND id > 1"),
        [level(5), (4, vec![1]), (3, vec![1, 0, 0, 0, b'a'])]
    );
    assert_eq!(
        equalities("select * from player where identity = :sender"),
        [(6, guest().identity.to_le_bytes().to_vec())]
    );
    assert_eq!(
        equalities("select * from player where level = 5 OR online"),
        []
    );
    assert_eq!(equalities("select * from player where NOT level = 5"), []);
    assert_eq!(
        equalities("select * from player where level = 5 AND level = 6"),
        [level(5)]
    );
    // Both zeros are equal and only one of them is this one.
    assert_eq!(equalities("select * from player where score = 0"), []);
    assert_eq!(
        equalities("select * from player where score = 1"),
        [(2, 1f64.to_le_bytes().to_vec())]
    );

    let text = "select * from player where level = 5 AND level = 6 AND online AND name <> 'x'";
    let plan = ad_hoc(text).expect("valid");
    let residual = |columns: &[ColId], level: i32, online: bool| {
        let row = player(level, 0.0, "y", online, Identity::ZERO);
        let predicate = plan.residual(columns);
        predicate.is_none_or(|p| p.matches(&common::layout(&plan.table), &row))
    };
    assert!(!residual(&[], 6, true));
    assert!(residual(&[ColId(1)], 6, true));
    assert!(!residual(&[ColId(1)], 5, true));
    assert!(!residual(&[ColId(1)], 6, false));
    assert!(residual(&[ColId(1), ColId(4)], 6, false));
    assert!(!residual(&[ColId(4)], 6, false));
    let point = ad_hoc("select * from player where level = 5").expect("valid");
    assert!(point.residual(&[ColId(1)]).is_none());
    assert!(ad_hoc("select * from player where TRUE = TRUE")
        .expect("valid")
        .predicate
        .is_none());
    assert!(ad_hoc("select * from player where FALSE = TRUE")
        .expect("valid")
        .predicate
        .is_some_and(|p| p.is_never()));
}

#[test]
fn subscribe_texts() {
    assert_eq!(read_subscribe_text(" \n"), Err(SqlError::EmptySubscription));
    assert_eq!(
        read_subscribe_text(" select  *\tFROM * "),
        Ok(SubscribeText::AllTables)
    );
    assert_eq!(
        read_subscribe_text(" select * from *; "),
        Ok(SubscribeText::Query("select * from *;"))
    );
    assert_eq!(
        read_subscribe_text("\u{a0}select * from t "),
        Ok(SubscribeText::Query("select * from t"))
    );
    let all = |caller| expand_subscribe_all(&catalog().0, &caller);
    let names = all(guest());
    assert!(names.contains(&"SELECT * FROM \"we\"\"ird\"".to_owned()));
    assert!(names.contains(&"SELECT * FROM \"lib.items\"".to_owned()));
    for absent in ["secret", "event", "st_table"] {
        assert!(!names.iter().any(|n| n.contains(absent)), "{absent}");
    }
    assert!(all(owner()).contains(&"SELECT * FROM \"secret\"".to_owned()));
    for text in &names {
        if text.contains("guarded") {
            not_admitted(text, "Subscriptions require indexes on join columns");
        } else {
            accepted(text);
        }
    }
    let error = subscription("select * from nope").expect_err("absent");
    assert_eq!(
        error.to_string(),
        "no such table: `nope`. If the table exists, it may be marked private."
    );
}

#[test]
fn row_level_security_rules() {
    let owner = owner().identity;
    let check = |text: &str| check_rule(text, &catalog(), owner);
    let table = |text: &str| {
        let table = check(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        Some(table.name.clone())
    };
    assert_eq!(table("select * from t").as_deref(), Some("t"));
    assert_eq!(
        table("select r.* from t join s as r").as_deref(),
        Some("s"),
        "a cross join; the table is the one whose rows come out"
    );
    assert_eq!(
        table("select t.* from t join secret x on t.u32 = x.id where x.id = 1").as_deref(),
        Some("t"),
        "the owner's rights"
    );
    assert_eq!(
        table("select a.* from s a join s b on a.id = b.id join s c where c.id = :sender")
            .as_deref(),
        Some("s")
    );
    assert_eq!(
        table("select * from public_view").as_deref(),
        Some("public_view")
    );
    for (text, reason) in [
        ("", "Empty SQL query"),
        ("select * from", "sql parser error: Expected identifier"),
        ("delete from t", "Unsupported: Non-SELECT queries"),
        ("select * from t limit 1", "Unsupported: "),
        ("select * from t where x = 1", "`x` is not in scope"),
        (
            "select * from t join s",
            "SELECT * is not supported for joins",
        ),
        ("select x.* from t", "`x` is not in scope"),
        (
            "select t.* from t join s where u32 = 1",
            "Names must be qualified",
        ),
        (
            "select t.* from t join s on t.u32 = s.id",
            "Unexpected type",
        ),
        ("select count(*) as n from t", "Column projections"),
        (
            "select * from secret",
            "Cannot define RLS rule on private table: secret.",
        ),
        ("select t.* from t join nowhere", "no such table: `nowhere`"),
    ] {
        let error = check(text).expect_err(text).to_string();
        assert!(error.starts_with(reason), "{text}: {error}");
    }
}

/// `AS OF` behind the tables, for the whole statement; anywhere else `OF` is an alias, or what follows is no clause.
#[test]
fn states_of_the_past() {
    let compiled = |text: &str| compile_statement(text, &catalog(), &owner());
    for (text, as_of, rest) in [
        ("SELECT * FROM t AS OF 12", "12", "SELECT * FROM t         "),
        ("select * from t x as of 12 where int = 1;", "12", "select * from t x          where int = 1;"),
        (
            "SELECT * FROM gone AS OF SYSTEM TIME '2026-11-22T10:00:00+01:00' LIMIT 1",
            "2026-11-22T09:00:00Z",
            "SELECT * FROM gone                                               LIMIT 1",
        ),
        (
            "EXPLAIN SELECT a.* FROM t a JOIN t b ON a.int = b.int AS\nOF '7' WHERE a.int IN (SELECT int FROM t AS of)",
            "7",
            "EXPLAIN SELECT a.* FROM t a JOIN t b ON a.int = b.int   \n       WHERE a.int IN (SELECT int FROM t AS of)",
        ),
    ] {
        match compiled(text) {
            Ok(Statement::Past(found, without)) => {
                assert_eq!(Ok(found), as_of.parse(), "{text}");
                assert_eq!(without, rest, "{text}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
    for text in [
        "SELECT OF.* FROM t AS OF WHERE OF.int = 1",
        "SELECT of.* FROM t AS of",
    ] {
        assert!(matches!(compiled(text), Ok(Statement::Select(_))), "{text}");
    }
    for text in [
        "SELECT * FROM t AS OF 12 AS OF 13",
        "SELECT * FROM t AS OF 12 JOIN t b",
        "SELECT * FROM t WHERE int = 1 AS OF 12",
        "SELECT * FROM t AS OF -1",
        "SELECT * FROM t AS OF 1e3",
        "SELECT * FROM t AS OF '2026-11-22'",
        "SELECT * FROM t AS OF SYSTEM TIME now()",
        "SELECT * FROM t WHERE int IN (SELECT int FROM t AS OF 12)",
        "DELETE FROM t AS OF 12",
    ] {
        assert!(compiled(text).is_err(), "{text}");
    }
    for text in [
        "SELECT * FROM t AS OF 12",
        "SELECT * FROM t AS OF SYSTEM TIME '2026-11-22T10:00:00Z'",
    ] {
        assert!(
            compile_subscription(text, &catalog(), &owner()).is_err(),
            "{text}"
        );
    }
}
