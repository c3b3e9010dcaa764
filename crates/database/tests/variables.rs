//! Variables of the environment (2.11): set with a program and without one, read by every kind of function, in both engines.
//! `modules/environment-rs` and `modules/latest-ts` have the same variables.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crate::common::watcher::Watcher;
use crate::common::{bundle, caller, module, open, options, secrets, OWNER, STRANGER};
use lightcone_accounts::Counted;
use lightcone_database::{
    BackupAfter, CallArgs, CallError, DatabaseHandle, DatabaseOptions, EnvironmentChange,
    EnvironmentError, Error, HandlerSender, HostKind, HttpMethod, HttpRequest, HttpVersion,
    JsonRows, Policy, RemovedVariables, Restore, ShutdownReason, SqlError, UpdateError,
    UpdateOutcome,
};
use lightcone_host_js::JsEngineOptions;
use lightcone_types::{Encode, Hash, Identity};

const SECRET: &str = "s3cret-value";

fn both_options(directory: &Path) -> DatabaseOptions {
    let mut options = options(directory);
    let engine = lightcone_host_js::engine(JsEngineOptions::default());
    options.engines.js = Some(engine.expect("the engine starts"));
    options
}

fn program(kind: HostKind) -> Arc<[u8]> {
    match kind {
        HostKind::Wasm => module("environment"),
        HostKind::Js => bundle("latest-lightcone").into_bytes().into(),
    }
}

fn change(set: &[(&str, &str)], removed: RemovedVariables) -> EnvironmentChange {
    let set = set.iter();
    let set = set.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    EnvironmentChange::new(set.collect(), removed).expect("a change")
}

fn set(variables: &[(&str, &str)]) -> EnvironmentChange {
    change(variables, RemovedVariables::None)
}

fn removed(keys: &[&str]) -> EnvironmentChange {
    let keys = keys.iter().map(|key| (*key).to_owned());
    change(&[], RemovedVariables::Keys(keys.collect()))
}

async fn try_create(
    directory: &Path,
    program: Arc<[u8]>,
    kind: HostKind,
    environment: EnvironmentChange,
) -> Result<DatabaseHandle, Error> {
    let options = both_options(directory);
    let create = move || DatabaseHandle::create_with(options, program, kind, environment);
    tokio::task::spawn_blocking(create).await.expect("no panic")
}

async fn rows(database: &DatabaseHandle, sql: &str) -> String {
    let asked = database.sql(caller(OWNER), sql.to_owned(), true, JsonRows::default());
    asked.await.expect("rows").text()
}

async fn refusal(database: &DatabaseHandle, sql: &str) -> String {
    let asked = database.sql(caller(OWNER), sql.to_owned(), true, JsonRows::default());
    match asked.await {
        Err(SqlError::Query(text)) => text,
        _ => panic!("{sql} is not refused"),
    }
}

async fn call(database: &DatabaseHandle, function: &str, args: &str) -> Result<String, CallError> {
    let args = CallArgs::Json(args.to_owned());
    let outcome = database.call(caller(OWNER), function, args).await?;
    let returned = outcome.returned_json.map(Counted::into_inner);
    Ok(returned.unwrap_or_default())
}

async fn fetch_key(database: &DatabaseHandle) -> String {
    let request = HttpRequest {
        method: HttpMethod::Get,
        headers: Vec::new(),
        timeout: None,
        uri: "http://localhost/key".to_owned(),
        version: HttpVersion::Http11,
    };
    let sender = HandlerSender {
        identity: STRANGER,
        jwt_payload: "{}".into(),
    };
    let body = Vec::new().into();
    let answer = database.http_request("/key".to_owned(), request, body, sender, ());
    let (reply, _) = answer.await.expect("an answer");
    String::from_utf8_lossy(&reply.body).into_owned()
}

/// All that is in the files of a directory and below it.
fn bytes_below(directory: &Path) -> Vec<u8> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let contents = paths.map(|path| match path.is_dir() {
        true => bytes_below(&path),
        false => {
            let mut bytes = std::fs::read(&path).expect("a file");
            // Segments are filled with zeros ahead of time.
            let end = bytes.iter().rposition(|byte| *byte != 0);
            bytes.truncate(end.map_or(0, |last| last + 1));
            bytes
        }
    });
    contents.collect::<Vec<_>>().concat()
}

/// The module's log, as soon as it has this.
async fn module_log(database: &Path, word: &str) -> String {
    let directory = database.join("module_logs");
    for _ in 0..1000 {
        if directory.is_dir() {
            let log = String::from_utf8_lossy(&bytes_below(&directory)).into_owned();
            if log.contains(word) {
                return log;
            }
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the log of the module has no {word}");
}

fn has(bytes: &[u8], word: &str) -> bool {
    let word = word.as_bytes();
    bytes.windows(word.len()).any(|window| window == word)
}

/// Ways in which a program is published and its variables are changed, on one engine.
async fn from_publish_to_reopen(kind: HostKind) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("database");
    // A required key that is missing refuses it by name, and nothing is left behind.
    let missing = try_create(&path, program(kind), kind, set(&[("GREETING", "hi")])).await;
    match missing.err() {
        Some(Error::Environment(EnvironmentError::MissingRequired(keys))) => {
            assert_eq!(keys, ["API_KEY"]);
        }
        other => panic!("{other:?}"),
    }
    assert!(!path.exists());
    let first = set(&[("API_KEY", SECRET), ("OTHER", "kept"), ("LEVEL", "debug")]);
    let created = try_create(&path, program(kind), kind, first).await;
    let database = created.unwrap_or_else(|error| panic!("{error}"));
    // `init` has read it.
    let seen = rows(&database, "SELECT place, value FROM seen").await;
    assert_eq!(seen, format!("[[\"init\",[0,\"{SECRET}\"]]]"));
    call(&database, "look", "[\"GREETING\"]")
        .await
        .expect("called");
    call(&database, "look", "[\"API_KEY\"]")
        .await
        .expect("called");
    let seen = rows(&database, "SELECT value FROM seen WHERE place = 'reducer'").await;
    assert_eq!(seen, format!("[[[1,[]]],[[0,\"{SECRET}\"]]]"));
    // Nothing that is not declared is read, and nothing under no name.
    for key in ["OTHER", "not a key", ""] {
        assert!(
            call(&database, "look", &format!("[\"{key}\"]"))
                .await
                .is_err(),
            "{key}"
        );
    }
    if kind == HostKind::Js {
        // A procedure reads them without a transaction too, and so does a handler.
        let fetched = call(&database, "fetch", "[\"API_KEY\"]")
            .await
            .expect("called");
        assert_eq!(fetched, format!("\"{SECRET} {SECRET} debug\""));
        assert_eq!(fetch_key(&database).await, SECRET);
    } else {
        call(&database, "look_at_level", "[]")
            .await
            .expect("called");
        let seen = rows(&database, "SELECT value FROM seen WHERE place = 'level'").await;
        assert_eq!(seen, "[[[0,\"Debug\"]]]");
    }

    // A subscriber to a view that reads the environment follows it; nothing is restarted.
    let mut watcher = Watcher::connect(&database, STRANGER, 1).await;
    watcher.watch(1, &["greeting"]).await;
    assert!(watcher.rows(1, "greeting").is_empty());
    let hash = database.program_hash();
    let updated = database
        .change_environment(set(&[("GREETING", "hello")]), Some(hash))
        .await;
    assert_eq!(updated.expect("updated"), UpdateOutcome::Updated);
    watcher.settle().await;
    let hello = vec![("hello".to_owned().to_vec(), 1)];
    assert_eq!(Vec::from_iter(watcher.rows(1, "greeting")), hello);
    let again = database
        .change_environment(set(&[("GREETING", "hello")]), None)
        .await;
    assert_eq!(again.expect("equal"), UpdateOutcome::Unchanged);
    // A view that fails takes the change back.
    let failed = database
        .change_environment(set(&[("GREETING", "fail")]), None)
        .await;
    let text = failed.expect_err("the view fails").to_string();
    assert!(
        text.starts_with("view evaluation failed during environment publication"),
        "{text}"
    );
    watcher.settle().await;
    assert_eq!(Vec::from_iter(watcher.rows(1, "greeting")), hello);
    let stored = rows(&database, "SELECT value FROM st_env WHERE key = 'GREETING'").await;
    assert_eq!(stored, "[[\"hello\"]]");

    // What the program does not allow is refused, and no text has a value.
    let refused = |change, expected| database.change_environment(change, expected);
    for (change, expected) in [
        (set(&[("LEVEL", SECRET)]), None),
        (removed(&["API_KEY"]), None),
        (set(&[("GREETING", SECRET)]), Some(Hash::ZERO)),
    ] {
        let error = refused(change, expected).await.expect_err("refused");
        assert!(matches!(error, UpdateError::Environment(_)), "{error:?}");
        assert!(!format!("{error} {error:?}").contains(SECRET), "{error}");
    }
    database
        .change_environment(removed(&["GREETING"]), None)
        .await
        .expect("removed");
    watcher.settle().await;
    assert!(watcher.rows(1, "greeting").is_empty());

    // Only who sees private tables sees them, and they change by publishing alone.
    let sql = "SELECT key, value FROM st_env";
    let asked = database.sql(caller(STRANGER), sql.to_owned(), true, JsonRows::default());
    assert!(asked.await.is_err(), "a stranger sees no private table");
    let asked = database.sql_of_assistant(
        caller(OWNER),
        sql.to_owned(),
        (true, true),
        JsonRows::default(),
    );
    assert!(asked.await.is_err(), "an assistant sees no variables");
    for sql in [
        "DELETE FROM st_env",
        "INSERT INTO st_env (key, value) VALUES ('A', 'b')",
        "UPDATE st_env SET value = 'b' WHERE key = 'API_KEY'",
    ] {
        let text = refusal(&database, sql).await;
        assert_eq!(
            text,
            "Database environment variables can only be changed by publishing"
        );
    }
    let metadata = database.environment().await.expect("metadata");
    assert_eq!(metadata.program_hash, hash);
    assert_eq!(metadata.stored_keys, ["API_KEY", "LEVEL", "OTHER"]);
    assert_eq!(metadata.declarations.len(), 4);
    assert!(!format!("{metadata:?}").contains(SECRET));

    // The module's log has none of it.
    let log = module_log(&path, "Database environment updated").await;
    assert!(!log.contains(SECRET), "{log}");

    drop(watcher);
    database.shutdown(ShutdownReason::ServerStop).await;
    let database = open(both_options(&path)).await;
    let stored = rows(
        &database,
        "SELECT key, value FROM st_env WHERE key = 'API_KEY'",
    )
    .await;
    assert_eq!(stored, format!("[[\"API_KEY\",\"{SECRET}\"]]"));
    call(&database, "look", "[\"API_KEY\"]")
        .await
        .expect("called");
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn webassembly_from_publish_to_reopen() {
    from_publish_to_reopen(HostKind::Wasm).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn javascript_from_publish_to_reopen() {
    from_publish_to_reopen(HostKind::Js).await;
}

/// An old module, then one that declares variables, then the old one again: what it does not declare stays.
#[tokio::test(flavor = "multi_thread")]
async fn programs_change_with_their_variables() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("database");
    let old = module("views");
    let created = try_create(
        &path,
        old.clone(),
        HostKind::Wasm,
        EnvironmentChange::default(),
    )
    .await;
    let database = created.expect("a module without variables");
    let update = |program: Arc<[u8]>, environment: EnvironmentChange| {
        let database = database.clone();
        async move {
            let prepared = database.prepare_update(program, HostKind::Wasm).await?;
            let prepared = prepared.with_environment(environment);
            let token = database.plan_update(&prepared).token;
            database
                .replace(prepared, Policy::BreakClients { token })
                .await
        }
    };
    // The tables of `views` are empty, so the other module may take their place.
    let new = module("environment");
    let error = update(new.clone(), EnvironmentChange::default()).await;
    let error = error.expect_err("a key is missing");
    assert!(error.to_string().contains("API_KEY"), "{error}");
    assert!(
        call(&database, "look", "[\"API_KEY\"]").await.is_err(),
        "the old program runs"
    );
    update(new, set(&[("API_KEY", "one")]))
        .await
        .expect("updated");
    assert_eq!(
        rows(&database, "SELECT value FROM st_env").await,
        "[[\"one\"]]"
    );
    call(&database, "look", "[\"API_KEY\"]")
        .await
        .expect("called");
    // A table with rows is not removed.
    rows(&database, "DELETE FROM seen").await;
    update(old, set(&[("LATER", "two")]))
        .await
        .expect("updated");
    let stored = rows(&database, "SELECT key FROM st_env").await;
    assert!(
        stored.contains("API_KEY") && stored.contains("LATER"),
        "{stored}"
    );
    let all = change(&[("ONLY", "three")], RemovedVariables::All);
    database
        .change_environment(all, None)
        .await
        .expect("changed");
    assert_eq!(
        rows(&database, "SELECT key, value FROM st_env").await,
        "[[\"ONLY\",\"three\"]]"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_and_sources_are_bounded() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("database");
    // An empty value is one, and has a source.
    let first = set(&[("API_KEY", "")]);
    let created = try_create(&path, module("environment"), HostKind::Wasm, first).await;
    let database = created.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        rows(&database, "SELECT value FROM seen").await,
        "[[[0,\"\"]]]"
    );
    call(&database, "look_often", "[1000]")
        .await
        .expect("read to their end, they are gone");

    let long = "v".repeat(8192);
    database
        .change_environment(set(&[("API_KEY", &long)]), None)
        .await
        .expect("the longest");
    call(&database, "look", "[\"API_KEY\"]")
        .await
        .expect("called");
    let new = |key: &str, value: &str| {
        let set = BTreeMap::from([(key.to_owned(), value.to_owned())]);
        EnvironmentChange::new(set, RemovedVariables::None)
    };
    assert!(new("K", &"v".repeat(8193)).is_err());
    assert!(new(&"k".repeat(256), "").is_ok() && new(&"k".repeat(257), "").is_err());
    assert!(new("1", "").is_err() && new("", "").is_err() && new("A-B", "").is_err());
    let both = BTreeMap::from([("A".to_owned(), String::new())]);
    let same = RemovedVariables::Keys(["A".to_owned()].into());
    assert!(
        EnvironmentChange::new(both, same).is_err(),
        "set and removed"
    );

    // 256 variables, each as long as may be.
    let many = |count: usize| {
        let keys: Vec<String> = (0..count).map(|number| format!("K{number}")).collect();
        let set = keys.into_iter().map(|key| (key, long.clone()));
        EnvironmentChange::new(set.collect(), RemovedVariables::None).expect("a change")
    };
    let error = database.change_environment(many(256), None).await;
    assert!(error
        .expect_err("257")
        .to_string()
        .contains("257 environment variables"));
    database
        .change_environment(many(255), None)
        .await
        .expect("256");
    let count = rows(&database, "SELECT COUNT(*) AS n FROM st_env").await;
    assert_eq!(count, "[[256]]");
    database.shutdown(ShutdownReason::ServerStop).await;
    let database = open(both_options(&path)).await;
    assert_eq!(
        rows(&database, "SELECT COUNT(*) AS n FROM st_env").await,
        count
    );
}

fn secret(variables: &[(&str, &str)], keys: &[&str]) -> EnvironmentChange {
    let keys = keys.iter().map(|key| (*key).to_owned()).collect();
    set(variables).with_secrets(keys).expect("they are set")
}

fn options_with_key(path: &Path, key: u8) -> DatabaseOptions {
    let mut options = both_options(path);
    // With a snapshot at once.
    options.limits.snapshot_log_bytes = 1;
    options.commons.set_secrets(secrets(key));
    options
}

/// What a subscriber to it is shown of a greeting.
async fn greeting(database: &DatabaseHandle) -> String {
    rows(database, "SELECT * FROM greeting").await
}

/// Secrets: what modules alone read; on which disk they are not; keys that are lost.
async fn secrets_are_for_modules_alone(kind: HostKind) {
    const KEPT: &str = "SELECT value FROM st_env WHERE key = 'GREETING'";
    const OTHER: &str = "an0ther-value";
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("database");
    let first = secret(
        &[
            ("API_KEY", "plain"),
            ("GREETING", OTHER),
            ("LEVEL", "debug"),
        ],
        &["GREETING", "LEVEL"],
    );
    assert!(!format!("{first:?}").contains(OTHER));
    let (options, of_module) = (options_with_key(&path, 1), program(kind));
    let create = move || DatabaseHandle::create_with(options, of_module, kind, first);
    let created = tokio::task::spawn_blocking(create).await.expect("no panic");
    let database = created.unwrap_or_else(|error| panic!("{error}"));
    let kept = rows(&database, KEPT).await;
    assert!(kept.starts_with("[[\"lightcone-sealed-1:"), "{kept}");
    let publish = |change| database.change_environment(change, None);

    // The same value is no change, and a secret stays one when it is set without a mark.
    let same = publish(set(&[("GREETING", OTHER)])).await;
    assert_eq!(same.expect("equal"), UpdateOutcome::Unchanged);
    assert_eq!(rows(&database, KEPT).await, kept);
    let new = publish(set(&[("GREETING", SECRET)])).await;
    assert_eq!(new.expect("changed"), UpdateOutcome::Updated);
    let all = [
        ("API_KEY", "plain"),
        ("GREETING", SECRET),
        ("LEVEL", "info"),
    ];
    publish(replacing(&all)).await.expect("changed");
    let kept = rows(&database, KEPT).await;
    assert!(kept.contains("lightcone-sealed-1:"), "{kept}");
    let metadata = database.environment().await.expect("metadata");
    assert_eq!(metadata.secret_keys, ["GREETING", "LEVEL"]);
    // The values that the module declares hold for secrets too.
    let wrong = publish(set(&[("LEVEL", SECRET)]))
        .await
        .expect_err("refused");
    assert!(!wrong.to_string().contains(SECRET), "{wrong}");
    for sql in [
        "SELECT * FROM st_env",
        "EXPLAIN SELECT * FROM st_env WHERE key = 'GREETING'",
    ] {
        let shown = rows(&database, sql).await;
        assert!(
            !shown.contains(SECRET) && !shown.contains("\"info\""),
            "{shown}"
        );
    }
    // Nothing that was shown can be set, here or elsewhere.
    let shown = kept.trim_matches(['[', ']', '"']).to_owned();
    let stolen = BTreeMap::from([("OTHER".to_owned(), shown)]);
    assert!(EnvironmentChange::new(stolen, RemovedVariables::None).is_err());
    let none = set(&[]).with_secrets(BTreeSet::from(["GREETING".to_owned()]));
    assert!(none.is_err(), "no secret without a value");

    database.shutdown(ShutdownReason::ServerStop).await;
    let on_disk = bytes_below(&path);
    assert!(has(&on_disk, "lightcone-sealed-1:") && has(&on_disk, "plain"));
    assert!(!has(&on_disk, SECRET) && !has(&on_disk, OTHER));

    // The module reads it after a restart.
    let database = open(options_with_key(&path, 1)).await;
    assert_eq!(greeting(&database).await, format!("[[\"{SECRET}\"]]"));
    let looked = call(&database, "look", "[\"LEVEL\"]").await;
    looked.unwrap_or_else(|error| panic!("{error:?}"));
    let seen = rows(&database, "SELECT value FROM seen WHERE place = 'reducer'").await;
    assert_eq!(seen, "[[[0,\"info\"]]]");
    database.shutdown(ShutdownReason::ServerStop).await;

    // With another key the database opens, and what needs the secret says so.
    let database = open(options_with_key(&path, 2)).await;
    assert_eq!(
        rows(&database, "SELECT COUNT(*) AS n FROM st_env").await,
        "[[3]]"
    );
    call(&database, "look", "[\"API_KEY\"]")
        .await
        .expect("it is none");
    let looked = call(&database, "look", "[\"GREETING\"]").await;
    assert!(looked.is_err(), "{looked:?}");
    if matches!(kind, HostKind::Js) {
        // Callers of procedures are told why they ended.
        let fetched = call(&database, "fetch", "[\"GREETING\"]").await;
        let error = format!("{:?}", fetched.expect_err("it needs the key"));
        assert!(!error.contains("GREETING"), "{error}");
    }
    let log = module_log(&path, "LC0260").await;
    assert!(log.contains("secrets.key"), "{log}");
    let error = database
        .change_environment(set(&[("API_KEY", "x")]), None)
        .await;
    let error = error.expect_err("LEVEL cannot be checked").to_string();
    assert!(
        error.contains("`LEVEL`") && error.contains("[LC0260]"),
        "{error}"
    );
    // What is set again is sealed with the key that is there.
    let again = set(&[("GREETING", "again"), ("LEVEL", "debug")]);
    database
        .change_environment(again, None)
        .await
        .expect("changed");
    call(&database, "look", "[\"GREETING\"]")
        .await
        .expect("called");
    database.shutdown(ShutdownReason::ServerStop).await;
}

/// All variables that there are to be.
fn replacing(variables: &[(&str, &str)]) -> EnvironmentChange {
    change(variables, RemovedVariables::All)
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_for_webassembly_alone() {
    secrets_are_for_modules_alone(HostKind::Wasm).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_for_javascript_alone() {
    secrets_are_for_modules_alone(HostKind::Js).await;
}

/// They are bound to the identity of their database.
#[tokio::test(flavor = "multi_thread")]
async fn secrets_of_a_restored_database_are_set_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("database");
    let first = secret(
        &[
            ("API_KEY", "plain"),
            ("GREETING", SECRET),
            ("LEVEL", "debug"),
        ],
        &["GREETING", "LEVEL"],
    );
    let (options, of_module) = (options_with_key(&path, 1), program(HostKind::Wasm));
    let create = move || DatabaseHandle::create_with(options, of_module, HostKind::Wasm, first);
    let created = tokio::task::spawn_blocking(create).await.expect("no panic");
    let database = created.unwrap_or_else(|error| panic!("{error}"));
    let mut backup = database
        .backup(BackupAfter::default())
        .await
        .expect("it begins");
    let path = directory.path().join("restored");
    std::fs::create_dir(&path).expect("a directory");
    let options = move || DatabaseOptions {
        identity: Identity::from_le_bytes([2; 32]),
        ..options_with_key(&path, 1)
    };
    let (log_path, restored) = (options().directory, options());
    let restoring = tokio::task::spawn_blocking(move || {
        let mut restore = Restore::begin(restored, || u64::MAX).expect("it begins");
        while let Some(part) = backup.read().expect("it goes on") {
            restore.take(part.as_ref()).expect("a backup");
        }
        restore.finish().expect("it is whole")
    });
    restoring.await.expect("no panic");
    database.shutdown(ShutdownReason::ServerStop).await;

    let database = open(options()).await;
    let looked = call(&database, "look", "[\"GREETING\"]").await;
    assert!(looked.is_err(), "{looked:?}");
    module_log(&log_path, "LC0260").await;
    let again = secret(
        &[("GREETING", "again"), ("LEVEL", "debug")],
        &["GREETING", "LEVEL"],
    );
    let changed = database.change_environment(again, None).await;
    changed.expect("both at once");
    let looked = call(&database, "look", "[\"GREETING\"]").await;
    looked.unwrap_or_else(|error| panic!("{error:?}"));
    database.shutdown(ShutdownReason::ServerStop).await;
}
