//! Client bindings for a module (07 §8): from a validated module definition to the texts of source files.
//!
//! [`module`] selects what bindings show of a definition, with the names for clients; [`typescript`], [`rust`] and [`csharp`] make
//! files of it. Nothing here touches a disk: the command line compares and writes.

#![forbid(unsafe_code)]

mod bindings;
mod csharp;
mod error;
mod module;
mod rust;
mod text;
mod typescript;

use lightcone_schema::ModuleDef;

pub use bindings::{Bindings, GeneratedFile, Language, Options};
pub use error::{Error, Result};
pub use text::PREFIX;

pub fn generate(def: &ModuleDef, options: &Options) -> Result<Bindings> {
    let mut module = module::Module::new(def, options.include_private)?;
    let skipped_tables = std::mem::take(&mut module.skipped_tables);
    let mut files = match &options.language {
        Language::TypeScript { package } => typescript::generate(&module, package, options)?,
        Language::TypeScriptModule { package } => {
            typescript::remote::generate(&module.flattened()?, def, package, options)?
        }
        Language::Rust => rust::generate(&module.flattened()?, options)?,
        Language::RustModule => rust::remote::generate(&module.flattened()?, def)?,
        Language::Csharp { namespace } => {
            csharp::generate(&module.flattened()?, namespace, options)?
        }
    };
    files.sort_by(|a, b| a.path.cmp(&b.path));
    if let Some(pair) = files.windows(2).find(|pair| pair[0].path == pair[1].path) {
        return Err(Error::SameFile(pair[0].path.clone()));
    }
    Ok(Bindings {
        files,
        skipped_tables,
    })
}
