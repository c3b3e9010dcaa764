//! Tokens, credentials and identity routes (06 §3, §5.2, §7). Those of other issuers: `issuers.rs`.

use std::net::SocketAddr;

use crate::common;
use crate::common::tokens::{now, payload, ping, sign, sign_with};
use crate::common::{answer, header, json, TestServer};
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::Engine as _;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use lightcone_node::auth::proof::{Claim, NONCE_BYTES};
use lightcone_types::Identity;
use serde_json::{json, Value};

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

/// A client that asks a server at its own address can be sure of its key; one that hands the question on gets nothing of use.
#[tokio::test]
async fn key_proofs() {
    let config = "[network]\npublic-addresses = [\"https://db.example.com\"]";
    let server = TestServer::start_with(common::config(config)).await;
    let nonce = [0x5a; NONCE_BYTES];
    let digits = "5a".repeat(NONCE_BYTES);
    let path = |address: &str| format!("/v1/identity/key-proof?nonce={digits}&address={address}");
    let at: SocketAddr = server.base["http://".len()..].parse().expect("an address");
    let localhost = format!("http://localhost:{}", at.port());
    for (address, reached_at) in [
        (&*server.base, Some(at)),
        (&*localhost, Some(at)),
        ("https://db.example.com", None),
    ] {
        let (status, body) = server.ask("GET", &path(address)).await;
        assert_eq!(status, 200, "{address}: {body}");
        let body = json(&body);
        let shown = body["reached_at"].as_str().and_then(|at| at.parse().ok());
        assert_eq!(shown, reached_at);
        let text = |name: &str| body[name].as_str().expect("a text").to_owned();
        let claim = Claim {
            nonce: &nonce,
            address,
            reached_at,
        };
        let key = claim.verify(&text("public_key"), &text("signature"));
        let key = key.expect("proven");
        assert!(key.has_signed(&server.user().await.token));
        let other = Claim {
            nonce: &[0; NONCE_BYTES],
            ..claim
        };
        let verified = other.verify(&text("public_key"), &text("signature"));
        assert!(verified.is_none(), "it is for one nonce");
    }
    let elsewhere = format!("http://127.0.0.1:{}", at.port() ^ 1);
    for address in [
        &elsewhere,
        "http://evil.example",
        "https://db.example.com:444",
    ] {
        let (status, body) = server.ask("GET", &path(address)).await;
        assert!(
            status == 403 && body.ends_with("[LC0155]"),
            "{address}: {status} {body}"
        );
    }
    // Through a proxy, an address on loopback is one of another machine.
    let proxied = server
        .request("GET", &path(&server.base))
        .header("x-forwarded-for", "203.0.113.9");
    assert_eq!(answer(proxied).await.0, 403);
    for query in [
        "",
        "?nonce=5a&address=http://x",
        "?address=http://x",
        &format!("?nonce={digits}"),
    ] {
        let path = format!("/v1/identity/key-proof{query}");
        assert_eq!(server.ask("GET", &path).await.0, 400, "{query}");
    }
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

/// Issuer and subject make an identity, and both are public: a client that signs them itself is refused at every door, also when the
/// server knows a good token of the same identity.
#[tokio::test]
async fn right_issuer_and_subject_are_no_proof() {
    let (server, postgres, user) = common::postgres::start().await;
    common::postgres::named(&server, &user, "db").await;
    let claims = json(&payload(&user.token));
    let only = json!({ "iss": claims["iss"], "sub": claims["sub"], "iat": 1 });
    let own_key = tempfile::tempdir().expect("a directory");
    let paths = lightcone_node::auth::KeyPaths::in_directory(own_key.path());
    lightcone_node::auth::KeyPair::load_or_create(&paths).expect("keys");
    let unsigned = |header: &str, signature: &str| {
        let encoded = |text: &str| URL_SAFE_NO_PAD.encode(text);
        format!(
            "{}.{}.{signature}",
            encoded(header),
            encoded(&only.to_string())
        )
    };
    let signature = user.token.rsplit('.').next().expect("a signature");
    let es256 = r#"{"typ":"JWT","alg":"ES256"}"#;
    let zeros = URL_SAFE_NO_PAD.encode([0; 64]);
    let forged = [
        sign_with(own_key.path(), &Header::new(Algorithm::ES256), &only),
        sign_with(own_key.path(), &Header::new(Algorithm::ES256), &claims),
        unsigned(es256, ""),
        unsigned(es256, &zeros),
        unsigned(es256, signature),
        unsigned(r#"{"alg":"none"}"#, ""),
        unsigned(r#"{"alg":"ES256","kid":"id_ecdsa"}"#, signature),
    ];
    let database = format!("/v1/database/{}", user.identity);
    for is_known in [false, true] {
        for token in &forged {
            let (status, body) = ping(&server, token).await;
            assert!(
                status == 401 && body.starts_with("Invalid token: "),
                "{token}: {status} {body}"
            );
            for (method, path) in [
                ("GET", database.as_str()),
                ("POST", "/v1/identity/websocket-token"),
                ("GET", "/v1/database/db/subscribe"),
                ("POST", "/v1/database/db/sql"),
                ("PUT", "/v1/database/db"),
            ] {
                let asked = server.request(method, path).bearer_auth(token);
                assert_eq!(answer(asked).await.0, 401, "{method} {path} {token}");
                let in_query = format!("{path}?token={token}");
                let asked = server.ask(method, &in_query).await;
                assert_eq!(asked.0, 401, "{method} {in_query}");
            }
            let refused = common::postgres::connect(postgres, "db", token).await;
            let refused = refused.map(drop).expect_err("it is no password");
            assert_eq!(common::postgres::code(&refused), "28P01", "{token}");
        }
        if !is_known {
            assert_eq!(ping(&server, &user.token).await.0, 200);
        }
    }
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
