//! The cases of 08: §2 words, §3 names, §4 literals, §5 grammar, §6 types, §7 texts, §17 builders, §20 conformance.

mod common;

use common::{ad_hoc, catalog, encode_row, guest, matches, owner, subscription};
use lightcone_query::{
    admit_subscription, check_rule, compile_statement, compile_subscription, expand_subscribe_all,
    read_subscribe_text, Projection, SqlError, Statement, SubscribeText,
};
use lightcone_types::{AlgebraicType, AlgebraicValue as V, ColId, Identity, ProductType};

#[track_caller]
fn accepted(text: &str) {
    let plan = subscription(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    admit_subscription(&plan).unwrap_or_else(|e| panic!("{text}: {e}"));
    ad_hoc(text).unwrap_or_else(|e| panic!("{text}: {e}"));
}

#[track_caller]
fn refused(text: &str, message: &str) {
    match subscription(text) {
        Ok(_) => panic!("{text}: accepted"),
        Err(e) => assert_eq!(e.to_string(), message, "{text}"),
    }
}

#[track_caller]
fn ad_hoc_refused(text: &str, message: &str) {
    match ad_hoc(text) {
        Ok(_) => panic!("{text}: accepted"),
        Err(e) => assert_eq!(e.to_string(), message, "{text}"),
    }
}

#[test]
fn accepted_subscriptions_of_the_chapter() {
    for text in [
        "select * from t",
        "SELECT ALL * FROM t",
        "select t.* from t",
        "select * from t where i32 = -1",
        "select * from t where u32 = +1",
        "select * from t where u32 = 1E3",
        "select * from t where f32 = .1",
        "select * from t where f32 = 1e40",
        "select * from t where u256 = 1e40",
        "select * from t where ts = '2025-02-10 15:45:30+02:00'",
        "select * from t where true",
        "select * from s where id = :sender",
        "select * from s where : sender = id",
        "select * from s where id = :\"sender\"",
        "select * from s where bytes = :sender",
        "select * from s as r where r.bytes = 0xABCD or bytes = X'ABCD'",
        "select * from t limit all",
        "select * from ns.t where ns.t.a = 1",
        "select * from \"ns.t\" where ns.\"t\".a == 1",
        ";;select * from t;;",
        "select * from t where not (u32 = 1 and not i32 <> 2)",
        "select * from t where TRUE = TRUE or false = true",
        "select * from player where online = online = TRUE",
        "select * from player where online and not muted",
        "select * from t where u_32 = 1 and u32 = 0x10",
        "select * from playerState where playerState.playerId = 1",
        "select * from player_state where player_state.player_id = 1",
        "SELECT * FROM user WHERE identity = :sender",
        "SELECT * FROM \"user\" WHERE \"user\".identity = :sender",
        "SELECT * FROM user WHERE order = 1 and timestamp = '2025-02-10T15:45:30Z'",
        "SELECT * -- all\nFROM /* the /* nested */ */ t",
        "SELECT\u{a0}*\u{2003}FROM t",
        "SELECT * FROM st_table WHERE table_id = 1",
        "SELECT player.* FROM player WHERE 5 < level",
    ] {
        accepted(text);
    }
}

#[test]
fn texts_of_the_query_builders() {
    for text in [
        r#"SELECT * FROM "player""#,
        r#"SELECT * FROM "player" WHERE "player"."level" = 5"#,
        r#"SELECT * FROM "player" WHERE ("player"."level" > 5) AND ("player"."level" <= 10)"#,
        r#"SELECT * FROM "player" WHERE (("player"."level" > 5) AND ("player"."level" <= 10)) AND ("player"."online" = TRUE)"#,
        r#"SELECT * FROM "player" WHERE ("player"."level" > 1) AND ("player"."level" < 2) AND ("player"."level" <> 3)"#,
        r#"SELECT * FROM "player" WHERE ("player"."level" >= 1) OR ("player"."name" = 'O''Neil')"#,
        r#"SELECT * FROM "player" WHERE (("player"."level" = 1) OR ("player"."level" = 2)) AND ("player"."online" = TRUE)"#,
        r#"SELECT * FROM "player" WHERE NOT ("player"."level" = 1)"#,
        r#"SELECT * FROM "player" WHERE NOT ("player"."online" = TRUE)"#,
        r#"SELECT * FROM "player" WHERE TRUE = TRUE"#,
        r#"SELECT * FROM "player" WHERE FALSE = TRUE"#,
        r#"SELECT * FROM "player" WHERE "player"."level" < -7"#,
        r#"SELECT * FROM "player" WHERE "player"."id" = 18446744073709551615"#,
        r#"SELECT * FROM "player" WHERE "player"."big" > -1606938044258990275541962092341162602522202993782792835301376"#,
        r#"SELECT * FROM "player" WHERE "player"."score" > 0.1"#,
        r#"SELECT * FROM "player" WHERE "player"."score" > 1e+21"#,
        r#"SELECT * FROM "player" WHERE "player"."score" > 1e-7"#,
        "SELECT * FROM \"player\" WHERE \"player\".\"name\" = 'a\"b\\c\n'",
        r#"SELECT * FROM "player" WHERE "player"."name" = ''"#,
        r#"SELECT * FROM "player" WHERE "player"."identity" = 0x0000000000000000000000000000000000000000000000000000000000000001"#,
        r#"SELECT * FROM "player" WHERE "player"."conn" = 0x00000000000000000000000000000abc"#,
        r#"SELECT * FROM "player" WHERE "player"."ts" >= '2021-06-01T11:10:00.000001Z'"#,
        r#"SELECT * FROM "player" WHERE "player"."ts" >= '1970-01-01T00:00:00.001+00:00'"#,
        r#"SELECT * FROM "player" WHERE "player"."uid" = 0x01888d6e5c0070008000000000000001"#,
        r#"SELECT * FROM "player" WHERE "player"."team_id" = 3"#,
        r#"SELECT * FROM "player" WHERE "player"."level" = "player"."level""#,
        r#"SELECT * FROM "we""ird" WHERE "we""ird"."co""l" = 'z'"#,
        r#"SELECT * FROM "lib"."items" WHERE "lib"."items"."id" = 1"#,
        r#"SELECT * FROM "lib.items" WHERE ("lib.items"."id" = 1)"#,
        r#"SELECT * FROM "playerState" WHERE "playerState"."playerId" = 1"#,
        r#"SELECT * FROM "player" WHERE (("player"."id" = 10) AND (NOT ("player"."level" > 18)))"#,
        r#"SELECT * FROM "player" WHERE ((TRUE = TRUE) OR (FALSE = TRUE))"#,
        "SELECT * FROM lib.items",
    ] {
        accepted(text);
    }
    refused(
        r#"SELECT * FROM "player" WHERE "player"."score" > NaN"#,
        "`NaN` is not in scope",
    );
    refused(
        r#"SELECT * FROM "player" WHERE "player"."score" < Infinity"#,
        "`Infinity` is not in scope",
    );
    for text in [
        r#"SELECT "player".* FROM "team" JOIN "player" ON "player"."team_id" = "team"."id""#,
        r#"SELECT "player".* FROM "player" JOIN "team" ON "player"."teamId" = "team"."id" WHERE ("player"."level" > 3) AND ("team"."open" = TRUE)"#,
        r#"SELECT ns.t.* FROM "ns"."s" JOIN "ns"."t" ON "ns"."s"."a" = "ns"."t"."a""#,
    ] {
        refused(text, "joins are not supported yet: the query reads 2 relations, write one query per table [LC0401]");
    }
    refused(
        r#"SELECT "player".* FROM "team" JOIN "player" ON "player"."team_id" > "team"."id""#,
        "Non-inner joins are not supported",
    );
}

#[test]
fn refused_literals_and_types() {
    let invalid = |text: &str, literal: &str, ty: &str| {
        refused(
            text,
            &format!("The literal expression `{literal}` cannot be parsed as type `{ty}`"),
        );
    };
    invalid("select * from t where u8 = -1", "-1", "U8");
    invalid("select * from t where u8 = 1e3", "1e3", "U8");
    invalid("select * from t where u8 = 0.1", "0.1", "U8");
    invalid("select * from t where i32 = 1e-3", "1e-3", "I32");
    invalid("select * from t where u32 = 'str'", "str", "U32");
    invalid("select * from t where u32 = 0xFF", "FF", "U32");
    invalid("select * from player where online = 1", "1", "Bool");
    invalid("select * from player where online = 'true'", "true", "Bool");
    invalid(
        "select * from player where maybe = 1",
        "1",
        "(some: U64 | none: ())",
    );
    invalid(
        "select * from player where identity = 0xab",
        "ab",
        "(__identity__: U256)",
    );
    invalid("select * from t where 5", "5", "Bool");
    let unexpected = |text: &str, expected: &str, inferred: &str| {
        refused(
            text,
            &format!("Unexpected type: (expected) {expected} != {inferred} (inferred)"),
        );
    };
    unexpected(
        "select * from t where arr = :sender",
        "(__identity__: U256)",
        "Array<String>",
    );
    unexpected(
        "select * from t where str = :sender",
        "(__identity__: U256)",
        "String",
    );
    unexpected("select * from t where u32 = TRUE", "Bool", "U32");
    unexpected("select * from t where TRUE = u32", "Bool", "U32");
    unexpected("select * from t where u32", "U32", "Bool");
    unexpected(
        "select * from t where :sender",
        "(__identity__: U256)",
        "Bool",
    );
    unexpected("select * from t where u32 = u64", "U64", "U32");
    unexpected("select * from t where u32 = (u64 = 1)", "Bool", "U32");
    unexpected("select * from player where online and level", "I32", "Bool");
    refused(
        "select * from t where 1 = 1",
        "Cannot resolve type for literal expression",
    );
    refused(
        "select * from t where arr = arr",
        "Invalid binary operator `=` for type `Array<String>`",
    );
    refused(
        "select * from player where wait < wait",
        "Invalid binary operator `<` for type `(__time_duration_micros__: I64)`",
    );
}

#[test]
fn refused_names() {
    refused(
        "select * from nope",
        "no such table: `nope`. If the table exists, it may be marked private.",
    );
    refused(
        "select * from Player",
        "no such table: `Player`. If the table exists, it may be marked private.",
    );
    refused(
        "select * from secret",
        "no such table: `secret`. If the table exists, it may be marked private.",
    );
    refused(
        "select t.* from t join secret where FALSE",
        "no such table: `secret`. If the table exists, it may be marked private.",
    );
    assert!(compile_subscription("select * from secret", &catalog(), &owner()).is_ok());
    refused(
        "select * from t as r where t.u32 = 5",
        "`t` is not in scope",
    );
    refused("select r.* from t", "`r` is not in scope");
    refused("select * from t where nope = 1", "`nope` is not in scope");
    refused("select * from t where t.nope = 1", "`nope` is not in scope");
    refused(
        "select * from playerState where player_state.player_id = 1",
        "`player_state` is not in scope",
    );
    refused("select t.* from t join t", "Duplicate name `t`");
    refused(
        "select t.* from t join s on t.u32 = r.u32 join s as r",
        "`r` is not in scope",
    );
    refused(
        "select t.* from t join s on t.u32 = s.u32 where bytes = 0xABCD",
        "Names must be qualified when using joins",
    );
    refused(
        "select t.* from t join s on t.arr = s.arr",
        "Invalid binary operator `=` for type `Array<String>`",
    );
    refused(
        "select t.* from t join s on t.u32 = t.int",
        "Non-inner joins are not supported",
    );
    refused(
        "select * from t join s",
        "SELECT * is not supported for joins",
    );
    let joins = |n| {
        format!("joins are not supported yet: the query reads {n} relations, write one query per table [LC0401]")
    };
    refused("select t.* from t join s", &joins(2));
    refused(
        "select t.* from t join s join s as r where t.u32 = s.u32 and s.u32 = r.u32",
        &joins(3),
    );
    ad_hoc_refused(
        "select id, str from s join t",
        "Names must be qualified when using joins",
    );
    ad_hoc_refused("select u32 a, i32 a from t", "Duplicate name `a`");
    ad_hoc_refused("select u32, u32 from t", "Duplicate name `u32`");
}

#[test]
fn refused_syntax_in_subscriptions() {
    refused("", "Empty SQL query");
    refused("  ;; -- nothing", "Empty SQL query");
    refused(
        "select u32 from t",
        "Column projections are not supported in subscriptions; Subscriptions must return a table type",
    );
    refused(
        "select count(*) as n from t",
        "Column projections are not supported in subscriptions; Subscriptions must return a table type",
    );
    refused(
        "select * from t limit 5",
        "Unsupported: SELECT * FROM t LIMIT 5",
    );
    refused(
        "select * from t order by u32",
        "Unsupported: SELECT * FROM t ORDER BY u32",
    );
    refused(
        "select distinct u32 from t",
        "Unsupported SELECT: SELECT DISTINCT u32 FROM t",
    );
    refused(
        "select * from t group by u32",
        "Unsupported SELECT: SELECT * FROM t GROUP BY u32",
    );
    refused(
        "select * from t union select * from t",
        "Unsupported set operation: SELECT * FROM t UNION SELECT * FROM t",
    );
    refused(
        "with a as (select 1) select * from a",
        "Unsupported: WITH a AS (SELECT 1) SELECT * FROM a",
    );
    refused("delete from t", "Unsupported: Non-SELECT queries");
    refused("create table x (a int)", "Unsupported: Non-SELECT queries");
    refused(
        "select * from t; select * from t",
        "Multiple SQL statements are not supported",
    );
    refused("select * from t, s", "Implicit joins are not supported");
    refused(
        "select t.* from t left join s on t.u32 = s.u32",
        "Non-inner joins are not supported",
    );
    refused(
        "select t.* from t join s on t.u32 = s.u32 and t.i32 = 1",
        "Non-inner joins are not supported",
    );
    refused(
        "select t.* from t join s using (u32)",
        "Non-inner joins are not supported",
    );
    refused(
        "select * from (select * from t) join s",
        "Unsupported FROM expression: (SELECT * FROM t)",
    );
    refused("select * from f(1)", "Unsupported FROM expression: f(1)");
    refused(
        "select * from t for update",
        "sql parser error: Expected end of statement, found: update at Line: 1, Column 21",
    );
    refused(
        "select * from t where u32 = 1 for update",
        "Unsupported: SELECT * FROM t WHERE u32 = 1 FOR UPDATE",
    );
    refused(
        "select * from table",
        "sql parser error: Expected (, found: EOF",
    );
    refused(
        "select * from t where u32 = $1",
        "Unsupported literal expression: $1",
    );
    refused(
        "select * from t where u32 = ?",
        "Unsupported literal expression: ?",
    );
    refused(
        "select * from t where str = NULL",
        "Unsupported literal expression: NULL",
    );
    refused(
        "select * from t where str = E'a\\'b'",
        "Unsupported literal expression: E'a\\'b'",
    );
    refused(
        "select * from t where str = $$a$$",
        "Unsupported literal expression: $$a$$",
    );
    refused(
        "select * from s where id = :Sender",
        "Unsupported literal expression: :Sender",
    );
    refused(
        "select * from t where str is not null",
        "Unsupported expression: str IS NOT NULL",
    );
    refused(
        "select * from t where u32 in (1, 2) and i32 = 1",
        "Unsupported expression: u32 IN (1, 2)",
    );
    refused(
        "select * from t where u32 between 1 and 2",
        "Unsupported expression: u32 BETWEEN 1 AND 2",
    );
    refused(
        "select * from t where u32 = -(1)",
        "Unsupported expression: -(1)",
    );
    refused(
        "select * from t where u32 = - -1",
        "Unsupported expression: --1",
    );
    refused(
        "select * from t where u32 = 1 + 1",
        "Unsupported binary operator: +",
    );
    refused(
        "select * from t where str = lower('A')",
        "Unsupported expression: lower('A')",
    );
    refused(
        "select * from t where ts = TIMESTAMP '2020-01-01'",
        "Unsupported expression: TIMESTAMP '2020-01-01'",
    );
    refused(
        "select * from user where user = 1",
        "Unsupported expression: user = 1",
    );
    assert!(subscription("select * from user where user.identity = :sender").is_err());
    refused(
        "select * from t where (u32 = 1",
        "sql parser error: Expected ), found: EOF",
    );
    refused(
        "select * from t where u32 = 1)",
        "sql parser error: Expected end of statement, found: ) at Line: 1, Column 30",
    );
    refused(
        "select * from t where u32 =\n  and",
        "`and` is not in scope",
    );
    refused(
        "selec * from t",
        "sql parser error: Expected an SQL statement, found: selec at Line: 1, Column 1",
    );
    refused(
        "select * from t where str = 'a",
        "sql parser error: Unterminated string literal at Line: 1, Column 29",
    );
    assert!(subscription("select * from t where str = B'1'").is_err());
    assert!(subscription("select * from t /* open").is_err());
    assert!(subscription("select * from [t]").is_err());
    assert!(subscription("select * from `t`").is_err());
    assert!(subscription("select * from t where u32 = 1_000").is_err());
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
    ad_hoc_refused(
        "select * from t limit 1.5",
        "The literal expression `1.5` cannot be parsed as type `U64`",
    );
    ad_hoc_refused(
        "select * from t limit '5'",
        "Unsupported: SELECT * FROM t LIMIT '5'",
    );
    ad_hoc_refused(
        "select count(*) from t",
        "Aggregate expressions must have column aliases",
    );
    ad_hoc_refused(
        "select sum(u32) as n from t",
        "Unsupported aggregate function: sum(u32)",
    );
    ad_hoc_refused(
        "select u32, count(*) as n from t",
        "Unsupported projection expression: count(*) AS n",
    );
    ad_hoc_refused(
        "select t.*, u32 from t",
        "Mixed wildcard projections are not supported",
    );
    ad_hoc_refused("select 1", "Unsupported projection expression: 1");
    ad_hoc_refused(
        "select (str) from t",
        "Unsupported projection expression: (str)",
    );
    ad_hoc_refused(
        "select u32 + 1 from t",
        "Unsupported projection expression: u32 + 1",
    );
    ad_hoc_refused("select str", "A FROM clause is required");
    ad_hoc_refused(
        "select distinct x from test",
        "Unsupported: SELECT DISTINCT x FROM test",
    );
    ad_hoc_refused(
        "select * from t union all select * from t",
        "Unsupported: SELECT * FROM t UNION ALL SELECT * FROM t",
    );
    ad_hoc_refused("begin", "Unsupported: BEGIN TRANSACTION");
    ad_hoc_refused(
        "select * from t order by u32 limit b",
        "Unsupported: SELECT * FROM t ORDER BY u32 LIMIT b",
    );
    ad_hoc_refused(
        "select a.* from t as a, s as b where a.u32 = b.u32",
        "Implicit joins are not supported",
    );
    assert!(ad_hoc("select u32, count(*) from t group by u32").is_err());
    assert!(ad_hoc("select u32 from t for update").is_err());
}

#[test]
fn what_is_not_there_yet_says_so() {
    let by_owner = |text: &str| match compile_statement(text, &catalog(), &owner()) {
        Ok(Statement::Select(_)) => panic!("{text}: accepted"),
        Err(e) => e.to_string(),
    };
    for (text, code) in [
        ("insert into t (a, b) values (-1, +2.5)", "[LC0402]"),
        ("update t set a = -1, b = +2 where c = -3", "[LC0402]"),
        ("DELETE FROM t", "[LC0402]"),
        ("set row_limit = 4", "[LC0403]"),
        ("set row_limit to 4", "[LC0403]"),
        ("SHOW row_limit", "[LC0403]"),
        ("select * from public_view", "[LC0404]"),
        ("select * from private_view", "[LC0404]"),
    ] {
        assert!(by_owner(text).ends_with(code), "{text}: {}", by_owner(text));
    }
    assert_eq!(
        by_owner("set slow_query = 4"),
        "slow_query is not a valid system variable"
    );
    assert_eq!(
        by_owner("show session row_limit"),
        "session.row_limit is not a valid system variable"
    );
    assert_eq!(
        by_owner("set row_limit = :sender"),
        "Unsupported literal expression: :sender"
    );
    assert_eq!(
        by_owner("delete from public_view"),
        "`public_view` is a view; DML on views is not supported"
    );
    assert_eq!(by_owner("show tables"), "Unsupported: SHOW TABLES");
    ad_hoc_refused(
        "delete from secret",
        "no such table: `secret`. If the table exists, it may be marked private.",
    );
    ad_hoc_refused(
        "delete from t",
        &format!(
            "Caller {} is not authorized to run SQL DML statements",
            guest().identity.to_hex()
        ),
    );
    refused(
        "select * from private_view",
        "no such table: `private_view`. If the table exists, it may be marked private.",
    );
    assert!(
        subscription("select * from guarded").is_err_and(|e| e.to_string().ends_with("[LC0405]"))
    );
    assert!(subscription("select t.* from t join guarded")
        .is_err_and(|e| e.to_string().ends_with("[LC0405]")));
    assert!(compile_subscription("select * from guarded", &catalog(), &owner()).is_ok());
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
        assert_eq!(plan.reads_sender, condition.contains(":sender"));
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
        if !text.contains("guarded") {
            accepted(text);
        }
    }
    let error = subscription("select * from nope").expect_err("absent");
    assert_eq!(
        error.to_subscription_message("select * from nope"),
        "no such table: `nope`. If the table exists, it may be marked private., executing: `select * from nope`"
    );
}

#[test]
fn row_level_security_rules() {
    let owner = owner().identity;
    let check = |text: &str| check_rule(text, &catalog(), owner);
    let table = |text: &str| {
        let table = check(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        table.map(|table| table.name.clone())
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
    assert_eq!(table("select * from public_view"), None);
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
