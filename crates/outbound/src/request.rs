//! What is asked, what is answered, and how much of both there may be.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lightcone_accounts::{Account, Counted};

/// A request, as a module describes it. Nothing of it is checked yet.
#[derive(Clone, Debug)]
pub struct Request {
    /// Any token is a method.
    pub method: String,
    /// With scheme and host.
    pub url: String,
    /// In order; a repeated header is repeated.
    pub headers: Vec<(String, Vec<u8>)>,
    /// May be empty.
    pub body: Bytes,
    /// Whose memory the answer takes.
    pub account: Arc<Account>,
}

/// What came back: any status is an answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// `HTTP/1.1` and so on.
    pub version: reqwest::Version,
    /// In order.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The whole body.
    pub body: Counted<Vec<u8>>,
}

/// Bounds of one request.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// From the look-up of the name to the last byte of the last answer.
    pub timeout: Duration,
    /// Method, URL, headers and body of the request.
    pub request_bytes_max: usize,
    /// Headers and body of the answer.
    pub response_bytes_max: usize,
}

impl Request {
    pub(crate) fn bytes(&self) -> usize {
        let headers = self.headers.iter();
        let headers = headers.map(|(name, value)| name.len() + value.len() + 4);
        self.method.len() + self.url.len() + headers.sum::<usize>() + self.body.len()
    }
}
