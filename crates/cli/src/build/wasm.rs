//! A look into a WebAssembly file: the names of its imports and exports.

use std::path::Path;

use wasmparser::{Parser, Payload};

use crate::error::{FileResult as _, Result};

/// What a module asks of its host, and what it offers.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Module and field of each import.
    pub imports: Vec<(String, String)>,
    pub exports: Vec<String>,
}

/// Those of a file, which must be a WebAssembly module.
pub fn names_of(path: &Path) -> Result<Names> {
    let bytes = std::fs::read(path).or_cannot("read", path)?;
    let path = path.display();
    names(&bytes).ok_or_else(|| coded!("LC0613", "{path}: this is no WebAssembly module"))
}

/// Reads the import and export sections; `None` if the bytes are not a WebAssembly module.
fn names(bytes: &[u8]) -> Option<Names> {
    let mut names = Names::default();
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.ok()? {
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    let import = import.ok()?;
                    let import = (import.module.to_owned(), import.name.to_owned());
                    names.imports.push(import);
                }
            }
            Payload::ExportSection(exports) => {
                for export in exports {
                    names.exports.push(export.ok()?.name.to_owned());
                }
            }
            _ => {}
        }
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `(module (import "env" "f" (func)) (memory (export "m") 1))`, by hand.
    const EXAMPLE: &[u8] = b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x02\x09\x01\x03env\x01f\0\0\x05\x03\x01\0\x01\x07\x05\x01\x01m\x02\0";

    #[test]
    fn imports_and_exports() {
        let names = names(EXAMPLE).expect("a module");
        assert_eq!(names.imports, [("env".to_owned(), "f".to_owned())]);
        assert_eq!(names.exports, ["m"]);
    }

    #[test]
    fn cut_short_it_is_no_module() {
        // Cut between sections it still is one.
        let whole = [8, 14, 25, 30, EXAMPLE.len()];
        for end in 0..EXAMPLE.len() {
            assert_eq!(
                names(&EXAMPLE[..end]).is_some(),
                whole.contains(&end),
                "{end}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = names(&[b"\0asm\x01\0\0\0", bytes.as_slice()].concat());
        }
    }
}
