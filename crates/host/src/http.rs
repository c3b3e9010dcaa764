//! Requests and responses of modules (spec 03 §13.1). Bodies travel beside them.

pub use lightcone_schema::raw::HttpMethod;
use lightcone_types::bsatn::{Decode, DecodeError, Encode, Reader};
use lightcone_types::TimeDuration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    pub method: HttpMethod,
    pub headers: Vec<HttpHeader>,
    /// The time limit of a module's own request.
    pub timeout: Option<TimeDuration>,
    pub uri: String,
    pub version: HttpVersion,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpResponse {
    pub headers: Vec<HttpHeader>,
    pub version: HttpVersion,
    /// Unchecked: any number.
    pub code: u16,
}

/// A repeated header has several entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpHeader {
    pub name: String,
    pub value: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpVersion {
    Http09,
    Http10,
    Http11,
    Http2,
    Http3,
}

const VERSIONS: [HttpVersion; 5] = [
    HttpVersion::Http09,
    HttpVersion::Http10,
    HttpVersion::Http11,
    HttpVersion::Http2,
    HttpVersion::Http3,
];

impl HttpRequest {
    /// As sent, without the body.
    pub fn bytes(&self) -> usize {
        let method = match &self.method {
            HttpMethod::Extension(name) => name.len(),
            _ => METHOD_BYTES_MAX,
        };
        let headers = self.headers.iter();
        let headers = headers.map(|header| header.name.len() + header.value.len() + 4);
        method + self.uri.len() + headers.sum::<usize>()
    }
}

const METHOD_BYTES_MAX: usize = 7;

lightcone_types::bsatn_products! {
    HttpRequest { method, headers, timeout, uri, version }
    HttpResponse { headers, version, code }
    HttpHeader { name, value }
}

impl Encode for HttpVersion {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(*self as u8);
    }
}

impl Decode for HttpVersion {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let tag = r.read_u8()?;
        VERSIONS.get(usize::from(tag)).copied().ok_or_else(|| {
            DecodeError::Other(format!("{tag} is no version of HTTP: there are 0 to 4").into())
        })
    }
}

#[cfg(test)]
mod tests {
    use lightcone_vectors::{each, from_hex, named, Entry};
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::fuzzing::fuzz_http;

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
            version in 0_usize..5,
            code: u16,
        ) {
            let headers = headers.into_iter().map(|(name, value)| HttpHeader { name, value });
            let response = HttpResponse { headers: headers.collect(), version: VERSIONS[version], code };
            let encoded = response.to_vec();
            fuzz_http(&encoded);
            prop_assert_eq!(HttpResponse::from_slice(&encoded).unwrap(), response);
        }
    }
}
