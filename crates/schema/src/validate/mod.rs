//! From the raw definition to a [`ModuleDef`] (02 §8).
//!
//! Both versions are first brought into one form, [`Sections`]; each module level is validated on its
//! own ([`level`]), and the levels are then joined under namespaced names ([`flatten`]).

mod context;
mod environment;
mod flatten;
mod functions;
mod http;
mod level;
mod migration;
mod names;
mod outboxes;
mod sections;
mod state;
mod tables;
mod types;
mod views;

use lightcone_types::bsatn::Decode;

use self::context::Context;
use crate::def::ModuleDef;
use crate::error::{Error, ValidationErrors};
use crate::raw::{RawModuleDef, RawVersion, Sections};

pub(crate) use self::migration::old_name;
pub(crate) use self::names::NameRules;

impl ModuleDef {
    /// Decodes and validates what a module's describe step returned. Bytes after the definition are
    /// ignored (02 §2).
    pub fn from_bsatn(bytes: &[u8]) -> Result<ModuleDef, Error> {
        let raw = RawModuleDef::from_slice(bytes)?;
        Ok(ModuleDef::validate(raw)?)
    }

    /// Applies the rules of 02 §8 and collects all errors.
    pub fn validate(raw: RawModuleDef) -> Result<ModuleDef, ValidationErrors> {
        let mut cx;
        let sections = match raw {
            RawModuleDef::V9(raw) => {
                cx = Context::new(RawVersion::V9);
                Sections::from_v9(&mut cx, raw)
            }
            RawModuleDef::V10(raw) => {
                cx = Context::new(RawVersion::V10);
                Sections::from_v10(&mut cx, raw)
            }
        };
        let root = level::level(&mut cx, sections, None);
        let module = if cx.errors.is_empty() {
            flatten::flatten(&mut cx, root)
        } else {
            None
        };
        match module {
            Some(module) if cx.errors.is_empty() => Ok(module),
            _ => Err(ValidationErrors {
                errors: cx.errors,
                not_shown: cx.not_shown,
            }),
        }
    }
}
