//! The definition of a module, from wherever it is.

use std::path::Path;

use lightcone_schema::ModuleDef;

use super::job::Source;
use crate::build::{self, HostType};
use crate::definition::{of_program, parse};
use crate::error::{FileResult as _, Result};

pub fn load(source: &Source) -> Result<ModuleDef> {
    match source {
        Source::Project {
            directory,
            build_options,
        } => {
            let options = build::Options::parse(build_options.as_deref())?;
            let built = build::build(directory, &options)?;
            of_program(&built.path, built.host_type)
        }
        Source::Wasm(path) => of_program(path, HostType::Wasm),
        Source::Js(path) => of_program(path, HostType::Js),
        Source::Definition(path) => {
            let text = match path == Path::new("-") {
                true => std::io::read_to_string(std::io::stdin()),
                false => std::fs::read_to_string(path),
            };
            let text = text.or_cannot("read", path)?;
            parse(&text, &path.display().to_string())
        }
    }
}
