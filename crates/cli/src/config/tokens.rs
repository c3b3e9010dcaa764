//! Logins: one token per server, kept under the origin that it may be sent to.

use reqwest::Url;
use toml_edit::{InlineTable, Item, Table, Value};

use super::Config;
use crate::address::{is_loopback, origin, ACCOUNT_HOST, ACCOUNT_SERVER};
use crate::claims::issuer_of;
use crate::error::Result;
use crate::oidc::Renewal;

/// The table of tokens; the key of each is an origin like `http://127.0.0.1:3000`. The newest login stands last.
const TOKENS: &str = "server_tokens";
/// How tokens of that table are renewed, under the same keys.
const RENEWALS: &str = "server_renewals";
/// The one token of the reference's file. Here it repeats the newest login, for scripts that read it; it is never sent.
const OLD_TOKEN: &str = "spacetimedb_token";
/// Tokens of this web site are for this server.
const ACCOUNT_SITE: &str = "spacetimedb.com";

impl Config {
    pub(super) fn check_tokens(&self) -> Result<()> {
        const RENEWAL: &str = "a table with the strings issuer, client_id, scope and refresh_token";
        let is_renewal = |item: &Item| read_renewal(item).is_some();
        self.check_table(RENEWALS, RENEWAL, is_renewal)?;
        self.check_table(TOKENS, "a string", Item::is_str)
    }

    fn check_table(&self, key: &str, want: &str, is_right: impl Fn(&Item) -> bool) -> Result<()> {
        let Some(item) = self.document.get(key) else {
            return Ok(());
        };
        let table = item.as_table_like();
        let table = table.ok_or_else(|| self.wrong_type(key, &format!("a table ([{key}])")))?;
        match table.iter().find(|(_, item)| !is_right(item)) {
            Some((origin, _)) => Err(self.wrong_type(&format!("{key}.{origin}"), want)),
            None => Ok(()),
        }
    }

    /// What a table has for the server at this URL.
    fn of_server(&self, table: &str, url: &str) -> Option<&Item> {
        self.document.get(table)?.as_table_like()?.get(&origin(url))
    }

    fn set_for_server(&mut self, table: &str, url: &str, value: impl Into<Value>) {
        let item = self.document.entry(table);
        let item = item.or_insert_with(|| Item::Table(Table::new()));
        if let Some(table) = item.as_table_like_mut() {
            table.insert(&origin(url), toml_edit::value(value));
        }
    }

    /// Also removes a table that is empty then; false if there was none.
    fn remove_for_server(&mut self, table: &str, url: &str) -> bool {
        let item = self.document.get_mut(table);
        let Some(entries) = item.and_then(Item::as_table_like_mut) else {
            return false;
        };
        entries.remove(&origin(url));
        if entries.is_empty() {
            self.document.remove(table);
        }
        true
    }

    /// The token for the server at this URL, and for no other.
    pub fn token(&self, url: &str) -> Option<&str> {
        self.of_server(TOKENS, url)?.as_str()
    }

    /// All logins as origin and token, the newest last.
    pub fn logins(&self) -> Vec<(String, String)> {
        let table = self.document.get(TOKENS).and_then(Item::as_table_like);
        let entries = table.into_iter().flat_map(|table| table.iter());
        let logins = entries.map(|(origin, token)| Some((origin.into(), token.as_str()?.into())));
        logins.flatten().collect()
    }

    /// Stores a login, which is not renewed.
    pub fn set_token(&mut self, url: &str, token: &str) {
        self.remove_token(url);
        self.set_for_server(TOKENS, url, token);
        self.set_string(OLD_TOKEN, Some(token));
    }

    /// How the token for the server at this URL is renewed, if it can be.
    pub fn renewal(&self, url: &str) -> Option<Renewal> {
        read_renewal(self.of_server(RENEWALS, url)?)
    }

    /// Says how the token that was set is renewed.
    pub fn set_renewal(&mut self, url: &str, renewal: &Renewal) {
        self.set_for_server(RENEWALS, url, write_renewal(renewal));
    }

    /// Puts a renewed token into the place of the one that was there.
    pub fn renew_token(&mut self, url: &str, token: &str, renewal: &Renewal) {
        let tokens = self.document.get_mut(TOKENS);
        let tokens = tokens.and_then(Item::as_table_like_mut);
        let Some(place) = tokens.and_then(|table| table.get_mut(&origin(url))) else {
            return;
        };
        let old = std::mem::replace(place, toml_edit::value(token));
        // Otherwise another program has left it, or it is a newer login.
        if self.string(OLD_TOKEN) == old.as_str() {
            self.set_string(OLD_TOKEN, Some(token));
        }
        self.set_renewal(url, renewal);
    }

    /// The token stays, and is not renewed any more.
    pub fn remove_renewal(&mut self, url: &str) {
        self.remove_for_server(RENEWALS, url);
    }

    pub fn remove_token(&mut self, url: &str) {
        self.remove_renewal(url);
        if self.remove_for_server(TOKENS, url) {
            let newest = self.logins().pop().map(|(_, token)| token);
            self.set_string(OLD_TOKEN, newest.as_deref());
        }
    }

    /// Which server a token is for, if the user does not say: the one whose site issued it, or the default server.
    pub fn server_of_token(&self, token: &str) -> Option<String> {
        let issuer = issuer_of(token).unwrap_or_default();
        let site = Url::parse(&issuer).ok();
        let host = site.as_ref().and_then(Url::host_str).unwrap_or_default();
        if host == ACCOUNT_SITE || host.ends_with(".spacetimedb.com") {
            return Some(ACCOUNT_SERVER.to_owned());
        }
        let servers = self.servers().into_iter();
        let servers: Vec<String> = servers.map(|server| origin(&server.url())).collect();
        if site.is_some() && servers.contains(&origin(&issuer)) {
            return Some(origin(&issuer));
        }
        let default = self.server_url(None).ok().map(|url| origin(&url));
        if default.as_deref() != Some(ACCOUNT_SERVER) || site.is_some() {
            return default;
        }
        // That server's tokens name their site; one that does not comes from a server of the user's own.
        let own = servers.into_iter().find(|url| is_loopback(url));
        Some(own.unwrap_or_else(|| ACCOUNT_SERVER.to_owned()))
    }

    /// Binds the one token that another program has left to its server; true if there was one.
    pub(super) fn adopt_token(&mut self) -> bool {
        let token = self.string(OLD_TOKEN).map(str::to_owned);
        let is_new = |token: &String| !self.logins().iter().any(|(_, known)| known == token);
        let Some(token) = token.filter(is_new) else {
            return false;
        };
        let Some(server) = self.server_of_token(&token) else {
            return false;
        };
        self.set_token(&server, &token);
        true
    }

    /// The session at the account web site, with the URL of that site.
    pub fn web_session(&self) -> Option<(&str, &str)> {
        let host = self.string("web_session_host").unwrap_or(ACCOUNT_HOST);
        Some((self.string("web_session_token")?, host))
    }

    pub fn set_web_session(&mut self, session: Option<(&str, &str)>) {
        self.set_string("web_session_token", session.map(|(token, _)| token));
        let host = session.map(|(_, host)| host);
        let host = host.filter(|host| *host != ACCOUNT_HOST);
        self.set_string("web_session_host", host);
    }
}

fn read_renewal(item: &Item) -> Option<Renewal> {
    let table = item.as_table_like()?;
    let text = |key: &str| Some(table.get(key)?.as_str()?.to_owned());
    Some(Renewal {
        issuer: text("issuer")?,
        client_id: text("client_id")?,
        scope: text("scope")?,
        refresh_token: text("refresh_token")?,
    })
}

fn write_renewal(renewal: &Renewal) -> InlineTable {
    let entries = [
        ("issuer", &renewal.issuer),
        ("client_id", &renewal.client_id),
        ("scope", &renewal.scope),
        ("refresh_token", &renewal.refresh_token),
    ];
    entries.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use base64::Engine as _;
    use std::path::Path;

    fn config(text: &str) -> Config {
        Config::parse(Path::new("cli.toml"), text).expect("valid")
    }

    fn issued_by(issuer: &str) -> String {
        let claims = format!(r#"{{"sub":"ann","iss":"{issuer}","iat":1}}"#);
        format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims))
    }

    #[test]
    fn a_token_is_for_one_scheme_host_and_port() {
        let mut config = config("");
        config.set_token("http://h:3000/", "t");
        for url in ["http://h:3000", "http://H:3000/x"] {
            assert_eq!(config.token(url), Some("t"), "{url}");
        }
        for url in [
            "http://h",
            "https://h:3000",
            "http://h:3001",
            "http://h.evil:3000",
            "http://h:3000@evil",
        ] {
            assert_eq!(config.token(url), None, "{url}");
        }
        config.set_token("https://h:443", "u");
        assert_eq!(
            config.token("https://h"),
            Some("u"),
            "the port that is usual"
        );
        config.set_token("http://h:3000", "v");
        let logins = config.logins();
        assert_eq!(
            logins.last(),
            Some(&("http://h:3000".to_owned(), "v".to_owned())),
            "{logins:?}"
        );
        let again = super::super::Config::parse(Path::new("x"), &config.document.to_string())
            .expect("valid");
        assert_eq!(again.logins(), logins);
        config.remove_token("http://h:3000");
        config.remove_token("https://h");
        assert_eq!(config.document.to_string(), "");
    }

    #[test]
    fn a_renewed_login_keeps_its_place() {
        let renewal = |refresh_token: &str| Renewal {
            issuer: "https://auth.example".to_owned(),
            client_id: "cli".to_owned(),
            scope: "openid".to_owned(),
            refresh_token: refresh_token.to_owned(),
        };
        let mut config = config("");
        config.set_token("http://a", "1");
        config.set_renewal("http://a", &renewal("r1"));
        config.set_token("http://b", "2");
        config.renew_token("http://a/x", "3", &renewal("r2"));
        let text = config.document.to_string();
        let mut config = self::config(&text);
        assert_eq!(config.string(OLD_TOKEN), Some("2"), "the newest login");
        assert_eq!(config.logins()[0].1, "3", "{text}");
        assert_eq!(config.renewal("http://a"), Some(renewal("r2")));
        assert_eq!(config.renewal("http://a:81"), None);
        config.renew_token("http://b", "4", &renewal("r3"));
        assert_eq!(config.string(OLD_TOKEN), Some("4"));
        // A login of another kind is not renewed with what was there.
        config.set_token("http://a", "5");
        assert_eq!(config.renewal("http://a"), None);
        config.renew_token("http://c", "6", &renewal("r4"));
        assert_eq!(config.renewal("http://c"), None, "there is no login");
        config.remove_token("http://b");
        config.remove_token("http://a");
        assert_eq!(config.document.to_string(), "");
        for wrong in [
            "server_renewals = 1",
            "[server_renewals]\na = { issuer = 1 }",
        ] {
            let error = Config::parse(Path::new("cli.toml"), wrong).expect_err(wrong);
            assert!(error.to_string().contains("server_renewals"), "{error}");
        }
    }

    #[test]
    fn the_token_of_an_older_file_has_one_server() {
        const SERVERS: &str = "[[server_configs]]\nnickname = \"maincloud\"\nhost = \"maincloud.spacetimedb.com\"\nprotocol = \"https\"\n\
             [[server_configs]]\nnickname = \"local\"\nhost = \"127.0.0.1:3000\"\nprotocol = \"http\"\n\
             [[server_configs]]\nnickname = \"mine\"\nhost = \"db.mine.org\"\nprotocol = \"https\"\n";
        const MAINCLOUD: &str = "https://maincloud.spacetimedb.com";
        for (default, issuer, want) in [
            ("maincloud", "https://auth.spacetimedb.com", MAINCLOUD),
            ("local", "https://auth.spacetimedb.com", MAINCLOUD),
            (
                "local",
                "https://auth.spacetimedb.com.evil.org",
                "http://127.0.0.1:3000",
            ),
            ("maincloud", "localhost", "http://127.0.0.1:3000"),
            ("local", "localhost", "http://127.0.0.1:3000"),
            ("mine", "localhost", "https://db.mine.org"),
            ("mine", "https://me.auth0.com/", "https://db.mine.org"),
            ("local", "https://db.mine.org/", "https://db.mine.org"),
        ] {
            let token = issued_by(issuer);
            let mut config = config(&format!(
                "default_server = \"{default}\"\nspacetimedb_token = \"{token}\"\n{SERVERS}"
            ));
            assert!(config.adopt_token());
            assert_eq!(
                config.logins(),
                [(want.to_owned(), token)],
                "{default} {issuer}"
            );
            assert!(!config.adopt_token(), "once");
            assert_eq!(config.string(OLD_TOKEN), Some(&*config.logins()[0].1));
            config.set_default_server(Some("mine"));
            assert_eq!(config.logins()[0].0, want, "it stays with its server");
        }
    }
}
