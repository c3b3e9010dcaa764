//! The definition of a module, from wherever it is.

use std::io::Read;
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
            let mut text = String::new();
            if path == Path::new("-") {
                std::io::stdin()
                    .read_to_string(&mut text)
                    .or_cannot("read", path)?;
            } else {
                text = std::fs::read_to_string(path).or_cannot("read", path)?;
            }
            parse(&text, &path.display().to_string())
        }
    }
}
