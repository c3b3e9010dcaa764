//! Requests, answers, and their bounds.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lightcone_accounts::{Account, Counted};

/// Unchecked, as a module describes it.
#[derive(Clone, Debug)]
pub struct Request {
    /// Any token is a method.
    pub method: String,
    /// With scheme and host.
    pub url: String,
    /// In order; a repeated header is repeated.
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Bytes,
    /// Holds the memory of the answer.
    pub account: Arc<Account>,
}

/// Any status is an answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    /// `HTTP/1.1` and so on.
    pub version: reqwest::Version,
    /// In order.
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Counted<Vec<u8>>,
}

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
