//! A look into a WebAssembly file: the names of its imports and exports.

/// What a module asks of its host, and what it offers.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Module and field of each import.
    pub imports: Vec<(String, String)>,
    pub exports: Vec<String>,
}

/// Reads the import and export sections; `None` if the bytes are not a WebAssembly module.
pub fn names(bytes: &[u8]) -> Option<Names> {
    let mut input = Input(bytes.strip_prefix(b"\0asm\x01\0\0\0")?);
    let mut names = Names::default();
    while !input.0.is_empty() {
        let id = input.byte()?;
        let length = input.number()?;
        let mut section = Input(input.take(length)?);
        match id {
            2 => {
                for _ in 0..section.number()? {
                    let import = (section.name()?, section.name()?);
                    section.skip_import_type()?;
                    names.imports.push(import);
                }
            }
            7 => {
                for _ in 0..section.number()? {
                    names.exports.push(section.name()?);
                    section.byte()?;
                    section.number()?;
                }
            }
            _ => {}
        }
    }
    Some(names)
}

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// An unsigned LEB128 number.
    fn number(&mut self) -> Option<u32> {
        let mut value = 0u64;
        for shift in (0..35).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(value).ok();
            }
        }
        None
    }

    fn take(&mut self, length: u32) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length as usize)?;
        self.0 = rest;
        Some(taken)
    }

    fn name(&mut self) -> Option<String> {
        let length = self.number()?;
        Some(String::from_utf8_lossy(self.take(length)?).into_owned())
    }

    fn skip_limits(&mut self) -> Option<()> {
        let flags = self.byte()?;
        self.number()?;
        if flags & 1 != 0 {
            self.number()?;
        }
        Some(())
    }

    fn skip_import_type(&mut self) -> Option<()> {
        match self.byte()? {
            0 => self.number().map(drop),
            1 => {
                self.byte()?;
                self.skip_limits()
            }
            2 => self.skip_limits(),
            3 => {
                self.byte()?;
                self.byte().map(drop)
            }
            4 => {
                self.byte()?;
                self.number().map(drop)
            }
            _ => None,
        }
    }
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
