//! What the user said about a login.

/// Where to log in, and how.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The issuer's address.
    pub issuer: &'a str,
    /// The name under which the provider knows this program.
    pub client_id: &'a str,
    pub scope: &'a str,
    /// Where the browser comes back to; any port if there is none.
    pub callback_port: Option<u16>,
    /// The user has no browser here.
    pub device: bool,
    pub open_browser: bool,
}
