//! Tokens, credentials and identity routes (06 §3, §5.2, §7).

mod common;

use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::Engine as _;
use common::{answer, header, json, TestServer};
use jsonwebtoken::{Algorithm, EncodingKey, Header};

use lightcone_types::Identity;
use serde_json::{json, Value};

fn now() -> i64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("clock")
        .as_secs() as i64
}

fn sign_with(key_directory: &std::path::Path, header: &Header, claims: &Value) -> String {
    let pem = std::fs::read(key_directory.join("id_ecdsa")).expect("private key");
    let key = EncodingKey::from_ec_pem(&pem).expect("key");
    jsonwebtoken::encode(header, claims, &key).expect("token")
}

fn sign(server: &TestServer, claims: &Value) -> String {
    sign_with(
        &server.key_directory(),
        &Header::new(Algorithm::ES256),
        claims,
    )
}

async fn ping(server: &TestServer, token: &str) -> (u16, String) {
    answer(
        server
            .request("GET", "/v1/ping")
            .header("authorization", format!("Bearer {token}")),
    )
    .await
}

fn payload(token: &str) -> String {
    let part = token.split('.').nth(1).expect("payload");
    String::from_utf8(URL_SAFE_NO_PAD.decode(part).expect("base64")).expect("UTF-8")
}

#[tokio::test]
async fn minted_tokens() {
    let server = TestServer::start().await;
    let user = server.user().await;
    assert_eq!(
        user.token.split('.').next(),
        Some("eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiJ9")
    );
    let text = payload(&user.token);
    let claims = json(&text);
    let subject = claims["sub"].as_str().expect("sub");
    let issued_at = claims["iat"].as_i64().expect("iat");
    // Member order and nothing else (06 §3.3, §7.4).
    let expected = format!(
        "{{\"hex_identity\":\"{}\",\"sub\":\"{subject}\",\"iss\":\"localhost\",\"aud\":[\"spacetimedb\"],\
         \"iat\":{issued_at},\"exp\":null}}",
        user.identity
    );
    assert_eq!(text, expected);
    assert_eq!(subject.len(), 36);
    assert_eq!(
        Identity::from_claims("localhost", subject).to_hex(),
        user.identity
    );
    // The command line decodes the payload with the standard alphabet.
    assert!(!user
        .token
        .split('.')
        .nth(1)
        .expect("payload")
        .contains(['-', '_']));
    assert_eq!(ping(&server, &user.token).await, (200, String::new()));

    let pem = server.send("GET", "/v1/identity/public-key").await;
    assert_eq!(
        header(&pem, "content-type"),
        Some("application/pem-certificate-chain")
    );
    let file =
        std::fs::read_to_string(server.key_directory().join("id_ecdsa.pub")).expect("public key");
    assert_eq!(pem.text().await.expect("body"), file);
}

#[tokio::test]
async fn tokens_survive_a_restart() {
    let server = TestServer::start().await;
    let user = server.user().await;
    let dir = server.stop().await;
    let server = TestServer::start_in(dir, common::config("")).await;
    assert_eq!(ping(&server, &user.token).await.0, 200);
}

#[tokio::test]
async fn malformed_headers() {
    let server = TestServer::start().await;
    let user = server.user().await;
    for value in [
        "",
        "Bearer",
        "Bearer ",
        "Basic abc",
        &user.token,
        "Bearer a b",
    ] {
        for path in ["/v1/ping", "/v1/database/x/identity"] {
            let answer = answer(server.request("GET", path).header("authorization", value)).await;
            assert_eq!(
                answer,
                (400, "Authorization is invalid: malformed token".into()),
                "{value:?}"
            );
        }
    }
    let scheme = answer(
        server
            .request("GET", "/v1/ping")
            .header("authorization", format!("bEARER {}", user.token)),
    );
    assert_eq!(scheme.await.0, 200);
    // The header wins over the query parameter; an empty parameter is a token.
    let path = format!("/v1/ping?token={}", user.token);
    assert_eq!(server.ask("GET", &path).await.0, 200);
    assert_eq!(
        answer(
            server
                .request("GET", &path)
                .header("authorization", "Bearer x")
        )
        .await
        .0,
        401
    );
    assert_eq!(server.ask("GET", "/v1/ping?token=").await.0, 401);
    // A migration token is no credential where there are migration tokens, and a wrong one everywhere else.
    for (method, path, status) in [
        ("PUT", "/v1/database/x?token=0x12", 500),
        ("POST", "/v1/database?token=0x12", 500),
        ("PUT", "/v1/database/y/reset?token=0x12", 404),
        ("POST", "/v1/database/y/pre_publish?token=0x12", 404),
        ("GET", "/v1/ping?token=0x12", 401),
        ("GET", "/v1/database/x?token=0x12", 401),
        ("DELETE", "/v1/database/x?token=0x12", 401),
        ("POST", "/v1/database/x/sql?token=0x12", 401),
        ("GET", "/v1/database/x/subscribe?token=0x12", 401),
        ("POST", "/v1/identity/websocket-token?token=0x12", 401),
    ] {
        let (answered, body) = server.ask(method, path).await;
        assert_eq!(answered, status, "{method} {path}: {body}");
    }
    for path in ["/v1/identity/websocket-token"] {
        assert_eq!(
            server.ask("POST", path).await,
            (401, "Authorization required".into())
        );
    }
    // A layer that refuses tells no identity.
    let refused = server
        .request("GET", "/v1/database/x/identity")
        .header("authorization", "x")
        .send()
        .await;
    assert_eq!(
        header(&refused.expect("response"), "spacetime-identity"),
        None
    );
}

#[tokio::test]
async fn claim_rules() {
    let server = TestServer::start().await;
    let base = json!({ "iss": "localhost", "sub": "alice", "iat": 1 });
    let with = |changes: Value| {
        let mut claims = base.clone();
        for (name, value) in changes.as_object().expect("object") {
            claims[name] = value.clone();
        }
        claims
    };
    let without = |name: &str| {
        let mut claims = base.clone();
        claims.as_object_mut().expect("object").remove(name);
        claims
    };
    let identity = Identity::from_claims("localhost", "alice").to_hex();
    for claims in [
        base.clone(),
        with(json!({ "exp": null })),
        with(json!({ "exp": now() - 50 })),
        // Our own clock may have been set back since.
        with(json!({ "nbf": now() + 50, "iat": now() + 1000 })),
        with(json!({ "nbf": 1.5 })),
        with(json!({ "aud": "one" })),
        with(json!({ "aud": ["one", "two"], "extra": { "a": [1] } })),
        with(json!({ "hex_identity": identity })),
        with(json!({ "sub": "x".repeat(128) })),
        // Any issuer, when the local key signed it.
        with(json!({ "iss": "https://elsewhere.example" })),
    ] {
        assert_eq!(
            ping(&server, &sign(&server, &claims)).await,
            (200, String::new()),
            "{claims}"
        );
    }
    for (claims, text) in [
        (
            without("sub"),
            "Invalid token: JSON error: missing field `sub`",
        ),
        (
            without("iss"),
            "Invalid token: JSON error: missing field `iss`",
        ),
        (
            without("iat"),
            "Invalid token: JSON error: missing field `iat`",
        ),
        (with(json!({ "iat": 1.5 })), "Invalid token: JSON error: "),
        (
            with(json!({ "exp": now() as f64 + 0.5 })),
            "Invalid token: JSON error: ",
        ),
        (
            with(json!({ "exp": now() - 70 })),
            "Invalid token: ExpiredSignature",
        ),
        (
            with(json!({ "nbf": now() + 70 })),
            "Invalid token: ImmatureSignature",
        ),
        (
            with(json!({ "nbf": "soon" })),
            "Invalid token: JSON error: ",
        ),
        (with(json!({ "sub": "" })), "Subject empty"),
        (
            with(json!({ "sub": "x".repeat(129) })),
            "Subject too long: ",
        ),
        (
            with(json!({ "hex_identity": "c200" })),
            "Identity mismatch: ",
        ),
        // Not the local issuer, so the way over discovery is taken, and its error is told.
        (
            with(json!({ "iss": "" })),
            "Error fetching public key for issuer ",
        ),
    ] {
        let (status, body) = ping(&server, &sign(&server, &claims)).await;
        assert!(
            status == 401 && body.starts_with(text),
            "{claims}: {status} {body}"
        );
    }
}

#[tokio::test]
async fn forged_tokens() {
    let server = TestServer::start().await;
    let token = server.user().await.token;
    let mut parts: Vec<_> = token.split('.').map(str::to_owned).collect();
    assert_eq!(
        ping(&server, "x").await,
        (401, "Invalid token: InvalidToken".into())
    );
    assert_eq!(ping(&server, "a.b.c").await.0, 401);
    assert_eq!(ping(&server, &"a".repeat(40_000)).await.0, 401);

    let signature = parts[2].clone();
    parts[2] = URL_SAFE_NO_PAD.encode([7; 64]);
    assert_eq!(
        ping(&server, &parts.join(".")).await,
        (401, "Invalid token: InvalidSignature".into())
    );
    parts[2] = signature;
    parts[1] = URL_SAFE_NO_PAD.encode(payload(&token).replace("spacetimedb", "spacetimedc"));
    assert_eq!(
        ping(&server, &parts.join(".")).await,
        (401, "Invalid token: InvalidSignature".into())
    );

    // HMAC over the text of the public key.
    let pem = std::fs::read(server.key_directory().join("id_ecdsa.pub")).expect("public key");
    let claims = json!({ "iss": "localhost", "sub": "alice", "iat": 1 });
    let forged = jsonwebtoken::encode(
        &Header::new(Algorithm::HS256),
        &claims,
        &EncodingKey::from_secret(&pem),
    );
    let forged = forged.expect("token");
    assert_eq!(
        ping(&server, &forged).await,
        (401, "Invalid token: InvalidSignature".into())
    );
    let none = format!(
        "{}.{}.",
        URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#),
        URL_SAFE_NO_PAD.encode(claims.to_string())
    );
    assert_eq!(ping(&server, &none).await.0, 401);
}

#[tokio::test]
async fn websocket_tokens() {
    let server = TestServer::start().await;
    let claims = json!({ "iss": "https://elsewhere.example", "sub": "bob", "iat": 1, "zeta": 1, "alpha": "x" });
    let long = sign(&server, &claims);
    let before = now();
    let (status, body) = answer(
        server
            .request("POST", "/v1/identity/websocket-token")
            .bearer_auth(&long),
    )
    .await;
    assert_eq!(status, 200);
    let short = json(&body)["token"].as_str().expect("token").to_owned();
    let text = payload(&short);
    let issued = json(&text)["iat"].as_i64().expect("iat");
    assert!((before..before + 10).contains(&issued));
    let identity = Identity::from_claims("https://elsewhere.example", "bob");
    let expected = format!(
        "{{\"hex_identity\":\"{identity}\",\"sub\":\"bob\",\"iss\":\"https://elsewhere.example\",\"aud\":[],\
         \"iat\":{issued},\"exp\":{},\"alpha\":\"x\",\"zeta\":1}}",
        issued + 60
    );
    assert_eq!(text, expected);
    // A token made from one that ends does not live longer than that one.
    let mut ending = claims;
    ending["exp"] = json!(before + 20);
    for (token, end) in [(short, issued + 60), (sign(&server, &ending), before + 20)] {
        let path = format!("/v1/identity/websocket-token?token={token}");
        let (status, body) = server.ask("POST", &path).await;
        assert_eq!(status, 200);
        let renewed = payload(json(&body)["token"].as_str().expect("token"));
        assert_eq!(json(&renewed)["exp"].as_i64(), Some(end));
    }
}

#[tokio::test]
async fn verify() {
    let server = TestServer::start().await;
    let (alice, bob) = (server.user().await, server.user().await);
    let path = format!("/v1/identity/{}/verify", alice.identity);
    assert_eq!(
        answer(server.request("GET", &path).bearer_auth(&alice.token)).await,
        (204, String::new())
    );
    assert_eq!(
        answer(server.request("GET", &path).bearer_auth(&bob.token)).await,
        (400, String::new())
    );
    assert_eq!(server.ask("GET", &path).await.0, 401);
    let prefixed = format!("/v1/identity/0x{}/verify", alice.identity);
    let (status, body) = answer(server.request("GET", &prefixed).bearer_auth(&alice.token)).await;
    assert!(
        status == 400 && body.starts_with("Invalid URL: "),
        "{status} {body}"
    );
}

#[tokio::test]
async fn anonymous_callers_are_told_who_they_are() {
    let server = TestServer::start().await;
    let response = server.send("GET", "/v1/database/unknown/identity").await;
    assert_eq!(response.status(), 404);
    let identity = header(&response, "spacetime-identity")
        .expect("identity")
        .to_owned();
    let token = header(&response, "spacetime-identity-token")
        .expect("token")
        .to_owned();
    assert_eq!(response.text().await.expect("body"), "`unknown` not found");
    let path = format!("/v1/identity/{identity}/verify");
    assert_eq!(
        answer(server.request("GET", &path).bearer_auth(&token))
            .await
            .0,
        204
    );
    // A presented token comes back as it was.
    let again = server
        .request("GET", "/v1/database/bad_name/identity")
        .bearer_auth(&token)
        .send()
        .await;
    let again = again.expect("response");
    assert_eq!(again.status(), 400);
    assert_eq!(
        header(&again, "spacetime-identity-token"),
        Some(token.as_str())
    );
}

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

/// What a stranger's token names is asked for nothing, unless it lies in the public internet and the operator accepts any.
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
    let default = TestServer::start().await;
    let any = TestServer::start_with(common::config("[auth]\nforeign-issuers = \"any\"")).await;
    for name in names {
        let token = issuer.token(&name);
        let (status, body) = ping(&default, &token).await;
        assert!(
            status == 401 && body.ends_with("[LC0135]"),
            "{name}: {status} {body}"
        );
        let (status, body) = ping(&any, &token).await;
        let expected = format!("Error fetching public key for issuer {name}");
        assert!(
            status == 401 && body.starts_with(&expected),
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

/// Keys in files: nobody is asked, and what is no key stops the start.
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
        options.jwt_key_dir = Some(directory.path().join("keys"));
        options.config = Some(common::config(&text("x", file)));
        let error = lightcone_server::Server::bind(options).await.err();
        let error = error.expect("refused").to_string();
        assert!(error.ends_with("[LC0143]"), "{error}");
    }
    for name in ["localhost", "", "a|b", "a\nb"] {
        let text = text(name, &good);
        let parsed = lightcone_server::config::Config::parse(&text, "config.toml".as_ref());
        let error = parsed.expect_err(name).to_string();
        assert!(error.contains("auth.keys"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_issuers_delay_nobody_else() {
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
        .expect("nobody waits for another issuer");
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
