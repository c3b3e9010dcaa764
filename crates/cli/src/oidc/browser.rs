//! The flow through a browser on this machine: an authorization code with PKCE (RFC 7636), and a redirect to a port of this
//! machine (RFC 8252).

use std::time::Duration;

use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::Engine as _;
use futures_util::stream::FuturesUnordered;
use futures_util::StreamExt as _;
use reqwest::Url;
use serde_json::Value;
use sha2::Digest as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::provider::{printable, refused, Options, Provider};
use crate::error::Result;
use crate::output::remark;
use crate::page;

/// For the user, from the page that is opened to the one that comes back.
const WAIT_MAX: Duration = Duration::from_secs(600);
/// For what a browser sends when it comes back.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
const REQUEST_BYTES_MAX: usize = 16 * 1024;
/// More are closed at once.
const CONNECTIONS_MAX: usize = 16;
const CALLBACK: &str = "/callback";

/// What the provider has answered, and the nonce that its ID token must have.
pub(super) async fn login(
    provider: &Provider,
    options: &Options<'_>,
) -> Result<(Value, Option<String>)> {
    let port = options.callback_port.unwrap_or(0);
    let listening = TcpListener::bind(("127.0.0.1", port)).await;
    let listener = listening.map_err(caused!(
        "LC0873",
        "cannot listen on 127.0.0.1:{port} for the browser to come back"
    ))?;
    let here = listener.local_addr();
    let here = here.map_err(caused!("LC0873", "the listener has no address"))?;
    let redirect = format!("http://{here}{CALLBACK}");
    let (state, nonce, verifier) = (secret(), secret(), secret());
    let challenge = URL_SAFE_NO_PAD.encode(sha2::Sha256::digest(&verifier));
    let mut address = provider.endpoint("authorization_endpoint")?;
    address
        .query_pairs_mut()
        .append_pair("response_type", "code")
        .append_pair("client_id", options.client_id)
        .append_pair("redirect_uri", &redirect)
        .append_pair("scope", options.scope)
        .append_pair("state", &state)
        .append_pair("nonce", &nonce)
        .append_pair("code_challenge", &challenge)
        .append_pair("code_challenge_method", "S256");
    let mut words = options.scope.split(' ');
    if words.any(|word| word == "offline_access") {
        // Without it, providers do not listen to that word (OpenID Connect Core 1.0 §11).
        address.query_pairs_mut().append_pair("prompt", "consent");
    }
    remark!("Log in on this page: {address}");
    if options.open_browser {
        page::open(address.as_str());
    }
    remark!("Waiting for the browser to come back to {redirect}…");
    let code = wait(&listener, &state, &provider.issuer);
    let code = tokio::time::timeout(WAIT_MAX, code).await;
    let code = code.map_err(|_| {
        refused("the browser did not come back; `--device` logs in with a browser elsewhere")
    })??;
    let pairs = [
        ("grant_type", "authorization_code"),
        ("code", &code),
        ("redirect_uri", &redirect),
        ("client_id", options.client_id),
        ("code_verifier", &verifier),
    ];
    let answer = provider.post("token_endpoint", &pairs).await?;
    Ok((answer.accepted()?, Some(nonce)))
}

/// Waits for the browser. Whatever else asks on this port is sent away.
async fn wait(listener: &TcpListener, state: &str, issuer: &str) -> Result<String> {
    // Browsers open connections that they do not use, so one must not wait for another.
    let mut connections = FuturesUnordered::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let (Ok((stream, _)), true) = (accepted, connections.len() < CONNECTIONS_MAX) {
                    connections.push(answer(stream, state, issuer));
                }
            }
            Some(Some(returned)) = connections.next() => return returned,
        }
    }
}

/// Answers a request. None: it is not what is waited for.
async fn answer(mut stream: TcpStream, state: &str, issuer: &str) -> Option<Result<String>> {
    let read = tokio::time::timeout(REQUEST_TIMEOUT, read_target(&mut stream)).await;
    let target = read.ok().flatten();
    let returned = target.and_then(|target| returned(&target, state, issuer));
    let (status, text) = match &returned {
        Some(Ok(_)) => ("200 OK", "You have logged in. You can close this page."),
        Some(Err(_)) => ("200 OK", "You are not logged in. You can close this page."),
        None => ("404 Not Found", "There is nothing here."),
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n\
         x-content-type-options: nosniff\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n{text}",
        text.len()
    );
    // Whether or not the browser shows it.
    let write = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await
    };
    let _ = tokio::time::timeout(REQUEST_TIMEOUT, write).await;
    returned
}

async fn read_target(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut buffer = [0; 1024];
        let read = stream.read(&mut buffer).await.ok()?;
        if read == 0 || head.len() + read > REQUEST_BYTES_MAX {
            return None;
        }
        head.extend_from_slice(&buffer[..read]);
    }
    let line = head.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    (method == "GET").then(|| target.to_owned())
}

/// The code, or why there is none. None: this is not the answer to our question.
fn returned(target: &str, state: &str, issuer: &str) -> Option<Result<String>> {
    let query = target.strip_prefix(CALLBACK)?.strip_prefix('?')?;
    let url = Url::parse(&format!("http://127.0.0.1/?{query}")).ok()?;
    let parameter = |name: &str| {
        let mut pairs = url.query_pairs();
        pairs.find_map(|(known, value)| (known == name).then(|| value.into_owned()))
    };
    if parameter("state").as_deref() != Some(state) {
        return None;
    }
    // Who answers, if he says so (RFC 9207): a code of one provider is not for another.
    if parameter("iss").is_some_and(|iss| iss != issuer) {
        return Some(Err(refused("another provider has answered")));
    }
    if let Some(error) = parameter("error") {
        let description = parameter("error_description").unwrap_or_default();
        let text = format!("{}: {}", printable(&error), printable(&description));
        return Some(Err(refused(text)));
    }
    let code = parameter("code").filter(|code| !code.is_empty());
    Some(code.ok_or_else(|| refused("it gave no code")))
}

/// Unguessable, in letters that need no encoding.
fn secret() -> String {
    URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISSUER: &str = "https://auth.example";

    #[test]
    fn only_the_answer_to_our_question_counts() {
        let code = |target: &str| returned(target, "s", ISSUER).map(|found| found.ok());
        assert_eq!(
            code("/callback?code=a%20b&state=s"),
            Some(Some("a b".to_owned()))
        );
        assert_eq!(
            code("/callback?state=s&code=c&iss=https%3A%2F%2Fauth.example"),
            Some(Some("c".to_owned()))
        );
        for target in [
            "/",
            "/callback",
            "/callback?code=c",
            "/callback?code=c&state=t",
            "/callback?code=c&state=",
            "/other?code=c&state=s",
            "//evil/callback?code=c&state=s&",
            "http://x/callback?code=c&state=s",
            "callback?code=c&state=s",
        ] {
            if let Some(found) = code(target) {
                panic!("{target}: {found:?}");
            }
        }
        for target in [
            "/callback?state=s",
            "/callback?state=s&code=",
            "/callback?state=s&error=access_denied&error_description=no%1b%5b2J",
            "/callback?state=s&code=c&iss=https%3A%2F%2Fevil.example",
        ] {
            assert_eq!(code(target), Some(None), "{target}");
        }
    }

    #[tokio::test]
    async fn others_on_the_port_are_sent_away() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("bound");
        let address = listener.local_addr().expect("an address");
        let asked = tokio::spawn(async move { wait(&listener, "s", ISSUER).await });
        let ask = |request: String| async move {
            let mut stream = TcpStream::connect(address).await.expect("connected");
            let _ = stream.write_all(request.as_bytes()).await;
            let _ = stream.shutdown().await;
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer).await;
            String::from_utf8_lossy(&answer).into_owned()
        };
        for request in [
            "GET /callback?code=x&state=wrong HTTP/1.1\r\n\r\n".to_owned(),
            "POST /callback?code=x&state=s HTTP/1.1\r\n\r\n".to_owned(),
            "\r\n\r\n".to_owned(),
            String::new(),
            format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(REQUEST_BYTES_MAX)),
        ] {
            let answer = ask(request).await;
            assert!(
                answer.is_empty() || answer.starts_with("HTTP/1.1 404"),
                "{answer}"
            );
        }
        assert!(!asked.is_finished());
        let good = "GET /callback?code=good&state=s HTTP/1.1\r\nhost: x\r\n\r\n".to_owned();
        assert!(ask(good).await.contains("You have logged in."));
        let code = asked.await.expect("no panic").expect("a code");
        assert_eq!(code, "good");
    }

    #[test]
    fn secrets_are_long() {
        assert_ne!(secret(), secret());
        assert!(secret().len() >= 43);
    }
}
