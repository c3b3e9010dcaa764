//! HTTP handlers of modules: which one a request goes to, what it sees, and what its answer becomes (06 §5.16).

use crate::common::{answer, config, header, TestServer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

async fn server() -> TestServer {
    server_with("").await
}

async fn server_with(text: &str) -> TestServer {
    let server = TestServer::start_with(config(text)).await;
    let user = server.user().await;
    let request = server
        .request("PUT", "/v1/database/d")
        .bearer_auth(&user.token);
    assert_eq!(answer(request.body("module")).await.0, 200);
    server
}

const NO_HANDLER: &str = "Database has not registered a handler for this route";

#[tokio::test(flavor = "multi_thread")]
async fn paths_and_methods_are_matched_literally() {
    let server = server().await;
    for (method, path) in [
        ("GET", ""),
        ("PURGE", ""),
        ("GET", "/"),
        ("GET", "/get"),
        ("POST", "/ab/c"),
        ("POST", "/%61b/c"),
        ("POST", "/ab%2Fc"),
        ("PURGE", "/ab/c?x=1"),
    ] {
        let path = format!("/v1/database/d/route{path}");
        let (status, body) = server.ask(method, &path).await;
        assert_eq!(status, 200, "{method} {path}: {body}");
        // The path is that of the client, prefix and query included.
        let uri = body.lines().next().unwrap_or_default();
        assert!(uri.starts_with(match method {
            "GET" => "Get http://127.0.0.1:",
            "POST" => "Post http://127.0.0.1:",
            _ => "Extension(\"PURGE\") http://127.0.0.1:",
        }));
        assert!(uri.ends_with(&path), "{uri}");
    }
    for (method, path) in [
        ("POST", "/"),
        ("POST", "/get"),
        ("HEAD", "/get"),
        ("GET", "/get/"),
        ("GET", "/nothing"),
        ("GET", "//get"),
    ] {
        let path = format!("/v1/database/d/route{path}");
        let response = server.send(method, &path).await;
        assert_eq!(response.status(), 404, "{method} {path}");
        let body = response.text().await.expect("body");
        assert!(body == NO_HANDLER || method == "HEAD", "{body}");
    }
    let (status, body) = server.ask("GET", "/v1/database/none/route/get").await;
    assert_eq!((status, &body[..]), (404, "`none` not found"));
    // OPTIONS never gets to a handler.
    let response = server.send("OPTIONS", "/v1/database/d/route/answer").await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.text().await.expect("body"), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_sees_the_whole_request() {
    let server = server_with(
        "[network]\ntrusted-proxies = [\"127.0.0.0/8\"]\n[publish]\nallowed = \"anyone\"",
    )
    .await;
    let request = server
        .request("POST", "/v1/database/d/route/ab/c?q=a%20b")
        .header("authorization", "Bearer no token at all")
        .header("x-twice", "1")
        .header("x-twice", "2")
        .header("x-raw", &b"\xff\x80"[..])
        .header("x-forwarded-proto", "https, http")
        .header("x-forwarded-host", "app.example.com:444, inner")
        .body("BODY");
    let response = request.send().await.expect("response");
    assert_eq!(response.status(), 200);
    assert_eq!(header(&response, "access-control-allow-origin"), Some("*"));
    assert_eq!(header(&response, "spacetime-identity"), None);
    let body = response.text().await.expect("body");
    let lines: Vec<_> = body.lines().collect();
    assert_eq!(
        lines[0],
        "Post https://app.example.com:444/v1/database/d/route/ab/c?q=a%20b"
    );
    for expected in [
        "authorization: Bearer no token at all",
        "x-twice: 1",
        "x-twice: 2",
        "x-raw: \\xff\\x80",
        "content-length: 4",
    ] {
        assert!(lines.contains(&expected), "{body}");
    }
    assert_eq!(lines[lines.len() - 1], "4 BODY");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_client_is_believed_to_be_a_proxy() {
    let server = server().await;
    let request = server
        .request("POST", "/v1/database/d/route/ab/c")
        .header("x-forwarded-proto", "https")
        .header("x-forwarded-host", "app.example.com");
    let (status, body) = answer(request).await;
    assert_eq!(status, 200);
    assert!(body.starts_with("Post http://127.0.0.1:"), "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_is_that_of_the_handler() {
    let server = server().await;
    let path = "/v1/database/d/route/answer";
    let ask = |text: &'static str| server.request("POST", path).body(text).send();
    let response = ask("418\ncontent-type:a/b\nset-cookie:a\nset-cookie:b\ncontent-length:3\nconnection:close\ntransfer-encoding:x")
        .await
        .expect("response");
    assert_eq!(response.status(), 418);
    assert_eq!(header(&response, "content-type"), Some("a/b"));
    assert_eq!(header(&response, "content-length"), Some("8"));
    assert_eq!(header(&response, "transfer-encoding"), None);
    let cookies: Vec<_> = response.headers().get_all("set-cookie").iter().collect();
    assert_eq!(cookies, ["a", "b"]);
    assert_eq!(response.text().await.expect("body"), "answered");
    for status in ["204", "304"] {
        let response = ask(status).await.expect("response");
        assert_eq!(response.status().as_str(), status);
        assert_eq!(response.text().await.expect("body"), "");
    }
    for (text, refusal) in [
        ("0", "invalid status code"),
        ("99", "invalid status code"),
        ("101", "invalid status code"),
        ("1000", "invalid status code"),
        ("200\na b:c", "invalid HTTP header name"),
        ("200\nname:a\u{1}b", "failed to parse header value"),
    ] {
        let response = ask(text).await.expect("response");
        assert_eq!(response.status(), 500, "{text}");
        assert_eq!(response.text().await.expect("body"), refusal);
    }
    let broken = server.ask("GET", "/v1/database/d/route/broken").await;
    assert_eq!(broken, (500, "the handler's own words".to_owned()));
    // The size of an answer to HEAD is that of the body that is not sent.
    let head = server.request("HEAD", path).body("200\ncontent-length:77");
    let response = head.send().await.expect("response");
    assert_eq!(header(&response, "content-length"), Some("77"));
    let metrics = server.ask("GET", "/v1/metrics").await.1;
    let counted = "spacetime_http_response_size_bytes_total{database_identity=";
    assert!(metrics.contains(counted), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_have_a_bound_on_headers() {
    let server = server().await;
    let ask = |text: String| {
        answer(
            server
                .request("POST", "/v1/database/d/route/answer")
                .body(text),
        )
    };
    let headers = |count: usize| -> String { (0..count).map(|n| format!("\nx-{n}:v")).collect() };
    // More than a header map holds.
    for count in [1001, 40_000] {
        let (status, body) = ask(format!("200{}", headers(count))).await;
        assert!(
            status == 500 && body.ends_with("[LC0132]"),
            "{status} {body}"
        );
    }
    let (status, body) = ask(format!("200\nx:{}", "v".repeat(70_000))).await;
    assert!(
        status == 500 && body.ends_with("[LC0132]"),
        "{status} {body}"
    );
    assert_eq!(ask(format!("200{}", headers(90))).await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_without_a_body_have_no_length() {
    let server = server().await;
    let user = server.user().await;
    let verify = format!(
        "GET /v1/identity/{}/verify HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\r\n",
        user.identity, user.token
    );
    let handler = |status: &str| {
        format!("POST /v1/database/d/route/answer HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\n\r\n{status}")
    };
    let ping = "GET /v1/ping HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    for (request, status) in [
        (verify, "204"),
        (handler("204"), "204"),
        (handler("304"), "304"),
    ] {
        let mut socket = tokio::net::TcpStream::connect(server.address)
            .await
            .expect("socket");
        // The second answer begins where the first one ends.
        socket
            .write_all(format!("{request}{ping}").as_bytes())
            .await
            .expect("sent");
        let mut answers = String::new();
        socket.read_to_string(&mut answers).await.expect("read");
        assert!(
            answers.starts_with(&format!("HTTP/1.1 {status}")),
            "{answers}"
        );
        let (first, second) = answers.split_once("\r\n\r\n").expect("a head");
        assert!(!first.contains("content-length"), "{first}");
        assert!(second.starts_with("HTTP/1.1 200"), "{answers}");
    }
}

/// Pages of modules share the server's origin.
#[tokio::test(flavor = "multi_thread")]
async fn answers_are_confined() {
    let (policy, sniffing) = ("content-security-policy", "x-content-type-options");
    let server = server().await;
    let ask = |server: &TestServer, text: &'static str| {
        server
            .request("POST", "/v1/database/d/route/answer")
            .body(text)
            .send()
    };
    let response = ask(
        &server,
        "200\ncontent-security-policy:img-src x\nx-content-type-options:no",
    )
    .await;
    let response = response.expect("response");
    let policies: Vec<_> = response.headers().get_all(policy).iter().collect();
    assert_eq!(policies.len(), 2, "{policies:?}");
    assert_eq!(policies[0], "img-src x");
    let ours = policies[1].to_str().expect("text");
    assert!(
        ours.starts_with("sandbox ") && !ours.contains("allow-same-origin"),
        "{ours}"
    );
    assert_eq!(header(&response, sniffing), Some("nosniff"));

    let server = server_with("[routes]\ncontent-security-policy = \"\"\nnosniff = false").await;
    let response = ask(&server, "200").await.expect("response");
    assert_eq!(
        (header(&response, policy), header(&response, sniffing)),
        (None, None)
    );
}

/// 06 §1.1.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_handler_the_body_is_not_waited_for() {
    let server = server().await;
    let mut socket = tokio::net::TcpStream::connect(server.address)
        .await
        .expect("socket");
    let head = "POST /v1/database/d/route/nothing HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 9\r\n\r\n";
    socket.write_all(head.as_bytes()).await.expect("sent");
    let mut answer = [0; 12];
    socket.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 404");
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_have_a_limit() {
    let server = server_with("[limits]\nmessage-bytes-max = 2000").await;
    let path = "/v1/database/d/route/ab/c";
    let ask = |length| answer(server.request("POST", path).body("x".repeat(length)));
    assert_eq!(ask(2000).await.0, 200);
    assert_eq!(ask(2001).await.0, 413);
}
