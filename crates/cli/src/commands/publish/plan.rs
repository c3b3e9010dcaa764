//! What is decided before one database is published, and what is uploaded then.

use std::path::PathBuf;

use clap::ValueEnum;

use super::environment::Given;
use crate::build::{Built, HostType};
use crate::error::Error;
use crate::http::Client;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DeleteData {
    Always,
    OnConflict,
    Never,
}

/// Questions that can be answered beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Yes {
    All,
    Remote,
    Migrate,
    BreakClients,
    SkipLogin,
    DeleteData,
}

#[derive(Debug)]
pub(super) struct Plan {
    pub(super) name: Option<String>,
    pub(super) server: Option<String>,
    pub(super) source: Source,
    pub(super) build_options: Option<String>,
    pub(super) num_replicas: Option<u8>,
    pub(super) break_clients: bool,
    pub(super) anonymous: bool,
    pub(super) parent: Option<String>,
    pub(super) organization: Option<String>,
    pub(super) delete_data: DeleteData,
    pub(super) yes: Vec<Yes>,
    pub(super) dry_run: bool,
    pub(super) environment: Given,
    /// Ask at a terminal only: what is piped into `spacetime dev` is no answer.
    pub(super) terminal_only: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Project(PathBuf),
    Wasm(PathBuf),
    Js(PathBuf),
    /// Built a moment ago.
    Built(Built),
}

impl Plan {
    pub fn says_yes(&self, question: Yes) -> bool {
        self.yes.contains(&Yes::All) || self.yes.contains(&question)
    }
}

pub(super) struct Upload<'a> {
    pub client: &'a Client,
    pub plan: &'a Plan,
    pub name: Option<&'a str>,
    pub program: Vec<u8>,
    pub host_type: HostType,
}

/// A question was answered no, or not at all: a script must not take that for a success.
pub(super) fn declined(answer: &str) -> Error {
    coded!("LC0864", "nothing was published: the question above was not answered yes. {answer} answers it beforehand.")
}
