//! What compiling a program would take, found in one pass over it.
//!
//! The compiler needs memory that is far from linear in the size of a program: for each local of a function it keeps what the
//! local holds in each of the function's blocks. A program of a few megabytes that is made for it takes all the memory of the
//! machine, and nothing stops a compiler that runs. So programs are looked at before. The figures below were measured with
//! programs that consist of little else than what they are for (Wasmtime 48).

use lightcone_host::HostError;
use wasmparser::{CompositeInnerType, FunctionBody, Operator, Parser, Payload};

/// What compiling may take by the estimate.
pub(crate) const COMPILE_BYTES_MAX: u64 = 2 << 30;

/// What stays of an instruction in the compiled program and in what is written to the cache.
const OUTPUT_BYTES_PER_OPERATOR: u64 = 32;
/// What an instruction takes while its function is compiled.
const BYTES_PER_OPERATOR: u64 = 300;
/// What a local takes in each block of its function.
const BYTES_PER_LOCAL_AND_BLOCK: u64 = 50;
/// What a local takes in each loop, whose begin gets every local that may change in it as a parameter.
const BYTES_PER_LOCAL_AND_LOOP: u64 = 1600;
/// What a function takes beyond its instructions.
const BYTES_PER_FUNCTION: u64 = 4 << 10;

/// The size of one function, as far as the compiler's memory depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Shape {
    locals: u64,
    operators: u64,
    /// Places where control flow parts or meets.
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

/// Refuses programs that would take too much memory to compile with so many threads.
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
    /// With the imported ones counted first, as the format does.
    largest_index: u64,
}

fn estimate(program: &[u8], threads: usize) -> Result<Estimate, wasmparser::BinaryReaderError> {
    let mut found = Estimate::default();
    // Parameters of each type, type of each function.
    let mut parameters: Vec<u32> = Vec::new();
    let mut functions: Vec<u32> = Vec::new();
    let (mut imported, mut index) = (0_u64, 0_usize);
    // The functions that may be compiled at the same time: the most expensive ones.
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
