//! Whose tokens are accepted.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer};

use super::word_or_list::WordOrList;
use crate::auth::{parse_issuer, LOCAL_ISSUER};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Auth {
    pub foreign_issuers: ForeignIssuers,
    /// One of these must be among the audiences of a foreign token; empty: any audience will do.
    pub audiences: Vec<String>,
    /// Issuers whose keys are in files, and to which no request goes: key sets in JSON, or public keys in PEM.
    pub keys: BTreeMap<String, PathBuf>,
}

/// The issuer of the server's own tokens, and bounds of what a token may say.
const ISSUER_BYTES_MAX: usize = 128;

impl Auth {
    pub(super) fn check(&self) -> Result<(), String> {
        for issuer in self.keys.keys() {
            let wrong = |reason: &str| {
                Err(format!(
                    "auth.keys: {issuer:?} cannot be an issuer: {reason}"
                ))
            };
            if issuer == LOCAL_ISSUER {
                return wrong("it is what the server's own tokens say");
            }
            if issuer.is_empty() || issuer.len() > ISSUER_BYTES_MAX {
                return wrong("it must have 1 to 128 bytes");
            }
            if issuer.contains(|c: char| c == '|' || c.is_control()) {
                return wrong("it must have no | and no control characters");
            }
        }
        Ok(())
    }
}

/// Whose tokens are accepted besides the server's own. Checking one means a request to its issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignIssuers {
    listed: Vec<String>,
}

/// Was a word for all issuers, as an entry of the list or in its place: any stranger's token made the server ask where it said.
const ANY_ISSUER: &str = "any";

/// The issuer of SpacetimeAuth (06 §3.7), whose tokens users of the published tools may have.
const SPACETIME_AUTH: &str = "https://auth.spacetimedb.com/oidc";

impl Default for ForeignIssuers {
    fn default() -> Self {
        Self {
            listed: vec![SPACETIME_AUTH.to_owned()],
        }
    }
}

impl ForeignIssuers {
    pub(crate) fn listed(&self) -> &[String] {
        &self.listed
    }

    fn add(&mut self, issuer: String) -> Result<(), String> {
        if issuer == ANY_ISSUER {
            return Err(
                "auth.foreign-issuers: \"any\" is not taken any more, as every stranger could make the server ask any address; \
                 list the issuers of your users as their tokens have them in `iss`, like \
                 foreign-issuers = [\"https://auth.spacetimedb.com/oidc\", \"https://auth.example.com/realms/main\"] [LC0135]"
                    .to_owned(),
            );
        }
        parse_issuer(&issuer).map_err(|reason| {
            format!("auth.foreign-issuers: {issuer:?} is not the address of an issuer: {reason}")
        })?;
        self.listed.push(issuer);
        Ok(())
    }
}

impl<'de> Deserialize<'de> for ForeignIssuers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut issuers = ForeignIssuers { listed: Vec::new() };
        let entries = match WordOrList::deserialize(deserializer)? {
            WordOrList::Word(word) if word == "none" => Vec::new(),
            WordOrList::Word(word) if word == ANY_ISSUER => vec![word],
            WordOrList::Word(word) => {
                return Err(serde::de::Error::custom(format!(
                    "auth.foreign-issuers is {word:?}; expected \"none\" or a list of issuer URLs"
                )))
            }
            WordOrList::List(list) => list,
        };
        for entry in entries {
            issuers.add(entry).map_err(serde::de::Error::custom)?;
        }
        Ok(issuers)
    }
}
