//! The commands, a file each.

pub mod call;
pub mod delete;
pub mod describe;
pub mod dev;
pub mod generate;
pub mod init;
pub mod later;
pub mod list;
pub mod lock;
pub mod login;
pub mod logs;
pub mod publish;
pub mod rename;
pub mod server;
pub mod sql;
pub mod start;
pub mod subscribe;
pub mod version;

use clap::ArgAction;

use crate::config::Config;
use crate::credentials::{self, WhenMissing};
use crate::error::Result;
use crate::http::Client;
use crate::paths::Paths;

/// What every command starts from.
#[derive(Debug)]
pub struct Context {
    pub paths: Paths,
    pub config: Config,
}

/// Whose credentials a request carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth {
    Anonymous,
    /// The stored login, or a new one.
    Login(WhenMissing),
}

impl Auth {
    pub fn new(anonymous: bool, yes: bool) -> Self {
        match (anonymous, yes) {
            (true, _) => Self::Anonymous,
            (false, true) => Self::Login(WhenMissing::Direct),
            (false, false) => Self::Login(WhenMissing::Ask),
        }
    }
}

impl Context {
    /// A client of the server that the user means.
    pub async fn client(&mut self, server: Option<&str>, auth: Auth) -> Result<Client> {
        let url = self.config.server_url(server)?;
        let token = match auth {
            Auth::Anonymous => None,
            Auth::Login(missing) => {
                Some(credentials::require(&mut self.config, &url, missing).await?)
            }
        };
        Client::new(url, token)
    }
}

/// `-s`, `-y` and `--no-config`, which most commands have.
#[derive(Debug, clap::Args)]
pub struct Common {
    /// The nickname, host name or URL of the server
    #[arg(short, long, value_name = "SERVER")]
    pub server: Option<String>,
    /// Ask nothing: answer yes to every question, and log in with the target server if need be
    #[arg(short, long, action = ArgAction::SetTrue)]
    pub yes: bool,
    /// Do not look at spacetime.json
    #[arg(long)]
    pub no_config: bool,
}
