//! HTTP/1.1, as much as a client needs that sends small requests and keeps its connections.

use std::borrow::Cow;
use std::io::Write;

use crate::address::{connect, Address};
use crate::incoming::{Incoming, Progress};
use crate::Error;

const HEADERS_MAX: usize = 64;
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Longest body accepted; a page of balances is the largest.
const BODY_BYTES_MAX: usize = 64 << 20;
/// How much of an unexpected body is shown.
const SHOWN_CHARACTERS_MAX: usize = 200;

#[derive(Debug, PartialEq, Eq)]
pub struct Response<'a> {
    pub status: u16,
    pub body: Cow<'a, [u8]>,
    /// False if the server closes the connection after it.
    pub keeps_alive: bool,
}

impl Response<'_> {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Status and beginning of the body, for error messages.
    pub fn shown(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        let text: String = text.trim().chars().take(SHOWN_CHARACTERS_MAX).collect();
        format!("HTTP {} {text}", self.status).trim_end().to_owned()
    }
}

fn protocol(what: impl Into<String>) -> Error {
    Error::Protocol(format!("its answer {}", what.into()))
}

/// How the end of a body is known.
enum Length {
    Known(usize),
    Chunked,
}

/// A body and the number of bytes that it takes.
type Body<'a> = (Cow<'a, [u8]>, usize);

/// The answer that begins here and the number of its bytes; nothing if it is not all here.
pub fn parse(bytes: &[u8]) -> Result<Option<(Response<'_>, usize)>, Error> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Response::new(&mut headers);
    let head_bytes = match head.parse(bytes) {
        Ok(httparse::Status::Complete(head_bytes)) => head_bytes,
        Ok(httparse::Status::Partial) if bytes.len() > HEAD_BYTES_MAX => {
            return Err(protocol("has a head that does not end"));
        }
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(protocol(format!("is not HTTP: {error}"))),
    };
    let status = head.code.unwrap_or_default();
    let mut length = None;
    let mut keeps_alive = head.version == Some(1);
    for header in head.headers.iter() {
        let value = header.value.trim_ascii();
        if header.name.eq_ignore_ascii_case("content-length") {
            let known = std::str::from_utf8(value).ok().and_then(|v| v.parse().ok());
            let known = known.ok_or_else(|| protocol("has a content-length that is no number"));
            length = Some(Length::Known(known?));
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            if !value.eq_ignore_ascii_case(b"chunked") {
                return Err(protocol("has an unknown transfer-encoding"));
            }
            length = Some(Length::Chunked);
        } else if header.name.eq_ignore_ascii_case("connection") {
            keeps_alive = !value.eq_ignore_ascii_case(b"close");
        }
    }
    let rest = &bytes[head_bytes..];
    let body = match length {
        Some(Length::Known(length)) if length > BODY_BYTES_MAX => {
            return Err(protocol("has a body of more than 64 MiB"));
        }
        Some(Length::Known(length)) => rest.get(..length).map(|body| (Cow::Borrowed(body), length)),
        Some(Length::Chunked) => chunks(rest)?,
        None if matches!(status, 204 | 304) => Some((Cow::Borrowed(&[][..]), 0)),
        None => return Err(protocol("does not say how long it is")),
    };
    Ok(body.map(|(body, body_bytes)| {
        let response = Response {
            status,
            body,
            keeps_alive,
        };
        (response, head_bytes + body_bytes)
    }))
}

/// A body in chunks; nothing if it is not all here.
fn chunks(bytes: &[u8]) -> Result<Option<Body<'_>>, Error> {
    let mut body = Vec::new();
    let mut used = 0;
    loop {
        let (line_bytes, size) = match httparse::parse_chunk_size(&bytes[used..]) {
            Ok(httparse::Status::Complete(found)) => found,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(protocol("has a broken chunk")),
        };
        used += line_bytes;
        if size > (BODY_BYTES_MAX - body.len()) as u64 {
            return Err(protocol("has a body of more than 64 MiB"));
        }
        let size = size as usize;
        // The last chunk is empty; trailers are not asked for.
        let Some(chunk) = bytes.get(used..used + size + 2) else {
            return Ok(None);
        };
        if !chunk.ends_with(b"\r\n") {
            return Err(protocol("has a broken chunk"));
        }
        used += size + 2;
        if size == 0 {
            return Ok(Some((Cow::Owned(body), used)));
        }
        body.extend_from_slice(&chunk[..size]);
    }
}

/// `POST` of JSON on a connection of its own, below the prefix of the address; waits for the answer.
pub fn post(address: &Address, path: &str, body: &str) -> Result<Response<'static>, Error> {
    let mut stream = connect(&address.host)?;
    let request = format!(
        "POST {}{path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        address.prefix,
        address.host,
        body.len()
    );
    stream
        .write_all(request.as_bytes())
        .map_err(Error::io("sending a request"))?;
    let (mut incoming, mut buffer, mut answer) = (Incoming::default(), Vec::new(), None);
    loop {
        let progress = incoming.read(&mut stream, &mut buffer, 0, |bytes| {
            let Some((response, used)) = parse(bytes)? else {
                return Ok(0);
            };
            answer = Some(Response {
                body: Cow::Owned(response.body.into_owned()),
                ..response
            });
            Ok(used)
        })?;
        if let Some(answer) = answer.take() {
            return Ok(answer);
        }
        if progress == Progress::End {
            return Err(Error::Closed(Some("instead of answering".into())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(bytes: &[u8]) -> (u16, String, bool, usize) {
        let (response, used) = parse(bytes).unwrap().expect("a whole answer");
        let body = String::from_utf8(response.body.into_owned()).unwrap();
        (response.status, body, response.keeps_alive, used)
    }

    #[test]
    fn answers_of_all_lengths() {
        let known =
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n\
            {\"ok\":true}";
        let chunked = b"HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\n\
            4\r\n{\"ok\r\n8;x=y\r\n\":false}\r\n0\r\n\r\n";
        let closing = b"HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        let empty = b"HTTP/1.1 204 No Content\r\n\r\n";
        for (bytes, status, body, keeps_alive) in [
            (&known[..], 200, r#"{"ok":true}"#, true),
            (chunked, 500, r#"{"ok":false}"#, true),
            (closing, 404, "", false),
            (empty, 204, "", true),
        ] {
            assert_eq!(
                response(bytes),
                (status, body.to_owned(), keeps_alive, bytes.len())
            );
            for end in 0..bytes.len() {
                assert_eq!(parse(&bytes[..end]).unwrap(), None, "{end} bytes of it");
            }
            // The next answer is left alone.
            let two = [bytes, known].concat();
            assert_eq!(response(&two).3, bytes.len());
        }
    }

    #[test]
    fn broken_answers_are_refused() {
        for (bytes, text) in [
            (&b"SSH-2.0-OpenSSH\r\n\r\n"[..], "is not HTTP"),
            (b"HTTP/1.1 200 OK\r\n\r\n", "does not say how long"),
            (b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n", "no number"),
            (
                b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n",
                "64 MiB",
            ),
            (
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n",
                "unknown transfer-encoding",
            ),
            (
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
                "broken chunk",
            ),
            (
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc",
                "broken chunk",
            ),
        ] {
            let error = parse(bytes).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
