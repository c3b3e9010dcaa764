//! Migration functions of real modules, made with the published packages and with ours, on a real server: publish, dry run,
//! status, cancel, a server that is killed.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::server::Server;
use crate::common::{rust, script, Home, Outcome};

struct World {
    home: Home,
    server: Server,
    /// Whose database it is, also when the server has another port.
    token: String,
}

impl World {
    fn start() -> World {
        World::start_with("")
    }

    /// With this in the server's `config.toml`.
    fn start_with(config: &str) -> World {
        let home = Home::new();
        home.write("server/data/config.toml", config);
        let server = Server::start(&home);
        home.run(&["login", "--server-issued-login", &server.url])
            .ok();
        let shown = ["login", "show", "--token", "--server", &server.url];
        let shown = home.run(&shown).ok().stdout;
        let mut words = shown.split_whitespace();
        let token = words.find(|word| word.starts_with("ey")).expect("a token");
        World {
            token: token.to_owned(),
            home,
            server,
        }
    }

    /// After the server was killed: with what is on the disk.
    fn again(home: Home, token: String) -> World {
        let server = Server::start(&home);
        home.run(&["login", "--token", &token, "--server", &server.url])
            .ok();
        World {
            home,
            server,
            token,
        }
    }

    fn on(&self, args: &[&str]) -> Outcome {
        let url = self.server.url.as_str();
        self.home
            .run_with(&[args, &["-s", url]].concat(), "", &[("NO_COLOR", "1")])
    }

    fn publish(&self, module: &[String; 2], more: &[&str]) -> Outcome {
        let args = ["publish", &module[0], &module[1], "league"];
        self.on(&[&args, more].concat())
    }

    fn sql(&self, text: &str) -> String {
        self.on(&["sql", "league", text]).ok().stdout
    }

    /// The first column of the only row.
    fn number(&self, text: &str) -> u64 {
        let table = self.sql(text);
        let row = table.lines().nth(2).expect("a row").trim();
        row.parse().expect("a number")
    }

    /// Runs `args` beside, until the migration function runs.
    fn until_function_runs(&self) {
        let started = Instant::now();
        loop {
            let status = self
                .on(&["migrate", "status", "league", "--json"])
                .ok()
                .stdout;
            if status.contains(r#""phase":"function""#) {
                return;
            }
            assert!(started.elapsed() < Duration::from_secs(120), "{status}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Two players and an account, from whichever league1.
fn fill(world: &World) {
    world.on(&["call", "league", "add_player", "ann", "7"]).ok();
    world.on(&["call", "league", "add_player", "bob", "8"]).ok();
    world
        .on(&["call", "league", "open_account", "5", "cid"])
        .ok();
}

fn check(world: &World) {
    let players = world.sql("SELECT * FROM player ORDER BY id");
    assert_eq!(
        players,
        " id | full_name | score \n----+-----------+-------\n 1  | \"ann\"     | 70    \n 2  | \"bob\"     | 80    \n"
    );
    let addresses = world.sql("SELECT account, street FROM address");
    assert!(
        addresses.contains("5       | \"cid street\""),
        "{addresses}"
    );
    let accounts = world.sql("SELECT * FROM account");
    assert!(accounts.starts_with(" id | owner \n"), "{accounts}");
    // The counter goes on, and so does the table that stayed.
    world.on(&["call", "league", "add_player", "dan", "1"]).ok();
    // Behind what a server that was killed had reserved.
    assert!(world.number("SELECT id FROM player WHERE full_name = 'dan'") > 2);
    assert_eq!(world.number("SELECT COUNT(*) AS n FROM visit"), 1);
}

fn from_one_to_the_other(old: &[String; 2], new: &[String; 2]) {
    let world = World::start();
    world.publish(old, &[]).ok();
    fill(&world);

    let tried = world.publish(new, &["--dry-run"]).ok().stdout;
    for part in [
        "table player (2 rows): replaced by the migration function, which reads it as __old_player",
        "table account (1 row): replaced by the migration function",
        "The migration function wrote:",
        "table player: 2 rows",
        "table address: 1 row",
        "Nothing was changed.",
    ] {
        assert!(tried.contains(part), "{part}: {tried}");
    }
    let refused = world.publish(new, &[]);
    assert!(refused.status == 1 && refused.stderr.contains("BREAK existing clients"));
    let out = world.publish(new, &["--break-clients"]).ok().stdout;
    assert!(out.contains("Updated database"), "{out}");
    check(&world);
    let status = world.on(&["migrate", "status", "league"]).ok().stdout;
    assert!(
        status.contains("no migration runs") && status.contains("is in place"),
        "{status}"
    );
    // No client calls the function, or sees it; the old tables are gone.
    let called = world.on(&["call", "league", "__migrate"]);
    assert!(called.status == 1, "{called:#?}");
    let described = world.on(&["describe", "--json", "league"]).ok().stdout;
    assert!(
        !described.contains("__old_") && !described.contains("__migrate"),
        "{described}"
    );
    let touched = world.on(&["call", "league", "touch_old"]);
    assert!(touched.status == 1, "{touched:#?}");
    let logs = world.on(&["logs", "league", "-n", "100"]).ok().stdout;
    assert!(logs.contains("Running the migration function"), "{logs}");
    assert!(
        new[1].contains("lightcone") || logs.contains("[LC0238]"),
        "{logs}"
    );
    let none = world.on(&["migrate", "cancel", "league"]);
    assert!(
        none.status == 1 && none.stderr.contains("[LC0885]"),
        "{none:#?}"
    );

    // As it is on the disk.
    let World {
        home,
        server,
        token,
    } = world;
    drop(server);
    let world = World::again(home, token);
    assert_eq!(world.number("SELECT COUNT(*) AS n FROM player"), 3);
    assert_eq!(world.number("SELECT COUNT(*) AS n FROM address"), 1);
}

#[test]
fn a_rust_module_of_the_published_crate() {
    from_one_to_the_other(&rust("league1"), &rust("league2"));
}

#[test]
fn a_typescript_module_of_the_published_package() {
    from_one_to_the_other(&script("league1"), &script("league2"));
}

#[test]
fn a_typescript_module_of_ours() {
    from_one_to_the_other(&script("league1"), &script("league2-lightcone"));
}

/// Errors that the function returns, panics, and writes where it may not: the publisher is told, and nothing has changed.
#[test]
fn functions_that_fail() {
    for (old, new, failures) in [
        (
            rust("league1"),
            rust("league2"),
            &[
                ("refuse", "a player is called refuse"),
                ("panic", "a player is called panic"),
                ("write", "[LC0237]"),
            ][..],
        ),
        (
            script("league1"),
            script("league2"),
            &[
                ("refuse", "a player is called refuse"),
                ("throw", "a player is called throw"),
            ],
        ),
    ] {
        let world = World::start();
        world.publish(&old, &[]).ok();
        fill(&world);
        for (name, text) in failures {
            world.on(&["call", "league", "add_player", name, "1"]).ok();
            let tried = world.publish(&new, &["--dry-run"]);
            let told = format!("{}{}", tried.stdout, tried.stderr);
            assert!(told.contains(text), "{name}: {told}");
            let failed = world.publish(&new, &["--break-clients"]);
            assert!(
                failed.status == 1
                    && failed.stderr.contains(text)
                    && failed.stderr.contains("[LC0239]"),
                "{name}: {failed:#?}"
            );
            let status = world.on(&["migrate", "status", "league"]).ok().stdout;
            assert!(
                status.contains("failed") && status.contains(text),
                "{status}"
            );
            assert_eq!(
                world.number("SELECT COUNT(*) AS n FROM visit"),
                1,
                "as before"
            );
            world
                .on(&[
                    "sql",
                    "league",
                    &format!("DELETE FROM player WHERE name = '{name}'"),
                ])
                .ok();
        }
        world.publish(&new, &["--break-clients"]).ok();
        assert_eq!(world.number("SELECT COUNT(*) AS n FROM address"), 1);
    }
}

/// A function that does not end is cancelled, and one is killed with its server.
#[test]
fn cancelled_and_killed() {
    for (old, new) in [
        (rust("league1"), rust("league2")),
        (script("league1"), script("league2")),
    ] {
        let mut world = World::start();
        world.publish(&old, &[]).ok();
        fill(&world);
        world
            .on(&["call", "league", "add_player", "wait", "1"])
            .ok();
        std::thread::scope(|scope| {
            let publishing = scope.spawn(|| world.publish(&new, &["--break-clients"]));
            world.until_function_runs();
            let said = world.on(&["migrate", "status", "league"]).stdout;
            world.on(&["migrate", "cancel", "league"]).ok();
            assert!(
                said.contains("the migration function runs")
                    && said.contains("tables that it replaces"),
                "{said}"
            );
            let cancelled = publishing.join().expect("no panic");
            assert!(
                cancelled.status == 1 && cancelled.stderr.contains("[LC0240]"),
                "{cancelled:#?}"
            );
        });
        assert_eq!(
            world.number("SELECT COUNT(*) AS n FROM player WHERE points = 7"),
            1
        );
        let status = world.on(&["migrate", "status", "league"]).ok().stdout;
        assert!(status.contains("was cancelled after"), "{status}");

        let World {
            home,
            server,
            token,
        } = world;
        let url = server.url.clone();
        let kept = std::sync::Mutex::new(Some(server));
        std::thread::scope(|scope| {
            let publishing = scope.spawn(|| {
                let args = [
                    "publish",
                    &new[0],
                    &new[1],
                    "league",
                    "--break-clients",
                    "-s",
                    &url,
                ];
                home.run(&args)
            });
            let started = Instant::now();
            while !home
                .run(&["migrate", "status", "league", "--json", "-s", &url])
                .ok()
                .stdout
                .contains(r#""phase":"function""#)
            {
                assert!(started.elapsed() < Duration::from_secs(60));
                std::thread::sleep(Duration::from_millis(20));
            }
            drop(kept.lock().expect("not poisoned").take());
            assert_eq!(publishing.join().expect("no panic").status, 1);
        });
        world = World::again(home, token);
        assert_eq!(
            world.number("SELECT COUNT(*) AS n FROM player WHERE points = 7"),
            1
        );
        world
            .on(&["sql", "league", "DELETE FROM player WHERE name = 'wait'"])
            .ok();
        world.publish(&new, &["--break-clients"]).ok();
        check(&world);
    }
}

// ---- Row by row, while the old module runs ------------------------------------------------------------------------------

fn row_by_row(old: &[String; 2], new: &[String; 2]) {
    let world = World::start();
    world.publish(old, &[]).ok();
    fill(&world);

    let tried = world.publish(new, &["--dry-run"]).ok().stdout;
    for part in [
        "table player (2 rows): migrated row by row, while the module runs",
        "its rows are migrated one by one, while the module runs",
        "The functions for rows wrote:",
        "table player: 2 rows",
        "table address: 1 row",
        "Nothing was changed.",
    ] {
        assert!(tried.contains(part), "{part}: {tried}");
    }
    for (name, part) in [
        ("refuse", "a player is called refuse [LC0245]"),
        ("panic", "a player is called panic"),
        ("throw", "a player is called throw"),
        ("read", "[LC0247]"),
        ("write", "[LC0247]"),
    ] {
        let is_rust = new[1].ends_with(".wasm");
        let skipped = if is_rust { "throw" } else { "panic" };
        if name == skipped || new[1].contains("lightcone") {
            continue;
        }
        world.on(&["call", "league", "add_player", name, "1"]).ok();
        let failed = world.publish(new, &["--break-clients"]);
        assert!(
            failed.status == 1
                && failed.stderr.contains(part)
                && failed.stderr.contains("row id = "),
            "{name}: {failed:#?}"
        );
        let status = world.on(&["migrate", "status", "league"]).ok().stdout;
        assert!(
            status.contains("failed") && status.contains(part),
            "{status}"
        );
        let delete = format!("DELETE FROM player WHERE name = '{name}'");
        world.on(&["sql", "league", &delete]).ok();
    }
    let refused = world.publish(new, &[]);
    assert!(refused.status == 1 && refused.stderr.contains("BREAK existing clients"));
    let out = world.publish(new, &["--break-clients"]).ok().stdout;
    assert!(out.contains("Updated database"), "{out}");
    check(&world);
    let status = world.on(&["migrate", "status", "league"]).ok().stdout;
    assert!(
        status.contains("no migration runs") && status.contains("is in place"),
        "{status}"
    );
    let called = world.on(&["call", "league", "__migrate_player", "{}"]);
    assert!(called.status == 1, "{called:#?}");
    let described = world.on(&["describe", "--json", "league"]).ok().stdout;
    for hidden in ["__old_", "__migrate", "OldPlayer", "MigratePlayer"] {
        assert!(!described.contains(hidden), "{hidden}: {described}");
    }
}

#[test]
fn rows_by_a_rust_module_of_the_published_crate() {
    row_by_row(&rust("league1"), &rust("league3"));
}

#[test]
fn rows_by_a_typescript_module_of_the_published_package() {
    row_by_row(&script("league1"), &script("league3"));
}

#[test]
fn rows_by_a_typescript_module_of_ours() {
    row_by_row(&script("league1"), &script("league3-lightcone"));
}

/// Waits until so many rows are migrated, and says how many are.
fn until_rows(home: &Home, url: &str, least: u64) -> u64 {
    let started = Instant::now();
    loop {
        let status = home.run(&["migrate", "status", "league", "--json", "-s", url]);
        let status: serde_json::Value = serde_json::from_str(&status.ok().stdout).expect("JSON");
        let running = &status["running"];
        if running["phase"] == "backfill" && running["rows"].as_u64() >= Some(least) {
            return running["rows"].as_u64().expect("a number");
        }
        assert!(started.elapsed() < Duration::from_secs(120), "{status}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The rows go, and with them what is done for them; a command that waits is told.
#[test]
fn a_backfill_of_a_database_that_is_cleared_or_deleted() {
    let world = World::start();
    let (old, new) = (rust("league1"), rust("league3"));
    let url = world.server.url.clone();
    for ends in [
        &["publish", &old[0], &old[1], "league", "--delete-data", "-y"][..],
        &["delete", "league", "-y"],
    ] {
        world.publish(&old, &[]).ok();
        world.on(&["call", "league", "seed", "20000"]).ok();
        std::thread::scope(|scope| {
            let publishing = scope.spawn(|| world.publish(&new, &["--break-clients"]));
            until_rows(&world.home, &url, 100);
            world.on(ends).ok();
            let ended = publishing.join().expect("no panic");
            assert!(
                ended.status == 1 && ended.stderr.contains("[LC0251]"),
                "{ended:#?}"
            );
        });
        if ends[0] == "publish" {
            assert_eq!(world.number("SELECT COUNT(*) AS n FROM player"), 0);
            let status = world.on(&["migrate", "status", "league"]).ok().stdout;
            assert!(status.contains("no migration runs"), "{status}");
        }
    }
}

/// The old module serves calls meanwhile; cancelled; another module has to wait; a server that is killed goes on.
#[test]
fn a_backfill_behind_the_running_module() {
    let world = World::start();
    let (old, new) = (rust("league1"), rust("league3"));
    world.publish(&old, &[]).ok();
    world.on(&["call", "league", "seed", "20000"]).ok();
    let url = world.server.url.clone();
    std::thread::scope(|scope| {
        let publishing = scope.spawn(|| world.publish(&new, &["--break-clients"]));
        until_rows(&world.home, &url, 1000);
        world.on(&["call", "league", "add_player", "eve", "5"]).ok();
        let other = world.publish(&rust("league2"), &["--break-clients"]);
        assert!(
            other.status == 1 && other.stderr.contains("[LC0244]"),
            "{other:#?}"
        );
        let status = world.on(&["migrate", "status", "league"]).ok().stdout;
        assert!(status.contains("rows are migrated one by one"), "{status}");
        world.on(&["migrate", "cancel", "league"]).ok();
        let cancelled = publishing.join().expect("no panic");
        assert!(
            cancelled.status == 1 && cancelled.stderr.contains("[LC0240]"),
            "{cancelled:#?}"
        );
    });
    assert_eq!(
        world.number("SELECT points FROM player WHERE name = 'eve'"),
        5
    );

    let World {
        home,
        server,
        token,
    } = world;
    let kept = std::sync::Mutex::new(Some(server));
    let done = std::thread::scope(|scope| {
        let publishing = scope.spawn(|| {
            let args = [
                "publish",
                &new[0],
                &new[1],
                "league",
                "--break-clients",
                "-s",
                &url,
            ];
            home.run(&args)
        });
        let done = until_rows(&home, &url, 5_000);
        drop(kept.lock().expect("not poisoned").take());
        assert_eq!(publishing.join().expect("no panic").status, 1);
        done
    });
    let world = World::again(home, token);
    // No client has asked for the database, which goes on by itself.
    std::thread::sleep(Duration::from_millis(200));
    let again = until_rows(&world.home, &world.server.url, 0);
    assert!(again * 2 > done, "{again} behind {done}");
    world.on(&["call", "league", "add_player", "fay", "6"]).ok();
    let waited = world.publish(&new, &["--break-clients"]).ok().stdout;
    assert!(waited.contains("Updated database"), "{waited}");
    assert_eq!(world.number("SELECT COUNT(*) AS n FROM player"), 20_002);
    assert_eq!(
        world.number("SELECT score FROM player WHERE full_name = 'eve'"),
        50
    );
    assert_eq!(
        world.number("SELECT score FROM player WHERE full_name = 'fay'"),
        60
    );
    assert_eq!(
        world.number("SELECT score FROM player WHERE full_name = 'player 1234'"),
        2340
    );
}

/// With more rows, so that it takes a while.
fn fill_with_many(world: &World, name: &str) {
    let rows = |row: fn(usize) -> String| (1..=500).map(row).collect::<Vec<_>>().join(", ");
    for text in [
        format!(
            "INSERT INTO player VALUES {}",
            rows(|n| format!("({n}, 'p{n}', {n})"))
        ),
        format!(
            "INSERT INTO account VALUES {}",
            rows(|n| format!("({n}, 'o{n}', 's{n}')"))
        ),
        format!(
            "INSERT INTO visit VALUES {}",
            rows(|n| format!("({n}, 'v{n}')"))
        ),
    ] {
        world.on(&["sql", name, &text]).ok();
    }
}

/// All that there is, which is wholly as before or wholly as after: which of these.
fn is_migrated(world: &World, name: &str) -> bool {
    let table = |text: &str| {
        let shown = world.on(&["sql", name, text]).ok().stdout;
        let rows: Vec<String> = shown
            .lines()
            .skip(2)
            .map(|line| line.replace(' ', ""))
            .collect();
        rows
    };
    let described = world.on(&["describe", "--json", name]).ok().stdout;
    let is_new = described.contains("address");
    let expected = |row: &dyn Fn(usize) -> String| (1..=500).map(row).collect::<Vec<_>>();
    let visits = table("SELECT * FROM visit ORDER BY id");
    assert_eq!(visits, expected(&|n| format!("{n}|\"v{n}\"")));
    let players = table("SELECT * FROM player ORDER BY id");
    let accounts = table("SELECT * FROM account ORDER BY id");
    if !is_new {
        assert_eq!(players, expected(&|n| format!("{n}|\"p{n}\"|{n}")));
        assert_eq!(accounts, expected(&|n| format!("{n}|\"o{n}\"|\"s{n}\"")));
        return false;
    }
    assert_eq!(players, expected(&|n| format!("{n}|\"p{n}\"|{}", n * 10)));
    assert_eq!(accounts, expected(&|n| format!("{n}|\"o{n}\"")));
    let addresses = table("SELECT account, street FROM address ORDER BY account");
    assert_eq!(addresses, expected(&|n| format!("{n}|\"s{n}\"")));
    true
}

/// SIGKILL at any moment of a publish: the database is wholly the old one or the new one, and goes on.
#[test]
fn a_server_that_is_killed_while_it_migrates() {
    use rand::RngExt as _;
    let (old, new) = (script("league1"), script("league2"));
    let mut world = World::start();
    // How long one takes that is not disturbed.
    let mut takes = Duration::ZERO;
    for round in 0..6 {
        let name = format!("league{round}");
        world.on(&["publish", &old[0], &old[1], &name]).ok();
        fill_with_many(&world, &name);
        let url = world.server.url.clone();
        let args = [
            "publish",
            &new[0],
            &new[1],
            &name,
            "--break-clients",
            "-s",
            &url,
        ];
        if round == 0 {
            let started = Instant::now();
            world.home.run(&args).ok();
            takes = started.elapsed();
            assert!(is_migrated(&world, &name));
            continue;
        }
        let mut publishing = world.home.command(&args);
        let publishing = publishing.stdout(Stdio::null()).stderr(Stdio::null());
        let mut publishing = publishing.spawn().expect("it starts");
        let at = rand::rng().random_range(takes / 3..takes * 5 / 4);
        std::thread::sleep(at);
        let World {
            home,
            server,
            token,
        } = world;
        drop(server);
        let is_acknowledged = publishing.wait().expect("it ends").success();
        world = World::again(home, token);
        let is_new = is_migrated(&world, &name);
        eprintln!("killed after {at:?} of {takes:?}: new {is_new}, acknowledged {is_acknowledged}");
        assert!(is_new || !is_acknowledged);
        // What the round before has made is on the disk, program and rows.
        let before = format!("league{}", round - 1);
        assert!(is_migrated(&world, &before), "{before}");
        world
            .on(&["call", &before, "add_player", "after", "1"])
            .ok();
        let url = world.server.url.clone();
        let args = [
            "publish",
            &new[0],
            &new[1],
            &name,
            "--break-clients",
            "-s",
            &url,
        ];
        world.home.run(&args).ok();
        assert!(is_migrated(&world, &name));
    }
}

/// The time that a function may take is that of the migration, and not that of a call.
#[test]
fn a_function_that_takes_too_long() {
    for (old, new) in [
        (rust("league1"), rust("league2")),
        (script("league1"), script("league2")),
    ] {
        let world =
            World::start_with("[limits]\nmigration-time-max = \"4s\"\ncall-ms-max = 1000\n");
        world.publish(&old, &[]).ok();
        fill(&world);
        world
            .on(&["call", "league", "add_player", "wait", "1"])
            .ok();
        let started = Instant::now();
        let failed = world.publish(&new, &["--break-clients"]);
        assert!(
            failed.status == 1 && failed.stderr.contains("[LC0228]"),
            "{failed:#?}"
        );
        let elapsed = started.elapsed();
        let expected = Duration::from_secs(3)..Duration::from_secs(60);
        assert!(expected.contains(&elapsed), "{elapsed:?}");
        assert_eq!(world.number("SELECT COUNT(*) AS n FROM player"), 3);
    }
}

/// One whose function does not end would keep the owner's next one waiting for five minutes, and a deleted database's rows as long.
#[test]
fn a_dry_run_ends_with_who_asked_and_with_its_database() {
    /// Enough for a module to be compiled and its function to run, on a machine that is busy; less shows less.
    const UNTIL_IT_RUNS: Duration = Duration::from_secs(3);
    const SOON: Duration = Duration::from_secs(60);
    let (old, new) = (rust("league1"), rust("league2"));
    let world = World::start();
    world.publish(&old, &[]).ok();
    fill(&world);
    let wait = ["call", "league", "add_player", "wait", "1"];
    world.on(&wait).ok();
    let url = world.server.url.as_str();
    let args = [
        "publish",
        &new[0],
        &new[1],
        "league",
        "--dry-run",
        "-s",
        url,
    ];
    let mut dry_run = world.home.command(&args);
    let dry_run = dry_run.stdout(Stdio::null()).stderr(Stdio::null());
    let mut dry_run = dry_run.spawn().expect("it starts");
    std::thread::sleep(UNTIL_IT_RUNS);
    assert!(dry_run.try_wait().expect("a child").is_none(), "it waits");
    dry_run.kill().expect("it runs");
    dry_run.wait().expect("it is gone");
    let delete = "DELETE FROM player WHERE name = 'wait'";
    world.on(&["sql", "league", delete]).ok();
    let started = Instant::now();
    world.publish(&new, &["--dry-run"]).ok();
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());

    world.on(&wait).ok();
    std::thread::scope(|scope| {
        let dry_run = scope.spawn(|| world.publish(&new, &["--dry-run"]));
        std::thread::sleep(UNTIL_IT_RUNS);
        let started = Instant::now();
        world.on(&["delete", "league", "-y"]).ok();
        let ended = dry_run.join().expect("no panic");
        assert!(ended.status == 1, "{ended:#?}");
        assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    });
}

/// Rows of a scheduled table, which the function rewrites, are still due.
#[test]
fn reminders_are_kept() {
    let world = World::start();
    world.publish(&rust("league1"), &[]).ok();
    world
        .on(&["call", "league", "plan_reminder", "tea", "4000"])
        .ok();
    world.publish(&rust("league2"), &["--break-clients"]).ok();
    let started = Instant::now();
    while !world.sql("SELECT note FROM visit").contains("tea true") {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "no row was reminded"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}
