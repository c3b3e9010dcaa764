//! Questions to the catalogue and what they are refused for, and statements whose client goes away (08 §19).

use std::time::{Duration, Instant};

use crate::common::postgres::{answers, by_hand, code, connect, send, start, start_with};
use crate::common::{TestServer, User};
use tokio_postgres::Client;

async fn publish(server: &TestServer, user: &User, module: &str) {
    let published = server
        .request("PUT", "/v1/database/bank")
        .bearer_auth(&user.token)
        .body(module.to_owned());
    let response = published.send().await.expect("a response");
    assert!(response.status().is_success(), "{}", response.status());
}

/// Rows as text, with `|` between fields and ` / ` between rows.
async fn rows(client: &Client, text: &str) -> String {
    let messages = client.simple_query(text).await;
    let messages = messages.unwrap_or_else(|error| panic!("{text}: {error:?}"));
    let rows = messages.iter().filter_map(|message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => {
            let fields = (0..row.len()).map(|nth| row.get(nth).unwrap_or("NULL"));
            Some(fields.collect::<Vec<_>>().join("|"))
        }
        _ => None,
    });
    rows.collect::<Vec<_>>().join(" / ")
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_the_module_may_look_like_the_catalogue() {
    let (server, address, user) = start().await;
    publish(
        &server,
        &user,
        "module table:pg_mine private:pg_hidden table:pg_class",
    )
    .await;
    let client = connect(address, "bank", &user.token).await.expect("let in");
    let inserted = client.simple_query("INSERT INTO pg_mine VALUES (1, 'a')");
    inserted.await.expect("inserted");
    for text in [
        "SELECT name FROM pg_mine",
        "SELECT pg_mine.name FROM pg_mine JOIN person ON person.id = pg_mine.id",
        "SELECT pg_p.name FROM pg_mine AS pg_p",
    ] {
        let expected = if text.contains("JOIN") { "" } else { "a" };
        assert_eq!(rows(&client, text).await, expected, "{text}");
    }
    let prepared = client.query("SELECT name FROM pg_mine WHERE id = $1", &[&1_i64]);
    assert_eq!(prepared.await.expect("rows").len(), 1);
    let mut copied = by_hand(address, &user.token).await;
    send(&mut copied, Some(b'Q'), b"COPY pg_mine TO STDOUT\0").await;
    assert!(answers(&mut copied)
        .await
        .contains(&(b'd', "1\ta\n".to_owned())));
    assert_eq!(rows(&client, "SELECT name FROM pg_hidden").await, "");
    // What both have is the catalogue's.
    let known = "SELECT count(*) FROM pg_class WHERE relname = 'pg_class'";
    assert_eq!(rows(&client, known).await, "1");
    // A stranger is not told what is there.
    let stranger = server.user().await;
    let other = connect(address, "bank", &stranger.token)
        .await
        .expect("let in");
    assert_eq!(rows(&other, "SELECT name FROM pg_mine").await, "a");
    let mut refusals = Vec::new();
    for name in ["pg_hidden", "pg_nowhere"] {
        let text = format!("SELECT name FROM {name}");
        let error = other.simple_query(&text).await.expect_err(name);
        let message = error.as_db_error().expect("an answer").message().to_owned();
        refusals.push(message.replace(name, "x"));
    }
    assert_eq!(refusals[0], refusals[1]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_are_answered_as_postgresql_does_or_refused() {
    let (server, address, user) = start().await;
    publish(&server, &user, "module").await;
    let client = connect(address, "bank", &user.token).await.expect("let in");
    for (text, expected) in [
        ("SELECT ARRAY['a', NULL, 'null', '']", "{a,NULL,\"null\",\"\"}"),
        ("SELECT pg_catalog.array_agg(x) FROM (VALUES (1), (NULL), (3)) v(x)", "{1,NULL,3}"),
        ("SELECT '{1,NULL}'::int[]", "{1,NULL}"),
        ("SELECT 2 = ANY('{1,2}'), 3 = ANY('{1,NULL}'), 1 <> ALL('{2,3}')", "t|NULL|t"),
        ("SELECT 1 IN (SELECT 2), 1 NOT IN (SELECT NULL), 1 IN (SELECT 1 UNION SELECT NULL)", "f|NULL|t"),
        ("SELECT string_agg(x::text, ',') FROM pg_catalog.generate_series(5, 1, -2) x", "5,3,1"),
        ("SELECT count(*) FROM pg_catalog.generate_series(1, 5, -1)", "0"),
        ("SELECT abs(-1.5), abs(-2), floor(-0.5), avg(x) FROM (VALUES (1), (2)) v(x)", "1.5|2|-1|1.5"),
        ("SELECT substring('abc', -9223372036854775807 - 1, 2), (ARRAY[1])[-9223372036854775807 - 1]", "|NULL"),
        ("SELECT split_part('a,b', ',', -9223372036854775807 - 1)", ""),
        ("SELECT c.relname, count(a.attname) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid WHERE c.relkind = 'r' GROUP BY c.oid ORDER BY 1", "person|2"),
        ("SELECT pg_catalog.sum(x), sum(x::int) FROM (VALUES (1.5), (2.5)) v(x)", "4|5"),
        ("SELECT E'it\\'s' || E'\\n', $$a'b$$, pg_catalog.lower(substring('abc' FROM 2 FOR 1))", "it's\n|a'b|b"),
        ("SELECT count(*) FROM pg_am a, pg_am b RIGHT JOIN (VALUES (1)) v(x) ON b.oid = v.x", "2"),
        ("SELECT upper(relkind), count(*) FROM pg_class GROUP BY upper(relkind) ORDER BY 1", "I|1 / R|1"),
        ("SELECT count(*) FROM generate_series(1, 5000) x WHERE x > (SELECT max(y) FROM generate_series(1, 1000) y)", "4000"),
        ("SELECT count(*) FROM generate_series(1, 5000) x WHERE x IN (SELECT y FROM (SELECT max(z) AS y FROM generate_series(1, 1000) z) t)", "1"),
        ("SELECT x FROM (VALUES (10), (9.5), (NULL), (-3), (-20)) v(x) ORDER BY x DESC NULLS LAST", "10 / 9.5 / -3 / -20 / NULL"),
        ("SELECT c.relname FROM pg_class c RIGHT JOIN pg_type t ON t.oid = 20 AND c.oid = 0 WHERE t.oid = 20", "NULL"),
        ("SELECT (SELECT count(*) FROM pg_attribute a WHERE a.attrelid = c.oid) FROM pg_class c ORDER BY 1", "1 / 2"),
        ("SELECT relkind AS k FROM pg_class GROUP BY k HAVING count(*) = 1 ORDER BY k", "i / r"),
        ("SELECT relkind, (SELECT count(*) FROM pg_am WHERE relkind = 'r') > 0 FROM pg_class GROUP BY relkind ORDER BY 1", "i|f / r|t"),
    ] {
        assert_eq!(rows(&client, text).await, expected, "{text}");
    }
    for (text, state) in [
        ("SELECT relname, count(*) FROM pg_class", "42803"),
        ("SELECT relname FROM pg_class GROUP BY relkind", "42803"),
        (
            "SELECT count(*) FROM pg_class GROUP BY relkind ORDER BY relname",
            "42803",
        ),
        (
            "SELECT 1 FROM pg_class GROUP BY relkind HAVING relname = 'x'",
            "42803",
        ),
        (
            "SELECT relkind, (SELECT relname) FROM pg_class GROUP BY relkind",
            "42803",
        ),
        ("SELECT * FROM pg_class GROUP BY relkind", "42803"),
        (
            "SELECT unnest(relacl) FROM pg_class GROUP BY relkind",
            "42803",
        ),
        (
            "SELECT tablename FROM pg_tables GROUP BY schemaname",
            "42803",
        ),
        (
            "SELECT a.attname FROM pg_attribute a GROUP BY a.attrelid",
            "42803",
        ),
        ("SELECT * FROM pg_catalog.generate_series(1, 2, 0)", "22023"),
        (
            "SELECT * FROM pg_catalog.generate_series('a', 'b')",
            "0A000",
        ),
        ("SELECT 1 = ANY('{1')", "22P02"),
        (
            "SELECT pg_catalog.lower(substring('abc' FROM '.b'))",
            "0A000",
        ),
        ("SELECT * FROM pg_am NATURAL JOIN pg_class", "0A000"),
        ("SELECT ARRAY[3000000000]::int[]", "22003"),
        ("SELECT -(-9223372036854775807 - 1)", "22003"),
        (
            "SELECT pg_catalog.sum(x) FROM (VALUES (9223372036854775807), (1)) v(x)",
            "22003",
        ),
    ] {
        let error = client.simple_query(text).await.expect_err(text);
        assert_eq!(code(&error), state, "{text}: {error:?}");
    }
    // In binary, too.
    let row = client.query_one("SELECT ARRAY['a', NULL]", &[]).await;
    let list: Vec<Option<String>> = row.expect("a row").get(0);
    assert_eq!(list, [Some("a".to_owned()), None]);
    // Neither long texts nor long lists are compared or sorted for nothing.
    let long = "SELECT repeated.x FROM (SELECT string_agg(t.y, '') AS x FROM (SELECT 'abcdefghijklmnop' AS y) t, pg_catalog.generate_series(1, 20000)) repeated, pg_catalog.generate_series(1, 2000)";
    let list = format!("'{{{}1}}'", "1,".repeat(10_000));
    for text in [
        format!("{long} ORDER BY 1"),
        format!("{long} GROUP BY 1"),
        format!("SELECT count(*) FROM ({long}) l WHERE x = x || ''"),
        format!("SELECT count(*) FROM ({long}) l WHERE x ~ '[{}]b'", "z".repeat(900)),
        format!("SELECT count(*) FROM (SELECT {list} AS l FROM pg_catalog.generate_series(1, 5000)) t WHERE '2' = ANY(l)"),
        format!("SELECT count(l) FROM (SELECT ({list} || '')::text[] AS l FROM pg_catalog.generate_series(1, 5000)) t"),
    ] {
        let error = client.simple_query(&text).await.expect_err("too much");
        assert_eq!(code(&error), "54000", "{error:?}");
        // It is counted, and not only looked at the clock for.
        let message = error.as_db_error().expect("an answer").message();
        assert!(message.contains(" steps"), "{}: {message}", &text[..60]);
    }
    let tables: Vec<_> = (0..100).map(|nth| format!("pg_class c{nth}")).collect();
    let names = vec!["x"; 7_000].join(",");
    let text = format!(
        "SELECT coalesce({names}) FROM {}, (SELECT 1 AS x) t",
        tables.join(", ")
    );
    let message = refusal(&client, &text).await;
    assert!(message.contains("columns are looked at"), "{message}");
    let constant =
        format!("SELECT count(*) FROM pg_catalog.generate_series(1, 50) WHERE '2' = ANY({list})");
    assert_eq!(rows(&client, &constant).await, "0");
    server.stop().await;
}

/// Tables `person` and `other` with the same rows were asked in PostgreSQL 15.
const OF_THE_MODULE: &[(&str, &str)] = &[
    ("SELECT \"public\".\"person\".\"id\" FROM \"public\".\"person\" ORDER BY \"public\".\"person\".\"id\" LIMIT 2", "1 / 2"),
    ("SELECT count(*) FROM person", "3"),
    ("SELECT count(*), max(name) FROM public.person WHERE 1 = 1", "3|Cid"),
    ("SELECT id + 1, upper(name) || '!', id::text, CASE WHEN id > 1 THEN 'b' ELSE 'a' END FROM person WHERE id % 2 = 1 ORDER BY id DESC", "4|CID!|3|b / 2|ANN!|1|a"),
    ("SELECT n, count(*) FROM (SELECT length(name) AS n FROM person) t GROUP BY n", "3|3"),
    ("WITH p AS (SELECT id FROM person WHERE id < 3) SELECT a.id, b.id FROM p a JOIN p b ON a.id < b.id AND b.id <= 2", "1|2"),
    ("SELECT name FROM person WHERE id = 1 UNION SELECT name FROM other UNION ALL SELECT 'z' ORDER BY 1", "Ann / x / y / z"),
    ("SELECT c.relname, p.name FROM pg_class c JOIN person p ON c.relname = 'person' AND p.id = 1", "person|Ann"),
    ("SELECT c.relname, (SELECT count(*) FROM person) FROM pg_catalog.pg_class c WHERE c.relname IN ('person', 'other') ORDER BY 1", "other|3 / person|3"),
    ("SELECT p.name, o.name FROM person p LEFT JOIN other o ON o.id = p.id AND o.name = 'x' ORDER BY p.id", "Ann|NULL / Bob|x / Cid|NULL"),
    ("SELECT p.name, o.name FROM person p RIGHT JOIN other o ON o.id = p.id AND p.name <> 'Bob' ORDER BY o.id", "NULL|x / NULL|y"),
    ("SELECT p.name, o.name FROM person p FULL JOIN other o ON o.id = p.id WHERE p.id = 2 OR o.name = 'y' ORDER BY o.id", "Bob|x / NULL|y"),
    ("SELECT id, p.name FROM person p RIGHT JOIN other o USING (id) ORDER BY id", "2|Bob / 7|NULL"),
    ("SELECT max(name) FROM person", "Cid"),
    ("SELECT name FROM person WHERE id + 0 = ANY('{1,3}') ORDER BY 1", "Ann / Cid"),
    ("SELECT name, row_number() OVER (ORDER BY name DESC) FROM person ORDER BY 2", "Cid|1 / Bob|2 / Ann|3"),
    ("SELECT l.n FROM person p, LATERAL (SELECT p.id * 2 AS n) l WHERE p.name IN ('Ann', 'Cid') ORDER BY 1", "2 / 6"),
    ("SELECT (SELECT max(id) FROM person), EXISTS (SELECT 1 FROM person WHERE name = 'Dan'), sum(id) FROM person", "3|f|6"),
    ("SELECT P.NAME FROM Person AS P WHERE P.ID + 0 = 1", "Ann"),
    ("SELECT d.name, s.n FROM generate_series(1, 4) s(n) LEFT JOIN person d ON d.id = s.n WHERE s.n > 2 ORDER BY 2", "Cid|3 / NULL|4"),
    ("SELECT name FROM person WHERE id = ANY(ARRAY[1, 3]) ORDER BY name DESC", "Cid / Ann"),
    ("SELECT upper(name) FROM person ORDER BY id DESC LIMIT 1 OFFSET 1", "BOB"),
    ("SELECT lower(name) FROM person WHERE id >= 2 AND name < 'Cid'", "bob"),
    ("SELECT name FROM person WHERE id BETWEEN '2' AND 3 AND name LIKE '%d'", "Cid"),
    ("SELECT id - 5 FROM person WHERE 1 < id AND id IN ('2', 7)", "-3"),
    ("SELECT coalesce(o.name, p.name) FROM person p LEFT JOIN other o ON o.id = p.id WHERE o.id IS NULL ORDER BY 1", "Ann / Cid"),
    ("SELECT 1 FROM person WHERE id = 9 AND upper(name) = 'X'", ""),
    ("SELECT x.id FROM person x WHERE x.id = (SELECT max(y.id) FROM person y WHERE y.id <= x.id AND y.name > 'Ann') ORDER BY 1", "2 / 3"),
];

#[tokio::test(flavor = "multi_thread")]
async fn questions_on_tables_of_the_module() {
    let (server, address, user) = start().await;
    let module = "module table:other private:hidden rule:SELECT+*+FROM+person+WHERE+id+=+1";
    publish(&server, &user, module).await;
    let client = connect(address, "bank", &user.token).await.expect("let in");
    for text in [
        "INSERT INTO \"public\".\"person\" VALUES (1, 'Ann'), (2, 'Bob'), (3, 'Cid')",
        "INSERT INTO public.other (id, name) VALUES (2, 'x'), (7, 'y')",
    ] {
        client.simple_query(text).await.expect("inserted");
    }
    for (text, expected) in OF_THE_MODULE {
        assert_eq!(rows(&client, text).await, *expected, "{text}");
    }
    // Parameters have the types of what they meet.
    let text = "SELECT upper(name) FROM public.person WHERE id + 0 = $1 AND name <> $2 LIMIT $3";
    let found = client.query(text, &[&3_i64, &"Ann", &5_i64]).await;
    let found: Vec<String> = found.expect("rows").iter().map(|row| row.get(0)).collect();
    assert_eq!(found, ["CID"]);
    let text = "SELECT upper(name), id + $2 FROM person WHERE id = ANY($1) ORDER BY 1";
    let found = client.query(text, &[&"{1,3}", &10_i64]).await;
    let found = found.expect("rows");
    let found: Vec<(String, i64)> = found.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(found, [("ANN".to_owned(), 11), ("CID".to_owned(), 13)]);
    let text = "SELECT upper(name) FROM person WHERE id = ANY($1::int8[])";
    let found = client.query(text, &[&"{2}"]).await.expect("rows");
    assert_eq!(found[0].get::<_, String>(0), "BOB");
    // Announced is the type of what else there is, and the value makes it a text.
    let text = "SELECT CASE WHEN id = 1 THEN $1 ELSE 2 END FROM person";
    let changed = client.query(text, &[&"1"]).await;
    assert_eq!(code(&changed.expect_err("another type")), "0A000");
    // A name is what is written before it is what is folded.
    let text = "SELECT P.*, upper(name) FROM person AS \"P\" WHERE id = 1";
    assert_eq!(rows(&client, text).await, "1|Ann|ANN");
    let mut copied = by_hand(address, &user.token).await;
    let text = b"COPY (SELECT id, upper(name) FROM person WHERE id = 2) TO STDOUT\0";
    send(&mut copied, Some(b'Q'), text).await;
    let lines = answers(&mut copied).await;
    assert!(lines.contains(&(b'd', "2\tBOB\n".to_owned())), "{lines:?}");
    for (text, state) in [
        ("SELECT upper(name) FROM nothing", "42P01"),
        ("SELECT upper(name) FROM elsewhere.person", "42P01"),
        ("SELECT upper(nothing) FROM person", "42703"),
        (
            "SELECT upper(id) FROM person a JOIN person b ON a.id = b.id",
            "42702",
        ),
        ("SELECT nothing(id) FROM person", "42883"),
        ("SELECT sum(name || '') FROM person", "22P02"),
        ("SELECT name, count(*) + 1 FROM person", "42803"),
        ("SELECT id / 0 FROM person", "22012"),
        ("SELECT id / 0.0 FROM person", "22012"),
        ("SELECT name + 1 FROM person", "0A000"),
        ("SELECT -name FROM person", "0A000"),
        ("SELECT nope.*, upper(name) FROM person", "42P01"),
        (
            "SELECT upper(p.name) FROM person p FULL JOIN other o USING (id)",
            "0A000",
        ),
    ] {
        assert_eq!(
            code(&client.simple_query(text).await.expect_err(text)),
            state,
            "{text}"
        );
    }
    // Rules and rights are those of every query.
    let stranger = server.user().await;
    let other = connect(address, "bank", &stranger.token)
        .await
        .expect("let in");
    let all = "SELECT upper(name) FROM person ORDER BY 1";
    assert_eq!(rows(&other, all).await, "ANN");
    assert_eq!(rows(&client, all).await, "ANN / BOB / CID");
    let private = refusal(&other, "SELECT upper(name) FROM hidden").await;
    let missing = refusal(&other, "SELECT upper(name) FROM nowhere").await;
    assert_eq!(private.replace("hidden", "nowhere"), missing);
    // Work is bounded.
    let many: Vec<_> = (10..310).map(|id| format!("({id}, 'n')")).collect();
    let text = format!("INSERT INTO person VALUES {}", many.join(","));
    client.simple_query(&text).await.expect("inserted");
    let error = client
        .simple_query("SELECT count(*) FROM person a, person b, person c WHERE a.id + b.id > c.id");
    assert_eq!(code(&error.await.expect_err("too much")), "54000");
    server.stop().await;
}

/// Messages of the extended protocol that run a statement.
async fn run_extended(stream: &mut tokio::net::TcpStream, text: &str) {
    send(stream, Some(b'P'), format!("\0{text}\0\0\0").as_bytes()).await;
    send(stream, Some(b'B'), b"\0\0\0\0\0\0\0\0").await;
    send(stream, Some(b'E'), b"\0\0\0\0\0").await;
    send(stream, Some(b'S'), b"").await;
}

/// While a statement runs, no other client has the only place for one: so a client that goes away has to leave it.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_ends_its_statement() {
    let (server, address, user) =
        start_with("[limits]\nreads-per-database-max = 1\nread-time-max = \"100s\"").await;
    publish(&server, &user, "module").await;
    let client = connect(address, "bank", &user.token).await.expect("let in");
    let rows: Vec<_> = (0..300).map(|id| format!("({id}, 'n')")).collect();
    let text = format!("INSERT INTO person VALUES {}", rows.join(","));
    client.simple_query(&text).await.expect("inserted");
    let of_two = "SELECT COUNT(*) AS n FROM person a JOIN person b ON a.name = b.name";
    let endless = format!(
        "{of_two} JOIN person c ON b.name = c.name JOIN person d ON c.name = d.name JOIN person e ON d.name = e.name"
    );
    for is_extended in [false, true] {
        let mut stream = by_hand(address, &user.token).await;
        match is_extended {
            false => send(&mut stream, Some(b'Q'), format!("{endless}\0").as_bytes()).await,
            true => run_extended(&mut stream, &endless).await,
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        let asked = client.simple_query(of_two);
        let waits = tokio::time::timeout(Duration::from_millis(500), asked).await;
        assert!(waits.is_err(), "the other one runs");
        drop(stream);
        let asked = tokio::time::timeout(Duration::from_secs(10), client.simple_query(of_two));
        let answer = asked.await.expect("the place is free");
        assert!(answer.is_ok(), "extended: {is_extended}");
    }
    server.stop().await;
}

/// The message with which a statement is refused.
async fn refusal(client: &Client, text: &str) -> String {
    let error = client.simple_query(text).await.expect_err(text);
    error.as_db_error().expect("an answer").message().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_that_write_tell_no_client_what_is_private() {
    let (server, address, user) = start().await;
    publish(&server, &user, "module private:secret").await;
    let stranger = server.user().await;
    let client = connect(address, "bank", &stranger.token).await;
    let client = client.expect("let in");
    for text in [
        "DELETE FROM secret",
        "DELETE FROM secret WHERE nothing = 1",
        "UPDATE secret SET name = 'x'",
        "UPDATE secret SET nothing = 1 WHERE id = 1",
        "INSERT INTO secret VALUES (1, 'x')",
        "INSERT INTO secret (nothing) VALUES (1)",
        "DELETE FROM person WHERE id IN (SELECT id FROM secret)",
        "SELECT id FROM person WHERE EXISTS (SELECT 1 FROM secret WHERE secret.nothing = 1)",
    ] {
        let private = refusal(&client, text).await;
        let missing = refusal(&client, &text.replace("secret", "nowhere")).await;
        assert_eq!(private.replace("secret", "nowhere"), missing, "{text}");
    }
    server.stop().await;
}

/// Rules take the place of a table in a subquery, each in a copy of its condition: the copies are counted while they are made.
#[tokio::test(flavor = "multi_thread")]
async fn rules_in_subqueries_copy_only_so_much() {
    let (server, address, user) = start().await;
    let rules: Vec<_> = (0..16)
        .map(|id| format!("rule:SELECT+*+FROM+person+WHERE+id+=+{id}"))
        .collect();
    publish(
        &server,
        &user,
        &format!("module table:other {}", rules.join(" ")),
    )
    .await;
    let stranger = server.user().await;
    let client = connect(address, "bank", &stranger.token).await;
    let client = client.expect("let in");
    let terms = vec!["a.id = 1"; 2_000].join(" OR ");
    let of = |tables: &str| {
        format!("SELECT id FROM other WHERE EXISTS (SELECT 1 FROM {tables} WHERE ({terms}))")
    };
    let few = client.simple_query(&of("person a")).await;
    assert!(few.is_ok(), "{few:?}");
    let started = Instant::now();
    let text = of("person a JOIN person b ON a.id = b.id");
    let refused = refusal(&client, &text).await;
    assert!(refused.contains("[LC0408]"), "{refused}");
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "{:?}",
        started.elapsed()
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_of_the_catalogue_count_as_their_clients_memory() {
    let (server, address, user) = start_with("[limits]\nclient-bytes-max = 4194304").await;
    publish(&server, &user, "module").await;
    let client = connect(address, "bank", &user.token).await.expect("let in");
    let long = "x".repeat(20_000);
    let of = |count| {
        format!("SELECT t.x FROM (SELECT '{long}' AS x) t, pg_catalog.generate_series(1, {count})")
    };
    assert!(client.simple_query(&of(50)).await.is_ok());
    for text in [of(300), format!("COPY ({}) TO STDOUT", of(300))] {
        let error = client.simple_query(&text).await.expect_err("6 MB");
        assert_eq!(code(&error), "54000", "{error:?}");
        let message = error.as_db_error().expect("an answer").message();
        assert!(message.contains("[LC0706]"), "{message}");
    }
    server.stop().await;
}
