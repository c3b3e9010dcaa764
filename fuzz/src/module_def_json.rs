//! Module definitions as JSON.

use lightcone_schema::{RawModuleDef, RawVersion};

/// Reads the JSON form of a definition.
pub fn fuzz_module_def_json(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        for version in [RawVersion::V9, RawVersion::V10] {
            if let Ok(raw) = RawModuleDef::from_schema_json(version, text) {
                let again = RawModuleDef::from_schema_json(version, &raw.to_schema_json());
                assert_eq!(
                    again.as_ref(),
                    Ok(&raw),
                    "JSON must read back as it was written"
                );
            }
        }
    }
}
