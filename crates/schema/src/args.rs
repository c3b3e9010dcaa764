//! Checking argument bytes before they go to a module, on the path of every call.

use lightcone_types::bsatn::{self, DecodeError, Reader};
use lightcone_types::{AlgebraicType, ProductType, Typespace};

/// A parameter list turned into as few steps as possible, so that checking arguments of a list of
/// plain numbers is one comparison of lengths.
#[derive(Clone, Debug, Default)]
pub(crate) struct ArgsLayout {
    steps: Vec<Step>,
}

#[derive(Clone, Debug)]
enum Step {
    /// Unchecked bytes.
    Skip(usize),
    Bool,
    String,
    /// A counted list of elements of this many bytes of any content.
    Array(usize),
    /// Anything else, checked by following its type.
    General(AlgebraicType),
}

/// Products are taken apart this deep, and into this many steps; what is larger is checked by its type.
const DEPTH_MAX: usize = 8;
const STEPS_MAX: usize = 64;

impl ArgsLayout {
    pub(crate) fn new(typespace: &Typespace, params: &ProductType) -> Self {
        let mut layout = ArgsLayout::default();
        for param in &params.elements {
            let before = layout.clone();
            if !layout.push(typespace, &param.algebraic_type, 0) {
                layout = before;
                layout
                    .steps
                    .push(Step::General(param.algebraic_type.clone()));
            }
        }
        layout
    }

    /// Adds the steps of one type; false if it is too large to be taken apart.
    fn push(&mut self, typespace: &Typespace, ty: &AlgebraicType, depth: usize) -> bool {
        if depth > DEPTH_MAX || self.steps.len() >= STEPS_MAX {
            return false;
        }
        let Ok(ty) = typespace.follow(ty) else {
            return false;
        };
        if let Some(bytes) = plain_size(ty) {
            match self.steps.last_mut() {
                Some(Step::Skip(sum)) => *sum += bytes,
                _ => self.steps.push(Step::Skip(bytes)),
            }
            return true;
        }
        match ty {
            AlgebraicType::Product(product) => {
                return product
                    .elements
                    .iter()
                    .all(|e| self.push(typespace, &e.algebraic_type, depth + 1));
            }
            AlgebraicType::Bool => self.steps.push(Step::Bool),
            AlgebraicType::String => self.steps.push(Step::String),
            AlgebraicType::Array(element) => {
                let element = typespace.follow(element).ok();
                self.steps.push(match element.and_then(plain_size) {
                    Some(bytes) => Step::Array(bytes),
                    None => Step::General(ty.clone()),
                });
            }
            other => self.steps.push(Step::General(other.clone())),
        }
        true
    }

    #[inline]
    pub(crate) fn validate(
        &self,
        typespace: &Typespace,
        params: &ProductType,
        bytes: &[u8],
    ) -> Result<usize, DecodeError> {
        match &self.steps[..] {
            [] => return Ok(0),
            [Step::Skip(size)] if bytes.len() >= *size => return Ok(*size),
            _ => {}
        }
        match self.walk(typespace, bytes) {
            Some(size) => Ok(size),
            None => Self::explain(typespace, params, bytes),
        }
    }

    /// The size of the arguments; `None` if they are malformed.
    fn walk(&self, typespace: &Typespace, bytes: &[u8]) -> Option<usize> {
        let mut rest = bytes;
        for step in &self.steps {
            rest = match step {
                Step::Skip(size) => rest.get(*size..)?,
                Step::Bool => {
                    let (byte, rest) = rest.split_first()?;
                    (*byte <= 1).then_some(rest)?
                }
                Step::String => {
                    let (text, rest) = counted(rest, 1)?;
                    std::str::from_utf8(text).ok()?;
                    rest
                }
                Step::Array(size) => counted(rest, *size)?.1,
                Step::General(ty) => {
                    let mut reader = Reader::new(rest);
                    bsatn::validate(typespace, ty, &mut reader).ok()?;
                    reader.remaining()
                }
            };
        }
        Some(bytes.len() - rest.len())
    }

    /// Checks malformed arguments once more by their types, for the exact error.
    #[cold]
    fn explain(
        typespace: &Typespace,
        params: &ProductType,
        bytes: &[u8],
    ) -> Result<usize, DecodeError> {
        let mut reader = Reader::new(bytes);
        bsatn::validate_product(typespace, params, &mut reader)?;
        Ok(reader.position())
    }
}

fn counted(bytes: &[u8], element_bytes: usize) -> Option<(&[u8], &[u8])> {
    let (count, rest) = bytes.split_first_chunk::<4>()?;
    let size = (u32::from_le_bytes(*count) as usize).checked_mul(element_bytes)?;
    rest.split_at_checked(size)
}

/// Size of a primitive of which every bit pattern is valid.
fn plain_size(ty: &AlgebraicType) -> Option<usize> {
    match ty {
        AlgebraicType::Integer(integer) => Some(integer.bytes()),
        AlgebraicType::F32 => Some(4),
        AlgebraicType::F64 => Some(8),
        _ => None,
    }
}
