//! Finding the function of a call, and checking whether the caller may call it with his arguments (05 §6.3, §6.4).

use lightcone_schema::{ProcedureDef, ReducerDef, Visibility};
use lightcone_types::{cut_name, DecodeError};

use crate::metrics::FunctionKind;
use crate::module::{Function, Module};
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

impl CallRefusal {
    #[cold]
    fn of_lifecycle(message: String) -> CallRefusal {
        CallRefusal {
            reason: RefusalReason::IsLifecycle,
            log: message.clone(),
            message,
        }
    }

    #[cold]
    fn of_arguments(kind: &str, name: &str, error: &DecodeError) -> CallRefusal {
        CallRefusal {
            reason: RefusalReason::InvalidArguments,
            message: format!("invalid arguments for {kind} {name}: {error}"),
            log: format!(
                "External attempt to call {kind} \"{name}\" failed, invalid arguments.\n{error}"
            ),
        }
    }

    #[cold]
    fn unknown(message: &str, kind: &str, name: &str) -> CallRefusal {
        CallRefusal {
            reason: RefusalReason::Unknown,
            message: message.to_owned(),
            log: format!("External attempt to call nonexistent {kind} \"{}\" failed. Have you run `spacetime generate` recently?", cut_name(name)),
        }
    }
}

/// Steps 1 and 2 of 05 §6.3, and of §6.4: the function of this kind and name, if the caller may call it with these arguments.
#[inline]
pub(crate) fn resolve(
    module: &Module,
    rights: Rights,
    kind: FunctionKind,
    name: &str,
    args: &[u8],
) -> Result<Function, CallRefusal> {
    let (id, checked) = match kind {
        FunctionKind::Procedure => {
            let unknown = || CallRefusal::unknown("No such procedure", "procedure", name);
            let (id, procedure) = find_procedure(module, rights, name).ok_or_else(unknown)?;
            (id, procedure.validate_args(args))
        }
        _ => {
            let (id, reducer) = find_reducer(module, rights, name)?;
            (id, reducer.validate_args(args))
        }
    };
    match checked {
        Ok(_) => Ok(Function {
            kind,
            id: id as u32,
        }),
        Err(error) => Err(CallRefusal::of_arguments(kind.name(), name, &error)),
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
        Some((id, _))
            if module
                .def()
                .migration
                .as_ref()
                .is_some_and(|of| of.is_function(id)) =>
        {
            let message = "the migration function runs when the module is published, and cannot be called [LC0241]";
            Err(CallRefusal::of_lifecycle(message.to_owned()))
        }
        Some((_, reducer)) if reducer.lifecycle.is_some() => {
            let lifecycle = reducer.lifecycle.expect("just checked");
            Err(CallRefusal::of_lifecycle(format!(
                "can't directly call special {lifecycle:?} lifecycle reducer"
            )))
        }
        Some((id, reducer))
            if rights.calls_private_functions() || reducer.visibility != Visibility::Private =>
        {
            Ok((id, reducer))
        }
        _ => Err(CallRefusal::unknown("no such reducer", "reducer", name)),
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
