//! Outbox tables of real modules on real servers (modules/latest-rs/src/outbox.rs): delivery, order, failures, targets that are
//! not there, and servers that are killed; and all else that came after 2.10, beside modules of 2.10.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::common::server::Server;
use crate::common::{module, rust, script, Home, Outcome};

/// Until then everything has to be delivered.
const PATIENCE: Duration = Duration::from_secs(180);

/// A server with one user. Its databases run the module.
struct World {
    home: Home,
    server: Option<Server>,
    url: String,
    token: String,
}

impl World {
    fn start() -> World {
        let home = Home::new();
        let server = Server::start(&home);
        let url = server.url.clone();
        home.run(&["login", "--server-issued-login", &url]).ok();
        let shown = home.run(&["login", "show", "--token", "--server", &url]);
        let shown = shown.ok().stdout;
        let mut words = shown.split_whitespace();
        let token = words.find(|word| word.starts_with("ey")).expect("a token");
        World {
            token: token.to_owned(),
            home,
            server: Some(server),
            url,
        }
    }

    /// SIGKILL, if it runs.
    fn kill(&mut self) {
        self.server = None;
    }

    /// At the address that it had.
    fn start_again(&mut self) {
        let address = self.url.strip_prefix("http://").expect("a URL");
        self.server = Some(Server::start_at(&self.home, address));
    }

    fn on(&self, args: &[&str]) -> Outcome {
        let variables = [("NO_COLOR", "1")];
        self.home
            .run_with(&[args, &["-s", &self.url]].concat(), "", &variables)
    }

    /// Publishes the module of outbox tables, and gives the identity of the database.
    fn publish(&self, name: &str) -> String {
        self.publish_program(name, &rust("outbox"), &[])
    }

    fn publish_program(&self, name: &str, program: &[String; 2], more: &[&str]) -> String {
        let args = ["publish", &program[0], &program[1], name];
        let out = self.on(&[&args[..], more].concat()).ok().stdout;
        let (_, identity) = out
            .trim_end()
            .rsplit_once("identity: ")
            .expect("an identity");
        identity.to_owned()
    }

    fn call(&self, name: &str, args: &[&str]) {
        self.on(&[&["call", name], args].concat()).ok();
    }

    fn send(&self, from: &str, to: &str, number: u64, text: &str) {
        let text = format!("{text:?}");
        self.call(from, &["send", &argument(to), &number.to_string(), &text]);
    }

    /// Rows without their heads, as they are printed but for blanks.
    fn rows(&self, name: &str, sql: &str) -> Vec<String> {
        let out = self.on(&["sql", name, sql]).ok().stdout;
        let rows = out.lines().skip(2).filter(|line| !line.trim().is_empty());
        rows.map(|row| row.replace(' ', "")).collect()
    }

    fn arrivals(&self, name: &str) -> Vec<String> {
        self.rows(name, "SELECT number, text FROM arrivals ORDER BY id")
    }

    fn outcomes(&self, name: &str) -> Vec<String> {
        self.rows(name, "SELECT number, error FROM outcomes ORDER BY id")
    }

    fn until(&self, what: &str, is_so: impl Fn(&World) -> bool) {
        let started = Instant::now();
        while !is_so(self) {
            assert!(started.elapsed() < PATIENCE, "{what} does not come");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn until_nothing_waits(&self, name: &str) {
        self.until("an empty outbox", |world| {
            world.rows(name, "SELECT id FROM parcels").is_empty()
        });
        assert!(self
            .rows(name, "SELECT seq FROM st_outbound_msg")
            .is_empty());
    }
}

/// An identity as an argument of a call.
fn argument(identity: &str) -> String {
    format!("{{\"__identity__\":\"0x{identity}\"}}")
}

/// Status and body of a request without TLS.
fn ask(url: &str, head: &str, body: &[u8]) -> (u16, String) {
    let address = url.strip_prefix("http://").expect("a URL");
    let mut stream = TcpStream::connect(address).expect("it listens");
    let head = format!(
        "{head}\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("sent");
    stream.write_all(body).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    let status = answer.split(' ').nth(1).expect("a status");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    (status.parse().expect("a number"), body.to_owned())
}

#[test]
fn messages_arrive_in_order_and_their_senders_hear_of_it() {
    let world = World::start();
    let (alpha, beta) = (world.publish("alpha"), world.publish("beta"));
    world.send("alpha", &beta, 1, "one");
    world.send("alpha", &beta, 2, "refuse");
    world.send("alpha", &beta, 3, "trap");
    world.send("alpha", &beta, 4, "do not tell");
    world.call("alpha", &["send_many", &argument(&beta), "10", "100"]);
    // To itself: another stream.
    world.send("alpha", &alpha, 500, "self");
    world.until_nothing_waits("alpha");

    let many = (10..110).map(|number| format!("{number}|\"\""));
    let first = ["1|\"one\"", "4|\"donottell\""].map(str::to_owned);
    let expected: Vec<String> = first.into_iter().chain(many).collect();
    assert_eq!(world.arrivals("beta"), expected);
    assert_eq!(world.arrivals("alpha"), ["500|\"self\""]);
    let outcomes = world.outcomes("alpha");
    let of = |number: u64| {
        let begin = format!("{number}|");
        outcomes.iter().find(|row| row.starts_with(&begin)).cloned()
    };
    assert_eq!(outcomes.len(), 104, "{outcomes:?}");
    assert_eq!(of(1).as_deref(), Some("1|\"\""));
    assert_eq!(of(2).as_deref(), Some("2|\"number2isrefused\""));
    assert!(
        of(3).expect("it trapped").contains("fatalerror"),
        "{outcomes:?}"
    );
    assert_eq!(
        of(4),
        None,
        "what a callback that fails has done is taken back"
    );
    assert_eq!(of(500).as_deref(), Some("500|\"\""));
    let senders = world.rows("beta", "SELECT sender FROM arrivals WHERE number = 1");
    assert!(senders[0].contains(&alpha), "{senders:?}");
    // One result is kept for each stream.
    let applied = world.rows("beta", "SELECT applied_prefix FROM st_inbound_stream");
    assert_eq!(applied, ["104"]);
    assert_eq!(
        world.rows("beta", "SELECT seq FROM st_inbound_msg"),
        ["104"]
    );

    let (_, metrics) = ask(&world.url, "GET /v1/metrics HTTP/1.1", b"");
    assert!(
        metrics.contains("lightcone_outbox_messages_delivered_total"),
        "{metrics}"
    );
    let refused = world.on(&["sql", "alpha", "DELETE FROM parcels"]);
    assert!(
        refused
            .stderr
            .contains("SQL writes to outbox tables are not supported"),
        "{refused:#?}"
    );
    let callback = world.on(&["call", "alpha", "parcel_result", "{}", "{}"]);
    assert_eq!(callback.status, 1, "a callback is private: {callback:#?}");
}

/// Modules of 2.14 with all that came after 2.10, and modules of 2.10 beside them, in Rust and in TypeScript.
#[test]
fn modules_of_old_and_new_packages_share_a_server() {
    let world = World::start();
    for (name, program) in [
        ("old-rust", rust("transfer")),
        ("old-typescript", script("transfer")),
    ] {
        world.publish_program(name, &program, &[]);
        world.call(name, &["seed", "10", "1000"]);
    }
    world
        .home
        .write("variables.env", "API_KEY=s3cret\nNAME=s3cret\n");
    let file = world.home.path("variables.env").display().to_string();
    let secrets = ["--secret", "API_KEY", "--secret", "NAME"];
    let variables = [&["--env-file", &file][..], &secrets].concat();
    let programs = [rust("latest"), script("latest-lightcone")];
    let publish = |name, program| world.publish_program(name, program, &variables);
    let alpha = publish("alpha", &programs[0]);
    let beta = publish("beta", &programs[1]);

    let both = [("alpha", &beta), ("beta", &alpha)];
    for (name, other) in both {
        world.send(name, other, 1, "one");
        world.send(name, other, 2, "refuse");
        world.call(name, &["put_note", "1", "5", &argument(other), "hi"]);
        let notes = |room: u32| world.rows(name, &format!("SELECT * FROM notes_in({room})"));
        assert_eq!(notes(5), [format!("1|5|0x{other}|\"hi\"")], "{name}");
        assert!(notes(6).is_empty(), "{name}");

        let (status, who) = ask(
            &world.url,
            &format!("GET /v1/database/{name}/route/who HTTP/1.1"),
            b"",
        );
        assert_eq!(status, 200, "{who}");
        world.call(name, &["called"]);
        world.until("what is planned", |world| {
            world.rows(name, "SELECT what, is_internal FROM callers ORDER BY what")
                == [
                    "\"handler\"|false",
                    "\"reducer\"|false",
                    "\"schedule\"|true",
                ]
        });
        let handler = "SELECT sender, token FROM callers WHERE what = 'handler'";
        let handler = world.rows(name, handler).concat();
        assert_eq!(handler.matches(&who).count(), 2, "{who}: {handler}");

        let kept = world.rows(name, "SELECT value FROM st_env");
        let is_sealed = |value: &String| value.starts_with("\"lightcone-sealed-1:");
        assert!(kept.len() == 2 && kept.iter().all(is_sealed), "{kept:?}");
    }
    for call in [
        &["call", "alpha", "variables"][..],
        &["call", "beta", "fetch", "API_KEY"],
    ] {
        let read = world.on(call).ok().stdout;
        assert!(read.contains("s3cret"), "{read}");
    }
    for (name, other) in both {
        world.until_nothing_waits(name);
        let heard = ["1|\"\"", "2|\"number2isrefused\""];
        assert_eq!(world.outcomes(name), heard, "{name}");
        let arrived = world.rows(name, "SELECT sender, number, text FROM arrivals");
        assert_eq!(arrived, [format!("0x{other}|1|\"one\"")], "{name}");
    }
    for name in ["old-rust", "old-typescript"] {
        world.call(name, &["transfer", "3", "4", "50"]);
        let balance = world.rows(name, "SELECT balance FROM accounts WHERE id = 3");
        assert_eq!(balance, ["950"], "{name}");
    }
}

#[test]
fn a_target_that_is_gone_holds_up_its_own_stream_until_the_row_goes() {
    let mut world = World::start();
    let (_, beta) = (world.publish("alpha"), world.publish("beta"));
    let missing = "c200".to_owned() + &"ab".repeat(30);
    for number in 1..=3 {
        world.send("alpha", &missing, number, "lost");
    }
    world.send("alpha", &beta, 10, "");
    world.until("the other stream's message", |world| {
        world.outcomes("alpha") == ["10|\"\""]
    });
    let sql = "SELECT retry_count, last_transport_error FROM st_outbound_msg WHERE seq = 1";
    world.until("an attempt", |world| {
        !world.rows("alpha", sql)[0].starts_with('0')
    });
    assert!(world.rows("alpha", sql)[0].contains("LC0742"));
    // The keeper opens the database after a restart, and counts on.
    world.kill();
    world.start_again();
    let retries = |world: &World| -> u64 {
        let row = world.rows(
            "alpha",
            "SELECT retry_count FROM st_outbound_msg WHERE seq = 1",
        );
        row[0].parse().expect("a number")
    };
    let before = retries(&world);
    world.until("another attempt", |world| retries(world) > before);
    // One that waits behind the first leaves no gap, and the first leaves its place to the next.
    world.call("alpha", &["withdraw", "2"]);
    world.call("alpha", &["withdraw", "1"]);
    assert_eq!(
        world.rows("alpha", "SELECT seq FROM st_outbound_msg"),
        ["2"]
    );
    world.call("alpha", &["withdraw", "3"]);
    world.until_nothing_waits("alpha");
    assert_eq!(world.outcomes("alpha"), ["10|\"\""]);
    // A stopped server opens the database without anything that waits no more by itself.
    let stopped = world.server.take().expect("it runs").stop();
    assert_eq!(stopped, 0);
}

#[test]
fn only_databases_send_messages() {
    let world = World::start();
    let (alpha, beta) = (world.publish("alpha"), world.publish("beta"));
    let hash = "a5bde5d31bd6cd64c52cd2e19d198fc004e3483ab586115c642cd39e749ec8e1";
    let path = format!("/v1/database/{beta}/call-from-database/receive?stream_id=1&seq=1&ack_prefix=0&signature_hash={hash}");
    let mut body = 7_u64.to_le_bytes().to_vec();
    body.extend([0; 4]);
    let post = |more: &str| ask(&world.url, &format!("POST {path} HTTP/1.1{more}"), &body).0;
    assert_eq!(post(""), 401);
    assert_eq!(
        post(&format!("\r\nAuthorization: Bearer {}", world.token)),
        401
    );
    assert!(world.arrivals("beta").is_empty());
    assert_ne!(alpha, beta);
}

/// Both servers are killed again and again: each message has its effect once, in order, and each sender hears of it once.
#[test]
fn servers_that_are_killed_lose_no_message_and_repeat_none() {
    use rand::RngExt as _;
    const ROUNDS: u64 = 8;
    const MESSAGES: u64 = 40;
    let (mut sender, mut receiver) = (World::start(), World::start());
    let (alpha, beta) = (sender.publish("alpha"), receiver.publish("beta"));
    sender.kill();
    receiver.kill();
    let peers = |peer: &str| format!("[outbox]\npeers = [{{ {peer} }}]\n");
    let to = format!("address = \"{}\", databases = [\"{beta}\"]", receiver.url);
    sender.home.write("server/data/config.toml", &peers(&to));
    let key = sender.home.path("server/keys/id_ecdsa.pub");
    let from = format!(
        "databases = [\"{alpha}\"], public-key = {:?}",
        key.display().to_string()
    );
    receiver
        .home
        .write("server/data/config.toml", &peers(&from));
    sender.start_again();
    receiver.start_again();
    for round in 0..ROUNDS {
        let first = (round * MESSAGES).to_string();
        let count = MESSAGES.to_string();
        sender.call("alpha", &["send_many", &argument(&beta), &first, &count]);
        std::thread::sleep(Duration::from_millis(rand::rng().random_range(0..400)));
        let which = rand::rng().random_range(0..3);
        if which != 0 {
            sender.kill();
        }
        if which != 1 {
            receiver.kill();
        }
        std::thread::sleep(Duration::from_millis(rand::rng().random_range(0..200)));
        if which != 1 {
            receiver.start_again();
        }
        if which != 0 {
            sender.start_again();
        }
    }
    sender.until_nothing_waits("alpha");
    let expected: Vec<String> = (0..ROUNDS * MESSAGES)
        .map(|n| format!("{n}|\"\""))
        .collect();
    assert_eq!(receiver.arrivals("beta"), expected);
    assert_eq!(sender.outcomes("alpha"), expected);
}

/// The bindings that the module itself is written with are those that are generated of it.
/// That a file holds the bindings of the module.
fn assert_bindings(home: &Home, path: &str) {
    let want = include_str!("../../../modules/latest-rs/src/outbox/bindings.rs");
    assert_file(home, path, want);
}

/// The compiler looks at the same file with our package (`sdk-ts/test/types.test.ts`).
fn assert_typescript(home: &Home, path: &str) {
    let want = include_str!("../../../sdk-ts/test/types/fixtures/remote_bindings.ts");
    assert_file(home, path, want);
}

fn assert_file(home: &Home, path: &str, want: &str) {
    let got = std::fs::read_to_string(home.path(path)).expect("the file");
    for (number, (got, want)) in got.lines().zip(want.lines()).enumerate() {
        assert_eq!(got, want, "line {}", number + 1);
    }
    assert_eq!(got.len(), want.len());
}

#[test]
fn dependencies_of_a_project_are_bindings_of_databases() {
    let world = World::start();
    world.publish("beta");
    let home = &world.home;
    let configure = |dependencies: &str| {
        let url = &world.url;
        let text = format!(
            "{{ database: 'alpha', server: '{url}', 'module-path': 'm', dependencies: {dependencies} }}"
        );
        home.write("spacetime.json", &text);
    };
    home.write("m/Cargo.toml", "");
    configure("[{ name: 'other', database: 'beta' }]");
    home.run(&["generate"]).ok();
    assert_bindings(home, "m/src/remote_bindings/other/mod.rs");
    // Before the module is built, which is none.
    std::fs::remove_dir_all(home.path("m/src")).expect("removed");
    assert_ne!(home.run(&["publish"]).status, 0);
    assert_bindings(home, "m/src/remote_bindings/other/mod.rs");

    let refused = |dependencies: &str, part: &str| {
        configure(dependencies);
        let outcome = home.run(&["generate"]);
        assert_eq!(outcome.status, 1, "{outcome:#?}");
        assert!(outcome.stderr.contains(part), "{outcome:#?}");
    };
    refused(
        "[{ name: 'other' }]",
        "needs the keys `name` and `database`",
    );
    refused(
        "[{ name: '../up', database: 'beta' }]",
        "`dependencies[0].name` must be a name of a Rust module",
    );
    let twice = "[{ name: 'a', database: 'beta' }, { name: 'a', database: 'beta' }]";
    refused(twice, "two dependencies with the name `a`");
    refused("[{ name: 'gone', database: 'gone' }]", "gone");
    // Of a TypeScript module.
    std::fs::remove_dir_all(home.path("m")).expect("removed");
    home.write(
        "m/package.json",
        r#"{ "dependencies": { "spacetimedb": "npm:lightcone@0.1.0" } }"#,
    );
    configure("[{ name: 'other', database: 'beta' }]");
    home.run(&["generate"]).ok();
    assert_typescript(home, "m/src/remote_bindings/other/index.ts");
    std::fs::remove_dir_all(home.path("m")).expect("removed");
    home.write("m/m.csproj", "<Project/>");
    refused(
        "[{ name: 'a', database: 'beta' }]",
        "are for Rust and TypeScript modules",
    );
}

#[test]
fn bindings_for_modules_are_generated() {
    let home = Home::new();
    let made = [
        "generate",
        "--lang",
        "rust",
        "--bindings",
        "module",
        "--out-dir",
        "out",
        "-b",
    ];
    home.run(&[&made[..], &[&module("outbox")]].concat()).ok();
    assert_bindings(&home, "out/mod.rs");
    home.write(
        "ts/package.json",
        r#"{ "dependencies": { "spacetimedb": "npm:lightcone@0.1.0" } }"#,
    );
    let of = |lang: &str, program: &str| {
        let of = ["--lang", lang, "--out-dir", "ts/out", "-b", program];
        home.run(&[&["generate", "--bindings", "module"], &of[..]].concat())
    };
    of("ts", &module("outbox")).ok();
    assert_typescript(&home, "ts/out/index.ts");
    let other = of("csharp", "x");
    assert!(
        other
            .stderr
            .contains("--bindings module is for rust and typescript only"),
        "{other:#?}"
    );
}
