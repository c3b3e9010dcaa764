//! Tokens of other issuers: whose are accepted, and whom the server asks for their keys (06 §3.4).

use crate::common;
use crate::common::tokens::{now, ping};
use crate::common::{answer, header, TestServer};
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::Engine as _;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use lightcone_types::Identity;
use serde_json::{json, Value};

type Count = std::sync::Arc<std::sync::atomic::AtomicUsize>;

/// A token issuer on localhost with one ES256 key, counting the requests to it.
struct Issuer {
    base: String,
    key: EncodingKey,
    asked: Count,
}

async fn issuer() -> Issuer {
    issuer_with(|base| format!("{base}/keys")).await
}

/// `keys_at` says where its keys are, given its address. Below `/moved` everything is redirected, below `/slow` nothing answers.
async fn issuer_with(keys_at: impl Fn(&str) -> String) -> Issuer {
    use axum::http::{StatusCode, Uri};
    use p256::elliptic_curve::sec1::ToSec1Point as _;
    use p256::pkcs8::EncodePrivateKey as _;
    let key = p256::SecretKey::from_slice(&[7; 32]).expect("key");
    let point = key.public_key().to_sec1_point(false);
    let coordinate =
        |range: std::ops::Range<usize>| URL_SAFE_NO_PAD.encode(&point.as_bytes()[range]);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("bind");
    let base = format!("http://{}", listener.local_addr().expect("address"));
    let discovery = json!({ "issuer": base, "jwks_uri": keys_at(&base) }).to_string();
    let keys = json!({ "keys": [{
        "kty": "EC", "crv": "P-256", "alg": "ES256", "kid": "one", "use": "sig",
        "x": coordinate(1..33), "y": coordinate(33..65),
    }]})
    .to_string();
    let asked = Count::default();
    let counter = asked.clone();
    let address = base.clone();
    let router = axum::Router::new().fallback(move |uri: Uri| {
        counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let (discovery, keys, address) = (discovery.clone(), keys.clone(), address.clone());
        async move {
            let path = uri.path();
            if path.starts_with("/slow") {
                std::future::pending::<()>().await;
            }
            if let Some(rest) = path.strip_prefix("/moved") {
                return (
                    StatusCode::FOUND,
                    [("location", format!("{address}{rest}"))],
                    String::new(),
                );
            }
            let body = if path.ends_with("/keys") {
                keys
            } else {
                discovery
            };
            (StatusCode::OK, [("x-path", path.to_owned())], body)
        }
    });
    tokio::spawn(async move { axum::serve(listener, router).await });
    let pem = key.to_pkcs8_pem(p256::pkcs8::LineEnding::LF).expect("PEM");
    let key = EncodingKey::from_ec_pem(pem.as_bytes()).expect("key");
    Issuer { base, key, asked }
}

impl Issuer {
    fn asked(&self) -> usize {
        self.asked.load(std::sync::atomic::Ordering::Relaxed)
    }

    fn sign(&self, claims: &Value, kid: Option<&str>) -> String {
        let header = Header {
            kid: kid.map(str::to_owned),
            ..Header::new(Algorithm::ES256)
        };
        jsonwebtoken::encode(&header, claims, &self.key).expect("token")
    }

    /// A good token of an issuer at this address.
    fn token(&self, issuer: &str) -> String {
        let claims = json!({ "iss": issuer, "sub": "carol", "iat": 1, "exp": now() + 100 });
        self.sign(&claims, None)
    }
}

/// A server that accepts what is listed.
async fn accepting(issuers: &[&str], more: &str) -> TestServer {
    let text = format!("[auth]\nforeign-issuers = {issuers:?}\n{more}");
    TestServer::start_with(common::config(&text)).await
}

#[tokio::test]
async fn foreign_issuers() {
    let issuer = issuer().await;
    let slash = format!("{}/", issuer.base);
    let gone = "http://127.0.0.1:9";
    let server = accepting(&[&issuer.base, &slash, gone], "").await;
    let claims = json!({ "iss": issuer.base, "sub": "carol", "iat": 1, "exp": now() + 100 });
    for kid in [Some("one"), None] {
        let answered = ping(&server, &issuer.sign(&claims, kid)).await;
        assert_eq!(answered, (200, String::new()));
    }
    assert_eq!(issuer.asked(), 2, "keys are remembered");
    let unknown = ping(&server, &issuer.sign(&claims, Some("two"))).await;
    assert_eq!(unknown, (401, "Specified key ID not found in JWKs".into()));
    // The identity depends on the issuer as it is written.
    assert_eq!(ping(&server, &issuer.token(&slash)).await.0, 200);
    let response = server
        .request("GET", "/v1/database/x/identity")
        .bearer_auth(issuer.token(&slash))
        .send()
        .await;
    let identity = Identity::from_claims(&slash, "carol").to_hex();
    assert_eq!(
        header(&response.expect("response"), "spacetime-identity"),
        Some(identity.as_str())
    );
    // A token of the local issuer never leads to a request.
    assert_eq!(
        ping(&server, &issuer.token("localhost")).await,
        (401, "Invalid token: InvalidSignature".into())
    );
    let expected = format!("Error fetching public key for issuer {gone}");
    assert_eq!(ping(&server, &issuer.token(gone)).await, (401, expected));
}

/// What a stranger's token names is asked for nothing.
#[tokio::test]
async fn tokens_do_not_point_inside() {
    let issuer = issuer().await;
    let port = issuer.base.rsplit(':').next().expect("a port").to_owned();
    let inside = |scheme: &str, host: &str| format!("{scheme}://{host}:{port}");
    let mut names = vec![
        format!("{}/a?b#c", issuer.base),
        format!("{}/#", issuer.base),
        "file:///etc/passwd".to_owned(),
        "http://169.254.169.254".to_owned(),
        "https://169.254.169.254".to_owned(),
    ];
    for host in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "2130706433",
        "127.1",
        "0.0.0.0",
        "user@127.0.0.1",
    ] {
        names.push(inside("http", host));
        names.push(inside("https", host));
    }
    let server = TestServer::start().await;
    for name in names {
        let (status, body) = ping(&server, &issuer.token(&name)).await;
        let expected = format!("Error fetching public key for issuer {name}: ");
        assert!(
            status == 401 && body.starts_with(&expected) && body.ends_with("[LC0135]"),
            "{name}: {status} {body}"
        );
    }
    assert_eq!(issuer.asked(), 0);
}

/// The operator has allowed one host, not what it points to.
#[tokio::test]
async fn issuers_do_not_point_elsewhere() {
    let other = issuer().await;
    let elsewhere = other.base.replace("127.0.0.1", "127.0.0.2") + "/keys";
    let issuer = issuer_with(|_| elsewhere.clone()).await;
    let moved = format!("{}/moved", other.base);
    let server = accepting(&[&issuer.base, &moved, &other.base], "").await;
    assert_eq!(
        ping(&server, &issuer.token(&issuer.base)).await.0,
        401,
        "other host"
    );
    assert_eq!(other.asked(), 0);
    assert_eq!(ping(&server, &other.token(&moved)).await.0, 401, "redirect");
    assert_eq!(other.asked(), 1);
    assert_eq!(ping(&server, &other.token(&other.base)).await.0, 200);
}

/// One that says that it is another is not asked for keys.
#[tokio::test]
async fn an_issuer_is_who_it_says() {
    let issuer = issuer().await;
    let tenant = format!("{}/tenant", issuer.base);
    let server = accepting(&[&tenant], "").await;
    let (status, body) = ping(&server, &issuer.token(&tenant)).await;
    let expected = format!("Error fetching public key for issuer {tenant}");
    assert_eq!((status, body), (401, expected));
    assert_eq!(issuer.asked(), 1, "its keys were not fetched");
}

/// Keys in files: no issuer is asked, and what is no key stops the start.
#[tokio::test]
async fn pinned_keys() {
    let issuer = issuer().await;
    let directory = tempfile::tempdir().expect("a directory");
    let keys = answer(reqwest::Client::new().get(format!("{}/keys", issuer.base)))
        .await
        .1;
    let (good, bad) = (
        directory.path().join("good.json"),
        directory.path().join("bad.json"),
    );
    std::fs::write(&good, keys).expect("written");
    std::fs::write(&bad, "{\"keys\":[]}").expect("written");
    let asked = issuer.asked();
    let text = |issuer: &str, file: &std::path::Path| {
        format!("[auth]\nforeign-issuers = \"none\"\naudiences = [\"app\"]\nkeys = {{ {issuer:?} = {file:?} }}")
    };
    for name in ["my-backend", &issuer.base] {
        let server = TestServer::start_with(common::config(&text(name, &good))).await;
        let mut claims = json!({ "iss": name, "sub": "carol", "iat": 1, "aud": "app" });
        for kid in [Some("one"), None] {
            let (status, body) = ping(&server, &issuer.sign(&claims, kid)).await;
            assert_eq!((status, &body[..]), (200, ""), "{name} {kid:?}");
        }
        let (status, body) = ping(&server, &issuer.sign(&claims, Some("two"))).await;
        assert_eq!(
            (status, &body[..]),
            (401, "Specified key ID not found in JWKs")
        );
        claims["aud"] = json!("other");
        assert_eq!(ping(&server, &issuer.sign(&claims, None)).await.0, 401);
        claims["iss"] = json!("another");
        assert_eq!(ping(&server, &issuer.sign(&claims, None)).await.0, 401);
    }
    assert_eq!(issuer.asked(), asked);
    for file in [&bad, &directory.path().join("none.json")] {
        let mut options = lightcone_server::ServerOptions::new(
            "127.0.0.1:0".parse().expect("an address"),
            directory.path().join("data"),
            common::fake::engines(),
        );
        options.node.jwt_key_dir = Some(directory.path().join("keys"));
        options.node.config = Some(common::config(&text("x", file)));
        let error = lightcone_server::Server::bind(options).await.err();
        let error = error.expect("refused").to_string();
        assert!(error.ends_with("[LC0143]"), "{error}");
    }
    for name in ["localhost", "", "a|b", "a\nb"] {
        let text = text(name, &good);
        let parsed = lightcone_node::config::Config::parse(&text, "config.toml".as_ref());
        let error = parsed.expect_err(name).to_string();
        assert!(error.contains("auth.keys"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_issuers_delay_no_other_caller() {
    let issuer = issuer().await;
    let slow: Vec<_> = (0..40)
        .map(|number| format!("{}/slow/{number}", issuer.base))
        .collect();
    let mut accepted: Vec<_> = slow.iter().map(String::as_str).collect();
    accepted.push(&issuer.base);
    let server = accepting(&accepted, "").await;
    let ping = |name: &str| {
        let request = server.request("GET", "/v1/ping");
        request.bearer_auth(issuer.token(name)).send()
    };
    let waiting: Vec<_> = slow
        .iter()
        .flat_map(|name| [ping(name), ping(name)])
        .map(tokio::spawn)
        .collect();
    let all_asked = async {
        while issuer.asked() < slow.len() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    // Well below the time after which one of them is given up.
    let limit = std::time::Duration::from_secs(6);
    tokio::time::timeout(limit, all_asked)
        .await
        .expect("no caller waits for another issuer");
    let good = tokio::time::timeout(limit, ping(&issuer.base)).await;
    assert_eq!(good.expect("in time").expect("response").status(), 200);
    assert!(waiting.iter().any(|request| !request.is_finished()));
    assert_eq!(
        issuer.asked(),
        slow.len() + 2,
        "one request to each at a time"
    );
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn claims_of_foreign_tokens() {
    let issuer = issuer().await;
    let server = accepting(&[&issuer.base], "audiences = [\"app\", \"game\"]").await;
    let base = json!({ "iss": issuer.base, "sub": "carol", "iat": 1, "aud": "app" });
    for (changes, expected) in [
        (json!({}), ""),
        (json!({ "aud": ["other", "game"] }), ""),
        (json!({ "aud": "other" }), "Invalid token: InvalidAudience"),
        (json!({ "aud": [] }), "Invalid token: InvalidAudience"),
        (json!({ "aud": null }), "Invalid token: InvalidAudience"),
        (json!({ "iat": now() + 50 }), ""),
        (
            json!({ "iat": now() + 70 }),
            "Invalid token: ImmatureSignature",
        ),
        (
            json!({ "nbf": now() + 70 }),
            "Invalid token: ImmatureSignature",
        ),
        (json!({ "exp": now() - 50 }), ""),
        (
            json!({ "exp": now() - 70 }),
            "Invalid token: ExpiredSignature",
        ),
    ] {
        let mut claims = base.clone();
        for (name, value) in changes.as_object().expect("object") {
            claims[name] = value.clone();
        }
        let (status, body) = ping(&server, &issuer.sign(&claims, None)).await;
        let status_expected = if expected.is_empty() { 200 } else { 401 };
        assert_eq!((status, &body[..]), (status_expected, expected), "{claims}");
    }
    // The server's own tokens have an audience of its own.
    let own = server.user().await;
    assert_eq!(ping(&server, &own.token).await.0, 200);
}
