//! Variables of the environment from the command line to a module of 2.11 and back (`make modules` builds it), with a real server.

use crate::common::server::Server;
use crate::common::{module, Home, Outcome};

const SECRET: &str = "s3cret value, \"quoted\" é";

/// Nothing that a command says has the value.
fn silent(outcome: Outcome) -> Outcome {
    let said = format!("{}{}", outcome.stdout, outcome.stderr);
    assert!(!said.contains("s3cret"), "{said}");
    outcome
}

#[test]
fn variables_come_with_a_publish_and_change_without_one() {
    let home = Home::new();
    let server = Server::start(&home);
    let url = server.url.clone();
    home.run(&["login", "--server-issued-login", &url]).ok();
    let on = |args: &[&str]| home.run(&[args, &["-s", &url]].concat());
    let program = module("environment");
    let publish = |more: &[&str]| on(&[&["publish", "-b", &program, "keys"][..], more].concat());

    // Without a required key nothing is made, and the key is named.
    let refused = publish(&[]);
    assert_eq!(refused.status, 1);
    assert!(
        refused.stderr.contains("API_KEY") && refused.stderr.contains("[LC0639]"),
        "{refused:#?}"
    );
    assert_eq!(on(&["env", "list", "keys"]).status, 1);

    let file = home.path("variables.env");
    home.write(
        "variables.env",
        "# for tests\nAPI_KEY='s3cret value, \"quoted\" é'\nLEVEL=info\n",
    );
    let file = file.display().to_string();
    let published = silent(publish(&["--env-file", &file]).ok());
    assert!(
        published.stderr.contains("Environment API_KEY (file)"),
        "{published:#?}"
    );
    assert_eq!(
        on(&["env", "get", "keys", "API_KEY"]).ok().stdout,
        format!("{SECRET}\n")
    );
    // A variable of the shell comes first, if the module declares it.
    let args = ["publish", "-b", &program, "keys", "-s", &url];
    let shell = [("API_KEY", "of-the-shell"), ("UNKNOWN", "x")];
    let published = home.run_with(&args, "", &shell).ok();
    assert!(
        published.stderr.contains("Environment API_KEY (shell)"),
        "{published:#?}"
    );
    assert_eq!(
        on(&["env", "get", "keys", "API_KEY"]).ok().stdout,
        "of-the-shell\n"
    );
    let listed = on(&["env", "list", "keys"]).ok().stdout;
    assert!(
        listed.contains("LEVEL") && !listed.contains("UNKNOWN"),
        "{listed}"
    );

    // Ours: set and unset.
    let done = silent(on(&["env", "set", "keys", "GREETING=s3cret=1", "SWITCH=on"]).ok());
    assert_eq!(done.stdout, "Set: GREETING, SWITCH\n");
    assert_eq!(
        on(&["env", "get", "keys", "GREETING"]).ok().stdout,
        "s3cret=1\n"
    );
    on(&["call", "keys", "look", "GREETING"]).ok();
    let done = on(&["env", "unset", "keys", "GREETING"]).ok();
    assert_eq!(done.stdout, "Removed: GREETING\n");
    assert_eq!(on(&["env", "get", "keys", "GREETING"]).status, 1);
    for wrong in [
        &["env", "unset", "keys", "API_KEY"][..],
        &["env", "set", "keys", "SWITCH=s3cret"],
        &["env", "set", "keys", "1=s3cret"],
        &["env", "set", "keys", "s3cret"],
    ] {
        assert_eq!(silent(on(wrong)).status, 1, "{wrong:?}");
    }

    // The environment of a project, and what a publish takes away.
    home.write(
        "project/spacetime.json",
        r#"{ "database": "keys", "env": { "GREETING": "from the project", "COUNT": 3 } }"#,
    );
    home.write(
        "project/spacetime.local.json",
        r#"{ "env": { "COUNT": 4, "ON": true } }"#,
    );
    let in_project = |args: &[&str]| {
        let mut command = home.command(&[args, &["-s", &url]].concat());
        let output = command
            .current_dir(home.path("project"))
            .output()
            .expect("it runs");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = in_project(&["publish", "-b", &program, "--unset-env", "LEVEL"]);
    assert!(said.contains("Environment COUNT (config)"), "{said}");
    let listed = on(&["env", "list", "keys"]).ok().stdout;
    for (key, value) in [
        ("COUNT", "4"),
        ("GREETING", "from the project"),
        ("ON", "true"),
    ] {
        assert!(
            listed.contains(key) && listed.contains(&format!("\"{value}\"")),
            "{listed}"
        );
    }
    assert!(!listed.contains("LEVEL"), "{listed}");
    let args = [
        "publish",
        "keys",
        "--env-only",
        "--replace-env",
        "--env-file",
        &file,
        "--no-config",
    ];
    silent(on(&args).ok());
    let listed = on(&["env", "list", "keys"]).ok().stdout;
    assert!(
        listed.contains("LEVEL") && !listed.contains("COUNT"),
        "{listed}"
    );

    // Neither the module's log nor the changes have values.
    let log = silent(on(&["logs", "keys"]).ok()).stdout;
    assert!(log.contains("Database environment updated"), "{log}");
    drop(server);
    let server = Server::start(&home);
    let on = |args: &[&str]| home.run(&[args, &["-s", &server.url]].concat());
    assert_eq!(
        on(&["env", "get", "keys", "API_KEY"]).ok().stdout,
        format!("{SECRET}\n")
    );
    // Ours: secrets. They are set and never shown, and stay secrets.
    let quiet = |args: &[&str], status: i32| {
        let outcome = on(args);
        assert_eq!(outcome.status, status, "{outcome:#?}");
        let said = format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(!said.contains("h1dden"), "{said}");
        outcome
    };
    let set = ["env", "set", "keys", "GREETING=h1dden", "PLAIN=shown"];
    quiet(&[&set[..], &["--secret", "GREETING"]].concat(), 0);
    let listed = quiet(&["env", "list", "keys"], 0).stdout;
    assert!(
        listed.contains("(secret)") && listed.contains("shown") && !listed.contains("sealed"),
        "{listed}"
    );
    let got = quiet(&["env", "get", "keys", "GREETING"], 1);
    let text = "GREETING is set, and is a secret";
    assert!(got.stderr.contains(text), "{got:#?}");
    on(&["call", "keys", "look", "GREETING"]).ok();
    let seen = "SELECT value FROM seen WHERE place = 'reducer'";
    let read = on(&["sql", "keys", seen]).ok().stdout;
    assert!(read.contains("h1dden"), "the module reads it: {read}");
    let publish = ["publish", "-b", &program, "keys", "--env-file", &file];
    silent(on(&[&publish[..], &["--secret", "API_KEY"]].concat()).ok());
    assert_eq!(silent(on(&["env", "get", "keys", "API_KEY"])).status, 1);
    silent(on(&publish).ok());
    assert_eq!(silent(on(&["env", "get", "keys", "API_KEY"])).status, 1);
    quiet(&["env", "set", "keys", "PLAIN=x", "--secret", "OTHER"], 1);
    for args in [
        &["sql", "keys", "SELECT * FROM st_env"][..],
        &["sql", "keys", "EXPLAIN SELECT * FROM st_env"],
        &["changes", "keys", "--no-follow", "--tables", "st_env"],
        &["logs", "keys"],
    ] {
        let outcome = silent(on(args));
        assert!(!outcome.stdout.contains("h1dden"), "{outcome:#?}");
    }
    // Cleared data have no variables either.
    let args = ["publish", "-y", "-c", "-b", &program, "keys"];
    assert_eq!(on(&args).status, 1);
    let listed = on(&["env", "list", "keys"]).ok().stdout;
    assert!(listed.contains("PLAIN"), "{listed}");
    on(&[&args[..], &["--env-file", &file]].concat()).ok();
    assert_eq!(
        on(&["env", "get", "keys", "API_KEY"]).ok().stdout,
        format!("{SECRET}\n")
    );
}
