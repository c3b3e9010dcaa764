//! Declarations of the environment (2.11).

use std::collections::{BTreeMap, BTreeSet};

use super::context::Context;
use crate::environment::{
    is_environment_key, EnvironmentType, EnvironmentVariableDef, ENVIRONMENT_BYTES_MAX,
    ENVIRONMENT_KEYS_MAX, ENVIRONMENT_KEY_BYTES_MAX, ENVIRONMENT_VALUE_BYTES_MAX,
};
use crate::error::{clip, ValidationError};
use crate::raw::{RawEnvVarTypeV10, RawEnvironmentDeclarationV10};

/// The declarations of the root, by key. Another level has none.
pub(super) fn declarations(
    cx: &mut Context,
    submodule: Option<&str>,
    raw: Vec<RawEnvironmentDeclarationV10>,
) -> BTreeMap<String, EnvironmentVariableDef> {
    let mut declared = BTreeMap::new();
    if let Some(namespace) = submodule.filter(|_| !raw.is_empty()) {
        let namespace = clip(namespace);
        cx.push(ValidationError::EnvironmentInSubmodule { namespace });
        return declared;
    }
    if raw.len() > ENVIRONMENT_KEYS_MAX {
        let reason = format!("at most {ENVIRONMENT_KEYS_MAX} variables may be declared");
        cx.push(ValidationError::Environment { reason });
        return declared;
    }
    let mut bytes = 0_usize;
    for RawEnvironmentDeclarationV10 { name, ty, optional } in raw {
        bytes += name.len() + ty.literals().iter().map(String::len).sum::<usize>();
        let (key, checked) = (clip(&name), variable(&name, ty, optional));
        let reason = match checked {
            Ok(_) if declared.contains_key(&name) => "is declared more than once".to_owned(),
            Ok(variable) => {
                declared.insert(name, variable);
                continue;
            }
            Err(reason) => reason,
        };
        let reason = format!("environment key {key:?}: {reason}");
        cx.push(ValidationError::Environment { reason });
    }
    if bytes > ENVIRONMENT_BYTES_MAX {
        let reason = format!(
            "keys and literals have {bytes} bytes, and at most {ENVIRONMENT_BYTES_MAX} are allowed"
        );
        cx.push(ValidationError::Environment { reason });
    }
    declared
}

fn variable(
    name: &str,
    ty: RawEnvVarTypeV10,
    optional: bool,
) -> Result<EnvironmentVariableDef, String> {
    if name.len() > ENVIRONMENT_KEY_BYTES_MAX {
        return Err(format!(
            "it has {} bytes, and at most {ENVIRONMENT_KEY_BYTES_MAX} are allowed",
            name.len()
        ));
    }
    if !is_environment_key(name) {
        return Err("it must be a letter or `_`, followed by letters, digits and `_`".to_owned());
    }
    let longest = ty.literals().iter().map(String::len).max().unwrap_or(0);
    if longest > ENVIRONMENT_VALUE_BYTES_MAX {
        return Err(format!(
            "a literal has {longest} bytes, and at most {ENVIRONMENT_VALUE_BYTES_MAX} are allowed"
        ));
    }
    let ty = match ty {
        RawEnvVarTypeV10::String => EnvironmentType::String,
        RawEnvVarTypeV10::StringLiteral(value) => EnvironmentType::StringLiteral(value),
        RawEnvVarTypeV10::Union(values) => {
            let values: BTreeSet<String> = values.into_iter().collect();
            if values.is_empty() || values.len() > ENVIRONMENT_KEYS_MAX {
                return Err(format!(
                    "a union has 1 to {ENVIRONMENT_KEYS_MAX} values, and this one has {}",
                    values.len()
                ));
            }
            EnvironmentType::Union(values.into_iter().collect())
        }
    };
    Ok(EnvironmentVariableDef { ty, optional })
}
