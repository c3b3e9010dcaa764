//! Tokens that tests make themselves.

use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::Engine as _;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::Value;

use super::{answer, TestServer};

pub fn now() -> i64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("clock")
        .as_secs() as i64
}

pub fn sign_with(key_directory: &std::path::Path, header: &Header, claims: &Value) -> String {
    let pem = std::fs::read(key_directory.join("id_ecdsa")).expect("private key");
    let key = EncodingKey::from_ec_pem(&pem).expect("key");
    jsonwebtoken::encode(header, claims, &key).expect("token")
}

pub fn sign(server: &TestServer, claims: &Value) -> String {
    sign_with(
        &server.key_directory(),
        &Header::new(Algorithm::ES256),
        claims,
    )
}

pub async fn ping(server: &TestServer, token: &str) -> (u16, String) {
    answer(
        server
            .request("GET", "/v1/ping")
            .header("authorization", format!("Bearer {token}")),
    )
    .await
}

pub fn payload(token: &str) -> String {
    let part = token.split('.').nth(1).expect("payload");
    String::from_utf8(URL_SAFE_NO_PAD.decode(part).expect("base64")).expect("UTF-8")
}
