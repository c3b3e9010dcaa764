//! Clients of PostgreSQL's protocol: a driver, programs, and bytes by hand.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls};

use super::{config, TestServer, User};

/// What is published for these tests.
pub const MODULE: &str = "module secret typed";

pub async fn start() -> (TestServer, SocketAddr, User) {
    start_with("").await
}

pub async fn start_with(text: &str) -> (TestServer, SocketAddr, User) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let server = TestServer::start_as(directory, config(text), |options| {
        options.postgres_addr = Some("127.0.0.1:0".parse().expect("an address"));
    })
    .await;
    let handle = server.handle.as_ref().expect("it runs");
    let address = handle.postgres_addr().expect("it is on");
    let user = server.user().await;
    let published = server
        .request("POST", "/v1/database?host_type=Wasm")
        .bearer_auth(&user.token)
        .body(MODULE);
    assert!(published
        .send()
        .await
        .expect("a response")
        .status()
        .is_success());
    (server, address, user)
}

pub async fn named(server: &TestServer, user: &User, name: &str) {
    let published = server
        .request("PUT", &format!("/v1/database/{name}"))
        .bearer_auth(&user.token)
        .body(MODULE);
    let response = published.send().await.expect("a response");
    assert!(response.status().is_success(), "{}", response.status());
}

pub async fn connect(
    address: SocketAddr,
    database: &str,
    token: &str,
) -> Result<Client, tokio_postgres::Error> {
    let mut config = Config::new();
    config
        .host("127.0.0.1")
        .port(address.port())
        .user("anyone")
        .dbname(database)
        .password(token);
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

pub fn code(error: &tokio_postgres::Error) -> &str {
    error.code().map_or("", SqlState::code)
}

pub async fn send(stream: &mut TcpStream, kind: Option<u8>, body: &[u8]) {
    let mut message: Vec<u8> = kind.into_iter().collect();
    message.extend((body.len() as u32 + 4).to_be_bytes());
    message.extend_from_slice(body);
    stream.write_all(&message).await.expect("sent");
}

pub async fn ended(stream: &mut TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    let end = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut answer));
    let _ = end.await.expect("the connection ends");
    answer
}

/// A session by hand, ready for messages.
pub async fn by_hand(address: SocketAddr, token: &str) -> TcpStream {
    let mut startup = 196_608_u32.to_be_bytes().to_vec();
    startup.extend(b"user\0u\0database\0bank\0\0");
    let mut stream = TcpStream::connect(address).await.expect("connected");
    send(&mut stream, None, &startup).await;
    send(&mut stream, Some(b'p'), format!("{token}\0").as_bytes()).await;
    answers(&mut stream).await;
    stream
}

/// The server's messages up to the next that says that it is ready.
pub async fn answers(stream: &mut TcpStream) -> Vec<(u8, String)> {
    let read = async {
        let mut answers = Vec::new();
        loop {
            let kind = stream.read_u8().await.expect("a message");
            let length = stream.read_u32().await.expect("a length");
            let mut body = vec![0; length as usize - 4];
            stream.read_exact(&mut body).await.expect("a body");
            if kind == b'Z' {
                return answers;
            }
            answers.push((kind, String::from_utf8_lossy(&body).into_owned()));
        }
    };
    let answers = tokio::time::timeout(Duration::from_secs(20), read);
    answers.await.expect("the server answers")
}

/// Output and errors of a program. None, and said loudly: it is not there.
pub async fn run(mut program: Command, package: &str) -> Option<(String, String)> {
    let name = program.get_program().to_owned();
    let run = tokio::task::spawn_blocking(move || program.output());
    let Ok(output) = run.await.expect("no panic") else {
        eprintln!("SKIPPED: there is no {name:?}; install the package {package}");
        return None;
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some((text(&output.stdout), text(&output.stderr)))
}

/// psql with some commands: rows without decoration, and nothing but them.
pub async fn psql(address: SocketAddr, token: &str, commands: &[&str]) -> Option<(String, String)> {
    let mut psql = Command::new("psql");
    psql.args([
        "-X",
        "-A",
        "-t",
        "-h",
        "127.0.0.1",
        "-U",
        "me",
        "-d",
        "bank",
    ])
    .args(["-p", &address.port().to_string()])
    .env("PGPASSWORD", token)
    .env("PGSSLMODE", "prefer");
    for command in commands {
        psql.args(["-c", command]);
    }
    run(psql, "postgresql-client").await
}
