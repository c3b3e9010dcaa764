//! Who may ask for what: pages of foreign origins, foreign host names, and clients from elsewhere.

use crate::common::world::path_of;
use crate::common::{answer, config, header, json, TestServer, User};
use lightcone_gateway::ROUTES;

const PAGE: &str = "https://evil.example";

async fn publish(server: &TestServer, user: &User) {
    let request = server.request("PUT", "/v1/database/d");
    let request = request.bearer_auth(&user.token).body("module");
    assert_eq!(answer(request).await.0, 200);
}

/// Status and body of a request that a page of `origin` makes.
async fn from_page(
    server: &TestServer,
    user: &User,
    origin: &str,
    (method, path): (&str, &str),
) -> (u16, String) {
    let request = server
        .request(method, path)
        .header("origin", origin)
        .bearer_auth(&user.token);
    let response = request.send().await.expect("response");
    let status = response.status().as_u16();
    if path.starts_with("/v1/") {
        // So that a page can show why it was refused.
        let allowed = header(&response, "access-control-allow-origin");
        assert_eq!(allowed, Some("*"), "{method} {path}");
    }
    let has_code = method == "HEAD" && status == 403;
    let body = response.text().await.expect("body");
    (status, if has_code { "[LC0131]".into() } else { body })
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_pages_are_clients_and_no_managers() {
    let server = TestServer::start().await;
    let user = server.user().await;
    publish(&server, &user).await;
    for origin in [PAGE, "null", "http://localhost:5173", "", "file://"] {
        for route in ROUTES {
            let path = path_of(route.path, "d", &user.identity);
            let (method, other) = match route.method {
                "*" => ("GET", Some("POST")),
                "GET" => ("GET", Some("HEAD")),
                method => (method, None),
            };
            for method in [Some(method), other].into_iter().flatten() {
                let (status, body) = from_page(&server, &user, origin, (method, &path)).await;
                let is_refused = status == 403 && body.ends_with("[LC0131]");
                assert_eq!(
                    is_refused,
                    route.is_management(),
                    "{origin:?} {method} {path}: {status} {body}"
                );
                assert!(is_refused || status != 403, "{method} {path}: {body}");
            }
        }
    }
    let info = server.ask("GET", "/v1/database/d").await;
    assert_eq!(info.0, 200, "nothing was deleted");
    // Preflights go through, so that the refusal itself can be read.
    let preflight = server.request("OPTIONS", "/v1/database/d");
    let preflight = preflight
        .header("origin", PAGE)
        .header("access-control-request-method", "PUT");
    assert_eq!(answer(preflight).await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_lists_pages_that_manage() {
    let text = format!("[network]\nmanagement-origins = [\"{PAGE}\", \"http://localhost:5173\"]");
    let server = TestServer::start_with(config(&text)).await;
    let user = server.user().await;
    publish(&server, &user).await;
    for origin in [PAGE, "http://localhost:5173", &server.base] {
        let (status, body) = from_page(&server, &user, origin, ("GET", "/v1/metrics")).await;
        assert_eq!(status, 200, "{origin} {body}");
    }
    for origin in [
        "https://evil.example:444",
        "http://evil.example",
        "http://localhost:1",
    ] {
        let (status, _) = from_page(&server, &user, origin, ("GET", "/v1/metrics")).await;
        assert_eq!(status, 403, "{origin}");
    }
}

/// A page of a module could act as the person who is logged in there, if it had the same origin.
#[tokio::test(flavor = "multi_thread")]
async fn the_dashboard_is_served_where_pages_of_modules_cannot_reach_it() {
    for (text, expected) in [
        ("", 200),
        ("[routes]\ncontent-security-policy = \"\"", 404),
        (
            "[routes]\ncontent-security-policy = \"sandbox allow-scripts allow-same-origin\"",
            404,
        ),
        ("[routes]\ncontent-security-policy = \"sandbox\"", 200),
        (
            "[dashboard]\nenabled = true\n[routes]\ncontent-security-policy = \"\"",
            200,
        ),
        ("[dashboard]\nenabled = false", 404),
    ] {
        let server = TestServer::start_with(config(text)).await;
        let response = server.request("GET", "/dashboard/").send().await;
        let response = response.expect("response");
        assert_eq!(response.status().as_u16(), expected, "{text}");
        if expected == 404 {
            let body = response.text().await.expect("body");
            assert!(body.ends_with("[LC0165]"), "{text}: {body}");
            continue;
        }
        let policy = header(&response, "content-security-policy").expect("policy");
        assert!(policy.starts_with("default-src 'none';"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        assert_eq!(header(&response, "access-control-allow-origin"), None);
        assert_eq!(header(&response, "x-content-type-options"), Some("nosniff"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_points_here_is_not_this_server() {
    let server = TestServer::start().await;
    let user = server.user().await;
    let port = server.address.port();
    let ask = |server: &TestServer, host: String, path: &str| {
        let request = server.request("GET", path).header("host", host);
        answer(request.bearer_auth(&user.token))
    };
    let rebound = format!("rebound.evil.example:{port}");
    for path in ["/v1/ping", "/v1/database/d/identity", "/nothing"] {
        let (status, body) = ask(&server, rebound.clone(), path).await;
        assert!(
            status == 403 && body.ends_with("[LC0130]"),
            "{path} {status} {body}"
        );
    }
    for host in [
        "localhost",
        "127.0.0.1",
        "[::1]:3000",
        "app.localhost:1",
        "10.0.0.1",
    ] {
        assert_eq!(ask(&server, host.into(), "/v1/ping").await.0, 200, "{host}");
    }
    let server = TestServer::start_with(config("[network]\nhosts = [\"app.example.com\"]")).await;
    let user = server.user().await;
    publish(&server, &user).await;
    let request = server
        .request("GET", "/v1/database/d/logs")
        .header("host", "app.example.com")
        .header("origin", "https://app.example.com")
        .bearer_auth(&user.token);
    assert_eq!(answer(request).await.0, 200, "a page of the server itself");
    // Perhaps a proxy that was not named: it asks for all clients.
    for host in ["app.example.com", "203.0.113.1"] {
        let (status, body) = ask(&server, host.into(), "/v1/metrics").await;
        assert!(
            status == 403 && body.ends_with("[LC0133]"),
            "{host} {status} {body}"
        );
        let request = server.request("PUT", "/v1/database/e").header("host", host);
        let stranger = server.user().await;
        let (status, body) = answer(request.bearer_auth(&stranger.token).body("module")).await;
        assert!(
            status == 403 && body.ends_with("[LC0114]"),
            "{host} {status} {body}"
        );
    }
    // HTTP/1.0 knows no names.
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut socket = tokio::net::TcpStream::connect(server.address)
        .await
        .expect("socket");
    socket
        .write_all(b"GET /v1/ping HTTP/1.0\r\n\r\n")
        .await
        .expect("sent");
    let mut answered = String::new();
    socket.read_to_string(&mut answered).await.expect("read");
    assert!(answered.starts_with("HTTP/1.0 200"), "{answered}");
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_for_this_machine_and_a_token() {
    let text = "[metrics]\ntoken = \"0123456789abcdef\"\nlisten = \"127.0.0.1:0\"";
    let server = TestServer::start_with(config(text)).await;
    let ask = |token: &str| {
        let request = server
            .request("GET", "/v1/metrics")
            .header("x-forwarded-for", "1.1.1.1");
        answer(request.header("authorization", format!("Bearer {token}")))
    };
    assert_eq!(server.ask("GET", "/v1/metrics").await.0, 200);
    for wrong in ["", "x", "0123456789abcdeF", "0123456789abcdef0"] {
        let (status, body) = ask(wrong).await;
        assert!(
            status == 403 && body.ends_with("[LC0133]"),
            "{status} {body}"
        );
    }
    assert_eq!(ask("0123456789abcdef").await.0, 200);
    let handle = server.handle.as_ref().expect("running");
    let address = handle.metrics_addr().expect("a listener");
    for path in ["metrics", "v1/metrics"] {
        let request = server.http.get(format!("http://{address}/{path}"));
        let (status, body) = answer(request.header("x-forwarded-for", "1.1.1.1")).await;
        assert!(
            status == 200 && body.contains("lightcone_connections"),
            "{status} {body}"
        );
        let request = server.http.get(format!("http://{address}/{path}"));
        let rebound = answer(request.header("host", "rebound.evil.example")).await;
        assert_eq!(rebound.0, 403, "{path}");
    }
    let other = server.http.get(format!("http://{address}/v1/ping"));
    assert_eq!(answer(other).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn databases_of_an_identity_are_told_to_itself() {
    let server = TestServer::start().await;
    let (user, other) = (server.user().await, server.user().await);
    publish(&server, &user).await;
    let path = format!("/v1/identity/{}/databases", user.identity);
    let from_elsewhere = || {
        server
            .request("GET", &path)
            .header("x-forwarded-for", "1.1.1.1")
    };
    assert_eq!(answer(from_elsewhere()).await.0, 401);
    let (status, body) = answer(from_elsewhere().bearer_auth(&other.token)).await;
    assert!(
        status == 403 && body.ends_with("[LC0134]"),
        "{status} {body}"
    );
    for request in [
        from_elsewhere().bearer_auth(&user.token),
        server.request("GET", &path),
    ] {
        let (status, body) = answer(request).await;
        assert_eq!(status, 200, "{body}");
        assert_eq!(json(&body)["identities"].as_array().map(Vec::len), Some(1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_do_not_publish_unless_they_may() {
    let server = TestServer::start().await;
    let (user, stranger) = (server.user().await, server.user().await);
    publish(&server, &user).await;
    let put = |server: &TestServer, user: &User, path: &str| {
        let request = server
            .request("PUT", path)
            .header("x-forwarded-for", "1.1.1.1");
        answer(request.bearer_auth(&user.token).body("module"))
    };
    let (status, body) = put(&server, &stranger, "/v1/database/e").await;
    assert!(
        status == 403 && body.ends_with("[LC0114]"),
        "{status} {body}"
    );
    assert_eq!(server.ask("GET", "/v1/database/e/identity").await.0, 404);
    assert_eq!(put(&server, &stranger, "/v1/database/d").await.0, 403);
    assert_eq!(
        put(&server, &user, "/v1/database/d").await.0,
        200,
        "his own"
    );
    assert_eq!(
        put(&server, &user, "/v1/database/e").await.0,
        403,
        "a new one"
    );

    let text = format!("[publish]\nowners = [\"{}\"]", user.identity);
    let dir = server.stop().await;
    let server = TestServer::start_in(dir, config(&text)).await;
    assert_eq!(put(&server, &user, "/v1/database/e").await.0, 200);
    assert_eq!(put(&server, &stranger, "/v1/database/f").await.0, 403);

    let dir = server.stop().await;
    let server = TestServer::start_in(dir, config("[publish]\nallowed = \"anyone\"")).await;
    assert_eq!(put(&server, &stranger, "/v1/database/f").await.0, 200);
}

/// What the container image sets: not even programs inside of the container publish before a publisher is named.
#[tokio::test(flavor = "multi_thread")]
async fn the_image_lets_no_caller_publish() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let dockerfile = std::fs::read_to_string(root.join("Dockerfile")).expect("the file");
    let allowed = dockerfile
        .lines()
        .find_map(|line| line.strip_prefix("ENV LIGHTCONE_PUBLISH_ALLOWED="))
        .expect("it says who may publish");
    let mut config = config("");
    let publish = &mut config.publish;
    publish.complete(Some(allowed), None).expect("understood");
    let server = TestServer::start_with(config).await;
    let user = server.user().await;
    let request = server.request("PUT", "/v1/database/d");
    let request = request.bearer_auth(&user.token).body("module");
    assert_eq!(answer(request).await.0, 403);
}
