//! The commands, a file each.

pub mod backup;
pub mod call;
pub mod changes;
pub mod collaborators;
pub mod completions;
pub mod delete;
pub mod describe;
pub mod dev;
pub mod doctor;
pub mod env;
pub mod export;
pub mod generate;
pub mod import;
pub mod init;
pub mod list;
pub mod lock;
pub mod login;
pub mod logs;
pub mod mcp;
pub mod migrate;
pub mod publish;
pub mod rename;
pub mod server;
pub mod sql;
pub mod start;
pub mod subscribe;
pub mod top;
pub mod version;

use clap::ArgAction;
use lightcone_types::Identity;

use crate::address::origin;
use crate::config::Config;
use crate::credentials;
use crate::error::Result;
use crate::http::Client;
use crate::output::remark;
use crate::paths::Paths;
use crate::prompt;
use crate::targets::{self, After, Database};

/// What every command starts from.
#[derive(Debug)]
pub struct Context {
    pub paths: Paths,
    pub config: Config,
    /// Logins may be sent over plain HTTP: `--allow-insecure`.
    pub allow_insecure: bool,
    /// Origins for which the user has agreed to that in this run.
    agreed_to_http: Vec<String>,
}

/// Whose credentials a request carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth {
    Anonymous,
    /// The stored login, or a new one.
    Login {
        /// A new one is had from the server without a question.
        direct: bool,
        /// The question about plain HTTP is answered yes.
        insecure: bool,
    },
}

impl Auth {
    pub fn new(anonymous: bool, yes: bool) -> Self {
        Self::of(anonymous, yes, yes)
    }

    pub fn of(anonymous: bool, direct: bool, insecure: bool) -> Self {
        match anonymous {
            true => Self::Anonymous,
            false => Self::Login { direct, insecure },
        }
    }
}

impl Context {
    pub fn new(paths: Paths, config: Config, allow_insecure: bool) -> Self {
        Self {
            paths,
            config,
            allow_insecure,
            agreed_to_http: Vec::new(),
        }
    }

    /// A client of the server that the user means.
    pub async fn client(&mut self, server: Option<&str>, auth: Auth) -> Result<Client> {
        let url = self.config.server_url(server)?;
        match auth {
            Auth::Anonymous => Client::new(url, None),
            Auth::Login { direct, insecure } => {
                self.consent_to_http(&url, insecure)?;
                let client = Client::before_login(url)?;
                let token = credentials::require(&mut self.config, &client, direct).await?;
                Ok(client.with_token(token))
            }
        }
    }

    /// A client of the server that a database is on.
    pub async fn client_of(&mut self, database: &Database, auth: Auth) -> Result<Client> {
        let (server, place) = (database.server.as_deref(), database.server_place.as_deref());
        self.config.server_url_at(server, place)?;
        self.client(server, auth).await
    }

    /// A client of the server that a database is on, and the database's identity there.
    pub async fn reach(&mut self, database: &Database, auth: Auth) -> Result<(Client, Identity)> {
        let client = self.client_of(database, auth).await?;
        let identity = client.database_identity(&database.name).await;
        Ok((client, identity.map_err(|error| database.explain(error))?))
    }

    /// Asks before a login goes over a network unencrypted; `yes` answers beforehand.
    pub fn consent_to_http(&mut self, url: &str, yes: bool) -> Result<()> {
        let origin = origin(url);
        let is_agreed = self.allow_insecure || self.agreed_to_http.contains(&origin);
        if is_agreed || self.config.may_send_login(url) {
            return Ok(());
        }
        const WHAT: &str =
            "is not encrypted: every computer on the way can read your login, and use it";
        match yes {
            true => remark!("warning: the connection to {url} {WHAT}"),
            false => remark!("The connection to {url} {WHAT}."),
        }
        if !yes && !prompt::confirm("Do you want to send it?", false) {
            bail!(
                "LC0861",
                "your login was not sent to {url}, because the connection is not encrypted. Use https, or agree with \
                 --allow-insecure; `spacetime server edit <server> --allow-insecure` agrees for good.",
            );
        }
        self.agreed_to_http.push(origin);
        Ok(())
    }
}

/// A database, for commands that ask nothing about it.
#[derive(Debug, clap::Args)]
pub struct OneDatabase {
    /// The name or identity of the database
    database: Option<String>,
    /// The nickname, host name or URL of the server
    #[arg(short, long, value_name = "SERVER")]
    server: Option<String>,
    /// Do not look at spacetime.json
    #[arg(long)]
    no_config: bool,
}

impl OneDatabase {
    /// The server, and the name of the database, or its identity if that was given.
    pub async fn find(self, context: &mut Context) -> Result<(Client, String)> {
        let known = targets::known(self.no_config)?;
        let given = self.database.as_slice();
        let (database, _) = targets::resolve(&known, given, After::None, self.server.as_deref())?;
        let auth = Auth::new(false, false);
        let client = context.client_of(&database, auth).await?;
        Ok((client, database.name))
    }

    /// The server, and the identity of the database there.
    pub async fn identify(self, context: &mut Context) -> Result<(Client, String)> {
        let (client, name) = self.find(context).await?;
        let identity = client.database_identity(&name).await?;
        Ok((client, identity.to_hex()))
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

impl Common {
    /// Splits a command's words into the database and the rest.
    pub fn resolve(&self, words: &[String], after: After) -> Result<(Database, Vec<String>)> {
        let known = targets::known(self.no_config)?;
        targets::resolve(&known, words, after, self.server.as_deref())
    }

    /// The database that a command has as its only argument, as [`Context::reach`] finds it with the login; and its name.
    pub async fn reach(
        &self,
        context: &mut Context,
        database: Option<String>,
    ) -> Result<(Client, Identity, String)> {
        let (database, _) = self.resolve(database.as_slice(), After::None)?;
        let (client, identity) = context.reach(&database, Auth::new(false, self.yes)).await?;
        Ok((client, identity, database.name))
    }
}
