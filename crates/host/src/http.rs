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
