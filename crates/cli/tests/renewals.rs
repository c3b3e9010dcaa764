//! Logins that are renewed, and the file that keeps them while several commands change it.

use std::sync::{Arc, Mutex, OnceLock};

use crate::common::shop::mock;
use crate::common::{json, text, token, Home, Mock};
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::Engine;

/// A token of a provider for the program `me`.
fn id_token(issuer: &str, end: u64) -> String {
    let claims =
        format!(r#"{{"iss":"{issuer}","sub":"ann","aud":"me","iat":1700000000,"exp":{end}}}"#);
    let parts = [r#"{"typ":"JWT","alg":"ES256"}"#, &claims];
    let [head, claims] = parts.map(|part| URL_SAFE_NO_PAD.encode(part));
    format!("{head}.{claims}.c2lnbmF0dXJl")
}

const LONG_AGO: u64 = 1_700_003_600;
const FAR_AWAY: u64 = 4_000_000_000;

/// A server that is a provider too, which answers the first renewal with `answer`, and others with nothing.
fn provider(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Mock {
    let url = Arc::new(OnceLock::new());
    let known: Arc<OnceLock<String>> = url.clone();
    let asked = Mutex::new(false);
    let server = mock(move |request| {
        let url = known.wait();
        match &*request.path {
            "/.well-known/openid-configuration" => Some(json(format!(
                r#"{{"issuer":"{url}","token_endpoint":"{url}/token"}}"#
            ))),
            "/token" if !std::mem::replace(&mut *asked.lock().expect("unpoisoned"), true) => {
                Some(json(answer(url)))
            }
            "/token" => Some(text(400, r#"{"error":"invalid_grant"}"#)),
            "/v1/ping" => Some(text(200, "")),
            path => path
                .ends_with("/databases")
                .then(|| json(r#"{"identities":[]}"#)),
        }
    });
    url.set(server.url.clone()).expect("once");
    server
}

/// A home with a login that has ended, and can be renewed with `r0`.
fn home_of(url: &str) -> Home {
    let home = Home::new();
    let token = id_token(url, LONG_AGO);
    home.write(
        "root/config/cli.toml",
        &format!(
            "spacetimedb_token = \"{token}\"\n\n[server_tokens]\n\"{url}\" = \"{token}\"\n\n[server_renewals]\n\
             \"{url}\" = {{ issuer = \"{url}\", client_id = \"me\", scope = \"openid\", refresh_token = \"r0\" }}\n"
        ),
    );
    home
}

/// The old one is of no use any more.
#[test]
fn a_new_refresh_token_is_kept_whatever_comes_with_it() {
    for (answer, why, kept) in [
        (r#"{"refresh_token":"r1"}"#.to_owned(), "no ID token", "r1"),
        (
            format!(
                r#"{{"refresh_token":"r1","id_token":"{}"}}"#,
                token("another user")
            ),
            "another user's",
            "r0",
        ),
    ] {
        let server = provider(move |_| answer.clone());
        let home = home_of(&server.url);
        let outcome = home.run(&["list", "-s", &server.url, "-y"]);
        let stderr = &outcome.stderr;
        assert!(
            stderr.contains("[LC0876]") && stderr.contains(why),
            "{outcome:#?}"
        );
        let config = home.config();
        assert!(
            config.contains(&format!("refresh_token = \"{kept}\"")),
            "{config}"
        );
    }
    let server = provider(|url| {
        let ended = id_token(url, LONG_AGO);
        format!(r#"{{"refresh_token":"r1","id_token":"{ended}"}}"#)
    });
    let home = home_of(&server.url);
    let outcome = home.run(&["list", "-s", &server.url, "-y"]);
    assert!(outcome.stderr.contains("has ended already"), "{outcome:#?}");
    assert!(
        home.config().contains("refresh_token = \"r1\""),
        "{}",
        home.config()
    );
}

#[test]
fn the_command_for_assistants_renews_its_login() {
    let server = provider(|url| {
        format!(
            r#"{{"refresh_token":"r1","id_token":"{}"}}"#,
            id_token(url, FAR_AWAY)
        )
    });
    let home = home_of(&server.url);
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ping"}}"#;
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#;
    let input = format!("{ping}\n{batch}\n");
    let outcome = home.run_with(&["mcp", "-s", &server.url], &input, &[]).ok();
    let (ponged, refused) = outcome.stdout.split_once('\n').expect("two lines");
    assert!(ponged.contains("pong"), "{outcome:#?}");
    assert!(
        refused.contains("-32600"),
        "a batch is answered: {outcome:#?}"
    );
    let sent = server.requests().pop().expect("a request").authorization;
    assert_eq!(
        sent,
        Some(format!("Bearer {}", id_token(&server.url, FAR_AWAY)))
    );
    assert!(
        home.config().contains("refresh_token = \"r1\""),
        "{}",
        home.config()
    );
}

/// They wait for a key, and other commands do not wait for that.
#[test]
fn commands_about_servers_keep_what_others_change_meanwhile() {
    let home = Arc::new(Home::new());
    let other = home.clone();
    let server = mock(move |request| {
        let is_key = request.path.ends_with("/public-key");
        is_key.then(|| {
            other.run(&["logout"]).ok();
            text(200, "a key")
        })
    });
    let url = &server.url;
    let elsewhere = url.replace("127.0.0.1", "localhost");
    home.run(&["server", "add", "--url", url, "mine", "--no-fingerprint"])
        .ok();
    for (args, written) in [
        (vec!["server", "fingerprint", "mine", "-y"], "a key"),
        (
            vec!["server", "edit", "mine", "--url", &elsewhere, "-y"],
            "host = \"localhost:",
        ),
        (vec!["server", "add", "--url", url, "again"], "\"again\""),
    ] {
        home.log_in("ann", url);
        home.run(&args).ok();
        let config = home.config();
        assert!(config.contains(written), "{args:?}: {config}");
        assert!(!config.contains(&token("ann")), "{args:?}: logged out");
    }
}

/// A provider that has a device flow, and may refuse it at the end.
fn device_provider(refuses: bool) -> Mock {
    let url = Arc::new(OnceLock::new());
    let known: Arc<OnceLock<String>> = url.clone();
    let server = mock(move |request| {
        let url = known.wait();
        Some(match &*request.path {
            "/.well-known/openid-configuration" => json(format!(
                r#"{{"issuer":"{url}","token_endpoint":"{url}/token","revocation_endpoint":"{url}/revoke",
                "device_authorization_endpoint":"{url}/device"}}"#
            )),
            "/device" => json(format!(
                r#"{{"device_code":"d","user_code":"u","verification_uri":"{url}/page","interval":1}}"#
            )),
            "/token" if refuses => text(400, r#"{"error":"access_denied"}"#),
            "/token" => json(format!(
                r#"{{"refresh_token":"r1","id_token":"{}"}}"#,
                id_token(url, FAR_AWAY)
            )),
            "/revoke" | "/v1/ping" => text(200, ""),
            _ => return None,
        })
    });
    url.set(server.url.clone()).expect("once");
    server
}

/// The old refresh token of the same person ends before he agrees once more: providers may end all of it together.
#[test]
fn a_second_login_ends_the_first() {
    for refuses in [false, true] {
        let server = device_provider(refuses);
        let home = home_of(&server.url);
        let url = &server.url;
        let login = [
            "login",
            "--auth-host",
            url,
            "--client-id",
            "me",
            "--device",
            "--no-browser",
            "-s",
            url,
        ];
        let outcome = home.run(&login);
        assert_eq!(outcome.status == 0, !refuses, "{outcome:#?}");
        let requests = server.requests().into_iter();
        let posts: Vec<_> = requests.filter(|r| r.method == "POST").collect();
        let paths: Vec<_> = posts.iter().map(|r| &*r.path).collect();
        assert_eq!(paths, ["/revoke", "/device", "/token"]);
        let revoked = String::from_utf8_lossy(&posts[0].body);
        assert!(revoked.contains("token=r0&"), "{revoked}");
        let config = home.config();
        assert!(!config.contains("r0"), "{config}");
        assert_eq!(
            config.contains("refresh_token = \"r1\""),
            !refuses,
            "{config}"
        );
        let said = outcome.stderr.contains("is not renewed any more");
        assert!(said, "{outcome:#?}");
        assert_eq!(
            config.contains(&id_token(url, LONG_AGO)),
            refuses,
            "{config}"
        );
    }
}

/// What another server's login is renewed by is not ended with that of this one.
#[test]
fn a_second_login_ends_none_for_other_servers() {
    let server = device_provider(false);
    let home = home_of(&server.url);
    let url = &server.url;
    let (elsewhere, ended) = ("http://elsewhere:3000", id_token(url, LONG_AGO));
    let config = format!(
        "[server_tokens]\n\"{elsewhere}\" = \"{ended}\"\n\"{url}\" = \"{ended}\"\n\n[server_renewals]\n\
         \"{elsewhere}\" = {{ issuer = \"{url}\", client_id = \"me\", scope = \"openid\", refresh_token = \"e0\" }}\n\
         \"{url}\" = {{ issuer = \"{url}\", client_id = \"me\", scope = \"openid\", refresh_token = \"r0\" }}\n"
    );
    home.write("root/config/cli.toml", &config);
    let by_device = [
        "login",
        "--auth-host",
        url,
        "--client-id",
        "me",
        "--device",
        "-s",
        url,
    ];
    let with_a_token = ["login", "--token", &token("ann"), "-s", url];
    for (login, kept) in [(&by_device[..], true), (&with_a_token, false)] {
        let mut login = login.to_vec();
        if kept {
            login.push("--no-browser");
        }
        let outcome = home.run(&login).ok();
        assert!(outcome.stderr.contains(elsewhere), "{outcome:#?}");
        let config = home.config();
        assert!(config.contains("\"e0\""), "{config}");
        assert!(!config.contains("\"r0\""), "{config}");
        assert_eq!(config.contains("\"r1\""), kept, "{config}");
    }
    let requests = server.requests();
    assert!(requests.iter().all(|request| request.path != "/revoke"));
}
