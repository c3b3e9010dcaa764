//! Checks of a program before it may run: ABI version, imports, exports (spec 03 §3.2, §3.3).

use lightcone_host::{import_version, HostError};
use wasmtime::{ExternType, FuncType, Module};

/// The highest ABI version that this host implements (spec 03 §3.2).
pub const ABI_VERSION: (u16, u16) = (10, 6);

const IMPORT_PREFIX: &str = "spacetime_";
const PREINIT_PREFIX: &str = "__preinit__";

const REDUCER_TYPE: &str = "(i32, i64, i64, i64, i64, i64, i64, i64, i32, i32) -> i32";

const HANDLER_TYPE: &str = "(i32, i64, i32, i32, i32, i32) -> i32";
/// Since 2.14, with the sender and its token.
const HANDLER_WITH_SENDER_TYPE: &str =
    "(i32, i64, i64, i64, i64, i32, i64, i32, i32, i32, i32) -> i32";

/// Exports with a fixed type, and whether they are required.
const EXPORTS: &[(&str, &str, bool)] = &[
    ("__describe_module__", "(i32) -> ()", true),
    ("__call_reducer__", REDUCER_TYPE, true),
    ("__setup__", "(i32) -> i32", false),
    ("_initialize", "() -> ()", false),
    ("__call_procedure__", REDUCER_TYPE, false),
    (
        "__call_view__",
        "(i32, i64, i64, i64, i64, i32, i32) -> i32",
        false,
    ),
    ("__call_view_anon__", "(i32, i32, i32) -> i32", false),
];

/// The functions of the load phase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LoadSteps {
    pub(crate) initialize: bool,
    /// In the order of the calls.
    pub(crate) preinits: Vec<String>,
    pub(crate) setup: bool,
}

/// The version rule over the import-module names of imported functions.
pub(crate) fn abi_version<'a>(
    import_modules: impl Iterator<Item = &'a str>,
) -> Result<(), HostError> {
    let mut required: Option<(u16, u16)> = None;
    for name in import_modules {
        let Some(suffix) = name.strip_prefix(IMPORT_PREFIX) else {
            continue;
        };
        let (major, minor) = import_version(suffix)
            .ok_or_else(|| HostError::MalformedAbiVersion(name.to_owned()))?;
        required = match required {
            None => Some((major, minor)),
            Some((seen, _)) if seen != major => return Err(HostError::MixedAbi(seen, major)),
            Some((_, seen)) => Some((major, seen.max(minor))),
        };
    }
    let (major, minor) = required.ok_or(HostError::UnknownAbi)?;
    let (host_major, host_minor) = ABI_VERSION;
    if major != host_major || minor > host_minor {
        return Err(HostError::UnsupportedAbi {
            major,
            minor,
            host_major,
            host_minor,
        });
    }
    Ok(())
}

/// Names the functions of a newer version, at most 8 of them, as the version alone does not tell what uses it.
#[cold]
pub(crate) fn naming_imports(error: HostError, module: &Module) -> HostError {
    let HostError::UnsupportedAbi { major, minor, .. } = error else {
        return error;
    };
    let newest = format!("{IMPORT_PREFIX}{major}.{minor}");
    let imports = module.imports();
    let imports = imports.filter(|import| import.module() == newest).take(8);
    let imports: Vec<_> = imports
        .map(|import| format!("`{newest}::{}`", import.name()))
        .collect();
    HostError::MissingImports {
        abi: Box::new(error),
        imports: imports.join(", "),
    }
}

pub(crate) fn function_import_modules(module: &Module) -> impl Iterator<Item = &str> {
    let imports = module.imports();
    let functions = imports.filter(|import| matches!(import.ty(), ExternType::Func(_)));
    functions.map(|import| import.module())
}

/// Checks every export that the host may use.
pub(crate) fn exports(module: &Module) -> Result<LoadSteps, HostError> {
    match module.get_export("memory") {
        Some(ExternType::Memory(memory)) if !memory.is_64() && !memory.is_shared() => {}
        Some(ExternType::Memory(_)) => {
            return Err(wrong(
                "memory",
                "an unshared 32-bit memory",
                "exports another kind of memory",
            ))
        }
        _ => return Err(HostError::NoMemory),
    }
    for &(name, expected, required) in EXPORTS {
        match module.get_export(name) {
            None if required => return Err(wrong(name, expected, "does not export it")),
            None => {}
            Some(found) => has_type(name, &found, expected)?,
        }
    }
    if let Some(found) = module.get_export("__call_http_handler__") {
        has_type("__call_http_handler__", &found, HANDLER_TYPE)
            .or_else(|_| has_type("__call_http_handler__", &found, HANDLER_WITH_SENDER_TYPE))?;
    }
    let mut preinits = Vec::new();
    for export in module
        .exports()
        .filter(|export| export.name().starts_with(PREINIT_PREFIX))
    {
        has_type(export.name(), &export.ty(), "() -> ()")?;
        preinits.push(export.name().to_owned());
    }
    preinits.sort_unstable();
    Ok(LoadSteps {
        initialize: module.get_export("_initialize").is_some(),
        preinits,
        setup: module.get_export("__setup__").is_some(),
    })
}

fn has_type(name: &str, found: &ExternType, expected: &'static str) -> Result<(), HostError> {
    match found {
        ExternType::Func(function) => {
            let found = signature(function);
            if found == expected {
                return Ok(());
            }
            Err(wrong(name, expected, &format!("exports it as {found}")))
        }
        _ => Err(wrong(
            name,
            expected,
            "exports something that is not a function under that name",
        )),
    }
}

fn wrong(name: &str, expected: &'static str, found: &str) -> HostError {
    HostError::Export {
        name: name.to_owned(),
        expected,
        found: found.to_owned(),
    }
}

fn signature(function: &FuncType) -> String {
    let params: Vec<String> = function.params().map(|ty| ty.to_string()).collect();
    let results: Vec<String> = function.results().map(|ty| ty.to_string()).collect();
    match &results[..] {
        [one] => format!("({}) -> {one}", params.join(", ")),
        many => format!("({}) -> ({})", params.join(", "), many.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: &[&str]) -> Result<(), String> {
        abi_version(names.iter().copied()).map_err(|error| error.to_string())
    }

    #[test]
    fn versions_up_to_ours_are_accepted() {
        assert_eq!(check(&["spacetime_10.0"]), Ok(()));
        assert_eq!(
            check(&["spacetime_10.0", "spacetime_10.6", "spacetime_10.2"]),
            Ok(())
        );
        assert_eq!(
            check(&["env", "spacetime_10.0"]),
            Ok(()),
            "other imports fail when they are linked"
        );
    }

    #[test]
    fn the_refusals_have_the_texts_of_the_chapter() {
        let unsupported = |version| {
            Err(format!(
                "abi version {version} is not supported (host implements 10.6)"
            ))
        };
        assert_eq!(
            check(&["spacetime_10.0", "spacetime_10.7"]),
            unsupported("10.7")
        );
        assert_eq!(check(&["spacetime_9.1"]), unsupported("9.1"));
        assert_eq!(check(&["spacetime_11.0"]), unsupported("11.0"));
        let unknown = "unable to determine ABI of module (may be on an spacetime version < 0.8)";
        assert_eq!(check(&[]), Err(unknown.into()));
        assert_eq!(check(&["env"]), Err(unknown.into()));
        assert_eq!(
            check(&["spacetime_10.0", "spacetime_9.0"]),
            Err("module cannot depend on both major version 10 and major version 9".into())
        );
        for name in [
            "spacetime_",
            "spacetime_10",
            "spacetime_10.",
            "spacetime_10.0.1",
            "spacetime_+1.0",
            "spacetime_10.65536",
        ] {
            assert_eq!(
                check(&[name]),
                Err(format!(
                    "import module \"{name}\" has malformed version string"
                ))
            );
        }
    }
}
