//! PostgreSQL's protocol encrypted: who may come in how, and with which certificate.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use crate::common;
use crate::common::postgres::{ended, named, run, send, start_with};
use crate::common::{config, TestServer, User};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

/// A certificate for localhost, by an authority of its own. False, and said loudly: there is no openssl.
fn make_certificate(directory: &Path) -> bool {
    let openssl = |arguments: &str| {
        let run = Command::new("openssl")
            .args(arguments.split(' '))
            .current_dir(directory)
            .output();
        run.map(|output| {
            let err = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{arguments}: {err}");
        })
    };
    if Command::new("openssl").arg("version").output().is_err() {
        eprintln!("SKIPPED: there is no openssl; install the package openssl");
        return false;
    }
    std::fs::write(
        directory.join("names"),
        "subjectAltName=DNS:localhost,IP:127.0.0.1",
    )
    .expect("written");
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    for arguments in [
        format!("req -x509 {key} -keyout ca.key -out ca.pem -days 2 -subj /CN=tests"),
        format!("req {key} -keyout key.pem -out request.pem -subj /CN=localhost"),
        "x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -out cert.pem -days 2 -extfile names".to_owned(),
    ] {
        openssl(&arguments).expect("openssl runs");
    }
    true
}

async fn start_encrypted(directory: &Path, more: &str) -> (TestServer, SocketAddr, User) {
    let path = |name: &str| directory.join(name).display().to_string();
    let text = format!(
        "[postgres]\ncertificate = {:?}\nkey = {:?}\n{more}",
        path("cert.pem"),
        path("key.pem")
    );
    let (server, address, user) = start_with(&text).await;
    named(&server, &user, "bank").await;
    (server, address, user)
}

async fn psql(address: SocketAddr, token: &str, settings: &str) -> Option<(String, String)> {
    let mut psql = Command::new("psql");
    psql.args(["-X", "-A", "-t", "-c", "SELECT 1"])
        .arg(format!(
            "host=localhost hostaddr=127.0.0.1 port={} user=me dbname=bank {settings}",
            address.port()
        ))
        .env("PGPASSWORD", token);
    run(psql, "postgresql-client").await
}

#[tokio::test(flavor = "multi_thread")]
async fn psql_encrypts_and_checks_who_is_there() {
    let directory = tempfile::tempdir().expect("a directory");
    if !make_certificate(directory.path()) {
        return;
    }
    let (server, address, user) = start_encrypted(directory.path(), "").await;
    let root = directory.path().join("ca.pem").display().to_string();
    for settings in [
        "sslmode=disable".to_owned(),
        "sslmode=prefer".to_owned(),
        "sslmode=require".to_owned(),
        format!("sslmode=verify-full sslrootcert={root}"),
    ] {
        let Some((out, err)) = psql(address, &user.token, &settings).await else {
            return;
        };
        assert_eq!((out.as_str(), err.as_str()), ("1\n", ""), "{settings}");
    }
    let other = tempfile::tempdir().expect("a directory");
    assert!(make_certificate(other.path()));
    let root = other.path().join("ca.pem").display().to_string();
    let settings = format!("sslmode=verify-full sslrootcert={root}");
    let (_, err) = psql(address, &user.token, &settings).await.expect("psql");
    assert!(err.contains("certificate verify failed"), "{err}");
    let (_, err) = psql(address, "nonsense", "sslmode=require")
        .await
        .expect("psql");
    assert!(err.contains("FATAL:  Invalid token: InvalidToken"), "{err}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_encrypt_is_refused_before_the_token() {
    let directory = tempfile::tempdir().expect("a directory");
    if !make_certificate(directory.path()) {
        return;
    }
    let (server, address, user) = start_encrypted(directory.path(), "require-tls = true").await;
    let mut startup = 196_608_u32.to_be_bytes().to_vec();
    startup.extend(b"user\0u\0database\0bank\0\0");
    let mut plain = TcpStream::connect(address).await.expect("connected");
    send(&mut plain, None, &startup).await;
    let answer = String::from_utf8_lossy(&ended(&mut plain).await).into_owned();
    assert!(
        answer.starts_with('E') && answer.contains("C28000"),
        "{answer}"
    );
    // Asks for encryption, and then goes on without it, or ahead of it.
    let request = 80_877_103_u32.to_be_bytes();
    let mut ahead = TcpStream::connect(address).await.expect("connected");
    let mut both = 8_u32.to_be_bytes().to_vec();
    both.extend(request);
    both.extend((startup.len() as u32 + 4).to_be_bytes());
    both.extend(&startup);
    ahead.write_all(&both).await.expect("sent");
    assert_eq!(ended(&mut ahead).await, b"S");
    let mut plain = TcpStream::connect(address).await.expect("connected");
    send(&mut plain, None, &request).await;
    assert_eq!(plain.read_u8().await.expect("an answer"), b'S');
    send(&mut plain, None, &startup).await;
    let answer = ended(&mut plain).await;
    assert!(
        !answer.windows(4).any(|part| part == b"R\0\0\0"),
        "{answer:?}"
    );
    if let Some((out, err)) = psql(address, &user.token, "sslmode=prefer").await {
        assert_eq!(out, "1\n", "{err}");
        let (_, err) = psql(address, &user.token, "sslmode=disable")
            .await
            .expect("psql");
        assert!(err.contains("sslmode=require"), "{err}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_may_come_first_if_it_says_what_for() {
    let directory = tempfile::tempdir().expect("a directory");
    if !make_certificate(directory.path()) {
        return;
    }
    let (server, address, _) = start_encrypted(directory.path(), "").await;
    let root = std::fs::read(directory.path().join("ca.pem")).expect("read");
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(&root).expect("a certificate");
    roots.add(root).expect("an authority");
    for (protocols, is_served) in [
        (vec![b"postgresql".to_vec()], true),
        (vec![b"http/1.1".to_vec()], false),
        (Vec::new(), false),
    ] {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions");
        let mut config = config
            .with_root_certificates(roots.clone())
            .with_no_client_auth();
        config.alpn_protocols = protocols;
        let stream = TcpStream::connect(address).await.expect("connected");
        let name = ServerName::try_from("localhost").expect("a name");
        let mut answer = Vec::new();
        if let Ok(mut stream) = TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
        {
            let mut startup = 29_u32.to_be_bytes().to_vec();
            startup.extend(196_608_u32.to_be_bytes());
            startup.extend(b"user\0u\0database\0b\0\0");
            startup[3] = startup.len() as u8;
            let _ = stream.write_all(&startup).await;
            let mut first = [0; 9];
            if stream.read_exact(&mut first).await.is_ok() {
                answer = first.to_vec();
            }
        }
        // It asks for the password.
        assert_eq!(answer == b"R\0\0\0\x08\0\0\0\x03", is_served, "{answer:?}");
    }
    server.stop().await;
}

#[test]
fn what_does_not_fit_is_said_at_the_start() {
    let refused = |text: &str| {
        let config = lightcone_node::config::Config::parse(text, "config.toml".as_ref());
        config.expect_err("it is refused").to_string()
    };
    let error = refused("[postgres]\nrequire-tls = true");
    assert!(
        error.contains("postgres.certificate") && error.ends_with("[LC0102]"),
        "{error}"
    );
    let error = refused("[postgres]\ncertificate = \"a\"");
    assert!(error.contains("postgres.key"), "{error}");
    assert!(!config("").postgres.require_tls);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_are_no_certificate_keep_the_server_from_starting() {
    let directory = tempfile::tempdir().expect("a directory");
    if !make_certificate(directory.path()) {
        return;
    }
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("empty"), "nothing").expect("written");
    for (certificate, key, expected) in [
        ("missing", "key.pem", "No such file"),
        ("empty", "key.pem", "there is no certificate in it"),
        ("cert.pem", "ca.pem", "no items found"),
        ("cert.pem", "ca.key", ""),
    ] {
        let text = format!(
            "[postgres]\ncertificate = {:?}\nkey = {:?}",
            path(certificate).display().to_string(),
            path(key).display().to_string()
        );
        let data = tempfile::tempdir().expect("a directory");
        let mut options = lightcone_server::ServerOptions::new(
            "127.0.0.1:0".parse().expect("an address"),
            data.path().join("data"),
            common::fake::engines(),
        );
        options.node.jwt_key_dir = Some(data.path().join("keys"));
        options.node.config = Some(config(&text));
        let started = lightcone_server::Server::bind(options).await;
        let error = started.err().expect("it does not start").to_string();
        assert!(
            error.contains(expected) && error.ends_with("[LC0140]"),
            "{error}"
        );
    }
}
