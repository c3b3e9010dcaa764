//! Logins: how they are got, kept, and sent to their own server only.

use std::sync::{Arc, Mutex};

use crate::common::server::Server;
use crate::common::shop::mock;
use crate::common::{identity, json, text, token, token_of, Home, Mock, Response};

#[test]
fn without_a_login_the_server_itself_gives_one() {
    let home = Home::new();
    let server = mock(|r| (r.path.ends_with("/databases")).then(|| json(r#"{"identities":[]}"#)));
    let outcome = home.run(&["list", "-s", &server.url, "-y"]).ok();
    let me = lightcone_types::Identity::from_claims("localhost", "direct").to_hex();
    assert!(
        outcome.stderr.contains(&format!(
            "We have logged in directly to your target server.\nWARNING: This login will NOT work for any other servers.\nLogged in with identity {me}\n"
        )),
        "{outcome:#?}"
    );
    assert_eq!(outcome.stdout, format!("No databases found for {me}.\n"));
    // On this machine the user is not asked for an account elsewhere.
    let home = Home::new();
    let outcome = home.run(&["list", "-s", &server.url]).ok();
    assert!(
        outcome
            .stderr
            .contains("We have logged in directly to your target server."),
        "{outcome:#?}"
    );
    // Elsewhere the question comes; the end of input answers it no.
    let outcome = home.run(&["list", "-s", "https://elsewhere.invalid"]);
    assert!(
        outcome.stderr.contains(
            "You are not logged in. Would you like to log in with spacetimedb.com? [y/N]"
        ),
        "{outcome:#?}"
    );
    assert!(
        outcome
            .stderr
            .contains("cannot reach the server at https://elsewhere.invalid"),
        "{outcome:#?}"
    );
}

/// Who asks a server gets the login for that server or a new one, and never the one of another server.
#[test]
fn a_login_goes_to_its_own_server_only() {
    let home = Home::new();
    let here = mock(|r| (r.path.ends_with("/databases")).then(|| json(r#"{"identities":[]}"#)));
    let stranger = mock(|r| (r.path.ends_with("/databases")).then(|| json(r#"{"identities":[]}"#)));
    home.log_in("ann", &here.url);
    home.run(&["list", "-s", &here.url]).ok();
    home.run(&["list", "-s", &stranger.url, "-y"]).ok();
    let sent = |server: &Mock| -> Vec<Option<String>> {
        server
            .requests()
            .into_iter()
            .map(|r| r.authorization)
            .collect()
    };
    let bearer = |subject: &str| Some(format!("Bearer {}", token(subject)));
    assert_eq!(sent(&here), [bearer("ann")]);
    assert_eq!(
        sent(&stranger),
        [None, bearer("direct")],
        "a login of its own, asked for without any"
    );
    let other_name = here.url.replace("127.0.0.1", "localhost");
    let outcome = home.run(&["list", "-s", &other_name, "-y"]).ok();
    assert!(
        outcome
            .stderr
            .contains(&format!("you have a login for {} too", here.url)),
        "{outcome:#?}"
    );
    let shown = home.run(&["login", "show"]).ok();
    assert_eq!(
        shown.stdout.matches("You are logged in as ").count(),
        3,
        "{shown:#?}"
    );
    let shown = home
        .run(&["login", "show", "--token", "--server", &here.url])
        .ok();
    assert!(shown.stdout.contains(&token("ann")), "{shown:#?}");
    home.run(&["logout", "--server", &stranger.url]).ok();
    let config = home.config();
    assert!(
        config.contains(&here.url) && !config.contains(&stranger.url),
        "{config}"
    );
}

/// A server that starts on another port is still the one that the login is from.
#[test]
fn a_login_follows_its_server() {
    let (home, others, third) = (Home::new(), Home::new(), Home::new());
    let server = Server::start(&home);
    let first = home.run(&["list", "-s", &server.url]).ok();
    let me = first.stdout.trim_end().trim_end_matches('.');
    let me = me.rsplit(' ').next().expect("an identity").to_owned();
    let was = server.url.clone();
    server.stop();
    let server = Server::start(&home);
    assert_ne!(server.url, was);
    for (url, remarks) in [
        (server.url.clone(), 1),
        (server.url.clone(), 0),
        (server.url.replace("127.0.0.1", "localhost"), 1),
    ] {
        let found = home.run(&["list", "-s", &url]).ok();
        assert_eq!(found.stdout, format!("No databases found for {me}.\n"));
        let remark = format!("The server at {url} is the one of your login for ");
        assert_eq!(found.stderr.matches(&remark).count(), remarks, "{found:#?}");
    }
    // Other servers get a login of their own: one with another key, and one that proves nothing.
    let other = Server::start(&others);
    let silent = mock(|r| (r.path.ends_with("/databases")).then(|| json(r#"{"identities":[]}"#)));
    for url in [&other.url, &silent.url] {
        let stranger = home.run(&["list", "-s", url]).ok();
        assert!(!stranger.stdout.contains(&me), "{stranger:#?}");
        assert!(
            stranger.stderr.contains("We have logged in directly"),
            "{stranger:#?}"
        );
    }
    // Where the login's server was there is another one now, with another key.
    let other = Server::start_at(&third, &was["http://".len()..]);
    let refused = home.run(&["list", "-s", &other.url]);
    assert!(
        refused.status == 1 && refused.stdout.is_empty() && refused.stderr.contains("[LC0886]"),
        "{refused:#?}"
    );
    let wrong = home.run(&["doctor", "-s", &other.url, "--no-config"]);
    assert!(wrong.stdout.contains("it has another key"), "{wrong:#?}");
    home.run(&["logout", "--server", &other.url]).ok();
    let anew = home.run(&["list", "-s", &other.url]).ok();
    assert!(!anew.stdout.contains(&me), "{anew:#?}");
    assert!(home
        .run(&["list", "-s", &server.url])
        .ok()
        .stdout
        .contains(&me));
}

/// Two servers that change places keep their owners, and no login is lost.
#[test]
fn logins_of_servers_that_change_places() {
    let (home, other) = (Home::new(), Home::new());
    let (one, two) = (Server::start(&home), Server::start(&other));
    let (here, there) = (one.url.clone(), two.url.clone());
    let who = |url: &str| home.run(&["list", "-s", url]).ok().stdout;
    let (first, second) = (who(&here), who(&there));
    assert_ne!(first, second);
    let config = home.config();
    one.stop();
    two.stop();
    let (at_here, at_there) = (&here["http://".len()..], &there["http://".len()..]);
    let (two, one) = (
        Server::start_at(&other, at_here),
        Server::start_at(&home, at_there),
    );
    assert_eq!((who(&here), who(&there)), (second, first));
    assert_eq!(home.config(), config);
    drop((one, two));
}

/// A program that has its clients' questions answered by the server is not taken for it.
#[test]
fn a_proof_that_is_handed_on_is_worth_nothing() {
    let home = Home::new();
    let server = Server::start(&home);
    home.run(&["list", "-s", &server.url]).ok();
    for (hides_its_address, is_told) in [(false, false), (true, true)] {
        let (real, seen) = (server.url.clone(), Arc::new(Mutex::new(Vec::new())));
        let saw = seen.clone();
        let relay = mock(move |request| {
            saw.lock()
                .expect("not poisoned")
                .push(request.authorization.clone());
            let asked = request.path.split_once("&address=");
            let Some((nonce, _)) = asked.filter(|_| request.path.contains("/key-proof?")) else {
                return (request.path.ends_with("/databases"))
                    .then(|| json(r#"{"identities":[]}"#));
            };
            let path = match hides_its_address {
                true => format!("{nonce}&address={real}"),
                false => request.path.clone(),
            };
            let (status, body) = get(&real, &path);
            assert_eq!(status, if hides_its_address { 200 } else { 403 }, "{body}");
            Some(Response {
                status,
                ..json(body)
            })
        });
        let outcome = home.run(&["list", "-s", &relay.url]);
        assert_eq!(outcome.stderr.contains("[LC0887]"), is_told, "{outcome:#?}");
        let theirs = format!("Bearer {}", token("direct"));
        let mut seen = seen.lock().expect("not poisoned").clone();
        seen.retain(|sent| sent.as_deref().is_some_and(|sent| sent != theirs));
        assert_eq!(seen, [], "no login of the server");
    }
}

/// Status and body of an answer.
fn get(url: &str, path: &str) -> (u16, String) {
    use std::io::{Read as _, Write as _};
    let host = &url["http://".len()..];
    let mut stream = std::net::TcpStream::connect(host).expect("connected");
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"
    )
    .expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("answered");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    (status.expect("a status"), body.to_owned())
}

/// The file of the reference's command has one token, which is for one server here.
#[test]
fn the_token_of_an_older_file_goes_to_one_server() {
    let home = Home::new();
    let server = mock(|r| (r.path.ends_with("/databases")).then(|| json(r#"{"identities":[]}"#)));
    let stranger = mock(|r| (r.path.ends_with("/databases")).then(|| json(r#"{"identities":[]}"#)));
    let old = format!(
        "default_server = \"mine\"\nspacetimedb_token = \"{}\" # old\n\n[[server_configs]]\nnickname = \"mine\"\nhost = \"{}\"\nprotocol = \"http\"\n",
        token("ann"),
        server.url.strip_prefix("http://").expect("http")
    );
    home.write("root/config/cli.toml", &old);
    home.run(&["list"]).ok();
    home.run(&["list", "-s", &stranger.url, "-y"]).ok();
    let bearer = Some(format!("Bearer {}", token("ann")));
    assert!(server.requests().iter().all(|r| r.authorization == bearer));
    assert!(stranger
        .requests()
        .iter()
        .all(|r| r.authorization != bearer));
    // What it was for at first, it stays for.
    home.run(&[
        "server",
        "add",
        "--url",
        &stranger.url,
        "evil",
        "-d",
        "--no-fingerprint",
    ])
    .ok();
    home.run(&["list"]).ok();
    assert!(stranger
        .requests()
        .iter()
        .all(|r| r.authorization != bearer));
    // A token that names its site is for that site's server, whatever the default is.
    home.run(&[
        "login",
        "--token",
        &token_of("https://auth.spacetimedb.com", "ann"),
    ])
    .ok();
    assert!(
        home.config()
            .contains("\"https://maincloud.spacetimedb.com\" = "),
        "{}",
        home.config()
    );
}

/// A server that redirects elsewhere does not take the login along.
#[test]
fn redirects_get_no_login() {
    let home = Home::new();
    let stranger = mock(|_| Some(json(r#"{"identities":[]}"#)));
    let target = stranger.url.clone();
    let server = Mock::start_with_location(move |r| Some(format!("{target}{}", r.path)));
    home.log_in("ann", &server.url);
    let outcome = home.run(&["list", "-s", &server.url]);
    assert_eq!(outcome.status, 1, "{outcome:#?}");
    assert!(
        outcome.stderr.contains("[LC0862]") && outcome.stderr.contains(&stranger.url),
        "{outcome:#?}"
    );
    assert!(stranger.requests().is_empty());
    assert_eq!(server.requests().len(), 1);
}

/// Over plain HTTP to another machine, a login goes only if the user says so.
#[test]
fn logins_over_plain_http_need_consent() {
    let home = Home::new();
    // A name that leads nowhere: what counts is whether the command tries.
    const URL: &str = "http://db.invalid:3000";
    home.log_in("ann", URL);
    let tries = |args: &[&str], input: &str| {
        let outcome = home.run_with(&[args, &["-s", URL]].concat(), input, &[]);
        assert_eq!(outcome.status, 1, "{outcome:#?}");
        match outcome.stderr.contains("[LC0602]") {
            true => true,
            false => {
                assert!(outcome.stderr.contains("[LC0861]"), "{outcome:#?}");
                assert!(outcome.stderr.contains("is not encrypted"), "{outcome:#?}");
                false
            }
        }
    };
    assert!(!tries(&["list"], ""));
    assert!(!tries(&["list"], "n\n"));
    assert!(tries(&["list"], "y\n"));
    assert!(tries(&["list", "-y"], ""));
    assert!(tries(&["list", "--allow-insecure"], ""));
    assert!(tries(&["call", "--anonymous", "x", "f"], ""));
    assert!(!tries(&["subscribe", "x", "SELECT * FROM t"], ""));
    home.run(&["server", "add", "--url", URL, "lab", "--no-fingerprint"])
        .ok();
    assert!(!tries(&["list"], ""));
    home.run(&["server", "edit", "lab", "--allow-insecure", "-y"])
        .ok();
    assert!(tries(&["list"], ""));
    home.run(&[
        "server",
        "edit",
        "lab",
        "--url",
        "http://other.invalid",
        "--no-fingerprint",
        "-y",
    ])
    .ok();
    let outcome = home.run(&["list", "-s", "lab"]);
    assert!(
        outcome.stderr.contains("[LC0861]"),
        "consent for one server is not consent for another: {outcome:#?}"
    );
    let direct = home.run(&["login", "--server-issued-login", "lab"]);
    assert!(direct.stderr.contains("[LC0861]"), "{direct:#?}");
}

/// Logging in again replaces the login of that server, and a login that fails costs nothing.
#[test]
fn logging_in_twice() {
    let home = Home::new();
    let count = std::sync::atomic::AtomicU32::new(0);
    let server = mock(move |r| {
        (r.line() == "POST /v1/identity").then(|| {
            let n = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            json(format!(
                r#"{{"identity":"c2","token":"{}"}}"#,
                token(&n.to_string())
            ))
        })
    });
    let login = ["login", "--server-issued-login", &server.url];
    let first = home.run(&login).ok();
    assert!(
        first
            .stdout
            .starts_with(&format!("Logged in with identity {}\n", identity("0"))),
        "{first:#?}"
    );
    let second = home.run(&login).ok();
    assert!(
        second
            .stderr
            .contains(&format!("Logged out (identity {}).\n", identity("0"))),
        "{second:#?}"
    );
    assert_eq!(
        second.stdout,
        format!("Logged in with identity {}\n", identity("1"))
    );
    let away = home.run(&["login", "--server-issued-login", "http://127.0.0.1:9"]);
    assert_eq!(away.status, 1);
    let shown = home.run(&["login", "show"]).ok();
    assert!(
        shown
            .stdout
            .starts_with(&format!("You are logged in as {}\n", identity("1"))),
        "{shown:#?}"
    );
}

#[test]
fn login_and_logout() {
    let home = Home::new();
    let outcome = home.run(&["login", "show"]).ok();
    assert!(
        outcome.stdout.starts_with("You are not logged in."),
        "{outcome:#?}"
    );
    assert_eq!(
        home.run(&["logout"]).ok().stdout,
        "You are not logged in.\n"
    );
    let me = home.log_in("ann", "local");
    let shown = home.run(&["login", "show", "--token"]).ok();
    assert!(
        shown
            .stdout
            .starts_with(&format!("You are logged in as {me}\n"))
            && shown.stdout.contains(&token("ann"))
    );
    let out = home.run(&["logout"]).ok();
    assert_eq!(out.stdout, format!("Logged out (identity {me}).\n"));
    assert!(!home.config().contains("token"), "{}", home.config());
    let odd = home.run(&["login", "--token", "what"]).ok();
    assert!(odd.stdout.starts_with("Token saved.\n"), "{odd:#?}");
    assert_eq!(
        home.run(&["login", "--token", "x", "--server-issued-login", "local"])
            .status,
        2
    );
}

#[test]
fn the_web_login_waits_for_approval_and_logout_ends_the_session() {
    let home = Home::new();
    let polls = std::sync::atomic::AtomicU32::new(0);
    let site =
        Mock::start(
            move |request| match request.path.split('?').next().unwrap_or_default() {
                "/api/auth/cli/login/request-token" => {
                    json(r#"{"success":true,"data":{"token":"ask"}}"#)
                }
                "/api/auth/cli/status" => {
                    match polls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
                        0 => json(r#"{"success":true,"data":{"approved":false}}"#),
                        _ => json(
                            r#"{"success":true,"data":{"approved":true,"sessionToken":"session"}}"#,
                        ),
                    }
                }
                "/api/spacetimedb-token"
                    if request.authorization.as_deref() == Some("Bearer session") =>
                {
                    json(format!(
                        r#"{{"success":true,"data":{{"token":"{}"}}}}"#,
                        token("web")
                    ))
                }
                "/auth/cli/logout" => text(200, ""),
                _ => json(r#"{"success":false,"error":"no"}"#),
            },
        );
    let me = lightcone_types::Identity::from_claims("localhost", "web").to_hex();
    let outcome = home
        .run(&["login", "--auth-host", &site.url, "--no-browser"])
        .ok();
    assert!(
        outcome
            .stderr
            .contains(&format!("{}/login/cli?token=ask", site.url)),
        "{outcome:#?}"
    );
    assert!(
        outcome.stdout == format!("Logged in with identity {me}\n"),
        "{outcome:#?}"
    );
    assert!(
        home.config().contains("web_session_token = \"session\""),
        "{}",
        home.config()
    );
    // The session is the site's, and no other site gets it.
    let other = Mock::start(|_| text(200, ""));
    let copy = home.config();
    home.run(&["logout", "--auth-host", &other.url]).ok();
    assert!(other.requests().is_empty(), "{:?}", other.lines());
    home.write("root/config/cli.toml", &copy);
    home.run(&["logout", "--auth-host", &site.url]).ok();
    assert_eq!(
        site.lines().last().map(String::as_str),
        Some("POST /auth/cli/logout")
    );
    assert!(!home.config().contains("token"), "{}", home.config());
    let refused = Mock::start(|_| json(r#"{"success":false,"error":"try later"}"#));
    let outcome = home.run(&["login", "--auth-host", &refused.url, "--no-browser"]);
    assert!(
        outcome.status == 1 && outcome.stderr.contains("try later"),
        "{outcome:#?}"
    );
}
