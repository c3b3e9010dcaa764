//! Publishing over HTTP, and requests to what was published.

use super::{answer, json, TestServer, User};

pub async fn publish(
    server: &TestServer,
    user: &User,
    path: &str,
    program: &'static str,
) -> (u16, String) {
    let method = if path.starts_with("/v1/database?") || path == "/v1/database" {
        "POST"
    } else {
        "PUT"
    };
    answer(
        server
            .request(method, path)
            .bearer_auth(&user.token)
            .body(program),
    )
    .await
}

pub async fn created(
    server: &TestServer,
    user: &User,
    name: &str,
    program: &'static str,
) -> String {
    let (status, body) = publish(server, user, &format!("/v1/database/{name}"), program).await;
    assert_eq!(status, 200, "{body}");
    let body = json(&body);
    assert_eq!(body["Success"]["op"], "created");
    assert_eq!(body["Success"]["domain"], name);
    body["Success"]["database_identity"]
        .as_str()
        .expect("identity")
        .to_owned()
}

pub async fn by(server: &TestServer, user: &User, method: &str, path: &str) -> (u16, String) {
    answer(server.request(method, path).bearer_auth(&user.token)).await
}

pub async fn call(
    server: &TestServer,
    user: &User,
    path: &str,
    args: &'static str,
) -> (u16, String) {
    let request = server.request("POST", path).bearer_auth(&user.token);
    answer(
        request
            .header("content-type", "application/json")
            .body(args),
    )
    .await
}
