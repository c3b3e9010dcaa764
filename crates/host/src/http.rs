//! Requests and responses as modules and their host exchange them (spec 03 §13.1). Bodies travel beside them.

pub use lightcone_schema::raw::HttpMethod;
use lightcone_types::bsatn::{Decode, DecodeError, Encode, Reader};
use lightcone_types::TimeDuration;

/// The head of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    pub method: HttpMethod,
    pub headers: Vec<HttpHeader>,
    /// For requests that a module makes.
    pub timeout: Option<TimeDuration>,
    pub uri: String,
    pub version: HttpVersion,
}

/// The head of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpResponse {
    pub headers: Vec<HttpHeader>,
    pub version: HttpVersion,
    /// The status. Any number: who sends it on has to check it.
    pub code: u16,
}

/// One header. Of a repeated one there are several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpHeader {
    pub name: String,
    /// Not always text.
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

impl Encode for HttpRequest {
    fn encode(&self, out: &mut Vec<u8>) {
        self.method.encode(out);
        self.headers.encode(out);
        self.timeout.encode(out);
        self.uri.encode(out);
        self.version.encode(out);
    }
}

impl Decode for HttpRequest {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(HttpRequest {
            method: Decode::decode(r)?,
            headers: Decode::decode(r)?,
            timeout: Decode::decode(r)?,
            uri: Decode::decode(r)?,
            version: Decode::decode(r)?,
        })
    }
}

impl Encode for HttpResponse {
    fn encode(&self, out: &mut Vec<u8>) {
        self.headers.encode(out);
        self.version.encode(out);
        self.code.encode(out);
    }
}

impl Decode for HttpResponse {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(HttpResponse {
            headers: Decode::decode(r)?,
            version: Decode::decode(r)?,
            code: Decode::decode(r)?,
        })
    }
}

impl Encode for HttpHeader {
    fn encode(&self, out: &mut Vec<u8>) {
        self.name.encode(out);
        self.value.encode(out);
    }
}

impl Decode for HttpHeader {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(HttpHeader {
            name: Decode::decode(r)?,
            value: Decode::decode(r)?,
        })
    }
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
    use proptest::prelude::*;

    use super::*;
    use crate::fuzzing::fuzz_http;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex
            .bytes()
            .filter(|digit| !digit.is_ascii_whitespace())
            .collect();
        let pair = |pair: &[u8]| {
            u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).expect("hexadecimal")
        };
        digits.chunks(2).map(pair).collect()
    }

    /// The vectors of 04 §13.3.
    #[test]
    fn vectors() {
        let header = |name: &str, value: &[u8]| HttpHeader {
            name: name.to_owned(),
            value: value.to_vec(),
        };
        let request = HttpRequest {
            method: HttpMethod::Get,
            headers: vec![header("host", b"h")],
            timeout: None,
            uri: "http://h/v1/x/y?q=1z".to_owned(),
            version: HttpVersion::Http11,
        };
        let vector = bytes(
            "00 01000000 04000000686f7374 0100000068 01 14000000687474703a2f2f682f76312f782f793f713d317a 02",
        );
        assert_eq!(request.to_vec(), vector);
        assert_eq!(HttpRequest::from_slice(&vector).unwrap(), request);
        let response = HttpResponse {
            headers: vec![header("x-r", b"1")],
            version: HttpVersion::Http11,
            code: 201,
        };
        let vector = bytes("01000000 03000000782d72 0100000031 02 c900");
        assert_eq!(response.to_vec(), vector);
        assert_eq!(HttpResponse::from_slice(&vector).unwrap(), response);
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
