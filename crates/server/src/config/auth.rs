//! Whose tokens are accepted.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer};

use super::WordOrList;
use crate::auth::{parse_issuer, NamedBy, LOCAL_ISSUER};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Auth {
    pub foreign_issuers: ForeignIssuers,
    /// One of these must be among the audiences of a foreign token; empty: any audience will do.
    pub audiences: Vec<String>,
    /// Issuers whose keys are in files, and who are never asked: key sets in JSON, or public keys in PEM.
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

/// Whose tokens are accepted besides the server's own. Checking one means a request to the issuer that the token names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignIssuers {
    listed: Vec<String>,
    any: bool,
}

/// As an entry of the list, or in its place.
const ANY_ISSUER: &str = "any";

/// The issuer of SpacetimeAuth (06 §3.7), whose tokens users of the published tools may have.
const SPACETIME_AUTH: &str = "https://auth.spacetimedb.com/oidc";

impl Default for ForeignIssuers {
    fn default() -> Self {
        Self {
            listed: vec![SPACETIME_AUTH.to_owned()],
            any: false,
        }
    }
}

impl ForeignIssuers {
    pub(crate) fn listed(&self) -> &[String] {
        &self.listed
    }

    /// Are issuers accepted that are not listed?
    pub(crate) fn any(&self) -> bool {
        self.any
    }

    fn add(&mut self, issuer: String) -> Result<(), String> {
        parse_issuer(&issuer, NamedBy::Operator).map_err(|reason| {
            format!("auth.foreign-issuers: {issuer:?} is not the address of an issuer: {reason}")
        })?;
        self.listed.push(issuer);
        Ok(())
    }
}

impl<'de> Deserialize<'de> for ForeignIssuers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut issuers = ForeignIssuers {
            listed: Vec::new(),
            any: false,
        };
        let entries = match WordOrList::deserialize(deserializer)? {
            WordOrList::Word(word) if word == "none" => Vec::new(),
            WordOrList::Word(word) if word == ANY_ISSUER => vec![word],
            WordOrList::Word(word) => {
                return Err(serde::de::Error::custom(format!(
                    "auth.foreign-issuers is {word:?}; expected \"any\", \"none\" or a list of issuer URLs"
                )))
            }
            WordOrList::List(list) => list,
        };
        for entry in entries {
            if entry == ANY_ISSUER {
                issuers.any = true;
                continue;
            }
            issuers.add(entry).map_err(serde::de::Error::custom)?;
        }
        Ok(issuers)
    }
}
