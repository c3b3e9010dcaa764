//! The dashboard (06 §5.23): a page for people, whose files are inside of the program. Its sources are in `dashboard/`.
//!
//! The page has no rights. What it shows it asks for over the other routes, with the token of the person who looks.

use std::sync::{Arc, LazyLock};

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{header, HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use sha1::{Digest as _, Sha1};

use crate::gateway::Gateway;
use crate::reply::{self, Failure, Reply};

/// Names and contents, as `dashboard/scripts/build.mjs` has written them. All but fonts are compressed.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/dashboard.rs"));
const PAGE: &str = "index.html";
const COMPRESSED: &str = ".gz";

/// Scripts, styles and data from this server only, nothing inline, no code from text, and in no frame.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
);
/// What is always sent besides the policy.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    ),
];

/// A file as it is sent.
struct File {
    /// As browsers ask for it.
    name: &'static str,
    bytes: &'static [u8],
    is_compressed: bool,
    content_type: &'static str,
    etag: HeaderValue,
}

static BY_NAME: LazyLock<Vec<File>> = LazyLock::new(|| FILES.iter().map(file_of).collect());

fn file_of((stored, bytes): &(&'static str, &'static [u8])) -> File {
    let name = stored.strip_suffix(COMPRESSED).unwrap_or(stored);
    let digest: [u8; 20] = Sha1::digest(bytes).into();
    let hash: String = digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    File {
        name,
        bytes,
        is_compressed: name.len() < stored.len(),
        content_type: content_type(name),
        etag: HeaderValue::from_str(&format!("\"{hash}\"")).expect("hex digits are plain"),
    }
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, end)| end) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "woff2" => "font/woff2",
        _ => "text/plain; charset=utf-8",
    }
}

/// GET `/dashboard`: the page's addresses are relative, so it stands behind a slash.
pub(super) async fn entry(State(state): State<Arc<Gateway>>) -> Reply {
    check_is_served(&state)?;
    let mut response = reply::empty(StatusCode::PERMANENT_REDIRECT);
    let place = HeaderValue::from_static("dashboard/");
    response.headers_mut().insert(header::LOCATION, place);
    Ok(response)
}

/// GET `/dashboard/`
pub(super) async fn page(State(state): State<Arc<Gateway>>, headers: HeaderMap) -> Reply {
    check_is_served(&state)?;
    send(PAGE, &headers)
}

/// GET `/dashboard/:file`
pub(super) async fn file(
    State(state): State<Arc<Gateway>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Reply {
    check_is_served(&state)?;
    send(&name, &headers)
}

fn check_is_served(state: &Gateway) -> Result<(), Failure> {
    if state.node.config.shows_dashboard() {
        return Ok(());
    }
    let text = "this server shows no dashboard: dashboard.enabled is false in config.toml, or routes.content-security-policy lets \
                pages of modules share the server's origin [LC0165]";
    Err(Failure::text(StatusCode::NOT_FOUND, text))
}

fn send(name: &str, asked: &HeaderMap) -> Reply {
    let Some(file) = BY_NAME.iter().find(|file| file.name == name) else {
        return Err(Failure::empty(StatusCode::NOT_FOUND));
    };
    if file.is_compressed && !takes_gzip(asked) {
        let text = "the dashboard is sent in gzip only";
        return Err(Failure::text(StatusCode::NOT_ACCEPTABLE, text));
    }
    let is_known = asked
        .get(header::IF_NONE_MATCH)
        .is_some_and(|tags| names(tags.as_bytes(), file.etag.as_bytes()));
    let mut response = Response::new(match is_known {
        true => Body::empty(),
        false => Body::from(file.bytes),
    });
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    // Other names have a hash of the content in them.
    let keep = match name {
        PAGE | "licences.txt" => "no-cache",
        _ => "public, max-age=31536000, immutable",
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(keep));
    headers.insert(header::ETAG, file.etag.clone());
    let content_type = HeaderValue::from_static(file.content_type);
    headers.insert(header::CONTENT_TYPE, content_type);
    if file.is_compressed {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

/// Who says nothing of encodings takes any (RFC 9110 §12.5.3).
fn takes_gzip(asked: &HeaderMap) -> bool {
    let mut lines = asked.get_all(header::ACCEPT_ENCODING).iter().peekable();
    if lines.peek().is_none() {
        return true;
    }
    lines.filter_map(|line| line.to_str().ok()).any(|line| {
        line.split(',').any(|part| {
            let (coding, weight) = part.split_once(';').unwrap_or((part, "q=1"));
            let weight = weight
                .trim()
                .strip_prefix("q=")
                .and_then(|q| q.parse::<f32>().ok());
            ["gzip", "*"].contains(&coding.trim()) && weight != Some(0.0)
        })
    })
}

/// Is the tag one of the list?
fn names(list: &[u8], tag: &[u8]) -> bool {
    list.split(|byte| *byte == b',').any(|one| {
        let one = one.trim_ascii();
        one == b"*" || one.strip_prefix(b"W/").unwrap_or(one) == tag
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of all files together, as they are sent.
    const BYTES_MAX: usize = 400_000;

    fn asked(name: HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn the_files_are_small_and_complete() {
        let bytes: usize = FILES.iter().map(|(_, bytes)| bytes.len()).sum();
        assert!(bytes <= BYTES_MAX, "{bytes}");
        let has = |end: &str| BY_NAME.iter().any(|file| file.name.ends_with(end));
        for end in [PAGE, ".js", ".css", ".svg", ".woff2", "licences.txt"] {
            assert!(has(end), "{end}");
        }
    }

    #[test]
    fn a_page_is_asked_for_anew_and_its_files_are_kept() {
        for file in BY_NAME.iter() {
            let sent = send(file.name, &HeaderMap::new()).expect("it is there");
            let kept = sent.headers()[header::CACHE_CONTROL]
                .to_str()
                .expect("plain");
            let is_fixed = file.name != PAGE && file.name != "licences.txt";
            assert_eq!(kept.contains("immutable"), is_fixed, "{}", file.name);
            let etag = sent.headers()[header::ETAG].clone();
            let again = HeaderMap::from_iter([(header::IF_NONE_MATCH, etag)]);
            let again = send(file.name, &again).expect("it is there");
            assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{}", file.name);
        }
        for name in ["", "index.html.gz", "../index.html", "%2e%2e/x", "main.js"] {
            assert!(send(name, &HeaderMap::new()).is_err(), "{name}");
        }
    }

    #[test]
    fn encodings() {
        for (value, expected) in [
            ("gzip", true),
            ("br, gzip;q=0.5", true),
            ("*", true),
            ("gzip;q=0", false),
            ("identity", false),
            ("", false),
        ] {
            assert_eq!(
                takes_gzip(&asked(header::ACCEPT_ENCODING, value)),
                expected,
                "{value}"
            );
        }
        assert!(takes_gzip(&HeaderMap::new()));
        let refused = send(PAGE, &asked(header::ACCEPT_ENCODING, "identity"));
        assert!(refused.is_err());
    }

    #[test]
    fn tags() {
        assert!(names(b"\"a\", W/\"b\"", b"\"b\""));
        assert!(names(b"*", b"\"b\""));
        assert!(!names(b"\"a\"", b"\"b\""));
    }
}
