//! `spacetimedb-standalone extract-schema` (07 §11.2).

use std::path::PathBuf;
use std::sync::Arc;

use lightcone_host::{ConsoleRecord, ConsoleSink, HostLimits, InstanceOptions, ModuleEngine};
use lightcone_schema::RawModuleDef;
use lightcone_types::{Decode, Identity};

use crate::build::HostType;
use crate::error::{Error, FileResult as _, Result};
use crate::output::{remark, result};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The compiled module
    #[arg(value_name = "MODULE")]
    module: PathBuf,
    /// What kind of file it is; told by its extension otherwise
    #[arg(long, value_enum)]
    host_type: Option<HostType>,
}

pub fn run(args: &Args) -> Result<()> {
    let by_extension = || match args.module.extension().and_then(|e| e.to_str()) {
        Some("wasm") => Some(HostType::Wasm),
        Some("js") => Some(HostType::Js),
        _ => None,
    };
    let Some(host_type) = args.host_type.or_else(by_extension) else {
        let module = args.module.display();
        let text =
            format!("{module} is neither .wasm nor .js: say --host-type wasm or --host-type js");
        return Err(Error::Usage(text));
    };
    let program = std::fs::read(&args.module).or_cannot("read", &args.module)?;
    result!("{}", describe(&program, host_type)?);
    Ok(())
}

/// What a module logs while it loads must not mix with its definition.
struct Stderr;

impl ConsoleSink for Stderr {
    fn log(&self, record: ConsoleRecord<'_>) {
        remark!("{}", record.message);
    }
}

/// Loads a module without any database and returns its definition as JSON.
fn describe(program: &[u8], host_type: HostType) -> Result<String> {
    let stack_bytes_max = HostLimits::default().stack_bytes_max;
    let engine: Arc<dyn ModuleEngine> = match host_type {
        HostType::Wasm => Arc::new(super::start::wasm_engine(None, stack_bytes_max)?),
        HostType::Js => super::start::js_engine(stack_bytes_max, None)?.ok_or_else(|| {
            coded!("LC0632", "This build has no JavaScript engine. Build it with `--features quickjs` or `--features v8`.")
        })?,
    };
    let options = InstanceOptions::new(Identity::ZERO, Arc::new(Stderr), HostLimits::default());
    let module = engine
        .load(program, &options)
        .map_err(caused!("LC0632", "the module cannot be loaded"))?;
    let definition = RawModuleDef::from_slice(module.describe()).map_err(caused!(
        "LC0632",
        "the module's description of itself cannot be read",
    ))?;
    Ok(definition.to_json_string())
}
