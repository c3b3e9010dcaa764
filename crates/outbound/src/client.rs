//! The client for requests that leave the server: one request, hop by hop.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lightcone_accounts::{Account, Counted};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, LOCATION};
use reqwest::header::{PROXY_AUTHORIZATION, TRANSFER_ENCODING};
use reqwest::{redirect, Certificate, Client, Method, StatusCode, Url};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, Semaphore};

use crate::error::hide_query;
use crate::filter::Filter;
use crate::resolver::{to_port, Resolver};
use crate::this_machine::{OwnAddresses, OwnPorts};
use crate::{AllowList, Bounds, Lookup, OutboundError, Reach, Request};
use crate::{RequestShare, Response, SystemLookup};

/// For one request to an issuer, from the look-up of the name to the last byte.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// For connecting and TLS, within the time of the request.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// One owner has at most this part of all requests.
const SHARE_PART: usize = 2;
const LOOKUPS_MAX: usize = 32;
const REDIRECTS_MAX: usize = 10;
const HEADERS_MAX: usize = 256;
/// Connections to one named target that are kept for further requests, each of them so long: a target is not to be the first to close
/// one, as a request may be on its way to it.
const NAMED_IDLE_MAX: usize = 16;
const NAMED_IDLE_TIME: Duration = Duration::from_secs(5);

pub struct OutboundOptions {
    /// What modules reach beyond the public internet.
    pub allow: AllowList,
    /// Certificates in PEM that are trusted beside those of the machine.
    pub certificates: Vec<Vec<u8>>,
    /// How names are looked up.
    pub lookup: Arc<dyn Lookup>,
    /// Never reached by modules on this machine, whatever is listed.
    pub own_ports: OwnPorts,
    /// Each has a socket.
    pub requests_max: usize,
    pub runtime: Handle,
}

impl OutboundOptions {
    /// The public internet only, on the tokio runtime that this is called in.
    pub fn current() -> OutboundOptions {
        OutboundOptions {
            allow: AllowList::default(),
            certificates: Vec::new(),
            lookup: Arc::new(SystemLookup),
            own_ports: OwnPorts::default(),
            requests_max: Semaphore::MAX_PERMITS,
            runtime: Handle::current(),
        }
    }
}

pub struct Outbound {
    public: Way,
    listed: Way,
    any: Way,
    /// For targets that the operator has named, which are not checked.
    named: Client,
    requests: Arc<Semaphore>,
    requests_max: usize,
    runtime: Handle,
}

/// How requests of some reach go out.
struct Way {
    client: Client,
    /// For literal addresses in URLs, which are not looked up.
    filter: Filter,
}

impl Way {
    /// Names are checked when they are looked up.
    fn check_literal(&self, url: &Url) -> Result<(), OutboundError> {
        let Some(address) = literal_address(url)? else {
            return Ok(());
        };
        let port = url.port_or_known_default();
        self.filter.check(&address.to_string(), address, port)
    }
}

impl Outbound {
    pub fn new(options: OutboundOptions) -> Result<Outbound, OutboundError> {
        let setup = |error: reqwest::Error| OutboundError::Setup(error.to_string());
        let mut certificates = Vec::new();
        for pem in &options.certificates {
            certificates.extend(Certificate::from_pem_bundle(pem).map_err(setup)?);
        }
        let allow = Arc::new(options.allow);
        let own = OwnAddresses::new(options.lookup.clone());
        let way = |reach, kept_max| -> Result<Way, OutboundError> {
            let filter = Filter {
                reach,
                allow: allow.clone(),
                own: own.clone(),
                own_ports: options.own_ports.clone(),
            };
            let resolver = Resolver {
                filter: filter.clone(),
                lookup: options.lookup.clone(),
                lookups: Arc::new(Semaphore::new(LOOKUPS_MAX)),
            };
            let client = Client::builder()
                // What else is in a program may have turned HTTP/2 on.
                .http1_only()
                .connect_timeout(CONNECT_TIMEOUT)
                // Redirects are followed below, each checked like a first request.
                .redirect(redirect::Policy::none())
                .no_proxy()
                .pool_max_idle_per_host(kept_max)
                .pool_idle_timeout(NAMED_IDLE_TIME)
                .http1_max_headers(HEADERS_MAX)
                .dns_resolver(Arc::new(resolver))
                .tls_certs_merge(certificates.clone())
                .user_agent(concat!("lightcone/", env!("CARGO_PKG_VERSION")))
                .build();
            let client = client.map_err(setup)?;
            Ok(Way { client, filter })
        };
        Ok(Outbound {
            // A kept connection would go to an address that was checked long ago.
            public: way(Reach::Public, 0)?,
            listed: way(Reach::Listed, 0)?,
            any: way(Reach::Any, 0)?,
            named: way(Reach::Any, NAMED_IDLE_MAX)?.client,
            requests: Arc::new(Semaphore::new(options.requests_max)),
            requests_max: options.requests_max,
            runtime: options.runtime,
        })
    }

    /// The body of an answer 200. Redirects are not followed.
    pub async fn get(
        &self,
        url: Url,
        reach: Reach,
        bytes_max: usize,
    ) -> Result<Vec<u8>, OutboundError> {
        let way = match reach {
            Reach::Public => &self.public,
            Reach::Listed => &self.listed,
            Reach::Any => &self.any,
        };
        way.check_literal(&url)?;
        let request = way.client.get(url).timeout(REQUEST_TIMEOUT);
        let response = request.send().await.map_err(refusal)?;
        let status = response.status();
        if status != StatusCode::OK {
            let hint = match status.is_redirection() {
                true => "; redirects are not followed",
                false => "",
            };
            return Err(OutboundError::Status { status, hint });
        }
        // The server's own requests count nowhere.
        let body = Counted::constant(Vec::new());
        let body = read_body(response, bytes_max, bytes_max, body).await?;
        Ok(body.into_inner())
    }

    /// Sends a body to a target that the operator has named. Redirects are not followed, and the answer is not read; it must be a
    /// success.
    pub async fn post(
        &self,
        url: &Url,
        headers: &[(String, String)],
        body: Vec<u8>,
        time_max: Duration,
    ) -> Result<(), OutboundError> {
        let response = self.post_named(url, headers, body, time_max).await?;
        let status = response.status();
        match status.is_success() {
            true => Ok(()),
            false => Err(OutboundError::Status { status, hint: "" }),
        }
    }

    /// Sends a body to a target that the operator has named, and gives status and body of the answer. Redirects are not followed.
    pub async fn post_for_answer(
        &self,
        url: &Url,
        headers: &[(String, String)],
        body: Vec<u8>,
        time_max: Duration,
        bytes_max: usize,
    ) -> Result<(u16, Vec<u8>), OutboundError> {
        let response = self.post_named(url, headers, body, time_max).await?;
        let status = response.status().as_u16();
        // The server's own requests count nowhere.
        let body = Counted::constant(Vec::new());
        let body = read_body(response, bytes_max, bytes_max, body).await?;
        Ok((status, body.into_inner()))
    }

    async fn post_named(
        &self,
        url: &Url,
        headers: &[(String, String)],
        body: Vec<u8>,
        time_max: Duration,
    ) -> Result<reqwest::Response, OutboundError> {
        let request = self.named.post(url.clone());
        let mut request = request.timeout(time_max).body(body);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request.send().await.map_err(refusal)
    }

    /// A new share of the requests and look-ups, for one owner.
    pub fn share(&self) -> RequestShare {
        RequestShare::new((self.requests_max / SHARE_PART).max(1))
    }

    /// Starts a module's request, from any thread. Dropping the receiver ends it.
    pub fn start(
        self: &Arc<Self>,
        request: Request,
        bounds: Bounds,
        share: RequestShare,
    ) -> oneshot::Receiver<Result<Response, OutboundError>> {
        let (mut answer, answered) = oneshot::channel();
        let outbound = self.clone();
        self.runtime.spawn(async move {
            let result = tokio::select! {
                // A caller that has gone meanwhile takes no turn.
                biased;
                () = answer.closed() => return,
                result = share.within(outbound.request(request, bounds)) => result,
            };
            let _ = answer.send(result);
        });
        answered
    }

    /// A module's request, with redirects. Any status is an answer.
    pub async fn request(
        &self,
        request: Request,
        bounds: Bounds,
    ) -> Result<Response, OutboundError> {
        let made = async {
            // The permit of the share comes first: a request that waits for it takes nothing from others.
            let _of_share = match RequestShare::current() {
                Some(share) => share.requests.acquire_owned().await.ok(),
                None => None,
            };
            let _turn = self.requests.acquire().await;
            self.follow(request, bounds).await
        };
        let made = tokio::time::timeout(bounds.timeout, made).await;
        made.unwrap_or(Err(OutboundError::TimedOut(bounds.timeout.as_millis())))
    }

    async fn follow(&self, request: Request, bounds: Bounds) -> Result<Response, OutboundError> {
        let bytes = request.bytes();
        if bytes > bounds.request_bytes_max {
            return Err(OutboundError::RequestTooLarge {
                bytes,
                bytes_max: bounds.request_bytes_max,
            });
        }
        let account = request.account.clone();
        let mut hop = Hop::first(request)?;
        for _ in 0..=REDIRECTS_MAX {
            let response = self.ask(&hop).await?;
            match hop.next(&response)? {
                Some(next) => hop = next,
                None => return read(response, bounds.response_bytes_max, &account).await,
            }
        }
        Err(OutboundError::TooManyRedirects(REDIRECTS_MAX))
    }

    async fn ask(&self, hop: &Hop) -> Result<reqwest::Response, OutboundError> {
        self.listed.check_literal(&hop.url)?;
        let client = &self.listed.client;
        let request = client.request(hop.method.clone(), hop.url.clone());
        let request = request.headers(hop.headers.clone());
        let request = request.body(hop.body.clone());
        let port = hop.url.port_or_known_default().unwrap_or_default();
        to_port(port, request.send()).await.map_err(refusal)
    }
}

/// A request to one target.
struct Hop {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Bytes,
}

impl Hop {
    fn first(request: Request) -> Result<Hop, OutboundError> {
        let method = Method::from_bytes(request.method.as_bytes());
        let method = method.map_err(|error| head("method", error))?;
        let count = request.headers.len();
        if count > HEADERS_MAX {
            let text = format!("there are {count}; at most {HEADERS_MAX} are sent");
            return Err(head("number of headers", text));
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &request.headers {
            let name = HeaderName::from_bytes(name.as_bytes());
            let name = name.map_err(|error| head("header name", error))?;
            // These say where the request goes and ends, which the module may not decide.
            if [HOST, CONTENT_LENGTH, TRANSFER_ENCODING].contains(&name) {
                continue;
            }
            let value = HeaderValue::from_bytes(value);
            headers.append(name, value.map_err(|error| head("header value", error))?);
        }
        Ok(Hop {
            method,
            url: parse(&request.url)?,
            headers,
            body: request.body,
        })
    }

    /// The target of a redirect, and the request to it.
    fn next(&self, response: &reqwest::Response) -> Result<Option<Hop>, OutboundError> {
        let status = response.status().as_u16();
        let location = response.headers().get(LOCATION);
        let (301..=303 | 307 | 308, Some(location)) = (status, location) else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(location.as_bytes()).into_owned();
        let url = self.url.join(&text);
        let url = url.map_err(|_| OutboundError::Redirect(text.clone()))?;
        let url = checked(url).map_err(|_| OutboundError::Redirect(text))?;
        let mut next = Hop {
            method: self.method.clone(),
            headers: self.headers.clone(),
            body: self.body.clone(),
            url,
        };
        let becomes_get = match status {
            303 => self.method != Method::HEAD,
            301 | 302 => self.method == Method::POST,
            _ => false,
        };
        if becomes_get {
            next.method = Method::GET;
            next.body = Bytes::new();
            next.headers.remove(CONTENT_TYPE);
        }
        if next.url.origin() != self.url.origin() {
            // Credentials are for the first target only.
            for name in [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION] {
                next.headers.remove(name);
            }
        }
        Ok(Some(next))
    }
}

fn head(part: &'static str, error: impl std::fmt::Display) -> OutboundError {
    OutboundError::Head {
        part,
        reason: error.to_string(),
    }
}

fn parse(text: &str) -> Result<Url, OutboundError> {
    let url = Url::parse(text).map_err(|error| OutboundError::Url {
        text: text.split(['?', '#']).next().unwrap_or_default().to_owned(),
        reason: error.to_string(),
    })?;
    checked(url)
}

fn checked(url: Url) -> Result<Url, OutboundError> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(OutboundError::Scheme(url.scheme().to_owned()));
    }
    host(&url)?;
    Ok(url)
}

fn host(url: &Url) -> Result<&str, OutboundError> {
    url.host_str().ok_or_else(|| {
        let mut shown = url.clone();
        hide_query(&mut shown);
        OutboundError::Url {
            text: shown.into(),
            reason: "it has no host".to_owned(),
        }
    })
}

/// The host of a URL, if it is an address.
pub fn literal_address(url: &Url) -> Result<Option<IpAddr>, OutboundError> {
    Ok(host(url)?.trim_matches(['[', ']']).parse().ok())
}

/// A refusal by the resolver is the cause of another error.
fn refusal(error: reqwest::Error) -> OutboundError {
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        match inner.downcast_ref() {
            Some(OutboundError::Refused { host }) => {
                return OutboundError::Refused { host: host.clone() };
            }
            Some(OutboundError::OwnPort { host }) => {
                return OutboundError::OwnPort { host: host.clone() };
            }
            _ => {}
        }
        cause = inner.source();
    }
    error.into()
}

async fn read(
    response: reqwest::Response,
    bytes_max: usize,
    account: &Arc<Account>,
) -> Result<Response, OutboundError> {
    let mut headers = Vec::with_capacity(response.headers().len());
    let mut head_bytes = 0;
    for (name, value) in response.headers() {
        head_bytes += name.as_str().len() + value.len() + 4;
        headers.push((name.as_str().to_owned(), value.as_bytes().to_vec()));
    }
    let left = bytes_max.checked_sub(head_bytes);
    let left = left.ok_or(OutboundError::ResponseTooLarge { bytes_max })?;
    let (status, version) = (response.status().as_u16(), response.version());
    Ok(Response {
        status,
        version,
        headers,
        body: read_body(response, left, bytes_max, Counted::empty(account)).await?,
    })
}

/// Appends the body if it has at most `left` bytes, the remainder of `bytes_max`.
async fn read_body(
    mut response: reqwest::Response,
    left: usize,
    bytes_max: usize,
    mut body: Counted<Vec<u8>>,
) -> Result<Counted<Vec<u8>>, OutboundError> {
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > left {
            return Err(OutboundError::ResponseTooLarge { bytes_max });
        }
        body.extend(&chunk).map_err(OutboundError::Memory)?;
    }
    Ok(body)
}
