//! Programs that change the schema, over HTTP (02 §14.2, §14.3, 06 §5.3, §5.4).

use crate::common::{answer, json, TestServer, User};
use lightcone_types::{Hash, Identity};
use serde_json::{json, Value};

struct Fixture {
    server: TestServer,
    user: User,
}

impl Fixture {
    /// Database `a` with two rows in `person`.
    async fn start(program: &'static str) -> Fixture {
        let server = TestServer::start().await;
        let user = server.user().await;
        let fixture = Fixture { server, user };
        assert_eq!(fixture.publish("", program).await.0, 200);
        for (id, name) in [(1, "x"), (2, "x")] {
            fixture.add("person", id, name).await;
        }
        fixture
    }

    async fn publish(&self, query: &str, program: &'static str) -> (u16, String) {
        let request = self
            .server
            .request("PUT", &format!("/v1/database/a{query}"));
        answer(request.bearer_auth(&self.user.token).body(program)).await
    }

    async fn plan(&self, query: &str, program: &'static str) -> (u16, String) {
        let path = format!("/v1/database/a/pre_publish{query}");
        let request = self.server.request("POST", &path);
        answer(request.bearer_auth(&self.user.token).body(program)).await
    }

    async fn auto(&self, program: &'static str) -> Value {
        let (status, body) = self.plan("?style=NoColor", program).await;
        assert_eq!(status, 200, "{body}");
        let auto = json(&body)["AutoMigrate"].clone();
        assert!(auto.is_object(), "{body}");
        auto
    }

    /// Publishes as the command line does: with the token of the plan.
    async fn migrate(&self, program: &'static str) -> (u16, String) {
        let auto = self.auto(program).await;
        let token = auto["token"].as_str().expect("token");
        self.publish(&format!("?policy=BreakClients&token={token}"), program)
            .await
    }

    async fn sql(&self, sql: &str) -> (u16, String) {
        let request = self.server.request("POST", "/v1/database/a/sql");
        answer(request.bearer_auth(&self.user.token).body(sql.to_owned())).await
    }

    async fn rows(&self, sql: &str) -> Value {
        let (status, body) = self.sql(sql).await;
        assert_eq!(status, 200, "{body}");
        json(&body)[0]["rows"].clone()
    }

    async fn add(&self, table: &str, id: u32, name: &str) {
        let sql = format!("INSERT INTO {table} (id, name) VALUES ({id}, '{name}')");
        assert_eq!(self.sql(&sql).await.0, 200, "{sql}");
    }
}

/// The steps of an answer: kind, table and rows.
fn steps(auto: &Value) -> Vec<(String, Option<String>, Option<u64>)> {
    let steps = auto["steps"].as_array().expect("steps").iter();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    steps
        .map(|step| {
            (
                text(&step["kind"]).expect("kind"),
                text(&step["table"]),
                step["rows"].as_u64(),
            )
        })
        .collect()
}

const REFUSED: &str = "Failed to create or update the database: ";

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_migrated() {
    let fixture = Fixture::start("module").await;
    let reason = "Errors occurred:\nChanging the type of column id in table person from U32 to U64 requires a manual \
                  migration [LC0220]\n\n";
    let (status, body) = fixture.plan("", "module long-id").await;
    let manual = json!({ "ManualMigrate": { "reason": reason, "major_version_upgrade": false } });
    assert_eq!((status, json(&body)), (200, manual));
    let rejected = format!("Database update rejected: {reason}");
    assert_eq!(
        fixture.publish("", "module long-id").await,
        (400, rejected.clone())
    );
    // Also with a token, right or wrong: there is nothing to confirm.
    assert_eq!(
        fixture
            .publish("?policy=BreakClients&token=0x12", "module long-id")
            .await,
        (400, rejected)
    );
    let (status, body) = fixture.publish("", "module level-plain").await;
    assert!(
        status == 400 && body.contains("column level to table person") && body.contains("[LC0221]"),
        "{status} {body}"
    );
    assert_eq!(fixture.publish("", "nonsense").await.0, 500);
    assert_eq!(
        fixture.rows("SELECT * FROM person").await,
        json!([[1, "x"], [2, "x"]]),
        "the old program and its data are as they were"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_have_steps_with_rows() {
    let fixture = Fixture::start("module").await;
    let auto = fixture.auto("module changed").await;
    assert_eq!(
        steps(&auto),
        [("AddTable".to_owned(), Some("extra".to_owned()), None)]
    );
    assert_eq!(auto["break_clients"], false);
    let text = auto["migrate_plan"].as_str().expect("text");
    assert!(
        text.contains(
            "\n\n▸ Created user table: extra (public)\n    Columns:\n        • id: U32\n"
        ),
        "{text}"
    );

    let auto = fixture.auto("module level").await;
    let expected = json!([
        { "kind": "AddColumns", "table": "person", "columns": ["level"], "rows": 2 },
        { "kind": "DisconnectAllUsers" },
    ]);
    assert_eq!(auto["steps"], expected);
    assert_eq!(auto["break_clients"], true);
    let text = auto["migrate_plan"].as_str().expect("text");
    assert!(
        text.contains("    + level: U16 (default: U16(\n    7,\n))\n!!! Warning: All clients"),
        "{text}"
    );
    // The default style has colours, under both names of the parameter.
    for query in ["", "?style=AnsiColor", "?pretty_print_style=AnsiColor"] {
        assert!(
            fixture
                .plan(query, "module level")
                .await
                .1
                .contains("\\u001b[0m"),
            "{query}"
        );
    }
    let wrong = fixture.plan("?style=Plain", "module level").await;
    assert_eq!(wrong.0, 400);
    // Nothing of that changed anything.
    assert_eq!(
        fixture.rows("SELECT * FROM person").await,
        json!([[1, "x"], [2, "x"]])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn policies() {
    let fixture = Fixture::start("module").await;
    // Compatible: what breaks no client goes through without a token, a wrong one does not matter.
    let (status, body) = fixture.publish("?token=0x12", "module changed").await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(json(&body)["Success"]["op"], "updated");
    assert_eq!(fixture.rows("SELECT * FROM extra").await, json!([]));
    let broken = format!(
        "{REFUSED}Migration plan contains a client-breaking change which is disallowed under current policy"
    );
    assert_eq!(
        fixture.publish("", "module changed level").await,
        (400, broken)
    );
    let wrong = format!("{REFUSED}Token provided is invalid or does not match expected hash");
    for program in ["module changed level", "module changed secret"] {
        assert_eq!(
            fixture
                .publish("?policy=BreakClients&token=0x12", program)
                .await,
            (400, wrong.clone()),
            "{program}"
        );
    }
    for (query, text) in [
        (
            "?policy=BreakClients",
            "Migration policy is set to `BreakClients`, but no migration token was provided.",
        ),
        (
            "?policy=Break",
            "Failed to deserialize query string: unknown variant `Break`",
        ),
        (
            "?policy=BreakClients&token=0xzz",
            "Failed to deserialize query string: `0xzz` is not a hash",
        ),
    ] {
        let (status, body) = fixture.publish(query, "module changed level").await;
        assert!(
            status == 400 && body.starts_with(text),
            "{query}: {status} {body}"
        );
    }
    // The token of another program does not count.
    let auto = fixture.auto("module changed level other").await;
    let other = auto["token"].as_str().expect("token");
    assert_eq!(
        fixture
            .publish(
                &format!("?policy=BreakClients&token={other}"),
                "module changed level"
            )
            .await,
        (400, wrong)
    );
    // It does for its own, and for a plan that breaks no client as well.
    assert_eq!(fixture.migrate("module changed level").await.0, 200);
    assert_eq!(
        fixture.rows("SELECT * FROM person").await,
        json!([[1, "x", 7], [2, "x", 7]])
    );
    assert_eq!(fixture.migrate("module changed level secret").await.0, 200);
    assert_eq!(fixture.rows("SELECT * FROM secret").await, json!([]));
}

/// The reference says that late, when everything was tried.
#[tokio::test(flavor = "multi_thread")]
async fn a_removed_table_with_rows_is_told_before() {
    let fixture = Fixture::start("module changed").await;
    fixture.add("extra", 1, "y").await;
    let auto = fixture.auto("module").await;
    let obstacle = "Table extra cannot be removed: it has 1 row. Delete them first (with a reducer, or DELETE in \
                    `spacetime sql`), or keep the table [LC0225]";
    assert_eq!(auto["obstacles"], json!([obstacle]));
    assert_eq!(auto["steps"][0]["rows"], 1);
    let text = auto["migrate_plan"].as_str().expect("text");
    assert!(text.ends_with(&format!("!!! {obstacle}\n")), "{text}");
    let (status, body) = fixture.migrate("module").await;
    let start = format!("{REFUSED}Cannot remove table `extra`: table contains data.");
    assert!(
        status == 400 && body.starts_with(&start) && body.ends_with("[LC0225]"),
        "{status} {body}"
    );
    assert_eq!(fixture.rows("SELECT * FROM extra").await, json!([[1, "y"]]));
    assert_eq!(fixture.sql("DELETE FROM extra").await.0, 200);
    let auto = fixture.auto("module").await;
    assert_eq!(auto["obstacles"], json!([]));
    assert_eq!(fixture.migrate("module").await.0, 200);
    assert_eq!(fixture.sql("SELECT * FROM extra").await.0, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_fails_changes_nothing() {
    let fixture = Fixture::start("module").await;
    let auto = fixture.auto("module unique-names changed").await;
    let kinds: Vec<String> = steps(&auto).into_iter().map(|(kind, ..)| kind).collect();
    assert_eq!(kinds, ["AddTable", "AddIndex", "AddConstraint"]);
    let (status, body) = fixture.publish("", "module unique-names changed").await;
    assert!(
        status == 400 && body.starts_with(REFUSED) && body.contains("person_name"),
        "{status} {body}"
    );
    assert_eq!(fixture.sql("SELECT * FROM extra").await.0, 400);
    assert_eq!(
        fixture
            .sql("UPDATE person SET name = 'y' WHERE id = 2")
            .await
            .0,
        200
    );
    assert_eq!(
        fixture.publish("", "module unique-names changed").await.0,
        200
    );
    assert_eq!(
        fixture
            .sql("INSERT INTO person (id, name) VALUES (3, 'y')")
            .await
            .0,
        400
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_and_their_rows() {
    let fixture = Fixture::start("module changed").await;
    let path = "/v1/database/a/tables";
    let request = fixture.server.request("GET", path);
    let (status, body) = answer(request.bearer_auth(&fixture.user.token)).await;
    let tables =
        json!({ "tables": [{ "name": "extra", "rows": 0 }, { "name": "person", "rows": 2 }] });
    assert_eq!((status, json(&body)), (200, tables));
    // How full the tables of others are is the business of their owner.
    let stranger = fixture.server.user().await;
    let request = fixture.server.request("GET", path);
    assert_eq!(answer(request.bearer_auth(&stranger.token)).await.0, 403);
    assert_eq!(fixture.server.ask("GET", path).await.0, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn rehearsals_change_nothing() {
    let fixture = Fixture::start("module").await;
    let (status, body) = fixture.plan("?dry_run=true", "module level").await;
    assert_eq!(status, 200, "{body}");
    let rehearsal = &json(&body)["AutoMigrate"]["rehearsal"];
    let step = &rehearsal["steps"][0];
    assert_eq!(
        (&step["kind"], &step["table"], &step["rows"]),
        (&json!("AddColumns"), &json!("person"), &json!(2)),
        "{body}"
    );
    assert!(step["seconds"].is_number() && rehearsal["seconds"].is_number());
    assert_eq!(
        fixture.rows("SELECT * FROM person").await,
        json!([[1, "x"], [2, "x"]])
    );
    // What the data refuse, a rehearsal finds; a plan does not.
    let program = "module unique-names";
    assert_eq!(fixture.auto(program).await["obstacles"], json!([]));
    let (_, body) = fixture.plan("?dry_run=true", program).await;
    let auto = &json(&body)["AutoMigrate"];
    let obstacle = auto["obstacles"][0].as_str().unwrap_or_default();
    assert!(obstacle.contains("person_name"), "{body}");
    assert_eq!(auto["rehearsal"]["steps"], json!([]), "{body}");
}

/// The token of the chapter, by which both sides know that they mean the same two programs.
#[tokio::test(flavor = "multi_thread")]
async fn tokens() {
    let fixture = Fixture::start("module").await;
    let identity = fixture.server.ask("GET", "/v1/database/a/identity").await.1;
    assert!(Identity::parse_text(&identity).is_ok());
    let hash = |text: &str| Hash::keccak256(text.as_bytes());
    let text = format!(
        "{identity}{}{}",
        hash("module").to_hex(),
        hash("module level").to_hex()
    );
    let auto = fixture.auto("module level").await;
    assert_eq!(auto["token"], hash(&text).to_json_u256());
}

/// From version 9 of the definition to 10: nothing changes in the tables, but the command line asks.
#[tokio::test(flavor = "multi_thread")]
async fn major_version_upgrades() {
    let fixture = Fixture::start("module v9").await;
    let auto = fixture.auto("module").await;
    assert_eq!(auto["major_version_upgrade"], true);
    assert_eq!(
        (&auto["steps"], &auto["break_clients"]),
        (&json!([]), &json!(false))
    );
    let (_, body) = fixture.plan("", "module long-id").await;
    assert_eq!(json(&body)["ManualMigrate"]["major_version_upgrade"], true);
    assert_eq!(
        fixture.auto("module v9 other").await["major_version_upgrade"],
        false
    );
    assert_eq!(fixture.migrate("module").await.0, 200);
    assert_eq!(
        fixture.rows("SELECT * FROM person").await,
        json!([[1, "x"], [2, "x"]])
    );
    let back = fixture.auto("module v9").await;
    assert_eq!(back["major_version_upgrade"], false);
}
