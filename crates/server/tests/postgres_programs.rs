//! Programs that take the server for PostgreSQL: psql, the driver of Java, and what others ask the catalogue (08 §19).

use crate::common::postgres::{code, connect, named, psql, run, start};

#[tokio::test(flavor = "multi_thread")]
async fn psql_reads_and_describes() {
    let (server, address, user) = start().await;
    named(&server, &user, "bank").await;
    let Some((out, err)) = psql(
        address,
        &user.token,
        &[
            "INSERT INTO person VALUES (1, 'Ann'), (2, 'Bob')",
            "SELECT * FROM person WHERE id = 1",
            "SELECT name FROM person WHERE id = 2",
            "SHOW row_limit",
            "SELECT 1",
            "SELECT * FROM nothing",
        ],
    )
    .await
    else {
        return;
    };
    let lines: Vec<_> = out.lines().collect();
    assert!(lines[0].starts_with("inserted: 2, server: "), "{out}");
    assert_eq!(lines[1..], ["1|Ann", "Bob", "1"], "{out}");
    assert!(err.contains("no such table: `nothing`"), "{err}");
    let Some((out, err)) = psql(
        address,
        &user.token,
        &[
            "\\dt",
            "\\d person",
            "\\d",
            "\\dt p*",
            "\\dt x*",
            "\\dn",
            "\\l",
            "\\di",
            "\\df",
            "\\dv",
            "\\du",
        ],
    )
    .await
    else {
        return;
    };
    for line in [
        "public|person|table|me",
        "public|secret|table|me",
        "public|typed|table|me",
        "id|bigint||not null|",
        "name|character varying||not null|",
        "public|me",
        "public|person_id_idx_btree|index|me|person",
    ] {
        assert!(
            out.lines().any(|found| found == line),
            "{line}\n{out}\n{err}"
        );
    }
    assert!(
        out.lines().any(|line| line.starts_with("bank|me|UTF8")),
        "{out}"
    );
    assert!(!err.contains("ERROR"), "{err}");
    let Some((out, err)) = psql(address, &user.token, &["\\t off", "\\d person"]).await else {
        return;
    };
    assert!(
        out.contains("\"person_id_idx_btree\" PRIMARY KEY, btree (id)"),
        "{out}{err}"
    );
    server.stop().await;
}

/// Every command of psql that describes something: answered, or refused by psql itself.
#[tokio::test(flavor = "multi_thread")]
async fn every_description_of_psql_is_answered() {
    let (server, address, user) = start().await;
    named(&server, &user, "bank").await;
    let commands = [
        "\\d",
        "\\d+",
        "\\dS",
        "\\d person",
        "\\d+ person",
        "\\d p*",
        "\\d person_id_idx_btree",
        "\\d+ person_id_idx_btree",
        "\\d public.person",
        "\\d nothing",
        "\\d \"Person\"",
        "\\da",
        "\\dA",
        "\\dA+",
        "\\dAc",
        "\\dAf",
        "\\dAo",
        "\\dAp",
        "\\db",
        "\\db+",
        "\\dc",
        "\\dC",
        "\\dC+",
        "\\dconfig",
        "\\dd",
        "\\dD",
        "\\dD+",
        "\\ddp",
        "\\des",
        "\\det",
        "\\deu",
        "\\dew",
        "\\df",
        "\\df+",
        "\\dfa",
        "\\dF",
        "\\dFd",
        "\\dFp",
        "\\dFt",
        "\\dg",
        "\\dg+",
        "\\di",
        "\\di+",
        "\\dl",
        "\\dL",
        "\\dL+",
        "\\dm",
        "\\dn",
        "\\dn+",
        "\\dnS",
        "\\do",
        "\\dO",
        "\\dp",
        "\\dP",
        "\\dPt",
        "\\drds",
        "\\dRp",
        "\\dRp+",
        "\\dRs",
        "\\ds",
        "\\dt",
        "\\dt+",
        "\\dt public.*",
        "\\dt *.*",
        "\\dt x*",
        "\\dT",
        "\\dT+",
        "\\du",
        "\\dv",
        "\\dv+",
        "\\dx",
        "\\dx+",
        "\\dX",
        "\\dy",
        "\\dE",
        "\\l",
        "\\l+",
        "\\l ba*",
        "\\z",
        "\\z person",
        "\\sf nothing",
    ];
    let mut refused = Vec::new();
    for command in commands {
        let Some((_, err)) = psql(address, &user.token, &[command]).await else {
            return;
        };
        if err.contains("ERROR:  this question") || err.contains("ERROR:  (Sql)") {
            refused.push(format!("{command}: {err}"));
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    server.stop().await;
}

/// Questions of Metabase, Grafana, DBeaver, node-postgres, SQLAlchemy, Prisma, pgAdmin and their like, with rows that they give.
#[tokio::test(flavor = "multi_thread")]
async fn questions_of_programs_for_reports() {
    let (server, address, user) = start().await;
    named(&server, &user, "bank").await;
    let client = connect(address, "bank", &user.token).await.expect("let in");
    let questions = include_str!("postgres_questions.sql");
    let (mut asked, mut wrong) = (0, Vec::new());
    for question in questions.split(";\n") {
        let (expected, text) = match question.trim().strip_prefix("-- ") {
            Some(rest) => rest.split_once('\n').expect("a question"),
            None => continue,
        };
        asked += 1;
        let messages = match client.simple_query(text).await {
            Ok(messages) => messages,
            Err(error) => {
                wrong.push(format!("{text}\n{error:?}"));
                continue;
            }
        };
        let rows: Vec<String> = messages
            .iter()
            .filter_map(|message| match message {
                tokio_postgres::SimpleQueryMessage::Row(row) => {
                    let fields = (0..row.len()).map(|nth| row.get(nth).unwrap_or("NULL"));
                    Some(fields.collect::<Vec<_>>().join("|"))
                }
                _ => None,
            })
            .collect();
        if rows.join(" / ") != expected.trim() {
            wrong.push(format!("{text}\n{}\n{expected}", rows.join(" / ")));
        }
        // Described, it has the same columns.
        if let Err(error) = client.prepare(text).await {
            wrong.push(format!("prepared: {text}\n{error:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(asked > 30, "{asked} questions");
    for (text, state) in [
        ("SELECT nothing FROM pg_class", "42703"),
        ("SELECT * FROM pg_nothing", "42P01"),
        ("SELECT a.oid FROM pg_class a, pg_class b, pg_class c, generate_series(1, 100000) d, generate_series(1, 100000) e", "54000"),
        ("SELECT * FROM pg_class, generate_series(1, 1000000000) a", "54000"),
        ("SELECT 'x'::pg_catalog.regclass", "22P02"),
        ("SELECT (SELECT oid FROM pg_class)", "21000"),
        ("SELECT oid FROM pg_class a, pg_class b", "42702"),
        ("SELECT pg_catalog.unknown(1)", "42883"),
        ("SELECT 1/0", "22012"),
        ("SELECT 9223372036854775807+1", "22003"),
        ("SELECT a FROM pg_catalog.pg_am, generate_series(2147483647, 2147483648) a", "22003"),
        ("SELECT 1 UNION SELECT 2 INTERSECT SELECT 2", "0A000"),
        ("SELECT 'a_b' LIKE 'a!_b' ESCAPE '!'", "0A000"),
    ] {
        let error = client.simple_query(text).await.expect_err(text);
        assert_eq!(code(&error), state, "{text}: {error:?}");
    }
    // Many rows of one long text: it is there once, the answer would have it in each.
    let long = "x".repeat(20_000);
    for columns in ["t.x", "string_agg(t.x, '')"] {
        let text = format!(
            "SELECT {columns} FROM pg_class c, (SELECT '{long}' AS x) t, generate_series(1, 20000)"
        );
        let error = client.simple_query(&text).await.expect_err(columns);
        assert_eq!(code(&error), "54000", "{columns}: {error:?}");
    }
    let wide = format!(
        "SELECT {}* FROM pg_class, pg_attribute",
        "*, ".repeat(10_000)
    );
    let error = client.simple_query(&wide).await.expect_err("too wide");
    assert_eq!(code(&error), "54000", "{error:?}");
    // Others see what they may read.
    let stranger = server.user().await;
    let other = connect(address, "bank", &stranger.token)
        .await
        .expect("let in");
    let names =
        "SELECT string_agg(relname, ',' ORDER BY relname) FROM pg_class WHERE relkind = 'r'";
    let row = other.query_one(names, &[]).await.expect("a row");
    assert_eq!(row.get::<_, String>(0), "person,typed");
    let last = "SELECT DISTINCT ON (relkind) relname FROM pg_class WHERE relkind = 'r' ORDER BY relkind, relname DESC";
    let rows = other.query(last, &[]).await.expect("a row");
    let names: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(names, ["typed"]);
    server.stop().await;
}

/// The driver of Java, with what programs for reports do with it.
#[tokio::test(flavor = "multi_thread")]
async fn the_driver_of_java() {
    let jar = "/usr/share/java/postgresql.jar";
    if !std::path::Path::new(jar).exists() {
        eprintln!("SKIPPED: there is no {jar}; install the packages libpostgresql-jdbc-java and default-jdk-headless");
        return;
    }
    let (server, address, user) = start().await;
    named(&server, &user, "bank").await;
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/jdbc/Jdbc.java");
    let mut java = std::process::Command::new("java");
    java.args([
        "-Xshare:auto",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        jar,
        source,
    ])
    .arg(format!("jdbc:postgresql://{address}/bank"))
    .env("TOKEN", &user.token);
    if let Some((out, err)) = run(java, "default-jdk-headless").await {
        assert_eq!(out, "all is well\n", "{err}");
    }
    server.stop().await;
}
