//! HTTP requests that the server makes.
//!
//! Their target was chosen by a module, or by an issuer that a token names. So a name is looked up once, its addresses are checked,
//! and the connection goes to one of these addresses. Each redirect is checked like a first request; no proxy of the environment is
//! used; time and bytes are bounded.

mod address;
mod allow;
mod client;
mod error;
mod filter;
mod lookup;
mod request;
mod resolver;
mod this_machine;

pub use address::is_public;
pub use allow::{AllowList, AllowRuleError};
pub use client::{literal_address, Outbound, OutboundOptions};
pub use error::{error_chain, OutboundError, REFUSED_TEXT};
pub use filter::Reach;
pub use lookup::{Lookup, SystemLookup};
pub use request::{Bounds, Request, Response};
pub use reqwest::{Url, Version};
pub use resolver::RequestShare;
pub use this_machine::OwnPorts;
