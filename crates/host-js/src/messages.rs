//! Texts that programs and their authors see: argument checks (§4.1), hook lookup (§6.1), results (§6.2).

/// The program uses both ways (§10).
pub const TWO_VERSIONS_OF_HOOKS: &str = "cannot call `register_hooks` from different versions";
pub const NO_DEFAULT_EXPORT: &str = "must export schema as default export";
pub const DEFAULT_EXPORT_NO_OBJECT: &str = "default export is not a Schema object";
pub const REDUCER_RETURNED: &str = "Reducer returned a value other than `undefined`";
/// A request of a procedure that cannot be read (spec 04 §4.2).
pub fn bad_http_request(error: impl std::fmt::Display) -> String {
    format!("failed to decode http request: {error}")
}

pub const PROCEDURE_RETURNED: &str = "Expected `Uint8Array` return from `__call_procedure__`";
pub const VIEW_RETURNED: &str =
    "Expected an object with `data: Uint8Array` from the hook of a view";
/// An array of two `Uint8Array`.
pub const HANDLER_RETURNED: &str = "tuple return from `__call_http_handler__`";
/// For modules of older packages.
pub const NO_HTTP_HANDLER_HOOK: &str = "the module has no hook `__call_http_handler__`";
/// A RangeError.
pub const LENGTH_OUT_OF_BOUNDS: &str = "length argument was out of bounds for `ArrayBuffer`";
/// A RangeError, in the engine's own words.
pub const NO_ROOM_FOR_BUFFER: &str = "Array buffer allocation failed";
/// Top-level `await` that did not settle.
pub const PENDING: &str = "module has top-level await and is pending";
/// The resource name of the program in traces.
pub const RESOURCE_NAME: &str = "spacetimedb_module";
/// Frames from this function on are not shown.
pub const END_SHORT_BACKTRACE: &str = "__spacetimedb_end_short_backtrace";
/// The property of the object that `row_iter_bsatn_advance` throws.
pub const BUFFER_TOO_SMALL: &str = "__buffer_too_small__";

/// The buffer of a row, relation or point.
pub const BUFFER: &str = "buffer";
/// The buffer of a scan or iterator function.
pub const ARRAY_BUFFER: &str = "`ArrayBuffer`";
/// A text.
pub const STRING: &str = "`string`";
/// Bytes that are not in the buffer of a call.
pub const BYTES: &str = "`Uint8Array`";

/// What was expected; `got` is the name of the value's type (see the engines' `type_name`).
pub fn expected(what: &str, got: &str) -> String {
    format!("Expected {what}, got {got}")
}

/// The value has the right type, but is too large, too small, or not integral.
pub fn overflowed(abi_type: &str) -> String {
    format!("Value overflowed `{abi_type}`")
}
