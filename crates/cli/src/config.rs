//! `cli.toml`: servers, the default one, and the tokens (07 §4).
//!
//! The reference's file has one token, which its command sends to every server. Here each server has a login of its own,
//! in the table `server_tokens` by origin; `tokens` says whose the one token of an older file is.

mod lock;
mod tokens;

use std::io::{Seek, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table};

use crate::address::{is_loopback, origin};
use crate::error::{Error, FileResult as _, Result};
use crate::output::remark;
use crate::paths::text_if_there;

/// A saved server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    pub nickname: Option<String>,
    /// `host` or `host:port`.
    pub host: String,
    /// `http` or `https`.
    pub protocol: String,
    pub ecdsa_public_key: Option<String>,
    /// The user agreed to send this server's token over plain HTTP.
    pub allow_insecure: bool,
}

impl ServerConfig {
    pub fn url(&self) -> String {
        format!("{}://{}", self.protocol, self.host)
    }

    pub fn nick_or_host(&self) -> &str {
        self.nickname.as_deref().unwrap_or(&self.host)
    }

    /// True if the user means this server by `name`.
    pub fn is_called(&self, name: &str) -> bool {
        self.nickname.as_deref() == Some(name) || self.host == name
    }
}

/// The parsed file. Comments and the order of keys survive a rewrite.
#[derive(Debug)]
pub struct Config {
    path: PathBuf,
    document: DocumentMut,
}

const INITIAL: &str = r#"default_server = "local"

[[server_configs]]
nickname = "maincloud"
host = "maincloud.spacetimedb.com"
protocol = "https"

[[server_configs]]
nickname = "local"
host = "127.0.0.1:3000"
protocol = "http"
"#;

const STRING_KEYS: [&str; 5] = [
    "default_server",
    "web_session_token",
    "web_session_host",
    "spacetimedb_token",
    "listen_addr",
];

impl Config {
    /// What the first run of a command writes.
    pub fn initial() -> Self {
        Self::parse(Path::new("cli.toml"), INITIAL).expect("a test reads it")
    }

    /// Reads the file and writes nothing; `None` if there is none.
    pub fn read(path: &Path) -> Result<Option<Self>> {
        let Some(text) = text_if_there(path)? else {
            return Ok(None);
        };
        let mut config = Self::parse(path, &text)?;
        config.adopt_token();
        Ok(Some(config))
    }

    /// Reads the file; writes the initial one if there is none.
    pub fn load(path: &Path) -> Result<Self> {
        let Some(text) = text_if_there(path)? else {
            let config = Self::parse(path, INITIAL)?;
            return match config.save_first()? {
                true => Ok(config),
                // Another command was first, and may have a login in it by now.
                false => Self::read(path).map(|now| now.unwrap_or(config)),
            };
        };
        let mut config = Self::parse(path, &text)?;
        if config.adopt_token() {
            config.save_adopted()?;
        }
        Ok(config)
    }

    fn parse(path: &Path, text: &str) -> Result<Self> {
        let document = text.parse::<DocumentMut>();
        let document =
            document.map_err(caused!("LC0605", "{} is not valid TOML", path.display()))?;
        let config = Self {
            path: path.to_owned(),
            document,
        };
        config.check()?;
        Ok(config)
    }

    fn wrong_type(&self, key: &str, want: &str) -> Error {
        coded!("LC0605", "{}: `{key}` must be {want}", self.path.display())
    }

    /// A wrongly typed value is an error that names the key.
    fn check(&self) -> Result<()> {
        for key in STRING_KEYS {
            if self.document.get(key).is_some_and(|item| !item.is_str()) {
                return Err(self.wrong_type(key, "a string"));
            }
        }
        self.check_tokens()?;
        let Some(servers) = self.document.get("server_configs") else {
            return Ok(());
        };
        // `server_configs = []` is what removing the last server may leave.
        if servers.as_array().is_some_and(|a| a.is_empty()) {
            return Ok(());
        }
        let servers = servers.as_array_of_tables().ok_or_else(|| {
            self.wrong_type("server_configs", "an array of tables ([[server_configs]])")
        })?;
        for server in servers {
            let is = |key: &str, right: fn(&Item) -> bool| server.get(key).is_none_or(right);
            let is_there = |key: &str| server.get(key).is_some_and(Item::is_str);
            for (key, want, is_right) in [
                ("host", "a string, and present", is_there("host")),
                ("protocol", "a string, and present", is_there("protocol")),
                ("nickname", "a string", is("nickname", Item::is_str)),
                (
                    "ecdsa_public_key",
                    "a string",
                    is("ecdsa_public_key", Item::is_str),
                ),
                (
                    "allow_insecure",
                    "true or false",
                    is("allow_insecure", Item::is_bool),
                ),
            ] {
                if !is_right {
                    return Err(self.wrong_type(&format!("server_configs.{key}"), want));
                }
            }
        }
        Ok(())
    }

    /// Replaces the file in one step, so that no program ever reads half of it. It holds tokens: only its owner may read it.
    /// Only with the lock: `update` and its like.
    fn save(&self) -> Result<()> {
        let file = self.temporary_file();
        self.save_in(file.or_cannot("write", &self.path)?)
    }

    /// The same with a file that was made before.
    fn save_in(&self, mut file: NamedTempFile) -> Result<()> {
        remark!("Saving config to {}.", self.path.display());
        let write = || -> std::io::Result<()> {
            self.write_to(&mut file)?;
            file.persist(&self.path)?;
            Ok(())
        };
        write().or_cannot("write", &self.path)
    }

    /// The text of the file, and nothing behind it.
    fn write_to(&self, file: &mut NamedTempFile) -> std::io::Result<()> {
        let text = self.document.to_string();
        file.rewind()?;
        file.write_all(text.as_bytes())?;
        file.as_file().set_len(text.len() as u64)?;
        file.as_file().sync_all()
    }

    /// Writes the file if there still is none; false if there is.
    fn save_first(&self) -> Result<bool> {
        let write = || -> std::io::Result<bool> {
            let mut file = self.temporary_file()?;
            self.write_to(&mut file)?;
            match file.persist_noclobber(&self.path) {
                Ok(_) => Ok(true),
                Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
                Err(error) => Err(error.error),
            }
        };
        let is_first = write().or_cannot("write", &self.path)?;
        if is_first {
            remark!("Saving config to {}.", self.path.display());
        }
        Ok(is_first)
    }

    /// An empty file beside the one that it is to replace.
    fn temporary_file(&self) -> std::io::Result<NamedTempFile> {
        let directory = self.path.parent();
        let directory = directory.filter(|p| !p.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        std::fs::create_dir_all(directory)?;
        let mut named = tempfile::Builder::new();
        named.prefix(".cli.toml.").tempfile_in(directory)
    }

    fn string(&self, key: &str) -> Option<&str> {
        self.document.get(key)?.as_str()
    }

    fn set_string(&mut self, key: &str, value: Option<&str>) {
        let Some(value) = value else {
            self.document.remove(key);
            return;
        };
        // Assigning to the value in place keeps the comment beside it.
        match self.document.get_mut(key).and_then(Item::as_value_mut) {
            Some(old) => {
                let decor = old.decor().clone();
                *old = value.into();
                *old.decor_mut() = decor;
            }
            None => drop(self.document.insert(key, toml_edit::value(value))),
        }
    }

    pub fn default_server(&self) -> Option<&str> {
        self.string("default_server")
    }

    pub fn set_default_server(&mut self, name: Option<&str>) {
        self.set_string("default_server", name);
    }

    pub fn listen_addr(&self) -> Option<&str> {
        self.string("listen_addr")
    }

    fn tables(&self) -> Option<&ArrayOfTables> {
        self.document.get("server_configs")?.as_array_of_tables()
    }

    fn tables_mut(&mut self) -> Option<&mut ArrayOfTables> {
        let servers = self.document.get_mut("server_configs")?;
        servers.as_array_of_tables_mut()
    }

    pub fn servers(&self) -> Vec<ServerConfig> {
        let server = |table: &Table| {
            let text = |key: &str| Some(table.get(key)?.as_str()?.to_owned());
            let flag = |key: &str| table.get(key).and_then(Item::as_bool).unwrap_or(false);
            ServerConfig {
                nickname: text("nickname"),
                host: text("host").unwrap_or_default(),
                protocol: text("protocol").unwrap_or_default(),
                ecdsa_public_key: text("ecdsa_public_key"),
                allow_insecure: flag("allow_insecure"),
            }
        };
        self.tables().into_iter().flatten().map(server).collect()
    }

    /// The saved server with this nickname or host.
    pub fn find_server(&self, name: &str) -> Result<ServerConfig> {
        let servers = self.servers();
        let by_nickname = servers.iter().find(|s| s.nickname.as_deref() == Some(name));
        by_nickname.or_else(|| servers.iter().find(|s| s.host == name)).cloned().ok_or_else(|| {
            let known: Vec<_> = servers.iter().map(ServerConfig::nick_or_host).collect();
            coded!(
                "LC0603",
                "No such saved server configuration: {name}\nSaved servers: {}. Add this one with `spacetime server add --url \
                 <url> {name}`, or give a URL.",
                if known.is_empty() { "none".to_owned() } else { known.join(", ") },
            )
        })
    }

    /// The base URL of the server that the user means, without a trailing slash (07 §4.1).
    pub fn server_url(&self, name: Option<&str>) -> Result<String> {
        match name {
            Some(url) if url.contains("://") => Ok(url.trim_end_matches('/').to_owned()),
            Some(name) => Ok(self.find_server(name)?.url()),
            None => match self.default_server() {
                Some(name) => Ok(self.find_server(name)?.url()),
                None => bail!("LC0604", "No default server. Choose one with `spacetime server set-default <name>`, or name one with --server."),
            },
        }
    }

    /// The same of a server that is named at this place of a file, if it is.
    pub fn server_url_at(&self, name: Option<&str>, place: Option<&str>) -> Result<String> {
        let url = self.server_url(name);
        url.map_err(|error| error.said_at(place))
    }

    /// May a login be sent to this URL without a question? It is encrypted, stays on this machine, or the user has agreed.
    pub fn may_send_login(&self, url: &str) -> bool {
        let scheme = url.get(..8);
        let is_encrypted = scheme.is_some_and(|s| s.eq_ignore_ascii_case("https://"));
        let wanted = origin(url);
        let mut servers = self.servers().into_iter();
        is_encrypted
            || is_loopback(url)
            || servers.any(|server| server.allow_insecure && origin(&server.url()) == wanted)
    }

    pub fn add_server(&mut self, server: &ServerConfig) {
        let mut table = Table::new();
        write_server(&mut table, server);
        // An empty array of values may stand there.
        if self.tables().is_none() {
            let none = Item::ArrayOfTables(ArrayOfTables::new());
            self.document.insert("server_configs", none);
        }
        let tables = self.tables_mut().expect("there is one by now");
        tables.push(table);
    }

    /// Replaces the entry of `old`; other keys of that entry stay.
    pub fn replace_server(&mut self, old: &ServerConfig, new: &ServerConfig) {
        let position = self.servers().iter().position(|s| s == old);
        if let Some(table) = position.and_then(|p| self.tables_mut()?.get_mut(p)) {
            write_server(table, new);
        }
    }

    pub fn remove_server(&mut self, server: &ServerConfig) {
        let default = self.default_server();
        if default.is_some_and(|name| server.is_called(name)) {
            self.set_default_server(None);
        }
        let position = self.servers().iter().position(|s| s == server);
        if let (Some(position), Some(tables)) = (position, self.tables_mut()) {
            tables.remove(position);
        }
    }
}

fn write_server(table: &mut Table, server: &ServerConfig) {
    let mut set = |key: &str, value: Option<&str>| match value {
        Some(value) if table.get(key).and_then(Item::as_str) == Some(value) => None,
        Some(value) => table.insert(key, toml_edit::value(value)),
        None => table.remove(key),
    };
    set("nickname", server.nickname.as_deref());
    set("host", Some(&server.host));
    set("protocol", Some(&server.protocol));
    set("ecdsa_public_key", server.ecdsa_public_key.as_deref());
    match server.allow_insecure {
        true => table.insert("allow_insecure", toml_edit::value(true)),
        false => table.remove("allow_insecure"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Result<Config> {
        Config::parse(Path::new("cli.toml"), text)
    }

    #[test]
    fn the_first_run_writes_the_two_known_servers() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("deep/er/cli.toml");
        let config = Config::load(&path).expect("created");
        assert_eq!(config.default_server(), Some("local"));
        let urls: Vec<_> = config.servers().iter().map(ServerConfig::url).collect();
        assert_eq!(
            urls,
            ["https://maincloud.spacetimedb.com", "http://127.0.0.1:3000"]
        );
        assert_eq!(
            Config::load(&path).expect("read back").servers(),
            config.servers()
        );
    }

    #[test]
    fn a_first_run_does_not_replace_the_file_of_another() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("cli.toml");
        let late = Config::parse(&path, INITIAL).expect("valid");
        std::fs::write(&path, "default_server = \"mine\"\n").expect("written");
        assert!(!late.save_first().expect("nothing to do"));
        let now = Config::load(&path).expect("read");
        assert_eq!(now.default_server(), Some("mine"));
    }

    #[test]
    fn servers_are_found_by_url_nickname_host_or_default() {
        let config = config(INITIAL).expect("valid");
        assert_eq!(
            config.server_url(Some("ftp://x/")).expect("a URL"),
            "ftp://x"
        );
        assert_eq!(
            config.server_url(Some("local")).expect("saved"),
            "http://127.0.0.1:3000"
        );
        assert_eq!(
            config.server_url(Some("127.0.0.1:3000")).expect("saved"),
            "http://127.0.0.1:3000"
        );
        assert_eq!(
            config.server_url(None).expect("default"),
            "http://127.0.0.1:3000"
        );
        let error = config
            .server_url(Some("nowhere"))
            .expect_err("unknown")
            .to_string();
        assert!(
            error.starts_with("No such saved server configuration: nowhere"),
            "{error}"
        );
    }

    #[test]
    fn a_rewrite_keeps_comments_order_and_unknown_keys() {
        let text = "# mine\nunknown = 1\ndefault_server = \"local\" # here\n\n[[server_configs]]\n# the laptop\nhost = \"h:1\"\nprotocol = \"http\"\ncolor = \"red\"\n";
        let mut config = config(text).expect("valid");
        config.set_default_server(Some("h:1"));
        config.set_token("http://h:1", "t");
        let server = config.find_server("h:1").expect("saved");
        config.replace_server(
            &server,
            &ServerConfig {
                nickname: Some("n".into()),
                ..server.clone()
            },
        );
        let written = config.document.to_string();
        for kept in [
            "# mine\nunknown = 1\n",
            "default_server = \"h:1\" # here",
            "# the laptop\nhost",
            "color = \"red\"",
        ] {
            assert!(written.contains(kept), "{kept} in:\n{written}");
        }
        let again = super::Config::parse(Path::new("x"), &written).expect("still valid");
        assert_eq!(again.token("http://h:1"), Some("t"));
        assert_eq!(again.find_server("n").expect("renamed").host, "h:1");
    }

    #[test]
    fn removing_the_default_server_clears_the_default() {
        let mut config = config(INITIAL).expect("valid");
        let server = config.find_server("local").expect("saved");
        config.remove_server(&server);
        assert_eq!(config.default_server(), None);
        assert_eq!(config.servers().len(), 1);
        assert!(config.server_url(None).is_err());
        let last = config.find_server("maincloud").expect("saved");
        config.remove_server(&last);
        assert!(
            super::Config::parse(Path::new("x"), &config.document.to_string())
                .expect("valid")
                .servers()
                .is_empty()
        );
    }

    #[test]
    fn wrong_types_name_the_key() {
        for (text, key) in [
            ("default_server = 3", "default_server"),
            ("server_configs = 3", "server_configs"),
            (
                "[[server_configs]]\nhost = \"x\"",
                "server_configs.protocol",
            ),
            (
                "[[server_configs]]\nhost = \"x\"\nprotocol = \"http\"\nnickname = []",
                "server_configs.nickname",
            ),
            (
                "[[server_configs]]\nhost = \"x\"\nprotocol = \"http\"\nallow_insecure = 1",
                "server_configs.allow_insecure",
            ),
            ("server_tokens = 1", "server_tokens"),
            (
                "[server_tokens]\n\"http://x\" = 1",
                "server_tokens.http://x",
            ),
        ] {
            let error = config(text).expect_err(text).to_string();
            assert!(
                error.contains(&format!("`{key}`")) && error.contains("[LC0605]"),
                "{error}"
            );
        }
        assert!(config("=").is_err());
    }
}
