//! The server program `spacetimedb-standalone`.

/// Buffers are made by one thread and freed by another all the time, which the allocator of the C library is slow at
/// (docs/architecture.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    lightcone_cli::standalone::main()
}
