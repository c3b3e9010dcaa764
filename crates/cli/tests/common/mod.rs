//! A server that answers what a test tells it to, and a way to run the command against it.

#![allow(dead_code)]

pub mod server;
pub mod shop;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// A request as the server saw it.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    /// Path and query.
    pub path: String,
    pub authorization: Option<String>,
    pub content_type: Option<String>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

pub struct Response {
    pub location: Option<String>,
    pub status: u16,
    pub content_type: &'static str,
    pub body: String,
}

pub fn json(body: impl Into<String>) -> Response {
    Response {
        location: None,
        status: 200,
        content_type: "application/json",
        body: body.into(),
    }
}

pub fn text(status: u16, body: impl Into<String>) -> Response {
    Response {
        location: None,
        status,
        content_type: "text/plain; charset=utf-8",
        body: body.into(),
    }
}

pub struct Mock {
    pub url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Mock {
    /// Answers every request on a connection of its own with what `answer` says.
    pub fn start(answer: impl Fn(&Request) -> Response + Send + Sync + 'static) -> Self {
        Self::start_at("127.0.0.1:0", answer)
    }

    /// The same, at an address of one's own.
    pub fn start_at(
        address: &str,
        answer: impl Fn(&Request) -> Response + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        let answer = Arc::new(answer);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, answer) = (seen.clone(), answer.clone());
                std::thread::spawn(move || serve(stream, &seen, &*answer));
            }
        });
        Self { url, requests }
    }

    /// Redirects every request.
    pub fn start_with_location(
        location: impl Fn(&Request) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self::start(move |request| Response {
            location: location(request),
            ..text(307, "")
        })
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("not poisoned").clone()
    }

    pub fn lines(&self) -> Vec<String> {
        self.requests().iter().map(Request::line).collect()
    }
}

fn serve(
    stream: TcpStream,
    seen: &Mutex<Vec<Request>>,
    answer: &(dyn Fn(&Request) -> Response + Sync),
) {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    if reader.read_line(&mut first).is_err() {
        return;
    }
    let mut words = first.split_whitespace();
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return;
    };
    let mut request = Request {
        method: method.into(),
        path: path.into(),
        authorization: None,
        content_type: None,
        body: Vec::new(),
    };
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).is_err() || line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').expect("a header");
        let value = value.trim().to_owned();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().expect("a number"),
            "authorization" => request.authorization = Some(value),
            "content-type" => request.content_type = Some(value),
            _ => {}
        }
    }
    request.body.resize(length, 0);
    if reader.read_exact(&mut request.body).is_err() {
        return;
    }
    // Every login asks for it first. Tests of that look at what is answered.
    if !request.path.starts_with("/v1/identity/key-proof?") {
        seen.lock().expect("not poisoned").push(request.clone());
    }
    let response = answer(&request);
    let location = response
        .location
        .map_or_else(String::new, |url| format!("location: {url}\r\n"));
    let _ = write!(
        reader.get_mut(),
        "HTTP/1.1 {} X\r\n{location}content-type: {}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{}",
        response.status,
        response.content_type,
        response.body.len(),
        response.body
    );
}

/// What a run of the command left behind.
#[derive(Debug)]
pub struct Outcome {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl From<std::process::Output> for Outcome {
    fn from(output: std::process::Output) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }
}

impl Outcome {
    /// Fails the test unless the command succeeded.
    pub fn ok(self) -> Self {
        assert_eq!(self.status, 0, "{self:#?}");
        self
    }
}

/// A home of its own for each test: nothing of the user's is read or written.
pub struct Home {
    directory: tempfile::TempDir,
}

impl Home {
    pub fn new() -> Self {
        Self {
            directory: tempfile::tempdir().expect("a temporary directory"),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("created");
        std::fs::write(path, text).expect("written");
    }

    pub fn config(&self) -> String {
        std::fs::read_to_string(self.path("root/config/cli.toml")).expect("a configuration")
    }

    pub fn run(&self, args: &[&str]) -> Outcome {
        self.run_with(args, "", &[])
    }

    /// The command as it is run.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spacetime"));
        command
            .arg("--root-dir")
            .arg(self.path("root"))
            .args(args)
            .current_dir(self.directory.path())
            .env("HOME", self.directory.path())
            .env("NO_PROXY", "127.0.0.1");
        command
    }

    pub fn run_with(&self, args: &[&str], input: &str, variables: &[(&str, &str)]) -> Outcome {
        let mut child = self
            .command(args)
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command runs");
        // The command may end without reading.
        let _ = child
            .stdin
            .take()
            .expect("piped")
            .write_all(input.as_bytes());
        let output = child.wait_with_output().expect("the command ends");
        Outcome::from(output)
    }

    /// Stores a token for a server, as after a login there; returns the identity.
    pub fn log_in(&self, subject: &str, url: &str) -> String {
        let token = token(subject);
        self.run(&["login", "--token", &token, "--server", url])
            .ok();
        identity(subject)
    }
}

/// Who a token of that subject is.
pub fn identity(subject: &str) -> String {
    lightcone_types::Identity::from_claims("localhost", subject).to_hex()
}

/// A token that says who the user is; its signature is not checked here.
pub fn token(subject: &str) -> String {
    token_of("localhost", subject)
}

/// The same, of another issuer.
pub fn token_of(issuer: &str, subject: &str) -> String {
    use base64::Engine;
    let encode = |text: &str| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
    let claims = format!(r#"{{"iss":"{issuer}","sub":"{subject}","iat":1700000000}}"#);
    format!(
        "{}.{}.c2lnbmF0dXJl",
        encode(r#"{"typ":"JWT","alg":"ES256"}"#),
        encode(&claims)
    )
}

pub const DATABASE: &str = "c200aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
/// Another one, of another user.
pub const SHARED: &str = "c200bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

/// The path of a module that `make modules` has built.
pub fn module(name: &str) -> String {
    cached(
        "LIGHTCONE_MODULES_WASM_DIR",
        "wasm",
        &format!("{name}.wasm"),
    )
}

/// The arguments of `publish` for the same.
pub fn rust(name: &str) -> [String; 2] {
    ["-b".to_owned(), module(name)]
}

/// The arguments of `publish` for a module that `scripts/js-modules.sh` has bundled.
pub fn script(name: &str) -> [String; 2] {
    let path = cached("LIGHTCONE_JS_DIR", "js", &format!("{name}.js"));
    ["-j".to_owned(), path]
}

fn cached(variable: &str, directory: &str, file: &str) -> String {
    let directory = std::env::var_os(variable).map_or_else(
        || {
            let home = PathBuf::from(std::env::var_os("HOME").expect("HOME is set"));
            home.join(".cache/lightcone").join(directory)
        },
        PathBuf::from,
    );
    let path = directory.join(file);
    assert!(
        path.is_file(),
        "{} is missing; build the modules first: make modules, scripts/js-modules.sh",
        path.display()
    );
    path.to_str().expect("UTF-8").to_owned()
}
