//! The JavaScript adapter of the module host (spec 04).
//!
//! A program is one ES module. It imports the host's functions from virtual modules ([`specifier`]) and hands over its hooks; this
//! crate evaluates it, finds the hooks and calls them. `lightcone-host` carries out the host functions, for WebAssembly and
//! JavaScript alike.
//!
//! Cargo features choose one of two engines: `v8` (fast, the default where its library is available) and `quickjs` (small, builds
//! everywhere with a C compiler). An engine brings a `Realm`, how its isolate is entered, left and stopped, and a `Scope`, the
//! operations of the language. All else is shared:
//!
//! | module | what |
//! |---|---|
//! | `instance` | what the database calls, over a `Realm` |
//! | `invoke` | one call of a hook: arguments, result, what it threw, over a `Scope` (§5.2, §6.2) |
//! | `hooks` | how the hooks are found (§6.1) |
//! | `host_calls` | what the host functions do, over a `Call` of either engine (§4) |
//! | [`specifier`] | which imports resolve, and the texts when they do not (§3) |
//! | [`messages`] | texts of argument checks, hook lookup and results (§4.1, §6) |
//! | [`sys`] | the list of the host functions with their versions (§4.2, §10) |
//! | [`frame`], [`trace`] | stack frames, the text of an exception (§9) |
//! | [`source_map`] | from positions in the bundle to those in the sources (§9) |
//! | [`program`] | the program's text and its source map (§1) |
//! | `legacy.js` | version 1 of the host functions, made of version 2 (§10) |

// Without an engine, for fuzz targets, the shared code is unused.
#![cfg_attr(not(any(feature = "v8", feature = "quickjs")), allow(dead_code))]

pub mod frame;
mod hooks;
mod host_calls;
mod instance;
mod invoke;
pub mod messages;
mod options;
pub mod program;
mod scope;
pub mod source_map;
pub mod specifier;
pub mod sys;
pub mod trace;

#[cfg(feature = "quickjs")]
pub mod quickjs;
#[cfg(feature = "v8")]
pub mod v8;

use std::sync::Arc;

use lightcone_host::{HostError, ModuleEngine};

pub use options::JsEngineOptions;

/// The engine of this build with its version, if it has one.
pub fn engine_name() -> Option<String> {
    #[cfg(feature = "v8")]
    return Some(v8::name());
    #[cfg(all(feature = "quickjs", not(feature = "v8")))]
    return Some(quickjs::name());
    #[cfg(not(any(feature = "v8", feature = "quickjs")))]
    None
}

/// The engine of this build. Fails without one.
#[cfg_attr(not(any(feature = "v8", feature = "quickjs")), allow(unused_variables))]
pub fn engine(options: JsEngineOptions) -> Result<Arc<dyn ModuleEngine>, HostError> {
    #[cfg(feature = "v8")]
    return Ok(Arc::new(v8::V8Engine::new(options)?));
    #[cfg(all(feature = "quickjs", not(feature = "v8")))]
    return Ok(Arc::new(quickjs::QuickJsEngine::new(options)?));
    #[cfg(not(any(feature = "v8", feature = "quickjs")))]
    Err(HostError::Engine(
        "this build runs no JavaScript modules: it was made without the features v8 and quickjs"
            .to_owned(),
    ))
}
