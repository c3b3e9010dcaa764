//! Requests and responses of modules, as bytes (03 §13.1).

#[path = "../../../fuzz/src/http.rs"]
mod fuzzing;

use fuzzing::fuzz_http;
use lightcone_host::{HttpHeader, HttpMethod, HttpRequest, HttpResponse, HttpVersion};
use lightcone_types::bsatn::{Decode, Encode};
use lightcone_types::TimeDuration;
use lightcone_vectors::{each, from_hex, named, Entry};
use proptest::prelude::*;
use serde_json::Value;

const VERSIONS: [HttpVersion; 5] = [
    HttpVersion::Http09,
    HttpVersion::Http10,
    HttpVersion::Http11,
    HttpVersion::Http2,
    HttpVersion::Http3,
];

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

fn headers(value: &Value) -> Vec<HttpHeader> {
    let header = |pair: &Value| HttpHeader {
        name: text(&pair[0]),
        value: text(&pair[1]).into_bytes(),
    };
    let headers = value["headers"].as_array().expect("headers");
    headers.iter().map(header).collect()
}

fn method(value: &Value) -> HttpMethod {
    match (value.as_str(), &value["Extension"]) {
        (Some("Get"), _) => HttpMethod::Get,
        (Some("Post"), _) => HttpMethod::Post,
        (None, Value::String(name)) => HttpMethod::Extension(name.clone()),
        unknown => panic!("no test knows {unknown:?}"),
    }
}

fn version(value: &Value) -> HttpVersion {
    assert_eq!(value["version"], "Http11");
    HttpVersion::Http11
}

fn request(value: &Value) -> HttpRequest {
    HttpRequest {
        method: method(&value["method"]),
        headers: headers(value),
        timeout: value["timeout_micros"].as_i64().map(TimeDuration),
        uri: text(&value["uri"]),
        version: version(value),
    }
}

fn response(value: &Value) -> HttpResponse {
    HttpResponse {
        headers: headers(value),
        version: version(value),
        code: value["code"].as_u64().expect("a code") as u16,
    }
}

fn check<T: Encode + Decode + PartialEq + std::fmt::Debug>(value: T, entry: &Entry) {
    assert_eq!(value.to_vec(), entry.hex());
    assert_eq!(T::from_slice(&entry.hex()), Ok(value));
}

/// The vectors of 03 §16.5, of which those of 04 §13.3 are part.
#[test]
fn vectors_of_the_chapter() {
    each("03-http-types.json", "vectors", |entry| {
        let value = &entry.0["value"];
        match entry.text("type") {
            "HttpRequest" => check(request(value), entry),
            "HttpResponse" => check(response(value), entry),
            "String" => check(text(value), entry),
            unknown => panic!("no test reads {unknown:?}"),
        }
    });
    let handled = HttpRequest {
        method: HttpMethod::Get,
        headers: vec![HttpHeader {
            name: "host".into(),
            value: b"h".into(),
        }],
        timeout: None,
        uri: "http://h/v1/x/y?q=1z".to_owned(),
        version: HttpVersion::Http11,
    };
    let call = named("04-calls.json", "calls", "13.3 handler");
    let request = from_hex(&text(&call.list("args")[2]["bytes"]));
    assert_eq!(handled.to_vec(), request);
    assert_eq!(HttpRequest::from_slice(&request), Ok(handled));
}

#[test]
fn what_is_cut_off_or_wrong_says_so() {
    let error = |bytes: &[u8]| HttpResponse::from_slice(bytes).unwrap_err().to_string();
    assert_eq!(error(&[0]), "data too short for u32: Expected 4, given 1");
    assert_eq!(
        error(&[0, 0, 0, 0, 9, 200, 0]),
        "9 is no version of HTTP: there are 0 to 4"
    );
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_read(data in proptest::collection::vec(any::<u8>(), 0..200)) {
        fuzz_http(&data);
    }

    #[test]
    fn responses_come_back(
        headers in proptest::collection::vec((".{0,8}", any::<Vec<u8>>()), 0..5),
        version in prop::sample::select(&VERSIONS),
        code: u16,
    ) {
        let headers = headers.into_iter().map(|(name, value)| HttpHeader { name, value });
        let response = HttpResponse { headers: headers.collect(), version, code };
        let encoded = response.to_vec();
        fuzz_http(&encoded);
        prop_assert_eq!(HttpResponse::from_slice(&encoded).unwrap(), response);
    }
}
