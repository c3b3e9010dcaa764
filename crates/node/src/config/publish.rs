//! Who may publish.

use lightcone_types::Identity;
use serde::{Deserialize, Deserializer};

use super::word_or_list::WordOrList;
use crate::error::Error;

/// Environment variables for what `[publish]` says, so that a container needs no file.
pub const PUBLISH_ALLOWED_VARIABLE: &str = "LIGHTCONE_PUBLISH_ALLOWED";
pub const PUBLISH_OWNERS_VARIABLE: &str = "LIGHTCONE_PUBLISH_OWNERS";

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Publish {
    /// `None`: the environment decides, or else [`PublishAllowed::Local`].
    pub allowed: Option<PublishAllowed>,
    /// Who may publish when `allowed` is `"local"` or `"owner-list"`.
    #[serde(deserialize_with = "identities")]
    pub owners: Vec<Identity>,
}

/// Who may publish modules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PublishAllowed {
    /// Programs on this machine, the identities of `publish.owners`, and owners their own databases.
    #[default]
    Local,
    Anyone,
    /// The identities of `publish.owners`.
    OwnerList,
    Identities(Vec<Identity>),
}

impl Publish {
    /// May this identity publish? `is_local`: from this machine, or to a database of its own.
    pub fn permits(&self, identity: &Identity, is_local: bool) -> bool {
        match self.allowed.as_ref().unwrap_or(&PublishAllowed::Local) {
            PublishAllowed::Local => is_local || self.owners.contains(identity),
            PublishAllowed::Anyone => true,
            PublishAllowed::OwnerList => self.owners.contains(identity),
            PublishAllowed::Identities(list) => list.contains(identity),
        }
    }

    /// The identities that the operator has named.
    pub fn named(&self) -> impl Iterator<Item = Identity> + '_ {
        let listed = match &self.allowed {
            Some(PublishAllowed::Identities(list)) => list.as_slice(),
            _ => &[],
        };
        self.owners.iter().chain(listed).copied()
    }

    /// What the environment says: who may publish where the file does not say, and further owners. Both as text, the owners
    /// with commas between them.
    pub fn complete(&mut self, allowed: Option<&str>, owners: Option<&str>) -> Result<(), Error> {
        let wrong = |name: &str, error: serde::de::value::Error| Error::Environment {
            name: name.to_owned(),
            message: error.to_string(),
        };
        if let Some(text) = allowed.filter(|text| !text.is_empty()) {
            let allowed =
                PublishAllowed::from_word(text).map_err(|e| wrong(PUBLISH_ALLOWED_VARIABLE, e))?;
            self.allowed.get_or_insert(allowed);
        }
        let owners = owners.unwrap_or_default().split(',').map(str::trim);
        let owners = parse_identities(owners.filter(|text| !text.is_empty()));
        let owners = owners.map_err(|e| wrong(PUBLISH_OWNERS_VARIABLE, e))?;
        self.owners.extend(owners);
        Ok(())
    }
}

fn parse_identities<E: serde::de::Error>(
    list: impl IntoIterator<Item = impl AsRef<str>>,
) -> Result<Vec<Identity>, E> {
    let identity = |text: &str| {
        let wrong = format!("{text:?} is not an identity; write its 64 hexadecimal digits");
        Identity::from_hex(text).map_err(|_| E::custom(wrong))
    };
    let list = list.into_iter();
    list.map(|text| identity(text.as_ref())).collect()
}

fn identities<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Identity>, D::Error> {
    parse_identities(Vec::<String>::deserialize(deserializer)?)
}

impl PublishAllowed {
    fn from_word<E: serde::de::Error>(word: &str) -> Result<PublishAllowed, E> {
        match word {
            "local" => Ok(PublishAllowed::Local),
            "anyone" => Ok(PublishAllowed::Anyone),
            "owner-list" => Ok(PublishAllowed::OwnerList),
            _ => Err(E::custom(format!(
                "publish.allowed is {word:?}; expected \"local\", \"anyone\", \"owner-list\" or a list of identities"
            ))),
        }
    }
}

impl<'de> Deserialize<'de> for PublishAllowed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match WordOrList::deserialize(deserializer)? {
            WordOrList::Word(word) => PublishAllowed::from_word(&word),
            WordOrList::List(list) => Ok(PublishAllowed::Identities(parse_identities(list)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    fn publish_in(file: &str) -> Publish {
        let config = Config::parse(file, "config.toml".as_ref());
        config.expect(file).publish
    }

    #[test]
    fn the_environment_completes_the_file() {
        let allowed = |file: &str, variable: Option<&str>| {
            let mut publish = publish_in(file);
            publish.complete(variable, None).expect("understood");
            publish.allowed
        };
        assert_eq!(allowed("", None), None);
        assert_eq!(allowed("", Some("")), None);
        assert_eq!(
            allowed("", Some("owner-list")),
            Some(PublishAllowed::OwnerList)
        );
        let file = "[publish]\nallowed = \"local\"";
        assert_eq!(allowed(file, Some("anyone")), Some(PublishAllowed::Local));
        let mut publish = Publish::default();
        let one = Identity::from_claims("a", "b");
        let owners = format!(" {one}, ,");
        publish.complete(None, Some(&owners)).expect("understood");
        assert_eq!(publish.owners, [one]);
        for (allowed, owners) in [(Some("me"), None), (None, Some("c200"))] {
            let error = publish
                .complete(allowed, owners)
                .expect_err("wrong")
                .to_string();
            assert!(
                error.contains("LIGHTCONE_PUBLISH_") && error.ends_with("[LC0102]"),
                "{error}"
            );
        }
    }
}
