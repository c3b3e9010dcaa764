//! What a compiled module defines.

use std::path::Path;
use std::process::{Command, Stdio};

use lightcone_schema::{ModuleDef, RawModuleDef, RawVersion};

use crate::build::HostType;
use crate::error::{Error, Result};
use crate::paths::beside_this_program;

/// Asks the server program, or the one in `SPACETIMEDB_SCHEMA_EXTRACTOR`, what a built module defines.
pub fn of_program(path: &Path, host_type: HostType) -> Result<ModuleDef> {
    if !path.is_file() {
        let why = std::io::ErrorKind::NotFound.into();
        return Err(Error::file("read", path, why));
    }
    let extractor = std::env::var_os("SPACETIMEDB_SCHEMA_EXTRACTOR").filter(|v| !v.is_empty());
    let mut command = match extractor {
        Some(program) => Command::new(program),
        None => Command::new(beside_this_program("spacetimedb-standalone")?),
    };
    command.arg("extract-schema").arg(path);
    let output = command
        .args(["--host-type", &host_type.as_str().to_lowercase()])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .map_err(caused!(
            "LC0633",
            "cannot run the program that reads a module's schema"
        ))?;
    let shown = path.display();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim().trim_start_matches("Error: ");
        bail!("LC0633", "the schema of {shown} cannot be read: {said}");
    }
    parse(&String::from_utf8_lossy(&output.stdout), &shown.to_string())
}

/// Reads `{"V10":…}` or `{"V9":…}`, or what `spacetime describe` prints, which has no envelope.
pub fn parse(text: &str, place: &str) -> Result<ModuleDef> {
    let raw = RawModuleDef::from_json(text)
        .or_else(|error| {
            RawModuleDef::from_schema_json(RawVersion::V10, text)
                .or_else(|_| RawModuleDef::from_schema_json(RawVersion::V9, text))
                .map_err(|_| error)
        })
        .map_err(caused!("LC0633", "{place} holds no module definition"))?;
    ModuleDef::validate(raw).map_err(caused!(
        "LC0633",
        "the module definition of {place} is not valid"
    ))
}
