//! A value of `config.toml` that is a word or a list.

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum WordOrList {
    Word(String),
    List(Vec<String>),
}
