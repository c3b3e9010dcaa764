//! What the fuzz targets do with their input, as far as it takes public functions only. Tests of the crates take these files too.

pub mod http;
pub mod log_segment;
pub mod module_def;
pub mod module_def_json;
pub mod query;
pub mod types;
pub mod wire;
