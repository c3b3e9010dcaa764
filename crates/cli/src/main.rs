//! The one program of Lightcone: the command `spacetime`, and the server when its first argument says so.

/// Buffers are made by one thread and freed by another all the time, which the allocator of the C library is slow at
/// (docs/architecture.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    let mut args = std::env::args_os();
    let program = args.next().unwrap_or_default();
    let mut rest = args.peekable();
    match rest.next_if(|first| *first == lightcone_cli::standalone::PROGRAM) {
        Some(_) => lightcone_cli::standalone::main(std::iter::once(program).chain(rest)),
        None => lightcone_cli::cli::main(),
    }
}
