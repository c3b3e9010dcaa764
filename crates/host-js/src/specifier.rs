//! Which imports of a program resolve (spec 04 §3).

use lightcone_host::import_version;
use thiserror::Error;

use crate::sys::{SysVersion, VERSIONS};

/// Thrown as a TypeError with this text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpecifierError {
    #[error("Could not find module \"{0}\"")]
    NotFound(String),
    #[error("Invalid version in module spec \"{0}\"")]
    Version(String),
    #[error("Could not import \"{specifier}\", likely because this module was built for a newer version of SpacetimeDB.\nIt requires sys module v{major}.{minor}, but that version is not supported by the database.")]
    Unsupported {
        specifier: String,
        major: u16,
        minor: u16,
    },
}

pub fn resolve(specifier: &str) -> Result<SysVersion, SpecifierError> {
    let not_found = || SpecifierError::NotFound(specifier.to_owned());
    let rest = specifier.strip_prefix("spacetime:").ok_or_else(not_found)?;
    let (name, version) = rest.split_once('@').ok_or_else(not_found)?;
    if name != "sys" {
        return Err(not_found());
    }
    let (major, minor) =
        import_version(version).ok_or_else(|| SpecifierError::Version(specifier.to_owned()))?;
    let version = SysVersion { major, minor };
    if VERSIONS.contains(&version) {
        Ok(version)
    } else {
        Err(SpecifierError::Unsupported {
            specifier: specifier.to_owned(),
            major,
            minor,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_versions_resolve() {
        assert_eq!(
            resolve("spacetime:sys@2.1"),
            Ok(SysVersion { major: 2, minor: 1 })
        );
        for version in VERSIONS {
            assert_eq!(resolve(&version.specifier()), Ok(*version));
        }
    }

    #[test]
    fn what_does_not_resolve_says_why() {
        for specifier in ["lodash", "./x.js", "spacetime:io@2.0", "spacetime:sys", ""] {
            assert_eq!(
                resolve(specifier).unwrap_err().to_string(),
                format!("Could not find module \"{specifier}\"")
            );
        }
        for specifier in [
            "spacetime:sys@2",
            "spacetime:sys@2.0.0",
            "spacetime:sys@+2.0",
            "spacetime:sys@65536.0",
        ] {
            assert_eq!(
                resolve(specifier).unwrap_err().to_string(),
                format!("Invalid version in module spec \"{specifier}\"")
            );
        }
        assert_eq!(
            resolve("spacetime:sys@2.3").unwrap_err().to_string(),
            "Could not import \"spacetime:sys@2.3\", likely because this module was built for a newer version of \
             SpacetimeDB.\nIt requires sys module v2.3, but that version is not supported by the database."
        );
    }
}
