//! The virtual modules and their exports (spec 04 §3, §4.2).

/// Description of the symbol under which a program's default export holds its hooks function.
pub const MODULE_HOOKS: &str = "SpacetimeDB.moduleHooks.v2";

/// The version of a virtual module `spacetime:sys@<major>.<minor>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SysVersion {
    pub major: u16,
    /// A minor version has only what it added.
    pub minor: u16,
}

impl SysVersion {
    pub fn specifier(self) -> String {
        format!("spacetime:sys@{}.{}", self.major, self.minor)
    }
}

pub const VERSIONS: &[SysVersion] = &[
    SysVersion { major: 1, minor: 0 },
    SysVersion { major: 1, minor: 1 },
    SysVersion { major: 1, minor: 2 },
    SysVersion { major: 1, minor: 3 },
    SysVersion { major: 2, minor: 0 },
    SysVersion { major: 2, minor: 1 },
    SysVersion { major: 2, minor: 2 },
];

/// Makes an engine's native functions: one for each host function, so that none looks up at run time which it is.
pub(crate) trait Natives {
    type Native;

    /// `FUNCTION` is a position in [`Function::ALL`].
    fn native<const FUNCTION: u8>() -> Self::Native;
}

/// Declares the host functions with their numbers of parameters, and the exports of the versions that brought them.
macro_rules! functions {
    ($($(#[$doc:meta])* $version:ident { $($arity:literal $function:ident = $name:literal,)+ })+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        pub enum Function {
            $($($function,)+)+
        }

        impl Function {
            pub(crate) const ALL: &[Function] = &[$($(Function::$function,)+)+];

            /// The number of parameters.
            #[cfg(feature = "quickjs")]
            pub(crate) fn arity(self) -> u8 {
                match self { $($(Function::$function => $arity,)+)+ }
            }

            pub(crate) fn native<N: Natives>(self) -> N::Native {
                match self { $($(Function::$function => N::native::<{ Function::$function as u8 }>(),)+)+ }
            }
        }

        $($(#[$doc])* pub const $version: &[(&str, Function)] = &[$(($name, Function::$function)),+];)+
    };
}

functions! {
    /// The exports of version 2.0, besides `moduleHooks`.
    SYS_2_0 {
        1 TableIdFromName = "table_id_from_name",
        1 IndexIdFromName = "index_id_from_name",
        1 TableRowCount = "datastore_table_row_count",
        1 TableScan = "datastore_table_scan_bsatn",
        3 IndexScanPoint = "datastore_index_scan_point_bsatn",
        6 IndexScanRange = "datastore_index_scan_range_bsatn",
        3 DeleteByIndexScanPoint = "datastore_delete_by_index_scan_point_bsatn",
        6 DeleteByIndexScanRange = "datastore_delete_by_index_scan_range_bsatn",
        3 DeleteAllByEq = "datastore_delete_all_by_eq_bsatn",
        3 Insert = "datastore_insert_bsatn",
        4 Update = "datastore_update_bsatn",
        2 RowIterAdvance = "row_iter_bsatn_advance",
        1 RowIterClose = "row_iter_bsatn_close",
        2 ConsoleLog = "console_log",
        1 ConsoleTimerStart = "console_timer_start",
        1 ConsoleTimerEnd = "console_timer_end",
        0 Identity = "identity",
        1 GetJwtPayload = "get_jwt_payload",
        2 VolatileScheduleImmediate = "volatile_nonatomic_schedule_immediate",
        0 ProcedureStartMutTx = "procedure_start_mut_tx",
        0 ProcedureCommitMutTx = "procedure_commit_mut_tx",
        0 ProcedureAbortMutTx = "procedure_abort_mut_tx",
        2 ProcedureHttpRequest = "procedure_http_request",
    }
    /// What version 2.1 added.
    SYS_2_1 {
        1 Clear = "datastore_clear",
    }
    /// What version 2.2 added.
    SYS_2_2 {
        1 EnvGet = "env_get",
    }
    /// What no version has (docs/js-abi.md).
    EXTRA {
        3 PointRead = "point_read",
    }
}

/// The optional functions that both engines have (docs/js-abi.md).
pub(crate) fn extra_functions() -> impl Iterator<Item = (&'static str, Function)> {
    let row_update = ("row_update", Function::Update);
    EXTRA.iter().copied().chain([row_update])
}

/// What a virtual module exports under a name.
#[derive(Clone, Copy, Debug)]
pub enum Export {
    /// The symbol of the hooks.
    ModuleHooks,
    Function(Function),
    /// The export of [`LEGACY`] with the name, under this key.
    Legacy(&'static str),
}

/// The exports of a virtual module.
pub fn exports(version: SysVersion) -> Option<Vec<(&'static str, Export)>> {
    let host = |functions: &[(&'static str, Function)]| -> Vec<_> {
        let functions = functions.iter();
        functions
            .map(|(name, function)| (*name, Export::Function(*function)))
            .collect()
    };
    let legacy = |key, names: &[&'static str]| -> Vec<_> {
        let names = names.iter();
        names.map(|name| (*name, Export::Legacy(key))).collect()
    };
    Some(match (version.major, version.minor) {
        (1, 0) => legacy("1.0", SYS_1_0),
        (1, 1) => legacy("1.1", SYS_1_1),
        (1, 2) => legacy("1.2", SYS_1_2),
        (1, 3) => legacy("1.3", SYS_1_3),
        (2, 0) => [vec![("moduleHooks", Export::ModuleHooks)], host(SYS_2_0)].concat(),
        (2, 1) => host(SYS_2_1),
        (2, 2) => host(SYS_2_2),
        _ => return None,
    })
}

pub fn functions() -> impl Iterator<Item = (&'static str, Function)> {
    SYS_2_0.iter().chain(SYS_2_1).copied()
}

/// The versions 1.x, made of version 2: a script that gives a function of `(sys, moduleHooks)` (§10).
pub const LEGACY: &str = include_str!("legacy.js");

const SYS_1_0: &[&str] = &[
    "register_hooks",
    "table_id_from_name",
    "index_id_from_name",
    "datastore_table_row_count",
    "datastore_table_scan_bsatn",
    "datastore_index_scan_range_bsatn",
    "row_iter_bsatn_advance",
    "row_iter_bsatn_close",
    "datastore_insert_bsatn",
    "datastore_update_bsatn",
    "datastore_delete_by_index_scan_range_bsatn",
    "datastore_delete_all_by_eq_bsatn",
    "volatile_nonatomic_schedule_immediate",
    "console_log",
    "console_timer_start",
    "console_timer_end",
    "identity",
    "get_jwt_payload",
];
const SYS_1_1: &[&str] = &["register_hooks"];
const SYS_1_2: &[&str] = &[
    "register_hooks",
    "procedure_http_request",
    "procedure_start_mut_tx",
    "procedure_abort_mut_tx",
    "procedure_commit_mut_tx",
];
const SYS_1_3: &[&str] = &[
    "datastore_index_scan_point_bsatn",
    "datastore_delete_by_index_scan_point_bsatn",
];

/// The key in the symbol registry under which the global object holds the optional functions (docs/js-abi.md).
pub const EXTRAS: &str = "lightcone.sys.1";
