//! Requests to real servers on this machine, through an allow-list; and what must never arrive there.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use lightcone_accounts::{Account, Kind};
use lightcone_outbound::{
    AllowList, Bounds, Lookup, Outbound, OutboundError, OutboundOptions, OwnPorts, Reach, Request,
    RequestShare, Response,
};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::TlsAcceptor;

const BOUNDS: Bounds = Bounds {
    timeout: Duration::from_secs(5),
    request_bytes_max: 10_000,
    response_bytes_max: 100_000,
};

/// A resolver whose answers follow one another; the last one stays.
#[derive(Default)]
struct Answers {
    left: Mutex<VecDeque<Vec<IpAddr>>>,
    asked: AtomicUsize,
}

impl Answers {
    fn of(answers: &[&[&str]]) -> Arc<Answers> {
        let addresses = |texts: &&[&str]| {
            let texts = texts.iter();
            texts
                .map(|text| text.parse().expect("an address"))
                .collect()
        };
        Arc::new(Answers {
            left: Mutex::new(answers.iter().map(addresses).collect()),
            asked: AtomicUsize::new(0),
        })
    }
}

impl Lookup for Answers {
    fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut left = self.left.lock().expect("no panic");
        let answer = match left.len() {
            0 => return Err(io::Error::other(format!("unknown host {host}"))),
            1 => left[0].clone(),
            _ => left.pop_front().expect("there are two"),
        };
        Ok(answer)
    }
}

fn outbound(allow: &[&str], lookup: Arc<dyn Lookup>) -> Arc<Outbound> {
    let options = OutboundOptions {
        allow: AllowList::parse(allow.iter().copied()).expect("a list"),
        lookup,
        ..OutboundOptions::current()
    };
    Arc::new(Outbound::new(options).expect("a client"))
}

fn request(method: &str, url: String) -> Request {
    Request {
        method: method.to_owned(),
        url,
        headers: vec![("x-a".to_owned(), b"1".to_vec())],
        body: Default::default(),
        account: Account::root(Kind::Instance, usize::MAX),
    }
}

/// Reads one request, head and body.
async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    loop {
        let mut buffer = [0; 1024];
        let read = stream.read(&mut buffer).await.unwrap_or(0);
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().expect("a number")) {
                return text;
            }
        }
        if read == 0 {
            return text;
        }
    }
}

async fn answer(stream: &mut (impl AsyncWrite + Unpin), text: &str) {
    // The client may have gone.
    let _ = stream.write_all(text.as_bytes()).await;
    let _ = stream.shutdown().await;
}

struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Answers its requests with these texts, the last one again and again.
    async fn start(answers: &[&str]) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let answers: Vec<String> = answers.iter().map(|text| (*text).to_owned()).collect();
        let noted = seen.clone();
        tokio::spawn(async move {
            for number in 0.. {
                let Ok((mut stream, _)) = listener.accept().await else {
                    return;
                };
                let text = read_request(&mut stream).await;
                noted.lock().expect("no panic").push(text);
                let number = answers.len().min(number + 1) - 1;
                let text = answers[number].replace("{port}", &address.port().to_string());
                tokio::spawn(async move { answer(&mut stream, &text).await });
            }
        });
        Server { address, seen }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().expect("no panic").clone()
    }
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-b: 1\r\nx-b: 2\r\n\r\nhi";

async fn ask(outbound: &Arc<Outbound>, url: String) -> Result<Response, OutboundError> {
    outbound.request(request("GET", url), BOUNDS).await
}

fn is_refused(result: Result<Response, OutboundError>) -> bool {
    let text = match result {
        Err(error @ OutboundError::Refused { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    text.starts_with("refusing to connect to private or special-purpose addresses")
}

#[tokio::test]
async fn a_request_and_its_answer() {
    let server = Server::start(&[OK]).await;
    let outbound = outbound(&["127.0.0.1"], Answers::of(&[]));
    let mut request = request("PATCH", server.url("/a?b=c"));
    request.body = "body".into();
    request.headers.push(("x-a".to_owned(), b"\xe9".to_vec()));
    request
        .headers
        .push(("Host".to_owned(), b"elsewhere".to_vec()));
    request
        .headers
        .push(("content-length".to_owned(), b"100000".to_vec()));
    let started = outbound.start(request, BOUNDS, RequestShare::default());
    let started = started.await.expect("an answer");
    let response = started.expect("an answer");
    assert_eq!((response.status, &response.body[..]), (200, &b"hi"[..]));
    let values: Vec<_> = response
        .headers
        .iter()
        .filter(|(name, _)| name == "x-b")
        .map(|(_, value)| &value[..])
        .collect();
    assert_eq!(values, [b"1", b"2"]);
    let seen = server.seen();
    assert!(seen[0].starts_with("PATCH /a?b=c HTTP/1.1\r\n"), "{seen:?}");
    assert!(seen[0].contains("x-a: 1\r\n"), "{seen:?}");
    assert!(
        seen[0].contains(&format!("host: {}", server.address)),
        "{seen:?}"
    );
    assert!(seen[0].contains("content-length: 4\r\n"), "{seen:?}");
    assert!(seen[0].ends_with("\r\n\r\nbody"), "{seen:?}");
}

#[tokio::test]
async fn this_machine_and_its_networks_are_refused() {
    let server = Server::start(&[OK]).await;
    let port = server.address.port();
    let outbound = outbound(&[], Answers::of(&[&["127.0.0.1", "::1", "10.0.0.1"]]));
    for host in [
        "localhost",
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "0",
        "name.test",
    ] {
        let url = format!("http://{host}:{port}/");
        assert!(is_refused(ask(&outbound, url.clone()).await), "{host}");
        let url = url.parse().expect("a URL");
        let error = outbound.get(url, Reach::Public, 10).await;
        assert!(
            matches!(error, Err(OutboundError::Refused { .. })),
            "{host}"
        );
    }
    assert_eq!(server.seen().len(), 0);
}

#[tokio::test]
async fn a_name_is_looked_up_once_and_the_connection_goes_to_what_was_checked() {
    let server = Server::start(&[OK]).await;
    let port = server.address.port();
    // The second answer would be refused: it is not asked for.
    let lookup = Answers::of(&[&["127.0.0.1"], &["10.0.0.1"]]);
    let client = outbound(&["127.0.0.1"], lookup.clone());
    let url = format!("http://rebinding.test:{port}/");
    assert_eq!(
        ask(&client, url.clone()).await.expect("answered").status,
        200
    );
    assert_eq!(lookup.asked.load(Ordering::Relaxed), 1);
    // The next request looks it up again, and so does not trust what was checked before.
    assert!(is_refused(ask(&client, url).await));

    // Of several addresses only those that were let through are tried.
    let lookup = Answers::of(&[&["127.0.0.2", "127.0.0.1"]]);
    let client = outbound(&["127.0.0.1"], lookup);
    let url = format!("http://mixed.test:{port}/");
    assert_eq!(ask(&client, url).await.expect("answered").status, 200);

    // A name that is listed may lead anywhere, and no other name.
    let lookup = Answers::of(&[&["127.0.0.1"]]);
    let client = outbound(&["billing.internal"], lookup);
    let url = format!("http://billing.internal:{port}/");
    assert_eq!(ask(&client, url).await.expect("answered").status, 200);
    assert!(is_refused(
        ask(&client, format!("http://other.internal:{port}/")).await
    ));
}

#[tokio::test]
async fn redirects_are_followed_and_checked() {
    let to = |status: u16, location: &str| {
        format!("HTTP/1.1 {status} Moved\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n")
    };
    let server = Server::start(&[&to(302, "/next?x=1"), OK]).await;
    let client = outbound(&["127.0.0.1"], Answers::of(&[&["127.0.0.1"]]));
    let mut post = request("POST", server.url("/first"));
    post.body = "body".into();
    post.headers
        .push(("authorization".to_owned(), b"s".to_vec()));
    let response = client.request(post.clone(), BOUNDS).await;
    assert_eq!(response.expect("answered").status, 200);
    let seen = server.seen();
    assert!(seen[1].starts_with("GET /next?x=1 "), "{seen:?}");
    assert!(seen[1].contains("authorization: s"), "{seen:?}");
    assert!(!seen[1].contains("body"), "{seen:?}");

    let server = Server::start(&[&to(307, "http://name.test:{port}/"), OK]).await;
    post.url = server.url("/");
    assert_eq!(
        client.request(post, BOUNDS).await.expect("answered").status,
        200
    );
    let seen = server.seen();
    assert!(
        seen[1].starts_with("POST / ") && seen[1].ends_with("body"),
        "{seen:?}"
    );
    assert!(!seen[1].contains("authorization"), "{seen:?}");

    for target in [
        "http://10.0.0.1/",
        "http://[::1]:{port}/",
        "http://169.254.169.254/latest",
    ] {
        let server = Server::start(&[&to(302, target), OK]).await;
        assert!(is_refused(ask(&client, server.url("/")).await), "{target}");
        assert_eq!(server.seen().len(), 1);
    }
    for target in ["file:///etc/passwd", "ftp://name.test/", "http://"] {
        let server = Server::start(&[&to(302, target), OK]).await;
        let error = ask(&client, server.url("/")).await.expect_err(target);
        assert!(matches!(error, OutboundError::Redirect(_)), "{error}");
    }
    let server = Server::start(&[&to(302, "/again")]).await;
    let error = ask(&client, server.url("/")).await.expect_err("a circle");
    assert_eq!(error.to_string(), "more than 10 redirects");
    assert_eq!(server.seen().len(), 11);
    // Without a target it is an answer like any other.
    let server = Server::start(&["HTTP/1.1 302 Found\r\ncontent-length: 0\r\n\r\n"]).await;
    assert_eq!(
        ask(&client, server.url("/"))
            .await
            .expect("answered")
            .status,
        302
    );
}

#[tokio::test]
async fn sizes_are_bounded() {
    let client = outbound(&["127.0.0.1"], Answers::of(&[]));
    let body = "x".repeat(100_001);
    for text in [
        format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ),
        format!("HTTP/1.1 200 OK\r\n\r\n{body}"),
        format!("HTTP/1.1 200 OK\r\nx-long: {body}\r\n\r\n"),
    ] {
        let server = Server::start(&[&text]).await;
        let error = ask(&client, server.url("/")).await.expect_err("too large");
        assert_eq!(error.to_string(), "the answer has more than 100000 bytes");
    }
    let many = "x: 1\r\n".repeat(1000);
    let server = Server::start(&[&format!("HTTP/1.1 200 OK\r\n{many}\r\n")]).await;
    ask(&client, server.url("/"))
        .await
        .expect_err("too many headers");

    let server = Server::start(&[OK]).await;
    let mut large = request("POST", server.url("/"));
    large.body = vec![0; 10_000].into();
    let error = client.request(large, BOUNDS).await.expect_err("too large");
    assert!(
        error.to_string().ends_with("at most 10000 may be sent"),
        "{error}"
    );
    assert_eq!(server.seen().len(), 0);
}

#[tokio::test]
async fn an_answer_counts_until_it_is_dropped() {
    let client = outbound(&["127.0.0.1"], Answers::of(&[]));
    let body = "y".repeat(90_000);
    let text = format!("HTTP/1.1 200 OK\r\n\r\n{body}");
    for (bytes_max, fits) in [(1_000_000, true), (50_000, false)] {
        let server = Server::start(&[&text]).await;
        let account = Account::root(Kind::Procedures, bytes_max);
        let mut request = request("GET", server.url("/"));
        request.account = account.clone();
        let answer = client.request(request, BOUNDS).await;
        match answer {
            Ok(response) => {
                assert!(fits && response.body.len() == 90_000);
                assert!(account.used() >= 90_000);
            }
            Err(error) => assert!(
                !fits && matches!(error, OutboundError::Memory(_)),
                "{error}"
            ),
        }
        assert_eq!(account.used(), 0);
    }
}

#[tokio::test]
async fn time_is_bounded() {
    let client = outbound(&["127.0.0.1"], Answers::of(&[]));
    // A body that never ends, a byte at a time.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                read_request(&mut stream).await;
                let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n";
                let mut sent = stream.write_all(head).await;
                while sent.is_ok() {
                    sent = stream.write_all(b"x").await;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            });
        }
    });
    let bounds = Bounds {
        timeout: Duration::from_millis(300),
        ..BOUNDS
    };
    let started = Instant::now();
    let slow = request("GET", format!("http://{address}/secret?key=1"));
    let error = client.request(slow, bounds).await.expect_err("too slow");
    assert_eq!(error.to_string(), "operation timed out after 300 ms");
    assert!(started.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn what_cannot_be_sent_is_said() {
    let client = outbound(&["127.0.0.1"], Answers::of(&[]));
    for (method, url, header, expected) in [
        (
            "GET",
            "nonsense?secret",
            "a",
            "nonsense is no URL for a request: ",
        ),
        (
            "GET",
            "file:///x",
            "a",
            "requests go to http:// and https://, and this is file:",
        ),
        (
            "G T",
            "http://127.0.0.1/",
            "a",
            "the request has a method that cannot be sent",
        ),
        (
            "GET",
            "http://127.0.0.1/",
            "a b",
            "the request has a header name that cannot be sent",
        ),
    ] {
        let mut request = request(method, url.to_owned());
        request.headers.push((header.to_owned(), Vec::new()));
        let error = client.request(request, BOUNDS).await.expect_err(expected);
        let text = error.to_string();
        assert!(text.starts_with(expected), "{text}");
        assert!(!text.contains("secret"), "{text}");
    }
    // No server listens; the query stays out of the text.
    let error = ask(&client, "http://127.0.0.1:9/path?secret".to_owned()).await;
    let text = error.expect_err("no listener").to_string();
    let expected =
        "error sending request for url (http://127.0.0.1:9/path): client error (Connect): ";
    assert!(text.starts_with(expected), "{text}");
    let error = ask(&client, "http://unknown.test/".to_owned()).await;
    let text = error.expect_err("no listener").to_string();
    assert!(
        text.contains("dns error: ") && text.ends_with("unknown host unknown.test"),
        "{text}"
    );
}

#[tokio::test]
async fn more_headers_than_a_request_may_have_are_refused() {
    let client = outbound(&["127.0.0.1"], Answers::of(&[]));
    let mut request = request("GET", "http://127.0.0.1:9/".to_owned());
    request.headers = (0..40_000)
        .map(|number| (format!("x-{number}"), Vec::new()))
        .collect();
    let bounds = Bounds {
        request_bytes_max: 1 << 30,
        ..BOUNDS
    };
    let error = client.request(request, bounds).await;
    let text = error.expect_err("too many").to_string();
    assert!(
        text.ends_with("there are 40000; at most 256 are sent"),
        "{text}"
    );
}

/// A machine with a public address, which every name leads to.
struct Exposed;

const EXPOSED: &str = "192.0.1.7";

impl Lookup for Exposed {
    fn addresses(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        self.own_addresses()
    }

    fn own_addresses(&self) -> io::Result<Vec<IpAddr>> {
        Ok(vec![EXPOSED.parse().expect("an address")])
    }
}

#[tokio::test]
async fn public_addresses_of_this_machine_are_refused_unless_listed() {
    let is_refused = |error: &OutboundError| matches!(error, OutboundError::Refused { .. });
    let bounds = Bounds {
        timeout: Duration::from_millis(300),
        ..BOUNDS
    };
    for host in ["name.test", EXPOSED] {
        for (allow, expected) in [(&[][..], true), (&[EXPOSED], false)] {
            let client = outbound(allow, Arc::new(Exposed));
            let request = request("GET", format!("http://{host}:9/"));
            // A server may even answer there.
            let answer = client.request(request, bounds).await;
            assert_eq!(
                answer.is_err_and(|e| is_refused(&e)),
                expected,
                "{host} {allow:?}"
            );
        }
        let url: lightcone_outbound::Url = format!("http://{host}:9/").parse().expect("a URL");
        let client = outbound(&[], Arc::new(Exposed));
        let error = client.get(url, Reach::Public, 1).await.expect_err(host);
        assert!(is_refused(&error), "an issuer");
    }
}

/// Names without an answer until the gate opens.
#[derive(Default)]
struct Slow {
    state: Mutex<(usize, bool)>,
    opened: Condvar,
}

impl Slow {
    fn waiting(&self) -> usize {
        self.state.lock().expect("no panic").0
    }

    async fn until_they_wait(&self, count: usize) {
        let reached = async {
            while self.waiting() < count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let reached = tokio::time::timeout(Duration::from_secs(10), reached);
        reached.await.expect("as many are looked up");
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(self.waiting(), count);
    }

    fn open(&self) {
        self.state.lock().expect("no panic").1 = true;
        self.opened.notify_all();
    }
}

impl Lookup for Slow {
    fn addresses(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        let mut state = self.state.lock().expect("no panic");
        state.0 += 1;
        let opened = self.opened.wait_while(state, |state| !state.1);
        drop(opened.expect("no panic"));
        Err(io::Error::other("unknown host"))
    }
}

#[tokio::test]
async fn one_that_looks_up_slow_names_leaves_others_some() {
    let slow = Arc::new(Slow::default());
    let client = outbound(&[], slow.clone());
    let (greedy, other) = (RequestShare::default(), RequestShare::default());
    let ask = |share: &RequestShare, n| {
        let request = request("GET", format!("http://n{n}.test/"));
        client.start(request, BOUNDS, share.clone())
    };
    let of_greedy: Vec<_> = (0..40).map(|n| ask(&greedy, n)).collect();
    slow.until_they_wait(8).await;
    // Those who have gone still occupy threads.
    drop(of_greedy);
    let again: Vec<_> = (40..80).map(|n| ask(&greedy, n)).collect();
    let of_other = ask(&other, 80);
    slow.until_they_wait(9).await;
    slow.open();
    let answer = of_other.await.expect("an answer").expect_err("no address");
    assert!(answer.to_string().contains("unknown host"), "{answer}");
    drop(again);
}

#[tokio::test]
async fn tls_is_checked_against_the_certificates_that_are_configured() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tls/");
    let pem = |name: &str| std::fs::read(format!("{directory}{name}")).expect(name);
    let certificate = CertificateDer::from_pem_slice(&pem("server.pem")).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(&pem("server.key")).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a server");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(mut stream) = acceptor.accept(stream).await {
                read_request(&mut stream).await;
                answer(&mut stream, OK).await;
            }
        }
    });
    let client = |certificates: Vec<Vec<u8>>| {
        let options = OutboundOptions {
            allow: AllowList::parse(["127.0.0.1"]).expect("a list"),
            lookup: Answers::of(&[&["127.0.0.1"]]),
            certificates,
            ..OutboundOptions::current()
        };
        Outbound::new(options).map(Arc::new)
    };
    let trusting = client(vec![pem("ca.pem")]).expect("a client");
    let url = |host: &str| format!("https://{host}:{port}/");
    let response = ask(&trusting, url("secure.test")).await;
    assert_eq!(response.expect("trusted").status, 200);
    let error = ask(&trusting, url("other.test")).await;
    let text = error.expect_err("another name").to_string();
    assert!(text.contains("certificate"), "{text}");
    let error = ask(&client(Vec::new()).expect("a client"), url("secure.test")).await;
    let text = error.expect_err("not trusted").to_string();
    assert!(text.contains("certificate"), "{text}");
    client(vec![
        b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_vec(),
    ])
    .err()
    .expect("no certificate");
}

/// What this process serves takes a request from its machine for one of a program there, so that no list lets modules ask it.
#[tokio::test]
async fn own_ports_are_reached_by_nothing_that_is_listed() {
    let (own, other) = (Server::start(&[OK]).await, Server::start(&[OK]).await);
    let own_ports = OwnPorts::default();
    let options = OutboundOptions {
        allow: AllowList::parse(["127.0.0.0/8", "0.0.0.0", "::/0", "name.test"]).expect("a list"),
        lookup: Answers::of(&[&["127.0.0.1", "::1"]]),
        own_ports: own_ports.clone(),
        ..OutboundOptions::current()
    };
    let client = Arc::new(Outbound::new(options).expect("a client"));
    let port = own.address.port();
    assert!(
        ask(&client, own.url("/")).await.is_ok(),
        "it is not known yet"
    );
    own_ports.add(port);
    let redirect = format!(
        "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:{port}/\r\ncontent-length: 0\r\n\r\n"
    );
    let elsewhere = Server::start(&[&redirect]).await;
    for url in [
        format!("http://127.0.0.1:{port}/"),
        format!("http://127.1.2.3:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("http://0:{port}/"),
        format!("http://[::1]:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://name.test:{port}/"),
        elsewhere.url("/"),
    ] {
        let refused = ask(&client, url.clone()).await;
        assert!(
            matches!(refused, Err(OutboundError::OwnPort { .. })),
            "{url}: {refused:?}"
        );
    }
    assert_eq!(own.seen().len(), 1);
    let listed = format!("http://name.test:{}/", other.address.port());
    for url in [other.url("/"), listed] {
        assert_eq!(ask(&client, url).await.expect("an answer").status, 200);
    }
    // The operator's own requests go where he says.
    let url = own.url("/").parse().expect("a URL");
    assert!(client.get(url, Reach::Any, 10).await.is_ok());
}

/// Each request has a socket: there are as many as there are descriptors for them, and one owner does not have all.
#[tokio::test]
async fn requests_are_bounded_and_one_share_leaves_others_some() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let options = OutboundOptions {
        allow: AllowList::parse(["127.0.0.1"]).expect("a list"),
        requests_max: 4,
        ..OutboundOptions::current()
    };
    let client = Arc::new(Outbound::new(options).expect("a client"));
    let ask = |share: &RequestShare| {
        let request = request("GET", format!("http://{address}/"));
        client.start(request, BOUNDS, share.clone())
    };
    let accepted = |count: usize| {
        let listener = &listener;
        async move {
            let mut accepted = Vec::new();
            let accept = async {
                loop {
                    accepted.push(listener.accept().await.expect("a connection").0);
                }
            };
            // All clients have connected by then.
            let _ = tokio::time::timeout(Duration::from_millis(300), accept).await;
            assert_eq!(accepted.len(), count);
            accepted
        }
    };
    let (greedy, second, third) = (client.share(), client.share(), client.share());
    let of_greedy: Vec<_> = (0..10).map(|_| ask(&greedy)).collect();
    let held = accepted(2).await;
    let of_second: Vec<_> = (0..3).map(|_| ask(&second)).collect();
    let more = accepted(2).await;
    let of_third = ask(&third);
    accepted(0).await;
    // Those who have gone make room, and those who wait behind them are gone too.
    drop(of_greedy);
    let mut of_third_held = accepted(1).await;
    drop(held);
    answer(&mut of_third_held[0], OK).await;
    let answered = of_third.await.expect("an answer").expect("an answer");
    assert_eq!(answered.status, 200);
    drop((of_second, more));
}

#[tokio::test]
async fn named_targets_are_asked_again_on_connections_that_are_kept() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = connections.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                // The third request of a connection is not answered.
                for body in ["one", "two"] {
                    read_request(&mut stream).await;
                    let text = format!("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{body}");
                    stream.write_all(text.as_bytes()).await.expect("written");
                }
            });
        }
    });
    let outbound = outbound(&[], Answers::of(&[]));
    let url = format!("http://{address}/").parse().expect("a URL");
    let ask = || outbound.post_for_answer(&url, &[], b"x".to_vec(), BOUNDS.timeout, 100);
    for body in ["one", "two"] {
        let answer = ask().await.expect("an answer");
        assert_eq!(answer, (200, body.as_bytes().to_vec()));
    }
    assert_eq!(connections.load(Ordering::Relaxed), 1);
    // A connection that was closed meanwhile costs one attempt at the most.
    let _ = ask().await;
    assert_eq!(ask().await.expect("an answer").0, 200);
    assert_eq!(connections.load(Ordering::Relaxed), 2);
}
