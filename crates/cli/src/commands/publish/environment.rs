//! Variables of the environment of a publish: where their values come from, and how they are sent. What is printed has no value.

use std::collections::BTreeMap;

use reqwest::RequestBuilder;

use crate::commands::env::{with_keys, Change, REMOVE, SECRET_KEYS};
use crate::error::Result;
use crate::http::Client;
use crate::output::{remark, result};

/// What the command line and the project say of the environment.
#[derive(Debug, Default)]
pub(super) struct Given {
    /// By key: the value, and where it is from.
    pub values: BTreeMap<String, (String, &'static str)>,
    pub unset: Vec<String>,
    /// Which of the values are secrets.
    pub secret: Vec<String>,
    pub replaces: bool,
    /// The environment alone is published.
    pub only: bool,
}

impl Given {
    /// The values for a module that declares these keys: the shell's come first. Says which there are.
    pub fn resolve(&self, declared: &[String]) -> BTreeMap<String, String> {
        let mut values = self.values.clone();
        for key in declared.iter().filter(|key| !self.unset.contains(key)) {
            if let Ok(value) = std::env::var(key) {
                values.insert(key.clone(), (value, "shell"));
            }
        }
        for (key, (_, source)) in &values {
            remark!("Environment {key} ({source})");
        }
        let values = values.into_iter();
        values.map(|(key, (value, _))| (key, value)).collect()
    }

    /// Adds the headers of a publish.
    pub fn add_to(
        &self,
        request: RequestBuilder,
        values: &BTreeMap<String, String>,
    ) -> RequestBuilder {
        let request = match self.replaces {
            true => with_keys(request, REMOVE, &["*".to_owned()]),
            false => with_keys(request, REMOVE, &self.unset),
        };
        let request = with_keys(request, SECRET_KEYS, &self.secret);
        if values.is_empty() {
            return request;
        }
        let items = values
            .iter()
            .map(|(key, value)| format!("{key}={}", quoted(value)));
        request.header(
            "spacetime-environment",
            items.collect::<Vec<_>>().join(", "),
        )
    }
}

/// A value as it stands in a header: bare, or with the escapes of JSON.
fn quoted(value: &str) -> String {
    let is_bare = |c: char| c.is_ascii_graphic() && !"\"',\\".contains(c);
    if !value.is_empty() && value.chars().all(is_bare) {
        return value.to_owned();
    }
    let mut quoted = String::from('"');
    for c in value.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            ' '..='~' => quoted.push(c),
            c => {
                let mut units = [0; 2];
                let units = c.encode_utf16(&mut units).iter();
                quoted.extend(units.map(|unit| format!("\\u{unit:04x}")));
            }
        }
    }
    quoted + "\""
}

/// Whether a program may declare variables: only then it is worth asking it which.
pub(super) fn may_declare(program: &[u8]) -> bool {
    let has = |word: &[u8]| program.windows(word.len()).any(|window| window == word);
    has(b"env_get") || has(b"register_environment")
}

/// `--env-only`: changes the variables of the module that runs.
pub(super) async fn publish(client: &Client, name: &str, given: &Given) -> Result<()> {
    let path = format!("/v1/database/{}/environment", crate::http::encode(name));
    let metadata = client.value(client.get(&path)).await?;
    let declared = metadata["declarations"].as_array().into_iter().flatten();
    let declared = declared.filter_map(|declared| declared["name"].as_str());
    let declared: Vec<String> = declared.map(str::to_owned).collect();
    let change = Change {
        set: given.resolve(&declared),
        removed: given.unset.clone(),
        secret: given.secret.clone(),
        replaces: given.replaces,
        expected: metadata["module_hash"].as_str().map(str::to_owned),
    };
    change.send(client, name).await?;
    result!("Updated environment of database with name: {name}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_where_they_need_it() {
        for (value, expected) in [
            ("plain=1", "plain=1"),
            ("", "\"\""),
            ("a b,c", "\"a b,c\""),
            ("\"'\\", "\"\\\"'\\\\\""),
            ("é\n😀", "\"\\u00e9\\u000a\\ud83d\\ude00\""),
        ] {
            assert_eq!(quoted(value), expected);
            if expected.starts_with('"') {
                let read: String = serde_json::from_str(&quoted(value)).expect("JSON");
                assert_eq!(read, value);
            }
        }
    }

    #[test]
    fn programs_that_read_variables_are_told() {
        assert!(may_declare(b"\0asm..spacetime_10.6.env_get.."));
        assert!(!may_declare(b"\0asm") && !may_declare(b""));
    }
}
