//! The errors of this crate: [`AbiError`] of a host call, [`HostError`] of loading a module.

use thiserror::Error;

use crate::Errno;

/// Why a host call failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AbiError {
    /// The module gets this number and goes on.
    #[error("{0}")]
    Errno(Errno),
    /// The call ends, the transaction is rolled back and the instance is replaced.
    #[error("{0}")]
    Trap(HostTrap),
}

impl From<Errno> for AbiError {
    #[inline]
    fn from(errno: Errno) -> Self {
        AbiError::Errno(errno)
    }
}

impl From<HostTrap> for AbiError {
    #[cold]
    fn from(trap: HostTrap) -> Self {
        AbiError::Trap(trap)
    }
}

/// A host call that the module had no right to make; it ends the call (spec 03 §4).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HostTrap {
    /// A pointer argument was 0.
    #[error("null pointer passed to a spacetime function")]
    NullPointer,
    /// A pointer and its length reach outside the memory.
    #[error("out of bounds pointer passed to a spacetime function")]
    OutOfBounds,
    #[error("invalid utf8 passed to a spacetime function")]
    InvalidUtf8,
    /// `prefix_elems` does not fit 16 bits.
    #[error("`prefix_elems` is a number of columns and must be below 65536, but {0} was passed")]
    PrefixElems(u32),
    /// The function exists for procedures only.
    #[error("{0} is only available in async instances")]
    AsyncOnly(&'static str),
    /// The database stops, and the call with it.
    #[error("the database stops, and the call was ended [LC0332]")]
    Stopping,
    /// The update is cancelled, and its migration function with it.
    #[error("the migration was cancelled")]
    Cancelled,
    /// The module got an object that modules may not have.
    #[error("{0} is not available in modules [LC0341]")]
    Forbidden(&'static str),
    /// A migration function asked for a call outside of its transaction, which may be rolled back.
    #[error("a migration function cannot schedule a call with volatile_nonatomic_schedule_immediate: write a row that is due at once into a scheduled table, so that the call is made when the update is committed, and only then [LC0256]")]
    ImmediateInMigration,
    /// A limit was exceeded.
    #[error("{kind}: {name} = {limit} [{code}]", name = kind.name(), code = kind.code())]
    Limit {
        kind: LimitKind,
        /// Its value.
        limit: u64,
    },
    /// Only the host writes system tables.
    #[error("a module may read the system table `{0}`, but not write to it [LC0326]")]
    SystemTable(Box<str>),
    /// Variables of the environment are for functions of the root module, while they run.
    #[error("environment access requires a host-dispatched root module function")]
    EnvironmentAccess,
    #[error("environment key is not declared")]
    UndeclaredVariable,
    /// The running code is that of a program which is not the database's any more.
    #[error("module was replaced while this function was running")]
    ProgramReplaced,
    #[error("required environment value is missing from the published configuration")]
    MissingVariable,
    /// A secret variable cannot be opened. The text reaches callers of procedures, so it names none.
    #[error("a secret variable of the environment cannot be opened; the module's log says which one and why [LC0260]")]
    Secret,
    /// A refusal by the datastore without an errno, with its text.
    #[error("{0}")]
    Datastore(Box<str>),
    /// A bug of the host.
    #[error("internal error of the host: {0}")]
    Internal(Box<str>),
}

macro_rules! limit_kinds {
    ($($kind:ident $name:literal $code:literal $text:literal;)+) => {
        /// The limits whose excess ends a call.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
        pub enum LimitKind {
            $(#[doc = concat!("`limits.", $name, "`")] #[error($text)] $kind,)+
        }

        impl LimitKind {
            /// The configuration key of the limit.
            pub fn name(self) -> &'static str {
                match self { $(LimitKind::$kind => $name,)+ }
            }

            /// The stable error code; `docs/errors/` has a page for it.
            pub fn code(self) -> &'static str {
                match self { $(LimitKind::$kind => $code,)+ }
            }
        }
    };
}

limit_kinds! {
    CallTime "call-ms-max" "LC0720" "the call ran too long and was stopped";
    LoadTime "load-ms-max" "LC0721" "the module took too long to load and was stopped";
    Memory "memory-bytes-max" "LC0722" "the module asked for more memory than it may have";
    Stack "stack-bytes-max" "LC0723" "the module's call stack is exhausted";
    Iterators "iterators-max" "LC0724" "the module holds too many open row iterators";
    IteratorBytes "iterator-bytes-max" "LC0724" "the module's open row iterators hold too many bytes";
    Sources "sources-max" "LC0724" "the module holds too many unread byte sources";
    SourceBytes "source-bytes-max" "LC0724" "the module's unread byte sources hold too many bytes";
    ConsoleTimers "console-timers-max" "LC0724" "the module has too many running console timers";
    TransactionTime "procedure-transaction-ms-max" "LC0735" "a transaction of a procedure held up the others for too long and was rolled back";
    ProcedureTime "procedure-seconds-max" "LC0735" "the procedure took too long and was stopped";
    ProcedureMemory "procedure-memory-bytes-max" "LC0722" "the instances of the database's procedures have no more memory";
    AllProceduresMemory "procedures-memory-percent, in bytes" "LC0722" "the calls beside the writers of all databases have no more memory";
    ImmediateCalls "immediate-calls-max" "LC0724" "too many calls wait that were to run immediately";
    ProcedureBytes "procedure-bytes-max" "LC0724" "the transactions of a procedure changed too much";
}

impl HostTrap {
    /// A limit, with its value, was exceeded.
    #[cold]
    pub fn limit(kind: LimitKind, limit: usize) -> HostTrap {
        HostTrap::Limit {
            kind,
            limit: limit as u64,
        }
    }
}

/// Why a program cannot be loaded or instantiated. The text is the body of the answer to a publish.
#[derive(Debug, Error)]
pub enum HostError {
    #[error("the module engine could not be set up: {0} [LC0320]")]
    Engine(String),
    /// The bytes are not a program of this kind.
    #[error("the module could not be compiled: {0} [LC0321]")]
    Compile(String),
    #[error("compiling the module would take {0} [LC0726]")]
    CompileCost(String),
    /// An import-module name starts with `spacetime_` but no version follows (spec 03 §3.2).
    #[error("import module \"{0}\" has malformed version string")]
    MalformedAbiVersion(String),
    /// No import tells the ABI version.
    #[error("unable to determine ABI of module (may be on an spacetime version < 0.8)")]
    UnknownAbi,
    /// Imports of two major versions.
    #[error("module cannot depend on both major version {0} and major version {1}")]
    MixedAbi(u16, u16),
    #[error(
        "abi version {major}.{minor} is not supported (host implements {host_major}.{host_minor})"
    )]
    UnsupportedAbi {
        /// The version that the module imports.
        major: u16,
        minor: u16,
        /// The version of this host.
        host_major: u16,
        host_minor: u16,
    },
    /// A version that the host does not implement, and which of its functions the module imports.
    #[error("{abi}; missing: {imports}")]
    MissingImports {
        abi: Box<HostError>,
        imports: String,
    },
    /// An import that the host does not have, or has with another type. The text is the engine's.
    #[error("{0}")]
    Link(String),
    #[error("there should be a memory export called \"memory\" but it does not exist")]
    NoMemory,
    /// An export is missing or has the wrong type.
    #[error("the module should export `{name}` as {expected}, but it {found} [LC0322]")]
    Export {
        name: String,
        expected: &'static str,
        found: String,
    },
    /// Its memory is larger than allowed, or its data does not fit.
    #[error("the module could not be instantiated: {0} [LC0323]")]
    Instantiate(String),
    /// The process has no memory mappings left for instances.
    #[error(
        "the server has no memory mappings left for one more instance: those that run and wait have {0}, which is their part of \
         vm.max_map_count; try again when some calls have ended, or raise it [LC0729]"
    )]
    Mappings(usize),
    /// Code of the load phase trapped.
    #[error("the module failed while loading, in `{export}`: {message} [LC0324]")]
    LoadTrap {
        export: String,
        /// The trap and its place.
        message: String,
    },
    /// The load phase exceeded a limit.
    #[error("{trap} (in `{export}`)")]
    LoadLimit { export: String, trap: HostTrap },
    /// A script failed while it was evaluated, or while its hooks were read; the text has the exception and its stack.
    #[error("{0}")]
    Script(String),
    #[error("setup function returned an error: {0}")]
    Setup(String),
    #[error("setup function returned the unknown code {0} [LC0325]")]
    SetupCode(i32),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_the_limit_and_its_page() {
        let trap = HostTrap::Limit {
            kind: LimitKind::CallTime,
            limit: 10_000,
        };
        assert_eq!(
            trap.to_string(),
            "the call ran too long and was stopped: call-ms-max = 10000 [LC0720]"
        );
        assert_eq!(
            HostTrap::AsyncOnly("procedure_http_request").to_string(),
            "procedure_http_request is only available in async instances"
        );
        let error = HostError::UnsupportedAbi {
            major: 10,
            minor: 7,
            host_major: 10,
            host_minor: 6,
        };
        assert_eq!(
            error.to_string(),
            "abi version 10.7 is not supported (host implements 10.6)"
        );
    }
}
