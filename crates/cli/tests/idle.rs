//! Databases that are not used, with real modules: when they are closed, and when they are opened without a request.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::common::server::Server;
use crate::common::{module, Home, Outcome};

/// Until then everything has to happen that is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// How late a planned call may be on a machine that has much else to do.
const LATE_US_MAX: i64 = 1_500_000;

struct World {
    home: Home,
    server: Option<Server>,
    url: String,
}

impl World {
    fn start(idle_close_after: &str) -> World {
        let home = Home::new();
        configure(&home, idle_close_after);
        let server = Server::start(&home);
        let url = server.url.clone();
        home.run(&["login", "--server-issued-login", &url]).ok();
        World {
            home,
            server: Some(server),
            url,
        }
    }

    /// At the address that it had, with another configuration.
    fn start_again(&mut self, idle_close_after: &str) {
        configure(&self.home, idle_close_after);
        let address = self.url.strip_prefix("http://").expect("a URL");
        self.server = Some(Server::start_at(&self.home, address));
    }

    /// SIGKILL.
    fn kill(&mut self) {
        self.server = None;
    }

    fn stop(&mut self) {
        let server = self.server.take().expect("it runs");
        assert_eq!(server.stop(), 0);
    }

    fn on(&self, args: &[&str]) -> Outcome {
        let args = [args, &["-s", &self.url]].concat();
        self.home.run_with(&args, "", &[("NO_COLOR", "1")]).ok()
    }

    /// Gives the identity of the database.
    fn publish(&self, name: &str, program: &str) -> String {
        let out = self.on(&["publish", "-b", &module(program), name]).stdout;
        let (_, identity) = out.trim_end().rsplit_once("identity: ").expect("it says");
        identity.to_owned()
    }

    fn plan(&self, name: &str, what: &str, us: i64) {
        let (what, us) = (format!("{what:?}"), us.to_string());
        self.on(&["call", name, "set_timer_in", &what, &us]);
    }

    fn metrics(&self) -> String {
        self.ask("GET /v1/metrics", "").1
    }

    /// A look opens nothing.
    fn is_open(&self, identity: &str) -> bool {
        self.metrics().contains(identity)
    }

    fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let started = Instant::now();
        while !is_so() {
            assert!(started.elapsed() < PATIENCE, "{what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn until_closed(&self, identity: &str) {
        self.until("it is closed", || !self.is_open(identity));
    }

    /// When a call ran that was to do this, in microseconds.
    fn runs(&self, name: &str, what: &str) -> Vec<i64> {
        let head = format!("POST /v1/database/{name}/sql");
        let (status, body) = self.ask(&head, "SELECT what, timestamp FROM runs");
        assert_eq!(status, 200, "{body}");
        let json = body.find('[').zip(body.rfind(']'));
        let json = json.map_or("", |(begin, end)| &body[begin..=end]);
        let answer: serde_json::Value = serde_json::from_str(json).expect("JSON");
        let rows = answer[0]["rows"].as_array().expect("rows").iter();
        let rows = rows.filter(|row| row[0] == what);
        rows.map(|row| row[1][0].as_i64().expect("a time"))
            .collect()
    }

    fn ask(&self, head: &str, body: &str) -> (u16, String) {
        let address = self.url.strip_prefix("http://").expect("a URL");
        let mut stream = TcpStream::connect(address).expect("it listens");
        let length = body.len();
        write!(stream, "{head} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("text");
        let status = answer.split(' ').nth(1).expect("a status");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
        (status.parse().expect("a number"), body.to_owned())
    }
}

fn configure(home: &Home, idle_close_after: &str) {
    let text = format!("[databases]\nidle-close-after = \"{idle_close_after}\"\n");
    home.write("server/data/config.toml", &text);
}

fn now_us() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("after 1970").as_micros() as i64
}

fn sleep_until(time_us: i64) {
    let left = (time_us - now_us()).max(0);
    std::thread::sleep(Duration::from_micros(left as u64));
}

#[test]
fn after_a_kill_those_are_opened_that_may_have_something_to_do() {
    let mut world = World::start("3s");
    let later = world.publish("later", "schedules");
    world.plan("later", "later", 3_600_000_000);
    let closed = world.publish("closed", "boards");
    for identity in [&later, &closed] {
        world.until_closed(identity);
    }
    let open = world.publish("open", "boards");
    let soon = world.publish("soon", "schedules");
    world.plan("soon", "soon", 10_000_000);
    let due = now_us() + 10_000_000;
    world.on(&["call", "open", "put", "1", "2", "3"]);
    assert!(world.is_open(&open));
    world.kill();
    sleep_until(due);
    let started = now_us();
    world.start_again("15min");
    world.until("it is opened", || world.is_open(&soon));
    std::thread::sleep(Duration::from_secs(2));
    for identity in [&later, &closed, &open] {
        assert!(!world.is_open(identity), "{}", world.metrics());
    }
    let runs = world.runs("soon", "soon");
    assert_eq!(runs.len(), 1);
    assert!(runs[0] >= started, "{runs:?}: it did not run before");
    // What was acknowledged is there.
    let rows = world
        .on(&["sql", "open", "SELECT points FROM score"])
        .stdout;
    assert!(rows.lines().any(|line| line.trim() == "3"), "{rows}");
    assert!(world.runs("later", "later").is_empty());
}

#[test]
fn a_planned_call_is_in_time_though_its_database_is_closed() {
    const WAIT_US: i64 = 15_000_000;
    let mut world = World::start("200ms");
    let identity = world.publish("a", "schedules");
    for restarts in [false, true] {
        let what = format!("alarm {restarts}");
        let before = now_us();
        world.plan("a", &what, WAIT_US);
        let after = now_us();
        world.until_closed(&identity);
        if restarts {
            world.stop();
            world.start_again("200ms");
        }
        assert!(now_us() < before + WAIT_US - 2_500_000, "it is long before");
        assert!(!world.is_open(&identity));
        world.until("it is opened for the call", || world.is_open(&identity));
        world.until_closed(&identity);
        let closed = now_us();
        let runs = world.runs("a", &what);
        assert_eq!(runs.len(), 1);
        assert!(runs[0] >= before + WAIT_US && runs[0] <= closed, "{runs:?}");
        let late_us = runs[0] - (after + WAIT_US);
        assert!(late_us < LATE_US_MAX, "{late_us}");
    }
    // One that calls again and again stays open: the points of its interval are in memory.
    let often = world.publish("often", "schedules");
    world.on(&[
        "call",
        "often",
        "set_timer",
        "\"often\"",
        "{\"Interval\": {\"__time_duration_micros__\": 100000}}",
    ]);
    std::thread::sleep(Duration::from_secs(2));
    assert!(world.is_open(&often));
}
