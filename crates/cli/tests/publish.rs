//! `spacetime publish` and `build`, against a server that plays its part.

mod common;

use common::{json, text, Home, Mock, Outcome, Request, Response, DATABASE};

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

fn home() -> Home {
    let home = Home::new();
    home.log_in("ann");
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
    let (home, server) = (home(), server(|| text(404, "")));
    let out = publish(&home, &server, &["shop"], "").ok().stdout;
    assert_eq!(
        out,
        format!(
            "(WASM) Skipping build. Instead we are publishing m.wasm\nUploading to {0} => {0}\nChecking for breaking changes...\n\
             Publishing module...\nCreated new database with name: shop, identity: {DATABASE}\n",
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
    assert!(
        out.ends_with(&format!("Created new database with identity: {DATABASE}\n")),
        "{out}"
    );
}

#[test]
fn a_compatible_update_shows_the_plan_and_sends_its_token() {
    let (home, server) = (home(), server(|| auto(false)));
    let out = publish(&home, &server, &["shop"], "").ok().stdout;
    assert!(
        out.contains("THE PLAN\n")
            && out.ends_with(&format!(
                "Updated database with name: shop, identity: {DATABASE}\n"
            )),
        "{out}"
    );
    assert_eq!(
        server.lines()[1],
        "PUT /v1/database/shop?host_type=Wasm&token=0xabc&policy=BreakClients"
    );
}

#[test]
fn breaking_clients_needs_consent() {
    let (home, server) = (home(), server(|| auto(true)));
    let question = "The above changes will BREAK existing clients. Do you want to proceed? [y/N]";
    let no = publish(&home, &server, &["shop"], "").ok().stdout;
    assert!(
        no.contains(question) && no.ends_with("Publishing aborted by user\n"),
        "{no}"
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
    let (home, server) = (home(), server(manual));
    let refused = publish(&home, &server, &["shop"], "");
    assert_eq!(refused.status, 1);
    assert!(
        refused.stdout.contains("no way\n")
            && refused
                .stdout
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
    .stdout;
    assert!(out.contains("Proceeding with database clear due to --delete-data=on-conflict.\nThis will DESTROY the current shop module, and ALL corresponding data.\nAre you sure you want to proceed? [deleting shop] [y/N]"), "{out}");
    assert!(server
        .lines()
        .last()
        .expect("a request")
        .ends_with("?host_type=Wasm&clear=true"));
}

#[test]
fn deleting_data_asks_before_it_sends_anything() {
    let (home, server) = (home(), server(manual));
    let no = publish(&home, &server, &["-c", "shop"], "no\n").ok();
    assert!(
        no.stdout.ends_with("Aborting\n") && server.lines().is_empty(),
        "{no:#?}"
    );
    let out = publish(&home, &server, &["-c", "-y", "shop"], "")
        .ok()
        .stdout;
    assert!(
        out.contains("Skipping confirmation due to --yes\n"),
        "{out}"
    );
    assert_eq!(
        server.lines(),
        ["PUT /v1/database/shop?host_type=Wasm&clear=true"]
    );
}

#[test]
fn names_and_owners() {
    let (home, strict) = (
        home(),
        Mock::start(|r| match r.path.contains("/pre_publish") {
            true => text(404, ""),
            false => Response {
                status: 401,
                ..json(r#"{"PermissionDenied":{"name":"shop"}}"#)
            },
        }),
    );
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
    let (home, server) = (home(), server(|| text(404, "")));
    home.write(
        "spacetime.json",
        &format!("{{ database: 'shop', server: '{}', 'wasm-file': 'm.wasm', children: [{{ database: 'other' }}] }}", server.url),
    );
    let out = home.run(&["publish", "shop"]).ok().stdout;
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
