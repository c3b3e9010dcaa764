//! The memory that compiling a program would take, estimated in one pass over it.
//!
//! For each local of a function, the compiler keeps what it holds in each block: far more than linear in the size of the program. A
//! hostile program of a few megabytes could take all memory of the machine, and a running compiler cannot be stopped. So programs
//! are estimated first. The figures were measured with programs that consist almost entirely of one construct (Wasmtime 48).

use lightcone_host::HostError;
use wasmparser::{CompositeInnerType, FunctionBody, Operator, Parser, Payload};

pub(crate) const COMPILE_BYTES_MAX: u64 = 2 << 30;

/// The size of an instruction in the compiled program and in the cache file.
const OUTPUT_BYTES_PER_OPERATOR: u64 = 32;
/// The memory for an instruction while its function is compiled.
const BYTES_PER_OPERATOR: u64 = 300;
const BYTES_PER_LOCAL_AND_BLOCK: u64 = 50;
/// The beginning of a loop gets every local that may change in it as a parameter.
const BYTES_PER_LOCAL_AND_LOOP: u64 = 1600;
/// Beyond its instructions.
const BYTES_PER_FUNCTION: u64 = 4 << 10;

/// The size of a function, as far as the compiler's memory depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Shape {
    locals: u64,
    operators: u64,
    /// Places where control flow splits or joins.
    blocks: u64,
    loops: u64,
}

impl Shape {
    fn bytes(self) -> u64 {
        let per_local =
            (self.blocks + 1) * BYTES_PER_LOCAL_AND_BLOCK + self.loops * BYTES_PER_LOCAL_AND_LOOP;
        self.locals
            .saturating_mul(per_local)
            .saturating_add(self.operators.saturating_mul(BYTES_PER_OPERATOR))
            .saturating_add(BYTES_PER_FUNCTION)
    }
}

/// Refuses programs that would take too much memory with so many threads.
pub(crate) fn check(program: &[u8], threads: usize) -> Result<(), HostError> {
    let estimate =
        estimate(program, threads).map_err(|error| HostError::Compile(error.to_string()))?;
    if estimate.bytes <= COMPILE_BYTES_MAX {
        return Ok(());
    }
    let Shape {
        locals,
        operators,
        blocks,
        loops,
    } = estimate.largest;
    Err(HostError::CompileCost(format!(
        "about {} MiB of memory, and {} MiB are allowed; its largest function, number {}, has {operators} instructions, {locals} locals, {blocks} branches and {loops} loops, and all together have {} instructions",
        estimate.bytes >> 20,
        COMPILE_BYTES_MAX >> 20,
        estimate.largest_index,
        estimate.operators,
    )))
}

#[derive(Debug, Default)]
struct Estimate {
    bytes: u64,
    operators: u64,
    largest: Shape,
    /// Imported ones come first, as in the format.
    largest_index: u64,
}

fn estimate(program: &[u8], threads: usize) -> Result<Estimate, wasmparser::BinaryReaderError> {
    let mut found = Estimate::default();
    // Parameters of each type; type of each function.
    let mut parameters: Vec<u32> = Vec::new();
    let mut functions: Vec<u32> = Vec::new();
    let (mut imported, mut index) = (0_u64, 0_usize);
    // The most expensive functions, which may be compiled at the same time.
    let mut most: Vec<u64> = vec![0; threads.max(1)];
    for payload in Parser::new(0).parse_all(program) {
        match payload? {
            Payload::TypeSection(section) => {
                for group in section {
                    for ty in group?.types() {
                        parameters.push(match &ty.composite_type.inner {
                            CompositeInnerType::Func(function) => function.params().len() as u32,
                            _ => 0,
                        });
                    }
                }
            }
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    if matches!(import?.ty, wasmparser::TypeRef::Func(_)) {
                        imported += 1;
                    }
                }
            }
            Payload::FunctionSection(section) => {
                for ty in section {
                    functions.push(ty?);
                }
            }
            Payload::CodeSectionEntry(body) => {
                let ty = functions.get(index).copied().unwrap_or_default();
                let arguments = parameters.get(ty as usize).copied().unwrap_or_default();
                let shape = shape(&body, arguments)?;
                let bytes = shape.bytes();
                found.operators += shape.operators;
                if bytes > found.largest.bytes() || index == 0 {
                    found.largest = shape;
                    found.largest_index = imported + index as u64;
                }
                if let Some(least) = most.iter_mut().min() {
                    *least = bytes.max(*least);
                }
                index += 1;
            }
            _ => {}
        }
    }
    let at_once = most
        .iter()
        .fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
    found.bytes = at_once
        .saturating_add(found.operators * OUTPUT_BYTES_PER_OPERATOR)
        .saturating_add(index as u64 * BYTES_PER_FUNCTION / 8);
    Ok(found)
}

fn shape(body: &FunctionBody<'_>, arguments: u32) -> Result<Shape, wasmparser::BinaryReaderError> {
    let mut shape = Shape {
        locals: arguments.into(),
        ..Shape::default()
    };
    for group in body.get_locals_reader()? {
        shape.locals += u64::from(group?.0);
    }
    let mut operators = body.get_operators_reader()?;
    while !operators.eof() {
        shape.operators += 1;
        shape.blocks += match operators.read()? {
            Operator::Loop { .. } => {
                shape.loops += 1;
                2
            }
            Operator::Block { .. } | Operator::Else | Operator::Br { .. } => 1,
            Operator::If { .. } | Operator::BrIf { .. } => 2,
            Operator::BrTable { targets } => {
                shape.operators += u64::from(targets.len());
                u64::from(targets.len()) + 1
            }
            _ => 0,
        };
    }
    Ok(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimated(text: &str) -> Estimate {
        estimate(&wat::parse_str(text).unwrap(), 2).unwrap()
    }

    #[test]
    fn shapes_are_counted() {
        let found = estimated(
            "(module (import \"a\" \"b\" (func (param i32)))\n\
             (func (param i32 i64) (local i32 i32) (block (loop (br_if 0 (local.get 0))) (br_table 0 0 0 (i32.const 1))))\n\
             (func))",
        );
        let expected = Shape {
            locals: 4,
            operators: 11,
            blocks: 8,
            loops: 1,
        };
        assert_eq!((found.largest, found.largest_index), (expected, 1));
        assert_eq!(found.operators, 12);
    }

    #[test]
    fn the_functions_that_are_compiled_at_once_count_together() {
        let one = "(func (local i64 i64) (loop (br_if 0 (i32.const 0))))";
        let small = "(func)";
        let of = |functions: &str| estimated(&format!("(module {functions})")).bytes;
        let two = of(&format!("{one}{one}"));
        assert!(two > of(&format!("{one}{small}")));
        let third = of(&format!("{small}{one}{one}{one}")) - two;
        assert!(third < 4096, "a third one only adds code: {third}");
    }

    #[test]
    fn bytes_that_are_no_program_are_refused() {
        for bytes in [
            &b""[..],
            b"\0asm",
            b"nonsense",
            b"\0asm\x01\0\0\0\x0a\x05\x01\xff",
        ] {
            assert!(check(bytes, 1).is_err(), "{bytes:?}");
        }
    }
}
