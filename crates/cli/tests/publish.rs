//! `spacetime publish` and `build`, against a server that plays its part.

use crate::common::{json, text, Home, Mock, Outcome, Request, Response, DATABASE};

/// What cargo knows of a module that asks for two crates by way of another.
#[cfg(unix)]
const TREE: &str = r#"{"packages":[{"id":"m","name":"m","version":"0.1.0"},{"id":"c","name":"clock","version":"0.4.1"},
{"id":"w","name":"wasm-bindgen","version":"1.2.3"},{"id":"g","name":"getrandom","version":"1.2.3"}],"resolve":{"root":"m","nodes":[
{"id":"m","deps":[{"pkg":"c","dep_kinds":[{"kind":null}]}]},{"id":"c","deps":[{"pkg":"w","dep_kinds":[{"kind":null}]},
{"pkg":"g","dep_kinds":[{"kind":null}]}]}]}}"#;

const TABLES: &str = "GET /v1/database/shop/tables";
const WASM: &str = "\0asm\u{1}\0\0\0";

fn success(op: &str, domain: &str) -> Response {
    json(format!(
        r#"{{"Success":{{"domain":{domain},"database_identity":"{DATABASE}","op":"{op}"}}}}"#
    ))
}

/// A server with a fixed answer to `pre_publish`.
fn server(pre_publish: fn() -> Response) -> Mock {
    Mock::start(move |request: &Request| {
        if request.path.contains("/pre_publish") {
            pre_publish()
        } else if request.method == "PUT" && request.path.starts_with("/v1/database/shop?") {
            let op = if request.path.contains("policy=") || request.path.contains("clear=") {
                "updated"
            } else {
                "created"
            };
            success(op, "\"shop\"")
        } else if request.method == "POST" && request.path.starts_with("/v1/database?") {
            success("created", "null")
        } else {
            text(404, "")
        }
    })
}

fn home(server: &Mock) -> Home {
    let home = Home::new();
    home.log_in("ann", &server.url);
    home.write("m.wasm", WASM);
    home
}

fn publish(home: &Home, server: &Mock, args: &[&str], input: &str) -> Outcome {
    home.run_with(
        &[&["publish", "-s", &server.url, "-b", "m.wasm"], args].concat(),
        input,
        &[("NO_COLOR", "1")],
    )
}

fn auto(break_clients: bool) -> Response {
    json(format!(
        r#"{{"AutoMigrate":{{"migrate_plan":"THE PLAN","break_clients":{break_clients},"token":"0xabc","major_version_upgrade":false}}}}"#
    ))
}

fn manual() -> Response {
    json(
        r#"{"ManualMigrate":{"reason":"Errors occurred:\nno way\n","major_version_upgrade":false}}"#,
    )
}

#[test]
fn a_new_database() {
    let server = server(|| text(404, ""));
    let home = home(&server);
    let out = publish(&home, &server, &["shop"], "").ok();
    assert_eq!(
        out.stdout,
        format!("Created new database with name: shop, identity: {DATABASE}\n")
    );
    assert_eq!(
        out.stderr,
        format!(
            "(WASM) Skipping build. Instead we are publishing m.wasm\nUploading to {0} => {0}\nChecking for breaking changes...\n\
             Publishing module...\n",
            server.url
        )
    );
    let requests = server.requests();
    assert_eq!(
        server.lines(),
        [
            "POST /v1/database/shop/pre_publish?pretty_print_style=NoColor&style=NoColor&host_type=Wasm",
            "PUT /v1/database/shop?host_type=Wasm"
        ]
    );
    assert!(requests
        .iter()
        .all(|r| r.body == WASM.as_bytes() && r.authorization.is_some()));

    let out = publish(&home, &server, &[], "").ok().stdout;
    assert_eq!(
        out,
        format!("Created new database with identity: {DATABASE}\n")
    );
}

#[test]
fn a_compatible_update_shows_the_plan_and_sends_its_token() {
    let server = server(|| auto(false));
    let home = home(&server);
    let out = publish(&home, &server, &["shop"], "").ok();
    assert!(out.stderr.contains("THE PLAN\n"), "{out:#?}");
    assert_eq!(
        out.stdout,
        format!("Updated database with name: shop, identity: {DATABASE}\n")
    );
    assert_eq!(
        server.lines()[1],
        "PUT /v1/database/shop?host_type=Wasm&token=0xabc&policy=BreakClients"
    );
}

#[test]
fn breaking_clients_needs_consent() {
    let server = server(|| auto(true));
    let home = home(&server);
    let question = "The above changes will BREAK existing clients. Do you want to proceed? [y/N]";
    let no = publish(&home, &server, &["shop"], "");
    assert!(
        no.stdout.is_empty()
            && no.stderr.contains(question)
            && no.stderr.contains("Publishing aborted by user\n"),
        "{no:#?}"
    );
    assert!(
        no.status == 1 && no.stderr.contains("--break-clients") && no.stderr.contains("[LC0864]"),
        "{no:#?}"
    );
    assert_eq!(server.lines().len(), 1);
    for args in [
        ["--break-clients", "shop"],
        ["--yes=break-clients", "shop"],
        ["--yes", "shop"],
    ] {
        assert!(
            publish(&home, &server, &args, "")
                .ok()
                .stdout
                .contains("Updated database"),
            "{args:?}"
        );
    }
    assert!(publish(&home, &server, &["shop"], "y\n")
        .ok()
        .stdout
        .contains("Updated database"));
}

#[test]
fn what_cannot_be_migrated_is_refused_or_deleted() {
    let server = server(manual);
    let home = home(&server);
    let refused = publish(&home, &server, &["shop"], "");
    assert_eq!(refused.status, 1);
    assert!(
        refused.stderr.contains("no way\n")
            && refused
                .stderr
                .contains("Aborting publish due to required manual migration.\n"),
        "{refused:#?}"
    );
    assert!(
        refused.stderr.contains("--delete-data") && refused.stderr.contains("[LC0629]"),
        "{refused:#?}"
    );

    let out = publish(
        &home,
        &server,
        &["--delete-data=on-conflict", "shop"],
        "y\n",
    )
    .ok()
    .stderr;
    assert!(out.contains("Proceeding with database clear due to --delete-data=on-conflict.\nThis will DESTROY the current shop module, and ALL corresponding data.\nAre you sure you want to proceed? [deleting shop] [y/N]"), "{out}");
    assert!(server
        .lines()
        .last()
        .expect("a request")
        .ends_with("?host_type=Wasm&clear=true"));
}

#[test]
fn deleting_data_asks_before_it_sends_anything() {
    let server = server(manual);
    let home = home(&server);
    let no = publish(&home, &server, &["-c", "shop"], "no\n");
    assert!(
        no.stderr.contains("Aborting\n") && server.lines() == [TABLES],
        "{no:#?}"
    );
    assert!(
        no.status == 1 && no.stderr.contains("[LC0864]"),
        "what was declined has not succeeded: {no:#?}"
    );
    let no = publish(&home, &server, &["--delete-data=on-conflict", "shop"], "");
    assert!(
        no.status == 1 && no.stderr.contains("--yes=delete-data"),
        "{no:#?}"
    );
    assert!(server
        .lines()
        .iter()
        .all(|l| l.contains("/pre_publish") || l == TABLES));
    let out = publish(&home, &server, &["-c", "-y", "shop"], "")
        .ok()
        .stderr;
    assert!(
        out.contains("Skipping confirmation due to --yes\n"),
        "{out}"
    );
    assert_eq!(
        server.lines(),
        [
            TABLES,
            "POST /v1/database/shop/pre_publish?pretty_print_style=NoColor&style=NoColor&host_type=Wasm",
            TABLES,
            TABLES,
            "PUT /v1/database/shop?host_type=Wasm&clear=true"
        ]
    );
}

/// Data are never deleted silently: the question says how much it is.
#[test]
fn what_is_deleted_is_listed() {
    let server = Mock::start(|request: &Request| match request.path.as_str() {
        "/v1/database/shop/tables" => json(
            r#"{"tables":[{"name":"cart","rows":1},{"name":"empty","rows":0},{"name":"item","rows":12}]}"#,
        ),
        _ => manual(),
    });
    let home = home(&server);
    for args in [["-c", "shop"], ["--delete-data=on-conflict", "shop"]] {
        let no = publish(&home, &server, &args, "");
        assert!(
            no.stderr.contains(
                "ALL corresponding data.\nThese rows will be lost:\n    • cart: 1 row\n    • item: 12 rows\nAre you sure"
            ),
            "{no:#?}"
        );
        assert!(server.lines().iter().all(|line| !line.starts_with("PUT")));
    }
}

fn with_rows(obstacles: &str, rehearsal: &str) -> Response {
    json(format!(
        r#"{{"AutoMigrate":{{"migrate_plan":"THE PLAN","break_clients":true,"token":"0xabc","major_version_upgrade":false,
            "steps":[{{"kind":"RemoveTable","table":"old","rows":0}},{{"kind":"AddColumns","table":"item","columns":["price","size"],"rows":12}},
                     {{"kind":"AddIndex","table":"item","index":"item_price_idx","rows":12}},{{"kind":"DisconnectAllUsers"}}],
            "obstacles":[{obstacles}]{rehearsal}}}}}"#
    ))
}

#[test]
fn rows_are_told_before_anything_is_asked() {
    let server = server(|| with_rows("", ""));
    let home = home(&server);
    let no = publish(&home, &server, &["shop"], "");
    assert!(
        no.stderr.contains(
            "THE PLAN\nRows:\n    • table old (0 rows): removed\n    • table item (12 rows): rewritten with the default of \
             price, size\n    • table item (12 rows): read for index item_price_idx\n\nThe above changes will BREAK"
        ),
        "{no:#?}"
    );
    assert_eq!(no.status, 1);
}

#[test]
fn what_the_data_refuse_is_not_tried() {
    let server = server(|| {
        with_rows(
            r#""Table old cannot be removed: it has 3 rows. [LC0225]""#,
            "",
        )
    });
    let home = home(&server);
    let refused = publish(&home, &server, &["--yes", "shop"], "");
    assert!(
        refused.status == 1
            && refused
                .stderr
                .contains("Table old cannot be removed: it has 3 rows.")
            && refused.stderr.contains("[LC0867]"),
        "{refused:#?}"
    );
    assert_eq!(server.lines().len(), 1, "only asked, not published");
    // It is a conflict of module and data.
    let asked = publish(
        &home,
        &server,
        &["--delete-data=on-conflict", "shop"],
        "y\n",
    );
    assert!(
        asked
            .ok()
            .stderr
            .contains("Proceeding with database clear due to --delete-data=on-conflict.\n")
            && server
                .lines()
                .last()
                .is_some_and(|line| line.ends_with("&clear=true"))
    );
}

#[test]
fn a_dry_run_publishes_nothing() {
    const TRIED: &str = r#","rehearsal":{"seconds":2.5,"steps":[{"kind":"AddColumns","table":"item","rows":12,"seconds":2.5},
        {"kind":"DisconnectAllUsers","seconds":0.0}]}"#;
    let server = server(|| with_rows("", TRIED));
    let home = home(&server);
    let out = publish(&home, &server, &["--dry-run", "shop"], "")
        .ok()
        .stdout;
    assert!(
        out.contains("THE PLAN\nRows:\n")
            && out.contains("Estimated time: 2.5 s (")
            && out.ends_with("Nothing was changed.\n    • AddColumns item: 2.5 s\n"),
        "{out}"
    );
    assert_eq!(
        server.lines(),
        ["POST /v1/database/shop/pre_publish?pretty_print_style=NoColor&style=NoColor&host_type=Wasm&dry_run=true"]
    );
    // Without a name there is nothing to compare with.
    publish(&home, &server, &["--dry-run"], "").ok();
    assert_eq!(server.lines().len(), 1);
}

#[test]
fn a_dry_run_fails_where_publishing_would() {
    let impossible = server(manual);
    let home = home(&impossible);
    let refused = publish(&home, &impossible, &["--dry-run", "shop"], "");
    assert!(
        refused.status == 1 && refused.stderr.contains("[LC0629]"),
        "{refused:#?}"
    );
    let listed = publish(
        &home,
        &impossible,
        &["--dry-run", "--delete-data=on-conflict", "shop"],
        "",
    );
    assert!(listed
        .ok()
        .stdout
        .contains("would DESTROY all data of shop"));
    publish(&home, &impossible, &["--dry-run", "-c", "shop"], "").ok();
    assert!(impossible
        .lines()
        .iter()
        .all(|line| !line.starts_with("PUT")));
}

#[test]
fn publishing_elsewhere_asks() {
    let home = Home::new();
    home.write("m.wasm", WASM);
    home.log_in("ann", "https://db.invalid");
    let publish = |args: &[&str], input: &str| {
        let base = [
            "publish",
            "-b",
            "m.wasm",
            "-s",
            "https://db.invalid",
            "shop",
        ];
        home.run_with(&[&base, args].concat(), input, &[])
    };
    let no = publish(&[], "n\n");
    assert!(
        no.stdout.is_empty()
            && no.stderr.contains("You are about to publish to a non-local server: db.invalid\nAre you sure you want to proceed? [y/N]")
            && no.stderr.contains("Publish aborted by user.\n"),
        "{no:#?}"
    );
    assert!(
        no.status == 1 && no.stderr.contains("--yes=remote") && no.stderr.contains("[LC0864]"),
        "{no:#?}"
    );
    for yes in [publish(&[], "y\n"), publish(&["--yes=remote"], "")] {
        assert!(yes.stderr.contains("[LC0602]"), "{yes:#?}");
    }
}

/// A database that moves to a new major version cannot go back (07 §5.1).
#[test]
fn a_major_upgrade_is_typed_out() {
    let server = server(|| {
        json(
            r#"{"AutoMigrate":{"migrate_plan":"THE PLAN","break_clients":false,"token":"0xabc","major_version_upgrade":true}}"#,
        )
    });
    let home = home(&server);
    for (args, input, is_done) in [
        (&["shop"][..], "", false),
        (&["shop"], "yes\n", false),
        (&["shop"], "upgrade\n", true),
        (&["--yes=migrate", "shop"], "", true),
        (&["-y", "shop"], "", true),
    ] {
        let outcome = publish(&home, &server, args, input);
        assert_eq!(outcome.status == 0, is_done, "{args:?} {outcome:#?}");
        assert_eq!(
            outcome
                .stderr
                .contains("Aborting because major version upgrade was not accepted."),
            !is_done,
            "{outcome:#?}"
        );
        assert_eq!(
            outcome
                .stderr
                .contains("a major version upgrade of shop, from 1.0 to 2.0"),
            args == ["shop"],
            "{outcome:#?}"
        );
    }
}

#[test]
fn names_and_owners() {
    let strict = Mock::start(|r| match r.path.contains("/pre_publish") {
        true => text(404, ""),
        false => Response {
            status: 401,
            ..json(r#"{"PermissionDenied":{"name":"shop"}}"#)
        },
    });
    let home = home(&strict);
    let taken = publish(&home, &strict, &["shop"], "");
    let me = lightcone_types::Identity::from_claims("localhost", "ann").to_hex();
    assert!(
        taken.stderr.contains(&format!("{}-shop", &me[..12])) && taken.stderr.contains("[LC0626]"),
        "{taken:#?}"
    );
    let bad = publish(&home, &strict, &["No_Good"], "");
    assert!(
        bad.stderr.contains("invalid characters in database name"),
        "{bad:#?}"
    );
    let parent = publish(&home, &strict, &["a/b", "--parent", "c"], "");
    assert!(parent.stderr.contains("contradict"), "{parent:#?}");
}

#[test]
fn a_project_names_its_databases() {
    let server = server(|| text(404, ""));
    let home = home(&server);
    home.write(
        "spacetime.json",
        &format!("{{ database: 'shop', server: '{}', 'wasm-file': 'm.wasm', children: [{{ database: 'other' }}] }}", server.url),
    );
    let out = home.run(&["publish", "shop"]).ok().stderr;
    assert!(
        out.starts_with("Using configuration from ")
            && out.contains("Publishing precompiled module to database 'shop'\n"),
        "{out}"
    );
    let many = home.run(&["publish", "nope"]);
    assert!(
        many.stderr
            .contains("No database target matches 'nope'. Available databases: shop, other"),
        "{many:#?}"
    );
    let which = home.run(&["logs"]);
    assert!(
        which
            .stderr
            .contains("Multiple databases found in config: shop, other."),
        "{which:#?}"
    );
    home.write("spacetime.json", "{ wasm_file: 'm.wasm' }");
    let unnamed = home.run(&["publish"]);
    assert!(
        unnamed
            .stderr
            .contains("Required key 'database' is missing from the config file or CLI"),
        "{unnamed:#?}"
    );
}

#[test]
fn builds_say_what_is_missing() {
    let home = Home::new();
    let empty = home.run(&["build"]);
    assert!(
        empty
            .stderr
            .contains("Could not detect the language of the module.")
            && empty.stderr.contains("[LC0610]"),
        "{empty:#?}"
    );
    home.write("package.json", "{}");
    assert!(home.run(&["build"]).stderr.contains("[LC0635]"));
    home.write("Cargo.toml", "[package]\nname = \"m\"\n");
    let no_rust = home.run_with(
        &["build"],
        "",
        &[
            ("PATH", "/nonexistent"),
            ("CARGO_UNSTABLE_BUILD_STD", "std"),
            ("CARGO", ""),
        ],
    );
    assert!(
        no_rust.stderr.contains("cannot run cargo") && no_rust.stderr.contains("[LC0611]"),
        "{no_rust:#?}"
    );
    home.write("src/lib.rs", "fn f() { println!(\"x\") }\n");
    let prints = home.run_with(&["build"], "", &[("CARGO_UNSTABLE_BUILD_STD", "std")]);
    assert!(
        prints.stderr.contains("lib.rs:1: fn f()") && prints.stderr.contains("[LC0612]"),
        "{prints:#?}"
    );
}

/// A WebAssembly module with one imported and one exported function.
fn wasm_with(import: (&str, &str), export: &str) -> Vec<u8> {
    let name = |name: &str| [&[name.len() as u8][..], name.as_bytes()].concat();
    let section = |id: u8, body: Vec<u8>| [&[id, body.len() as u8][..], &body].concat();
    let import = [&[1][..], &name(import.0), &name(import.1), &[0, 0]].concat();
    let export = [&[1][..], &name(export), &[0, 0]].concat();
    [
        b"\0asm\x01\0\0\0".to_vec(),
        section(1, vec![1, 0x60, 0, 0]),
        section(2, import),
        section(7, export),
    ]
    .concat()
}

/// What cargo built must be able to run: code for browsers, and a source of random numbers, are not there (07 §7).
#[cfg(unix)]
#[test]
fn modules_that_no_server_can_run_are_refused_by_the_build() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    home.write("Cargo.toml", "[package]\nname = \"m\"\n");
    let built = home.path("built.wasm");
    home.write(
        "cargo",
        &format!(
            "#!/bin/sh\nif [ \"$1\" = metadata ]; then echo '{TREE}'; exit; fi\n\
             echo '{{\"reason\":\"compiler-artifact\",\"filenames\":[\"{}\"]}}'\n",
            built.display()
        ),
    );
    let cargo = home.path("cargo");
    std::fs::set_permissions(&cargo, std::fs::Permissions::from_mode(0o755)).expect("executable");
    let cargo = cargo.to_str().expect("UTF-8");
    let build = |import, export| {
        std::fs::write(&built, wasm_with(import, export)).expect("written");
        let variables = [("CARGO", cargo), ("CARGO_UNSTABLE_BUILD_STD", "std")];
        home.run_with(&["build"], "", &variables)
    };
    build(("spacetime_10.0", "console_log"), "__call_reducer__").ok();
    for (import, export, part) in [
        (
            ("__wbindgen_placeholder__", "__wbindgen_throw"),
            "f",
            "wasm-bindgen",
        ),
        (("env", "f"), "__wbindgen_malloc", "wasm-bindgen"),
        (("env", "__getrandom_custom"), "f", "getrandom"),
        (("env", "__getrandom_v03_custom"), "f", "getrandom"),
    ] {
        let refused = build(import, export);
        assert!(
            refused.status == 1
                && refused.stderr.contains("[LC0613]")
                && refused.stderr.contains(&format!("the module uses {part}"))
                && refused
                    .stderr
                    .contains(&format!("    clock 0.4.1 > {part} 1.2.3\n"))
                && refused
                    .stderr
                    .contains("    clock = { version = \"0.4\", default-features = false }"),
            "{import:?} {export}: {refused:#?}"
        );
    }
}

/// A value that cannot be is told with the file that says it, not as if the user had typed it.
#[test]
fn values_of_a_project_file_are_told_with_their_place() {
    let server = server(|| text(404, ""));
    let home = home(&server);
    let url = &server.url;
    for (file, args, part) in [
        (
            "{ database: 'shop',\n server: 'nowhere', 'wasm-file': 'm.wasm' }".to_owned(),
            &["publish"][..],
            "spacetime.json:2:2: `server`: No such saved server configuration: nowhere",
        ),
        (
            "{ children: [{ database: 'shop', server: 'nowhere' }] }".to_owned(),
            &["sql", "SELECT * FROM t"],
            "spacetime.json:1:34: `children[0].server`: No such saved",
        ),
        (
            format!("{{ database: 'Shop',\n server: '{url}', 'wasm-file': 'm.wasm' }}"),
            &["publish"],
            "spacetime.json:1:3: `database`: `Shop`: invalid characters",
        ),
        (
            format!("{{ database: 'shop', server: '{url}',\n 'module-path': './absent' }}"),
            &["publish"],
            "spacetime.json:2:2: `module-path`: ",
        ),
        (
            format!("{{ database: 'shop', server: '{url}', children: [{{\n js_path: 'x.js', database: 'x' }}] }}"),
            &["publish", "x"],
            "spacetime.json:2:2: `children[0].js-path`: ",
        ),
    ] {
        home.write("spacetime.json", &file);
        let told = home.run(args);
        assert!(told.status == 1 && told.stderr.contains(part), "{file}: {told:#?}");
    }
    home.write("spacetime.json", "{ server: 'x' }");
    let unnamed = home.run(&["publish"]);
    assert!(
        unnamed
            .stderr
            .contains("spacetime.json: Required key 'database'"),
        "{unnamed:#?}"
    );
}

/// A file that does not parse is told with place and way out; a typo in it does not keep the user from asking a database.
#[test]
fn a_broken_project_file() {
    let server = Mock::start(|r| match r.path.as_str() {
        "/v1/database/shop/identity" => text(200, DATABASE),
        _ => text(200, ""),
    });
    let home = home(&server);
    home.write("spacetime.json", "{ database: 'shop',\n  server: }\n");
    for command in [
        &["publish"][..],
        &["logs"],
        &["generate"],
        &["delete", "shop"],
    ] {
        let broken = home.run(command);
        assert!(
            broken.status == 1
                && broken
                    .stderr
                    .contains("spacetime.json:2:11 is not valid JSON5")
                && broken.stderr.contains("line 2 column 11")
                && broken.stderr.contains("--no-config")
                && broken.stderr.contains("[LC0607]"),
            "{broken:#?}"
        );
    }
    home.run(&["logs", "--no-config", "shop", "-s", &server.url])
        .ok();
    home.write(
        "spacetime.json",
        &format!(
            "{{ database: 'shop', server: '{}', colour: 'red' }}",
            server.url
        ),
    );
    home.run(&["logs"]).ok();
    let publish = home.run(&["publish"]);
    assert!(
        publish.status == 1
            && publish.stderr.contains(
                "Config key 'colour' is not supported in the config file. Available keys: database, "
            ),
        "{publish:#?}"
    );
}
