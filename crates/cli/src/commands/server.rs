//! `spacetime server …` (07 §5.10).

use std::path::{Path, PathBuf};

use clap::Subcommand;
use reqwest::StatusCode;
use serde_json::{json, Value};

use super::Context;
use crate::config::{Config, ServerConfig};
use crate::error::{Error, FileResult as _, Result};
use crate::http::Client;
use crate::output::{print_json, remark, result, result_text, FormatOption, Stream};
use crate::progress::Progress;
use crate::{prompt, table};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the saved servers
    List(FormatOption),
    /// Choose the server that commands use when none is named
    SetDefault {
        /// Nickname or host of a saved server
        server: String,
    },
    /// Save a server
    Add(New),
    /// Forget a saved server
    Remove {
        /// Nickname or host of a saved server
        server: String,
    },
    /// Show a server's public key, and save it if it is new
    Fingerprint {
        /// Nickname or host of a saved server
        server: String,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
    /// Ask a server whether it is there
    Ping {
        /// Nickname, host name or URL of a server
        server: String,
    },
    /// Change a saved server
    Edit(Changes),
    /// Delete all data of the server on this machine
    Clear {
        /// The data directory of the server; the one that `spacetime start` uses if it is left out
        #[arg(long, value_name = "DIR")]
        data_dir: Option<PathBuf>,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
}

pub async fn run(context: &mut Context, command: Command) -> Result<()> {
    match command {
        Command::List(output) => {
            list(context, output);
            Ok(())
        }
        Command::SetDefault { server } => {
            let set = |now: &mut Config| {
                now.find_server(&server)?;
                now.set_default_server(Some(&server));
                Ok(())
            };
            context.config.try_update(set).await
        }
        Command::Add(new) => add(context, new).await,
        Command::Remove { server } => {
            let remove = |now: &mut Config| {
                let server = now.find_server(&server)?;
                now.remove_server(&server);
                Ok(())
            };
            context.config.try_update(remove).await
        }
        Command::Fingerprint { server, yes } => fingerprint(context, &server, yes).await,
        Command::Ping { server } => ping(context, &server).await,
        Command::Edit(changes) => edit(context, changes).await,
        Command::Clear { data_dir, yes } => {
            clear(data_dir.as_ref().unwrap_or(&context.paths.data_dir), yes)
        }
    }
}

fn list(context: &Context, output: FormatOption) {
    let default = context.config.default_server();
    let is_default = |server: &ServerConfig| default.is_some_and(|name| server.is_called(name));
    let servers = context.config.servers();
    if output.is_json() {
        let servers: Vec<Value> = servers.iter().map(|s| as_json(s, is_default(s))).collect();
        print_json(&json!({ "servers": servers }));
        return;
    }
    let rows = servers.into_iter().map(|server| {
        let mark = if is_default(&server) { "***" } else { "" };
        let nickname = server.nickname.unwrap_or_default();
        vec![mark.to_owned(), server.host, server.protocol, nickname]
    });
    let header = ["DEFAULT", "HOSTNAME", "PROTOCOL", "NICKNAME"];
    let rows: Vec<_> = rows.collect();
    result_text!("{}", table::plain(&header, &rows));
}

fn as_json(server: &ServerConfig, is_default: bool) -> Value {
    json!({
        "nickname": server.nickname,
        "host": server.host,
        "protocol": server.protocol,
        "url": server.url(),
        "is_default": is_default,
        "allow_insecure": server.allow_insecure,
        "has_fingerprint": server.ecdsa_public_key.is_some(),
    })
}

/// Splits `http://host[:port]/` into protocol and host.
fn split_url(url: &str) -> Result<(&str, &str)> {
    let bad = |why: &str| {
        coded!(
            "LC0627",
            "`{url}` {why}, for example http://127.0.0.1:3000."
        )
    };
    let Some((protocol @ ("http" | "https"), host)) = url.split_once("://") else {
        return Err(bad("must begin with http:// or https://"));
    };
    let host = host.trim_end_matches('/');
    // Says what is wrong with a host that cannot be one.
    Client::new(format!("{protocol}://{host}"), None)?;
    if host.contains(['/', '?', '#', '@', '\\']) {
        return Err(bad("must be a host with its port and nothing else"));
    }
    Ok((protocol, host))
}

/// A nickname is told apart from a URL by its characters (07 §4.1).
fn check_nickname(name: &str) -> Result<()> {
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || c == '/';
    match name.is_empty() || name.contains(is_odd) {
        false => Ok(()),
        true => Err(coded!("LC0627", "`{name}` cannot be a nickname: one has at least one character, and neither spaces nor `/`.")),
    }
}

fn check_free(config: &Config, host: Option<&str>, nickname: Option<&str>) -> Result<()> {
    for server in config.servers() {
        if let Some(host) = host.filter(|h| server.host == **h) {
            bail!(
                "LC0627",
                "A server with the host {host} is saved already, as `{}`. `spacetime server edit` changes it.",
                server.nick_or_host(),
            );
        }
        if let Some(name) = nickname.filter(|n| server.nickname.as_deref() == Some(*n)) {
            bail!("LC0627", "The nickname `{name}` is taken by {}. Choose another, or `spacetime server edit {name}`.", server.url());
        }
    }
    Ok(())
}

async fn fetch_key(url: &str) -> Result<String> {
    let client = Client::new(url.to_owned(), None)?;
    let key = client.text(client.get("/v1/identity/public-key")).await;
    key.map_err(caused!(
        "LC0628",
        "cannot fetch the public key of {url}. If the server is not up yet, add --no-fingerprint."
    ))
}

#[derive(Debug, clap::Args)]
pub struct New {
    /// Its URL, for example http://127.0.0.1:3000
    #[arg(long)]
    url: String,
    /// The nickname to save it under
    name: String,
    /// Make it the default
    #[arg(short, long)]
    default: bool,
    /// Do not fetch the server's public key
    #[arg(long)]
    no_fingerprint: bool,
}

async fn add(context: &mut Context, new: New) -> Result<()> {
    let (name, (protocol, host)) = (new.name, split_url(&new.url)?);
    check_nickname(&name)?;
    let mut server = ServerConfig {
        nickname: Some(name.clone()),
        host: host.to_owned(),
        protocol: protocol.to_owned(),
        ecdsa_public_key: None,
        allow_insecure: context.allow_insecure,
    };
    check_free(&context.config, Some(host), Some(&name))?;
    if !new.no_fingerprint {
        let key = fetch_key(&server.url()).await?;
        result!("Fingerprint for server {name}:\n{key}");
        server.ecdsa_public_key = Some(key);
    }
    result!("Host: {host}\nProtocol: {protocol}");
    let add = |now: &mut Config| {
        check_free(now, Some(host), Some(&name))?;
        now.add_server(&server);
        if new.default {
            now.set_default_server(Some(&name));
        }
        Ok(())
    };
    context.config.try_update(add).await
}

/// Fetches the key of a server and shows it; true if it differs from the saved one.
async fn refresh_key(server: &mut ServerConfig, to: Stream) -> Result<bool> {
    let key = fetch_key(&server.url()).await?;
    let name = server.nick_or_host();
    let text = match &server.ecdsa_public_key {
        Some(old) if *old == key => format!("Fingerprint is unchanged for server {name}:\n{key}"),
        Some(old) => format!("Fingerprint has changed for server {name}. Old:\n{old}\nNew:\n{key}"),
        None => format!("New fingerprint for server {name}:\n{key}"),
    };
    to.line(format_args!("{text}"));
    let is_other = server.ecdsa_public_key.as_ref() != Some(&key);
    server.ecdsa_public_key = Some(key);
    Ok(is_other)
}

/// That no other command has changed a server while the user was asked about it.
fn check_unchanged(now: &Config, server: &ServerConfig) -> Result<()> {
    let name = server.nick_or_host();
    match now.servers().contains(server) {
        true => Ok(()),
        false => bail!("LC0627", "another command has changed `{name}` in the meantime, and this one has changed nothing. Run it again."),
    }
}

async fn fingerprint(context: &mut Context, name: &str, yes: bool) -> Result<()> {
    let old = context.config.find_server(name)?;
    let mut new = old.clone();
    if refresh_key(&mut new, Stream::Result).await? && prompt::goes_on("Continue?", yes) {
        let replace = |now: &mut Config| {
            check_unchanged(now, &old)?;
            now.replace_server(&old, &new);
            Ok(())
        };
        context.config.try_update(replace).await?;
    }
    Ok(())
}

async fn ping(context: &Context, name: &str) -> Result<()> {
    // A host that is not saved is worth a try: scripts ping by address.
    let url = match context.config.server_url(Some(name)) {
        Ok(url) => url,
        Err(_) if name.contains(':') => format!("http://{name}"),
        Err(error) => return Err(error),
    };
    let client = Client::new(url.clone(), None)?;
    let status = client.send(client.get("/v1/ping")).await?.status();
    match status {
        status if status.is_success() => result!("Server is online: {url}"),
        StatusCode::NOT_FOUND => result!("Server returned 404 (Not Found): {url}"),
        status => result!("Server could not be reached ({status}): {url}"),
    }
    Ok(())
}

#[derive(Debug, clap::Args)]
pub struct Changes {
    /// Nickname or host of a saved server
    server: String,
    /// The nickname that it has from now on
    #[arg(long, value_name = "NAME")]
    new_name: Option<String>,
    /// The URL that it has from now on
    #[arg(long)]
    url: Option<String>,
    /// Do not fetch the server's public key
    #[arg(long)]
    no_fingerprint: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

/// Shows what changes, asks once, and writes it.
async fn edit(context: &mut Context, changes: Changes) -> Result<()> {
    if changes.new_name.is_none() && changes.url.is_none() && !context.allow_insecure {
        let text = "nothing to change: give --new-name, --url or --allow-insecure";
        return Err(Error::Usage(text.into()));
    }
    let old = context.config.find_server(&changes.server)?;
    let mut new = old.clone();
    let nickname = changes
        .new_name
        .filter(|name| old.nickname.as_ref() != Some(name));
    if let Some(nickname) = nickname {
        check_nickname(&nickname)?;
        check_free(&context.config, None, Some(&nickname))?;
        let before = old.nickname.as_deref().unwrap_or("(none)");
        remark!("Changing nickname from {before} to {nickname}");
        new.nickname = Some(nickname);
    }
    if let Some(url) = &changes.url {
        let (protocol, host) = split_url(url)?;
        if host != old.host {
            check_free(&context.config, Some(host), None)?;
            remark!("Changing host from {} to {host}", old.host);
            new.host = host.to_owned();
        }
        if protocol != old.protocol {
            remark!("Changing protocol from {} to {protocol}", old.protocol);
            new.protocol = protocol.to_owned();
        }
    }
    if new.url() != old.url() {
        // What was agreed to for one server does not hold for another.
        new.allow_insecure = false;
        if changes.no_fingerprint {
            new.ecdsa_public_key = None;
        } else {
            refresh_key(&mut new, Stream::Remark).await?;
        }
    }
    if context.allow_insecure && !new.allow_insecure {
        remark!("Allowing logins to be sent unencrypted");
        new.allow_insecure = true;
    }
    if new == old {
        remark!("Nothing to change.");
        return Ok(());
    }
    if !prompt::goes_on("Continue?", changes.yes) {
        return Ok(());
    }
    let replace = |now: &mut Config| {
        check_unchanged(now, &old)?;
        let nickname = new.nickname.as_deref();
        let nickname = nickname.filter(|_| new.nickname != old.nickname);
        let host = Some(&*new.host).filter(|_| new.host != old.host);
        check_free(now, host, nickname)?;
        let was_default = now.default_server().is_some_and(|d| old.is_called(d));
        now.replace_server(&old, &new);
        if was_default {
            now.set_default_server(Some(new.nick_or_host()));
        }
        Ok(())
    };
    context.config.try_update(replace).await
}

fn clear(data_dir: &Path, yes: bool) -> Result<()> {
    if !data_dir.exists() {
        result!("Local database not found. Nothing has been deleted.");
        return Ok(());
    }
    check_is_data(data_dir)?;
    let shown = data_dir.display();
    // A running server holds the lock on its pid file.
    let lock = std::fs::File::open(data_dir.join("spacetime.pid"));
    let lock = lock.map(|file| file.try_lock());
    if matches!(lock, Ok(Err(std::fs::TryLockError::WouldBlock))) {
        bail!("LC0630", "A server is running on {shown}. Stop it first.");
    }
    let question = "Are you sure you want to delete all data from the local database?";
    if !prompt::goes_on(question, yes) {
        return Ok(());
    }
    let _progress = Progress::start("Deleting");
    std::fs::remove_dir_all(data_dir).or_cannot("delete", data_dir)?;
    result!("Deleted database: {shown}");
    Ok(())
}

/// A mistyped `--data-dir` must not cost the user's files.
fn check_is_data(directory: &Path) -> Result<()> {
    let mut names = ["metadata.toml", "spacetime.pid", "control-db"].iter();
    let is_of_server = names.any(|name| directory.join(name).exists());
    let mut entries = std::fs::read_dir(directory).or_cannot("read", directory)?;
    match is_of_server || entries.next().is_none() {
        true => Ok(()),
        false => Err(coded!(
            "LC0881",
            "{} was not deleted: it is not the data directory of a server. Name one with --data-dir, or delete it yourself.",
            directory.display(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::split_url;

    #[test]
    fn urls_are_taken_apart() {
        assert_eq!(split_url("http://h:1/").expect("a URL"), ("http", "h:1"));
        assert_eq!(split_url("https://h").expect("a URL"), ("https", "h"));
        for url in [
            "h:1",
            "ftp://h",
            "http://",
            "http:///",
            "http://h/x",
            "http://a:b@h",
            "http://h?x",
            "http://h#x",
        ] {
            let error = split_url(url).expect_err(url).to_string();
            assert!(error.contains("[LC0627]"), "{error}");
        }
    }
}
