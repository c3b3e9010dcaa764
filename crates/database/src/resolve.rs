//! Finding the function of a call, and checking whether the caller may call it with his arguments (05 §6.3, §6.4).

use lightcone_schema::{ProcedureDef, ReducerDef, Visibility};
use lightcone_types::cut_name;

use crate::module::Module;
use crate::rights::Rights;

/// Why a call does not reach the module: for the caller, and for the module's log.
pub(crate) struct CallRefusal {
    pub reason: RefusalReason,
    pub message: String,
    pub log: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusalReason {
    /// Only the database itself calls it.
    IsLifecycle,
    /// There is none of this name that the caller may call.
    Unknown,
    InvalidArguments,
}

/// Steps 1 and 2 of 05 §6.3: the reducer's id, if the caller may call it with these arguments.
#[inline]
pub(crate) fn resolve_call(
    module: &Module,
    rights: Rights,
    name: &str,
    args: &[u8],
) -> Result<u32, CallRefusal> {
    let (id, reducer) = find_reducer(module, rights, name)?;
    match reducer.validate_args(args) {
        Ok(_) => Ok(id as u32),
        Err(error) => Err(CallRefusal {
            reason: RefusalReason::InvalidArguments,
            message: format!("invalid arguments for reducer {name}: {error}"),
            log: format!(
                "External attempt to call reducer \"{name}\" failed, invalid arguments.\n{error}"
            ),
        }),
    }
}

/// The reducer of this name, if the caller may call it.
#[inline]
pub(crate) fn find_reducer<'m>(
    module: &'m Module,
    rights: Rights,
    name: &str,
) -> Result<(usize, &'m ReducerDef), CallRefusal> {
    match module.def().reducer(name) {
        Some((id, _)) if module.def().migration.as_ref().is_some_and(|of| of.is_function(id)) => {
            let message = "the migration function runs when the module is published, and cannot be called [LC0241]".to_owned();
            Err(CallRefusal {
                reason: RefusalReason::IsLifecycle,
                log: message.clone(),
                message,
            })
        }
        Some((_, reducer)) if reducer.lifecycle.is_some() => {
            let lifecycle = reducer.lifecycle.expect("just checked");
            let message = format!("can't directly call special {lifecycle:?} lifecycle reducer");
            Err(CallRefusal {
                reason: RefusalReason::IsLifecycle,
                log: message.clone(),
                message,
            })
        }
        Some((id, reducer)) if rights.calls_private_functions() || reducer.visibility != Visibility::Private => Ok((id, reducer)),
        _ => Err(CallRefusal {
            reason: RefusalReason::Unknown,
            message: "no such reducer".to_owned(),
            log: format!("External attempt to call nonexistent reducer \"{}\" failed. Have you run `spacetime generate` recently?", cut_name(name)),
        }),
    }
}

/// As [`resolve_call`], for procedures (05 §6.4).
pub(crate) fn resolve_procedure(
    module: &Module,
    rights: Rights,
    name: &str,
    args: &[u8],
) -> Result<u32, CallRefusal> {
    let Some((id, procedure)) = find_procedure(module, rights, name) else {
        return Err(CallRefusal {
            reason: RefusalReason::Unknown,
            message: "No such procedure".to_owned(),
            log: format!("External attempt to call nonexistent procedure \"{}\" failed. Have you run `spacetime generate` recently?", cut_name(name)),
        });
    };
    match procedure.validate_args(args) {
        Ok(_) => Ok(id as u32),
        Err(error) => Err(CallRefusal {
            reason: RefusalReason::InvalidArguments,
            message: format!("invalid arguments for procedure {name}: {error}"),
            log: format!(
                "External attempt to call procedure \"{name}\" failed, invalid arguments.\n{error}"
            ),
        }),
    }
}

/// The procedure of this name, if the caller may call it.
pub(crate) fn find_procedure<'m>(
    module: &'m Module,
    rights: Rights,
    name: &str,
) -> Option<(usize, &'m ProcedureDef)> {
    let (id, procedure) = module.def().procedure(name)?;
    (rights.calls_private_functions() || procedure.visibility != Visibility::Private)
        .then_some((id, procedure))
}
