//! A real server on a free port, and requests to it.
#![allow(dead_code)]

pub mod fake;
pub mod mcp;
pub mod postgres;
pub mod publishing;
pub mod tokens;
pub mod world;

use std::path::PathBuf;

use lightcone_node::config::Config;
use lightcone_server::{Server, ServerHandle, ServerOptions};
use reqwest::{Method, RequestBuilder, Response};

/// Others on the thread of a connection notice what takes longer than 5 ms. The tests run code that is not optimized, which takes about five
/// times as long, and on virtual processors, whose stolen time counts as the thread's own: 82 ms were seen on a busy machine. It is here for work that
/// grows with the square of an input, or that belongs to other threads.
pub const POLL_MAX: std::time::Duration = std::time::Duration::from_millis(250);

pub struct TestServer {
    pub handle: Option<ServerHandle>,
    pub base: String,
    pub address: std::net::SocketAddr,
    pub http: reqwest::Client,
    pub dir: tempfile::TempDir,
}

pub struct User {
    pub identity: String,
    pub token: String,
}

pub fn config(text: &str) -> Config {
    Config::parse(text, "config.toml".as_ref()).expect("test configuration")
}

impl TestServer {
    pub async fn start() -> TestServer {
        Self::start_with(config("")).await
    }

    pub async fn start_with(config: Config) -> TestServer {
        let dir = tempfile::tempdir().expect("temporary directory");
        Self::start_in(dir, config).await
    }

    pub async fn start_in(dir: tempfile::TempDir, config: Config) -> TestServer {
        Self::start_as(dir, config, |_| {}).await
    }

    /// With other options than the usual ones.
    pub async fn start_as(
        dir: tempfile::TempDir,
        config: Config,
        change: impl FnOnce(&mut ServerOptions),
    ) -> TestServer {
        let mut options = ServerOptions::new(
            "127.0.0.1:0".parse().expect("address"),
            dir.path().join("data"),
            fake::engines(),
        );
        options.node.jwt_key_dir = Some(dir.path().join("keys"));
        options.node.config = Some(config);
        change(&mut options);
        let handle = Server::bind(options).await.expect("server starts");
        let address = handle.local_addr();
        TestServer {
            handle: Some(handle),
            base: format!("http://{address}"),
            address,
            http: reqwest::Client::new(),
            dir,
        }
    }

    pub fn key_directory(&self) -> PathBuf {
        self.dir.path().join("keys")
    }

    pub fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let method = Method::from_bytes(method.as_bytes()).expect("method");
        self.http.request(method, format!("{}{path}", self.base))
    }

    pub async fn send(&self, method: &str, path: &str) -> Response {
        self.request(method, path).send().await.expect("response")
    }

    /// Status and body.
    pub async fn ask(&self, method: &str, path: &str) -> (u16, String) {
        answer(self.request(method, path)).await
    }

    pub async fn user(&self) -> User {
        let response = self.send("POST", "/v1/identity").await;
        assert_eq!(response.status(), 200);
        let body: serde_json::Value =
            serde_json::from_str(&response.text().await.expect("body")).expect("JSON");
        User {
            identity: body["identity"].as_str().expect("identity").to_owned(),
            token: body["token"].as_str().expect("token").to_owned(),
        }
    }

    /// No connection has kept its thread from the others, measured in the thread's own time.
    pub fn assert_short_polls(&self) {
        let handle = self.handle.as_ref().expect("running");
        let longest = handle.longest_poll();
        assert!(
            longest < POLL_MAX,
            "a connection kept its network thread for {longest:?}"
        );
    }

    pub async fn stop(mut self) -> tempfile::TempDir {
        self.assert_short_polls();
        self.handle.take().expect("running").shutdown().await;
        self.dir
    }
}

pub async fn answer(request: RequestBuilder) -> (u16, String) {
    let response = request.send().await.expect("response");
    (
        response.status().as_u16(),
        response.text().await.expect("body"),
    )
}

pub fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

pub fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response
        .headers()
        .get(name)
        .map(|value| value.to_str().expect("text"))
}
