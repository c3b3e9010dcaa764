//! The files that a project's configuration is merged from (07 §6.1).

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::place::{self, Step};
use crate::error::{Error, Result};

/// More than is written by hand; a parser should not see what was made to break it.
const FILE_BYTES_MAX: usize = 1 << 20;
const DEPTH_MAX: usize = 64;

/// One file, by itself: mistakes are told with the file that they are in.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Layer {
    pub path: PathBuf,
    text: String,
    /// Keys with `_`.
    pub settings: Map<String, Value>,
}

impl Layer {
    /// Parses one file; keys with `-` and `_` are the same, at every level that holds targets.
    pub fn parse(path: &Path, text: String) -> Result<Self> {
        let Value::Object(settings) = parse_json5(path, &text)? else {
            bail!("LC0607", "{} must hold an object: {{ … }}", path.display());
        };
        Ok(Self {
            path: path.to_owned(),
            text,
            settings: normalise(settings),
        })
    }

    /// `file:line:column`, or the file alone where the path leads nowhere in it.
    pub fn place(&self, path: &[Step]) -> Option<String> {
        let (line, column) = place::find(&self.text, path)?;
        Some(format!("{}:{line}:{column}", self.path.display()))
    }
}

/// Parses a file of a project, which may come from a stranger: the parser calls itself for each bracket.
pub fn parse_json5(path: &Path, text: &str) -> Result<Value> {
    let bad = |why: String| coded!("LC0607", "{} {why}", path.display());
    if text.len() > FILE_BYTES_MAX {
        return Err(bad(format!("is larger than {FILE_BYTES_MAX} bytes")));
    }
    if place::depth(text) > DEPTH_MAX {
        return Err(bad(format!(
            "has more than {DEPTH_MAX} brackets inside of each other"
        )));
    }
    json5::from_str(text).map_err(|e| {
        let place = e.position();
        let place = place.map(|place| format!(":{}:{}", place.line + 1, place.column + 1));
        let (path, place) = (path.display(), place.unwrap_or_default());
        let text = format!(
            "{path}{place} is not valid JSON5. Correct it, or pass --no-config to do without it"
        );
        Error::caused("LC0607", text, e)
    })
}

/// The same settings with `_` in the keys.
pub(super) fn normalise(map: Map<String, Value>) -> Map<String, Value> {
    map.into_iter()
        // A left-over of older tools.
        .filter(|(key, _)| key != "_source-config")
        .map(|(key, value)| {
            let key = key.replace('-', "_");
            let child = |child| match child {
                Value::Object(child) => Value::Object(normalise(child)),
                other => other,
            };
            let value = match value {
                Value::Array(children) if key == "children" => {
                    children.into_iter().map(child).collect()
                }
                other => other,
            };
            (key, value)
        })
        .collect()
}

/// Later layers win key by key, in `env` too; `children` are merged element by element, never made longer.
pub(super) fn merge(base: &mut Map<String, Value>, overlay: Map<String, Value>) {
    for (key, value) in overlay {
        match (base.get_mut(&key), value) {
            (Some(Value::Array(children)), Value::Array(overlays)) if key == "children" => {
                for (child, overlay) in children.iter_mut().zip(overlays) {
                    match (child, overlay) {
                        (Value::Object(child), Value::Object(overlay)) => merge(child, overlay),
                        (child, overlay) => *child = overlay,
                    }
                }
            }
            (Some(Value::Object(variables)), Value::Object(overlay)) if key == "env" => {
                variables.extend(overlay);
            }
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}
